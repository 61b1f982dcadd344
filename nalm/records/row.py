"""The row of a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nalm.measures import first_solved
from nalm.training import Log, Run

__all__ = ["row_of"]

STORED_WEIGHTS = 200
"""The selected weights of models up to this many parameters are kept in their row."""

COUNTED_ABOVE = (0.001, 0.01)
"""The magnitudes above which a parameter of a larger model counts; the two thresholds of the NPU paper, in its text and in its code."""


def row_of(run: Run, column: int, log: Log, experiment: str, batch: str) -> dict[str, Any]:
    """The row of one run of an ensemble: what :data:`nalm.records.store.COLUMNS` names, further evaluation sets and labels.

    Args:
        run: the run.
        column: its place in the ensemble.
        log: what the ensemble reported.
        experiment, batch: what the row belongs to.
    """
    selected = log.selected[column]
    at_selected = {name: float(errors[selected, column]) for name, errors in log.errors.items()}
    test_mse, threshold = at_selected.pop("test"), run.threshold
    solved_at = first_solved(log.iterations, log.errors["test"][:, column], threshold) if threshold is not None else np.nan
    weights = {name: values[column] for name, values in log.weights.items() if name.startswith(run.model.recorded)}
    return {
        "key": run.key,
        "experiment": experiment,
        "paper": experiment.split("/")[0],
        "model": "-".join(layer.unit for layer in run.model.layers) if run.model.kind == "Stack" else run.model.kind,
        "task": run.task.kind,
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
    """The weights as JSON with nine significant digits, which restore float32 exactly; of large models, how many there are and how many count."""
    parameters = sum(values.size for values in weights.values())
    if parameters > STORED_WEIGHTS:
        magnitudes = np.abs(np.concatenate([values.ravel() for values in weights.values()]))
        above = {f"parameters_above_{least}": int((magnitudes > least).sum()) for least in COUNTED_ABOVE}
        return {"weights": None, "parameters": parameters} | above
    return {"weights": json.dumps({name: _digits(values.tolist()) for name, values in weights.items()}, separators=(",", ":"))}


def _digits(values: Any) -> Any:
    return [_digits(v) for v in values] if isinstance(values, list) else float(f"{values:.9g}")
