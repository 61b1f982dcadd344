"""How a command ends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

__all__ = ["exit_with"]

STOPPED = 130
"""The exit code of what Ctrl-C has ended."""


def exit_with(main: Callable[[], int | None]) -> NoReturn:
    """End the process with what ``main`` returns; Ctrl-C is a sentence and the exit code 130.

    Args:
        main: does what the command is for, and returns its exit code; nothing stands for 0.

    >>> exit_with(lambda: 2)
    Traceback (most recent call last):
        ...
    SystemExit: 2
    """
    try:
        code = main()
    except KeyboardInterrupt:
        print("Stopped; what was recorded stays.", file=sys.stderr)
        code = STOPPED
    sys.exit(code)
