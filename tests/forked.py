"""Processes that start at once: they are forked from one that has imported the library and done nothing."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["PROCESSES", "run_script"]

PROCESSES = multiprocessing.get_context("forkserver")
# Every training imports the latter: half of what a process takes to begin.
PROCESSES.set_forkserver_preload(["nalm.records", "torch._dynamo"])


def run_script(
    script: Path, *arguments: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """What ``python SCRIPT ARGUMENTS`` does and says, in the script's folder."""
    with tempfile.TemporaryDirectory() as folder:
        said = [Path(folder, name) for name in ("out", "err")]
        process = PROCESSES.Process(target=_be, args=(script, arguments, dict(environment), said))
        process.start()
        process.join()
        out, err = (file.read_text() for file in said)
    return subprocess.CompletedProcess([script, *arguments], process.exitcode or 0, out, err)


def _be(script: Path, arguments: tuple[str, ...], environment: dict[str, str], said: list[Path]) -> None:
    for number, file in enumerate(said, 1):
        with open(file, "w") as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(script.parent)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[:0] = [str(script), *arguments], [str(script.parent)]
    runpy.run_path(str(script), run_name="__main__")
