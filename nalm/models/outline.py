"""Modules of which only the form counts: nothing is allocated or drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["outline"]


@contextmanager
def outline() -> Iterator[None]:
    """Parameters that are made within have a shape and no numbers.

    >>> from nalm.units import NAU
    >>> with outline():
    ...     print(NAU(2, 1).weight.device)
    meta
    """
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    """To draw a tensor without numbers, torch imports its compiler, a second in which nothing happens."""

    def __torch_function__(
        self, function: Callable, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in (torch.Tensor.normal_, torch.Tensor.uniform_):
            return args[0]
        return function(*args, **(kwargs or {}))
