"""Processes of one's own, none of which outlives the process that asked for them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["own_processes"]


def own_processes(
    number: int, begin: Callable[..., None] | None = None, arguments: tuple = (), context: Any = None
) -> ProcessPoolExecutor:
    """An executor with so many processes, which end when this one does, even if it is killed.

    Args:
        number: how many, at most.
        begin: called in each of them first, with ``arguments``.
        context: of :mod:`multiprocessing`, where processes come from; fresh ones if not given.

    >>> with own_processes(1) as executor:
    ...     executor.submit(pow, 2, 10).result()
    1024
    """
    context = context or multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(number, mp_context=context, initializer=_begin, initargs=(begin, arguments))


def _begin(begin: Callable[..., None] | None, arguments: tuple) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a process of one's own has a parent"

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    if begin is not None:
        begin(*arguments)
