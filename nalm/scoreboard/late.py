"""Late runs: how many of the authors' runs, solved long after the others, would make a published mean of *solved at*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nalm import measures
from nalm.measures import Interval

__all__ = ["LateRuns", "fewest_late_runs", "late_runs"]


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


def _check(soon: Sequence[float], runs: int) -> None:
    if len(soon) == 0 or runs < 2:
        raise ValueError(f"{len(soon)} soon runs and {runs} runs in all are given; at least one and two are needed.")


def _others(soon: Sequence[float], runs: int) -> np.ndarray:
    """So many values that are spread as those of ``soon`` are."""
    return np.quantile(soon, (np.arange(runs) + 0.5) / runs)


def _with(soon: Sequence[float], runs: int, count: int, at: float) -> LateRuns:
    values = np.append(_others(soon, runs - count), np.full(count, at))
    return LateRuns(count, float(at), measures.solved_at(values, variance="sample"))
