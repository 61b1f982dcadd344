"""The row of a run with what its model observes. Apart from :mod:`nalm.records.row`, on which every published row depends."""

from __future__ import annotations

from typing import Any

import torch

from nalm.models import GatedStack
from nalm.records.row import row_of
from nalm.training import Log, Run

__all__ = ["whole_row_of"]


def whole_row_of(run: Run, column: int, log: Log, experiment: str, batch: str) -> dict[str, Any]:
    """:func:`row_of` and, of a :class:`GatedStack`, the mean gate over the validation inputs.

    Args:
        run, column, log, experiment, batch: as :func:`row_of` takes them.
    """
    row = row_of(run, column, log, experiment, batch)
    if not isinstance(run.model, GatedStack):
        return row
    weights = {name: torch.from_numpy(values[column]) for name, values in log.weights.items()}
    return row | run.model.observed(weights, run.task.evaluation(run.seed)["valid"].inputs)
