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
from typing import IO, Any

__all__ = ["PROCESSES", "Popen", "run_script"]

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


class Popen:
    """What ``subprocess.Popen([PYTHON, SCRIPT, *ARGUMENTS])`` is, with the library that PYTHONPATH names."""

    def __new__(cls, command: list[str], **how: Any) -> Any:
        return super().__new__(cls) if command[0] == sys.executable else subprocess.Popen(command, **how)

    def __init__(
        self, command: list[str], stdout: int, stderr: IO[str], text: bool, env: Mapping[str, str], cwd: Path
    ) -> None:
        assert stdout == subprocess.PIPE and text
        script, *arguments = command[1:]
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder, "out")
            os.mkfifo(said)
            environment = dict(env)
            self._process = PROCESSES.Process(
                target=_be_anew, args=(Path(script), arguments, environment, [said, Path(stderr.name)], cwd)
            )
            self._process.start()
            self.stdout = open(said)  # noqa: SIM115 - as long as the process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0

    def kill(self) -> None:
        self._process.kill()
        self.stdout.close()


def _be_anew(
    script: Path, arguments: list[str], environment: dict[str, str], said: list[Path], folder: Path
) -> None:
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    for name in [name for name in sys.modules if name.partition(".")[0] == "nalm"]:
        del sys.modules[name]
    _be(script, tuple(arguments), environment, said, folder)


def _be(
    script: Path,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    said: list[Path],
    folder: Path | None = None,
) -> None:
    for number, file in enumerate(said, 1):
        with open(file, "w") as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(folder or script.parent)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(script), *arguments]
    if "PYTHONSAFEPATH" not in environment:
        sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
