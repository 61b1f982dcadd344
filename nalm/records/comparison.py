"""A recorded row beside a retrained one: what may differ, and what does.

On one kind of processor, a compiled run gives the same bits on any number of threads and, in all units but
NALU and iNALU, whichever runs train beside it. Another processor, another version of torch or of the
compiler, or eager in place of compiled training rounds differently. Most runs forget that; some amplify it,
such as a Real NPU that drifts along a valley in which weight and gate make up for each other. So the run
itself is asked: *twins*, the same run with a learning rate that differs by a few units in its last place, are
trained beside it, and a difference is accepted up to a multiple of theirs.

Measured on rows recorded with AVX-512, drawn at random and trained again:

* with AVX-512 and other companions (24 of 225 runs, 8 of 20): 160 of 160 rows of division and simple
  arithmetic the same to the last bit;
* with AVX2: of 144 rows of division, all have the same success. The weights of NRU, NMRU and the repaired
  Real NPU agree to 1e-6, those of the baseline Real NPU to 0.12, solved_at to 14 of 50 log intervals. With
  four twins and 10 times their spread all 108 rows of NRU and Real NPU are accepted; 4 times would do.
* without vector instructions, the harshest case: likewise, weights to 0.14, and 2 of 36 rows of the baseline
  Real NPU would be refused, for a jump that none of four twins makes. There are eight now; a refusal of such
  a row on unusual hardware is still possible.
* a NALU trained with RMSProp is chaotic: its weights differ by 10 and its errors by a factor of 20, and so do
  those of its twins (8 rows). To confirm such a row confirms that the run is of this kind, not its digits.
* eager in place of compiled: of a NAC• with Adam and a learning rate of 1, whose sigmoids are saturated, the
  errors are the same and the weights differ by 0.05, those of its twins by 1e-5. So a row of compiled code
  that differs is trained again with compiled code, which gave it to the last digit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nalm.training import Run

__all__ = ["RESULTS", "Tolerances", "differences", "is_further_result", "twins"]

FROM_CONFIGURATION = ("paper", "task", "seed", "stream", "iterations", "threshold")
"""Columns that follow from a run's configuration alone and must be as recorded."""
RESULTS = (
    "success",
    "solved_at",
    "selected_at",
    "nan_at",
    "valid_mse",
    "test_mse",
    "sparsity_error",
    "weights",
)
"""Columns of results that every row has."""
UNITS_IN_THE_LAST_PLACE = (1, -1, 2, -2, 3, -3, 4, -4)
"""By how much the learning rates of the twins differ."""


@dataclass(frozen=True)
class Tolerances:
    """What may differ between a recorded row and its run, trained again. Success may differ only if it does
    among the twins.

    Args:
        solved_at: log intervals; also those of ``selected_at`` and ``nan_at``.
        weights: largest difference of a weight, relative for weights above 1; also that of the sparsity error
            and the gate.
        errors: decades of the errors, and of counts of parameters or updates.
        floor: errors below it are rounding noise, and equal.
        spread: a difference is accepted as well up to this multiple of the largest one between the run and
            its twins.
    """

    solved_at: int = 1
    weights: float = 1e-3
    errors: float = 0.1
    floor: float = 1e-9
    spread: float = 10.0


def is_further_result(column: str) -> bool:
    """Whether a column, beyond :data:`RESULTS`, holds what was found by training: errors on further
    evaluation sets, counts and the gate.

    >>> [is_further_result(name) for name in ("test_paper", "parameters_above_0.01", "hidden")]
    [True, True, False]
    """
    return column.startswith(("test_", "parameters")) or column in (
        "negative_updates",
        "finish_iterations",
        "gate",
    )


def twins(run: Run) -> list[Run]:
    """The run with learning rates that differ by a rounding error; one only of a model that is large by
    itself.
    """
    return [_twin(run, units) for units in UNITS_IN_THE_LAST_PLACE[: 1 if run.model.one_by_one else None]]


def _twin(run: Run, units: int) -> Run:
    lr = np.float32(run.recipe.optimiser.lr)
    rate = float(lr + units * np.spacing(lr))
    optimiser = run.recipe.optimiser.model_copy(update={"lr": rate})
    return run.model_copy(update={"recipe": run.recipe.model_copy(update={"optimiser": optimiser})})


def differences(
    row: dict[str, Any],
    new: dict[str, Any],
    others: Sequence[dict[str, Any]],
    run: Run,
    tolerances: Tolerances,
) -> list[str]:
    """A phrase for each difference that is not accepted.

    Args:
        row: as recorded; with the model and range that its configuration is called as ``"usual model"`` and
            ``"usual range"``.
        new: the row of its run, trained again.
        others: the rows of the run's twins.
        run: the run.
        tolerances: what is accepted.
    """
    found = [
        f"{c} is recorded as {row[c]}, its configuration says {new[c]}"
        for c in FROM_CONFIGURATION
        if not _same(row[c], new[c])
    ]
    for column in ("model", "range"):
        if str(row[column]) != str(row[f"usual {column}"]):
            found.append(
                f"{column} is recorded as {row[column]}, its configuration is called {row[f'usual {column}']}"
            )
    if not any(_same(row["success"], one["success"]) for one in (new, *others)):
        found.append(f"success is recorded as {row['success']}, retrained {new['success']}")

    def compare(what: str, distance: Callable[..., float], accepted: float, shown: str = "") -> None:
        apart = distance(row)
        if tolerances.spread:  # a twin may be infinitely far away
            accepted += tolerances.spread * max((distance(one) for one in others), default=0.0)
        if apart > accepted:
            found.append(
                f"{what} {shown or f'differ by up to {apart:.3g}'}, more than the accepted {accepted:.3g}"
            )

    for name in ("solved_at", "selected_at", "nan_at"):
        shown = f"is recorded as {row[name]:g}, retrained {new[name]:g}"
        compare(
            name,
            lambda one, name=name: _apart(one[name], new[name]),
            tolerances.solved_at * run.recipe.log_interval,
            shown,
        )
    if _shapes(row) != _shapes(new):
        found.append("the recorded weights are not those of its model")
    else:
        compare("weights", lambda one: _weights_apart(one, new), tolerances.weights)
    for name in ("sparsity_error", "gate"):
        compare(
            name,
            lambda one, name=name: _apart(one.get(name, math.nan), new.get(name, math.nan)),
            tolerances.weights,
        )
    for name in ("valid_mse", *(name for name in new if is_further_result(name) and name != "gate")):
        floor, old = tolerances.floor if name.startswith(("test", "valid")) else 1.0, row.get(name, math.nan)
        shown = f"is recorded as {old:.3g}, retrained {new[name]:.3g}"
        compare(
            name,
            lambda one, name=name, floor=floor: _decades_apart(one.get(name, math.nan), new[name], floor),
            tolerances.errors,
            shown,
        )
    compare(
        "lows",
        lambda one: _lows_apart(one, new, tolerances.floor, run.recipe.log_interval),
        tolerances.errors,
        "of the test errors are others",
    )
    return found


def _same(a: Any, b: Any) -> bool:
    """Equality in which what is missing equals what is missing."""
    return bool(pd.isna(a) and pd.isna(b)) if pd.isna(a) or pd.isna(b) else a == b


def _apart(first: float, second: float) -> float:
    """The difference; infinite where only one of two is a number."""
    if _same(first, second):
        return 0.0
    return math.inf if pd.isna(first) or pd.isna(second) else abs(first - second)


def _weights(row: dict[str, Any]) -> dict[str, np.ndarray]:
    """The weights by parameter name; none if the model is too large to keep them, or they cannot be read."""
    try:
        return {name: np.array(values, float) for name, values in json.loads(row["weights"]).items()}
    except (TypeError, ValueError, AttributeError):
        return {}


def _shapes(row: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: w.shape for name, w in _weights(row).items()}


def _weights_apart(a: dict[str, Any], b: dict[str, Any]) -> float:
    """The largest difference, relative where weights are larger than 1; infinite where only one of two is a
    number.
    """
    first, second = _weights(a), _weights(b)
    largest = 0.0
    for name, ours in first.items():
        theirs = second[name]
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs)))
        largest = max(largest, float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0)))
    return largest


def _lows_apart(a: dict[str, Any], b: dict[str, Any], floor: float, interval: int) -> float:
    """How far the lowest errors so far of two rows are apart, in decades, at the iteration where they are
    furthest; one log interval earlier or later counts as the same time.

    Nothing if neither keeps them, infinite if one does, or of other sets, or where only one is known.
    """
    first, second = ({} if pd.isna(row.get("lows")) else json.loads(row["lows"]) for row in (a, b))
    if first.keys() != second.keys():
        return math.inf
    apart = 0.0
    for name, lows in first.items():
        for at in {iteration for iteration, _ in (*lows, *second[name])}:
            apart = max(
                apart,
                *(
                    _far(one, other, at, floor, interval)
                    for one, other in ((lows, second[name]), (second[name], lows))
                ),
            )
    return apart


def _far(one: list, other: list, at: int, floor: float, interval: int) -> float:
    """How far the lowest error of one at an iteration is from what the other reaches around it."""
    around = [_lowest(other, time) for time in (at - interval, at, at + interval)]
    return min(_decades_apart(_lowest(one, at), error, floor) for error in around)


def _lowest(lows: list, until: int) -> float:
    return min((error for iteration, error in lows if iteration <= until), default=math.inf)


def _decades_apart(a: float, b: float, floor: float) -> float:
    if _same(a, b):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(math.log10(max(a, floor)) - math.log10(max(b, floor)))
