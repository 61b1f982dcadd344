"""A recorded row beside a retrained one: what may differ, and what does."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nalm.training import Run

__all__ = ["Tolerances", "differences"]

FROM_CONFIGURATION = ("paper", "task", "seed", "stream", "iterations", "threshold")
"""Columns that follow from a run's configuration alone and must be as recorded."""


@dataclass(frozen=True)
class Tolerances:
    """What may differ between a recorded row and its retraining."""

    solved_at: int = 1
    weights: float = 1e-3
    errors: float = 1e-2


def differences(row: dict[str, Any], new: dict[str, Any], run: Run, tolerances: Tolerances) -> list[str]:
    """A phrase for each difference between a recorded row and the row of its run, trained again."""
    return [*_mislabelled(row, new), *_different(row, new, run, tolerances)]


def _mislabelled(row: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Columns that do not say what the configuration says, or not what the other rows of that configuration say."""
    wrong = [f"{c} is recorded as {row[c]}, its configuration says {new[c]}" for c in FROM_CONFIGURATION if not _equal(row[c], new[c])]
    for column in ("model", "range"):
        usual = row[f"{column} of its configuration"]
        if row[column] != usual:
            wrong.append(f"{column} is recorded as {row[column]}, other rows of its configuration say {usual}")
    return wrong


def _different(row: dict[str, Any], new: dict[str, Any], run: Run, tolerances: Tolerances) -> list[str]:
    """The results that differ beyond the tolerances."""
    found = []
    if not _equal(row["success"], new["success"]):
        found.append(f"success is recorded as {row['success']}, retrained {new['success']}")
    steps = tolerances.solved_at * run.recipe.log_interval
    if not _equal(row["solved_at"], new["solved_at"], atol=steps):
        found.append(f"solved_at is recorded as {row['solved_at']:g}, retrained {new['solved_at']:g}, more than {steps} iterations apart")
    recorded, retrained = _weights(row), _weights(new)
    if {name: w.shape for name, w in recorded.items()} != {name: w.shape for name, w in retrained.items()}:
        found.append("the recorded weights are not those of its model")
    else:
        apart = max((_apart(recorded[name], retrained[name]) for name in recorded), default=0.0)
        if apart > tolerances.weights:
            found.append(f"weights differ by up to {apart:.3g}, more than {tolerances.weights:g}")
    for column in ("valid_mse", "test_mse"):
        if not _equal(row[column], new[column], atol=tolerances.exact_error, rtol=tolerances.errors):
            found.append(f"{column} is recorded as {row[column]:.6g}, retrained {new[column]:.6g}")
    return found


def _apart(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative where weights are larger than 1; infinite where only one of two is a number."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(a - b) / np.maximum(1.0, np.abs(b)))
    return float(np.nan_to_num(difference, nan=np.inf).max(initial=0.0))


def _equal(a: Any, b: Any, atol: float = 0.0, rtol: float = 0.0) -> bool:
    """Equality in which what is missing equals what is missing."""
    if pd.isna(a) or pd.isna(b):
        return bool(pd.isna(a) and pd.isna(b))
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return math.isclose(a, b, abs_tol=atol, rel_tol=rtol)


def _weights(row: dict[str, Any]) -> dict[str, np.ndarray]:
    """The weights by parameter name; none if the model is too large to keep them, or if they cannot be read."""
    try:
        return {name: np.array(values, float) for name, values in json.loads(row["weights"]).items()}
    except (TypeError, ValueError, AttributeError):
        return {}
