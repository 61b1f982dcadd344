"""Digests: whether the rows of a batch are those that were recorded."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["digests"]


def digests(rows: pd.DataFrame) -> dict[str, str]:
    """Batch -> sixteen hexadecimal digits that identify its rows, whatever their order, the order of the
    columns and the rows of other batches.

    Args:
        rows: as :meth:`nalm.records.Store.read` returns them.

    >>> rows = pd.DataFrame({"key": ["a-0", "a-1"], "batch": ["x", "x"], "test_mse": [1.0, 2.0]})
    >>> digests(rows.assign(remark=None)[::-1]) == digests(rows)
    True
    >>> digests(rows.assign(test_mse=[1.0, 2.5])) == digests(rows)
    False
    """
    # What is empty leaves no trace, as a column that only other batches have is empty here.
    cells = {name: _cells(name, values) for name, values in sorted(rows.items())}
    lines = pd.Series(
        ["".join(row) for row in zip(*cells.values(), strict=True)], index=rows.index, dtype=object
    )
    return {
        batch: hashlib.sha256("\n".join(sorted(of_batch)).encode()).hexdigest()[:16]
        for batch, of_batch in lines.groupby(rows["batch"])
    }


def _cells(name: str, values: pd.Series) -> list[str]:
    numbers, different = pd.factorize(values.to_numpy())  # what is missing has number -1
    texts = np.array([*(f"{name}={_text(value)};" for value in different), ""], dtype=object)
    return texts[numbers].tolist()


def _text(value: Any) -> str:
    """The same for a number, whether its column was read as integers, floats or text."""
    try:
        return str(value) if isinstance(value, bool) else repr(float(value))
    except ValueError:
        return str(value)
