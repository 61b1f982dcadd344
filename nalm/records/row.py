"""The row of a run: when it was solved, what it selected, its errors and weights, and what its model
observes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nalm.models import DigitSequence, GatedStack
from nalm.training import Log, Run
from nalm.values import kind_of

__all__ = ["first_below", "first_solved", "record_lows", "row_of", "whole_row_of"]

STORED_WEIGHTS = 200
"""The selected weights of models up to this many parameters are kept in their row."""

COUNTED_ABOVE = (0.001, 0.01)
"""The magnitudes above which a parameter of a larger model counts; the two thresholds of the NPU paper, in
its text and in its code.
"""


def whole_row_of(run: Run, column: int, log: Log, experiment: str, batch: str) -> dict[str, Any]:
    """:func:`row_of` and further columns.

    Of a :class:`GatedStack`, ``gate``: the mean gate over the validation inputs. Of a :class:`DigitSequence`,
    whose threshold is only known when its reference runs are, ``lows``: what :func:`first_below` needs to
    tell when it was solved, as JSON.

    Args:
        run, column, log, experiment, batch: as :func:`row_of` takes them.
    """
    row = row_of(run, column, log, experiment, batch)
    if isinstance(run.model, DigitSequence):
        lows = {
            name: record_lows(log.iterations, errors[:, column])
            for name, errors in log.errors.items()
            if name.startswith("test_")
        }
        return row | {"lows": json.dumps(lows, separators=(",", ":"))}
    if isinstance(run.model, GatedStack):
        weights = {name: torch.from_numpy(values[column]) for name, values in log.weights.items()}
        return row | run.model.observed(weights, run.task.evaluation(run.seed)["valid"].inputs)
    return row


def row_of(run: Run, column: int, log: Log, experiment: str, batch: str) -> dict[str, Any]:
    """The row of one run of an ensemble: what :data:`nalm.records.store.COLUMNS` names, further evaluation
    sets and labels.

    Args:
        run: the run.
        column: its place in the ensemble.
        log: what the ensemble reported.
        experiment, batch: what the row belongs to.
    """
    selected = log.selected[column]
    at_selected = {name: float(errors[selected, column]) for name, errors in log.errors.items()}
    test_mse, threshold = at_selected.pop("test"), run.threshold
    solved_at = (
        first_solved(log.iterations, log.errors["test"][:, column], threshold)
        if threshold is not None
        else np.nan
    )
    weights = {
        name: values[column] for name, values in log.weights.items() if name.startswith(run.model.recorded)
    }
    return {
        "key": run.key,
        "experiment": experiment,
        "paper": experiment.split("/")[0],
        "model": "-".join(layer.unit for layer in run.model.layers)
        if run.model.kind == "Stack"
        else run.model.kind,
        "task": kind_of(run.task),
        "range": run.task.label(),
        "seed": run.seed,
        "stream": run.recipe.stream,
        "iterations": run.recipe.iterations,
        "threshold": threshold,
        # A comparison with NaN is false: a run that diverged has failed.
        "success": None if threshold is None else test_mse < threshold,
        "solved_at": solved_at,
        "sparsity_error": float(log.sparsity_errors[selected, column]),
        "valid_mse": at_selected.pop("valid"),
        "test_mse": test_mse,
        "selected_at": int(log.iterations[selected]),
        "nan_at": log.nan_at[column],
        "seconds": round(log.seconds / log.selected.size, 4),
        "batch": batch,
        **_weights(weights),
        **at_selected,
        **run.labels,
    }


def _weights(weights: dict[str, np.ndarray]) -> dict[str, Any]:
    """The weights as JSON with nine significant digits, which restore float32 exactly; of large models, how
    many there are and how many count.
    """
    parameters = sum(values.size for values in weights.values())
    if parameters > STORED_WEIGHTS:
        magnitudes = np.abs(np.concatenate([values.ravel() for values in weights.values()]))
        above = {f"parameters_above_{least}": int((magnitudes > least).sum()) for least in COUNTED_ABOVE}
        return {"weights": None, "parameters": parameters} | above
    return {
        "weights": json.dumps(
            {name: _digits(values.tolist()) for name, values in weights.items()}, separators=(",", ":")
        )
    }


def _digits(values: Any) -> Any:
    return [_digits(v) for v in values] if isinstance(values, list) else float(f"{values:.9g}")


def first_solved(
    iterations: Sequence[int] | np.ndarray, test_mse: Sequence[float] | np.ndarray, threshold: float
) -> float | np.ndarray:
    """First logged iteration whose test error is strictly below the threshold, NaN if there is none.

    `iterations` has shape (logs,), `test_mse` (..., logs); the result has shape (...).

    >>> first_solved([0, 1000, 2000, 3000], [1.0, float("nan"), 1e-6, 1e-7], threshold=1e-5)
    2000.0
    """
    steps = np.asarray(iterations, dtype=float)
    errors = np.asarray(test_mse, dtype=float)
    if steps.ndim != 1 or errors.ndim == 0 or errors.shape[-1] != steps.size:
        raise ValueError(
            f"iterations has shape {steps.shape} and test_mse {errors.shape}; "
            "the last axis of test_mse must hold "
            "one error per logged iteration."
        )
    below = errors < np.expand_dims(np.asarray(threshold, dtype=float), -1)
    found = np.where(below.any(-1), steps[below.argmax(-1)] if steps.size else np.nan, np.nan)
    return float(found) if found.ndim == 0 else found


def record_lows(iterations: np.ndarray, errors: np.ndarray) -> list[tuple[int, float]]:
    """The iterations at which the error was lower than ever before, each with the error to nine digits, which
    restore float32 exactly.

    Args:
        iterations: (evaluations,).
        errors: (evaluations,); what is not finite is no low.

    >>> record_lows(np.array([0, 10, 20, 30]), np.array([4.0, 2.0, 3.0, 1.0]))
    [(0, 4.0), (10, 2.0), (30, 1.0)]
    """
    finite = np.where(np.isfinite(errors), errors, np.inf)
    before = np.minimum.accumulate(np.concatenate([[np.inf], finite[:-1]]))
    return [
        (int(iterations[place]), float(f"{finite[place]:.9g}")) for place in np.flatnonzero(finite < before)
    ]


def first_below(lows: Sequence[tuple[int, float]], threshold: float) -> float:
    """The first iteration with an error below the threshold, NaN where there is none.

    >>> first_below([(0, 4.0), (10, 2.0), (30, 1.0)], threshold=2.0)
    30.0
    """
    return next((float(iteration) for iteration, error in lows if error < threshold), np.nan)
