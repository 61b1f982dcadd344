"""Operations on the two operands a and b of an arithmetic task, for torch tensors and NumPy arrays alike."""

from __future__ import annotations

import operator
from collections.abc import Callable

__all__ = ["OPERATIONS"]

OPERATIONS: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "squared": lambda a, b: a * a,
    "root": lambda a, b: a**0.5,
    "reciprocal": lambda a, b: 1 / a,
}
"""name -> op(a, b). ``squared``, ``root`` and ``reciprocal`` ignore b."""
