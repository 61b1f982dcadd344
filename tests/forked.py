"""Processes that start at once: they are forked from one that has imported the library and done nothing."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

__all__ = ["PROCESSES", "Popen", "run_script", "start"]

PROCESSES = multiprocessing.get_context("forkserver")
# Every training imports the second: half of what a process takes to begin.
PROCESSES.set_forkserver_preload(["nalm.records", "torch._dynamo", "companion.benchmark.rates"])
INTERPRETERS = {sys.executable}


def start() -> None:
    """Start the one that others are forked from, before the benchmark does, which has it import less."""
    forkserver.ensure_running()


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
    """What ``subprocess.Popen([PYTHON, SCRIPT, *ARGUMENTS])`` is, with the library that PYTHONPATH names, if
    PYTHON is one of :data:`INTERPRETERS`.
    """

    def __new__(cls, command: list[str], **how: Any) -> Any:
        return super().__new__(cls) if command[0] in INTERPRETERS else subprocess.Popen(command, **how)

    def __init__(
        self, command: list[str], stdout: int, stderr: IO[str], text: bool, env: Mapping[str, str], cwd: Path
    ) -> None:
        assert stdout == subprocess.PIPE and text
        receiving, sending = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(
            target=_be_anew, args=(Path(command[1]), tuple(command[2:]), dict(env), sending, stderr.name, cwd)
        )
        self._process.start()
        sending.close()  # so that the output ends with the process
        self.stdout = open(os.dup(receiving.fileno()))  # noqa: SIM115 - as long as the process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0

    def kill(self) -> None:
        self._process.kill()
        self.stdout.close()


def _be_anew(
    script: Path,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    out: Connection,
    err: str,
    folder: Path,
) -> None:
    os.dup2(out.fileno(), 1)
    with open(err, "w") as stream:
        os.dup2(stream.fileno(), 2)
    for name in [name for name in sys.modules if name.partition(".")[0] == "nalm"]:
        del sys.modules[name]
    _run(script, arguments, environment, folder, environment["PYTHONPATH"])


def _be(script: Path, arguments: tuple[str, ...], environment: dict[str, str], said: list[Path]) -> None:
    for number, file in enumerate(said, 1):
        with open(file, "w") as stream:
            os.dup2(stream.fileno(), number)
    _run(script, arguments, environment, script.parent, str(script.parent))


def _run(
    script: Path, arguments: tuple[str, ...], environment: dict[str, str], folder: Path, library: str
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, sys.path[:0] = [str(script), *arguments], [library]
    runpy.run_path(str(script), run_name="__main__")
