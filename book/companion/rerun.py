"""``make rerun``: papermill's command, but what it refuses is said in one sentence.

Where a cell failed, and why, stands in the chapter as far as it was executed; what its processes wrote stands
in a file beside it that ends with ``.log``.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType

import click
from papermill.cli import papermill
from papermill.exceptions import PapermillExecutionError

__all__ = ["main"]

STOPPED = "Stopped. What was finished is recorded, and the same command goes on from there."
PATIENCE = 10
"""Seconds that a stopped chapter has to end by itself."""
OURS = ("ValueError", "TypeError", "RuntimeError")
"""Errors that are sentences; others need their name."""


def main(chapter: str, executed: str, *options: str) -> int:
    """The exit code of papermill: 0, 1 for a cell that failed, 2 for what papermill itself refuses, 130 if it
    was stopped.
    """
    # tasks that Ctrl-C ended are not worth a word
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    arguments = [chapter, executed, "--kernel", "python3", "--log-level", "ERROR", *options]
    try:
        papermill.main(arguments, standalone_mode=False)
    except PapermillExecutionError as error:
        if error.ename == "KeyboardInterrupt":
            return _say(STOPPED, 130)
        return _say(_sentence(error.ename, error.evalue), 1)
    except (KeyboardInterrupt, click.Abort):
        return _say(STOPPED, 130)
    except click.ClickException as error:
        return _say(error.format_message(), 2)
    except Exception as error:  # of papermill, of the notebook's format, of the disk
        return _say(_sentence(type(error).__name__, str(error)), 2)
    return 0


def _end_soon(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: in some callbacks Python ignores what is raised, so an alarm ends the process if that does not.

    The kernel and its workers end with it.
    """
    signal.signal(signal.SIGALRM, lambda *_: os._exit(_say(STOPPED, 130)))
    signal.alarm(PATIENCE)
    raise KeyboardInterrupt


def _let_processes_write_to(log: Path) -> None:
    """The kernel and its workers write to a file from now on, and this process to the screen as before."""
    sys.stderr = open(os.dup(2), "w", encoding="utf-8")
    with open(log, "wb") as stream:
        os.dup2(stream.fileno(), 2)


def _sentence(name: str, said: str) -> str:
    """The first line of an error."""
    first = next((line.strip() for line in said.splitlines() if line.strip()), "")
    if not first:
        return f"{name}."
    return first if name in OURS else f"{name}: {first}"


def _say(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _end_soon)
    if len(sys.argv) < 3:
        sys.exit(_say("Name a chapter and where it is written, executed.", 2))
    log = Path(sys.argv[2]).with_suffix(".log")
    try:
        _let_processes_write_to(log)
    except OSError as refused:
        sys.exit(_say(f"{log} cannot be written ({refused.strerror}); name another place.", 2))
    sys.exit(main(*sys.argv[1:]))
