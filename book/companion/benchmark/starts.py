"""How long a fresh process takes to start training, with an empty folder of compiled code or with what an
earlier process has kept there.
"""

from __future__ import annotations

import builtins
import importlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from nalm.training import Ensemble, Run, kept

from companion.benchmark.rates import side_by_side

__all__ = ["Importing", "Start", "starts"]


@dataclass(frozen=True)
class Start:
    """Seconds from the first call into an ensemble to the end of its first update.

    Args:
        seconds: without those of importing modules.
        importing: spent on importing modules, most of them the compiler's.
    """

    seconds: float
    importing: float


class Importing:
    """Counts the ``seconds`` that this thread spends on importing modules within the context. An import
    within another is part of that one.

    >>> with Importing() as importing:
    ...     import wave
    >>> 0 < importing.seconds < 1
    True
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread, self._inside = threading.get_ident(), False

    def __enter__(self) -> Importing:
        self._before = builtins.__import__, importlib.import_module
        builtins.__import__, importlib.import_module = map(self._timed, self._before)
        return self

    def __exit__(self, *exception: object) -> None:
        builtins.__import__, importlib.import_module = self._before

    def _timed(self, load: Callable) -> Callable:
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._inside or threading.get_ident() != self._thread:
                return load(*arguments, **options)
            self._inside, start = True, time.perf_counter()
            try:
                return load(*arguments, **options)
            finally:
                self._inside = False
                self.seconds += time.perf_counter() - start

        return timed


def starts(runs: Sequence[Run], compiled: bool, processes: int) -> list[Start]:
    """The starts of an ensemble in fresh processes, one after another, which share a folder of compiled code
    that is empty at first.
    """
    with tempfile.TemporaryDirectory() as folder:
        return [side_by_side(_start, [(runs, compiled, folder)], here=False)[0] for _ in range(processes)]


def _start(runs: Sequence[Run], compiled: bool, folder: str) -> Start:
    torch.set_num_threads(1)
    os.environ.pop(kept.VARIABLE, None)
    kept.KEPT = Path(folder) / "compiled"
    with Importing() as importing:
        start = time.perf_counter()
        Ensemble(runs, compiled=compiled).warm_up()
        seconds = time.perf_counter() - start
    return Start(seconds - importing.seconds, importing.seconds)
