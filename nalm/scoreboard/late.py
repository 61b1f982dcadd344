"""Late runs: how many would make a published mean of *solved at*, and how reading a log out of order makes them.

The authors' analysis takes the first row of a run's log whose test error is below the threshold, after it has joined all rows with their thresholds by
R's ``merge``. Where the key of that join is not in order already, ``merge`` sorts by Shell's method, which leaves rows of the same key in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from nalm import measures
from nalm.measures import Interval

__all__ = ["LAYOUTS", "LateRuns", "Layout", "fewest_late_runs", "late_runs", "read_in_merged_order", "shell_sorted"]


@dataclass(frozen=True)
class Layout:
    """In which order a file of the authors holds the logs of runs: by model, by what thresholds are joined on, by seed.

    Args:
        models: in the alphabetical order of their names there.
        keys: operations or ranges, likewise.
        runs: seeds of each.
        logs: rows per run.
        every: iterations from one row to the next.
    """

    models: tuple[str, ...]
    keys: tuple[str, ...]
    runs: int
    logs: int = 5001
    every: int = 1000


LAYOUTS = {
    "Table 6": Layout(
        ("Linear", "NAC•", "NAC+", "NALU", "NAC•,σ", "ReLU6", "ReLU", "NMU", "NAU", "NAC•,NMU"), ("add", "div", "mul", "root", "squared", "sub"), 100
    ),
    "Table 5": Layout(("NALU (separate)", "NALU (shared)", "Gated NAU/NMU"), ("add", "mul"), 100),
    "Figure 3": Layout(
        ("NAC•", "NALU", "NAC•,σ", "NMU", "Gated NAU/NMU", "NAC•,NMU"),
        ("U[-2,-1)", "U[-2,2)", "U[0,1)", "U[0.1,0.2)", "U[1,2)", "U[1.1,1.2)", "U[10,20)"),
        50,
    ),
}
"""Item -> how its logs lie in the authors' file; Table 2 has the runs of Table 6."""


@dataclass(frozen=True)
class LateRuns:
    """So many runs of a line that are first solved at iteration ``at``, and the fit to all of its runs that prints them.

    Args:
        count: of runs.
        at: first solved iteration of each.
        printed: the likeliest mean of a gamma distribution with the variance of the sample, see :func:`nalm.measures.solved_at`.
    """

    count: int
    at: float
    printed: Interval


def late_runs(soon: Sequence[float], runs: int, average: float, printed: float) -> LateRuns | None:
    """The number of late runs with which the mean of all runs is ``average`` and their fit comes nearest to ``printed``.

    All other runs are taken to be solved when those in ``soon`` are. The mean then tells when the late ones are: k of them at
    (runs · average − (runs − k) · mean of ``soon``) / k.

    Args:
        soon: first solved iterations of runs of which none is late.
        runs: number of solved runs of the line.
        average: their mean.
        printed: the fit.

    Returns:
        ``None`` if ``average`` is not above the mean of ``soon``.

    Raises:
        ValueError: ``soon`` is empty, or fewer than two runs.

    >>> found = late_runs([1000.0, 2000.0], runs=100, average=3455.0, printed=9268.0)
    >>> found.count, round(found.at)
    (2, 99250)
    """
    _check(soon, runs)
    if average <= np.mean(soon):
        return None
    ats = {count: (runs * average - _others(soon, runs - count).sum()) / count for count in range(1, runs)}
    found = [_with(soon, runs, count, at) for count, at in ats.items()]
    return min(found, key=lambda one: abs(math.log(one.printed.estimate / printed)))


def fewest_late_runs(soon: Sequence[float], runs: int, printed: float, iterations: int) -> LateRuns | None:
    """The smallest number of late runs, solved at one iteration up to ``iterations``, with which the fit to all runs is ``printed``.

    Args:
        soon, runs, printed: as of :func:`late_runs`.
        iterations: after which no run can be solved.

    Returns:
        ``None`` if there is no such number below that of all runs.

    Raises:
        ValueError: as of :func:`late_runs`.

    >>> found = fewest_late_runs([1000.0, 2000.0], runs=40, printed=9000.0, iterations=100_000)
    >>> found.count, round(found.printed.estimate)
    (1, 9000)
    """
    from scipy.optimize import brentq

    _check(soon, runs)
    soonest = float(np.max(soon))

    def excess(count: int, at: float) -> float:
        return _with(soon, runs, count, at).printed.estimate - printed

    for count in range(1, runs):
        if excess(count, soonest) < 0 <= excess(count, iterations):
            return _with(soon, runs, count, brentq(partial(excess, count), soonest, iterations, rtol=1e-6))
    return None


def shell_sorted(keys: Sequence[int]) -> np.ndarray:
    """The order in which Shell's sort leaves values, with the gaps 1, 4, 13, 40, ... as in R's ``merge``: positions before the sort, one per value.

    A pass sorts the values that are a gap apart by insertion, which keeps the order of equal ones; passes together do not.

    Args:
        keys: small whole numbers from 0 to 254.

    >>> shell_sorted([0, 0, 0, 0, 1, 0, 0, 0, 0]).tolist()
    [0, 1, 2, 3, 8, 5, 6, 7, 4]
    """
    values, gap = np.asarray(keys, dtype=np.uint8), 1
    order = np.arange(len(values), dtype=np.int32)
    while gap <= len(values) // 9:
        gap = 3 * gap + 1
    while gap:
        missing = -len(values) % gap
        table = np.append(values, np.full(missing, 255, dtype=np.uint8)).reshape(-1, gap)
        places = np.append(order, np.zeros(missing, dtype=order.dtype)).reshape(-1, gap)
        sorting = np.argsort(table, axis=0, kind="stable")
        values = np.take_along_axis(table, sorting, 0).ravel()[: len(values)]
        order = np.take_along_axis(places, sorting, 0).ravel()[: len(order)]
        gap //= 3
    return order


def read_in_merged_order(solved_at: Mapping[tuple[str, str], Sequence[float]], layout: Layout) -> dict[tuple[str, str], np.ndarray]:
    """What is found for *solved at* if the first row below the threshold is taken after rows were sorted as by R's ``merge``.

    A run is taken to stay below the threshold from its first solved iteration on.

    Args:
        solved_at: model and key -> first solved iterations of all runs, NaN for those that are not solved. Lines of the layout that are left out
            have rows all the same.
        layout: of the file.

    Raises:
        ValueError: a line that the layout does not have, or another number of runs.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> read_in_merged_order({("NMU", "add"): [3000.0, 3000.0, 3000.0]}, layout)["NMU", "add"].tolist()
    [3000.0, 21000.0, 3000.0]
    """
    for line, times in solved_at.items():
        if line[0] not in layout.models or line[1] not in layout.keys or len(times) != layout.runs:
            raise ValueError(f"{len(times)} runs of {line} are given; the file has {layout.runs} of each of {layout.models} and {layout.keys}.")
    run, row = _merged(layout)
    found = {}
    for (model, key), times in solved_at.items():
        start = (layout.models.index(model) * len(layout.keys) + layout.keys.index(key)) * layout.runs
        inside = (run >= start) & (run < start + layout.runs)
        number, at = run[inside] - start, row[inside] * float(layout.every)
        below = at >= np.asarray(times, dtype=float)[number]  # never where it is NaN
        solved, first = np.unique(number[below], return_index=True)
        found[model, key] = np.full(layout.runs, np.nan)
        found[model, key][solved] = at[below][first]
    return found


@lru_cache(maxsize=1)
def _merged(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Run and row of each line of a file after the sort, which takes seconds; the runs of all models and keys are counted on."""
    keys = np.repeat(np.arange(len(layout.keys), dtype=np.uint8), layout.runs * layout.logs)
    return np.divmod(shell_sorted(np.tile(keys, len(layout.models))), np.int32(layout.logs))


def _check(soon: Sequence[float], runs: int) -> None:
    if len(soon) == 0 or runs < 2:
        raise ValueError(f"{len(soon)} soon runs and {runs} runs in all are given; at least one and two are needed.")


def _others(soon: Sequence[float], runs: int) -> np.ndarray:
    """So many values that are spread as those of ``soon`` are."""
    return np.quantile(soon, (np.arange(runs) + 0.5) / runs)


def _with(soon: Sequence[float], runs: int, count: int, at: float) -> LateRuns:
    values = np.append(_others(soon, runs - count), np.full(count, at))
    return LateRuns(count, float(at), measures.solved_at(values, variance="sample"))
