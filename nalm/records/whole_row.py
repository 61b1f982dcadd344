"""The row of a run with what its model observes. Apart from :mod:`nalm.records.row`, on which every published row depends."""

from __future__ import annotations

import json
from typing import Any

import torch

from nalm.models import DigitSequence, GatedStack
from nalm.records.lows import record_lows
from nalm.records.row import row_of
from nalm.training import Log, Run

__all__ = ["whole_row_of"]


def whole_row_of(run: Run, column: int, log: Log, experiment: str, batch: str) -> dict[str, Any]:
    """:func:`row_of` and further columns.

    Of a :class:`GatedStack`, ``gate``: the mean gate over the validation inputs. Of a :class:`DigitSequence`, whose threshold is only known when its
    reference runs are, ``lows``: what :func:`nalm.records.lows.first_below` needs to tell when it was solved, as JSON.

    Args:
        run, column, log, experiment, batch: as :func:`row_of` takes them.
    """
    row = row_of(run, column, log, experiment, batch)
    if isinstance(run.model, DigitSequence):
        lows = {name: record_lows(log.iterations, errors[:, column]) for name, errors in log.errors.items() if name.startswith("test_")}
        return row | {"lows": json.dumps(lows, separators=(",", ":"))}
    if isinstance(run.model, GatedStack):
        weights = {name: torch.from_numpy(values[column]) for name, values in log.weights.items()}
        return row | run.model.observed(weights, run.task.evaluation(run.seed)["valid"].inputs)
    return row
