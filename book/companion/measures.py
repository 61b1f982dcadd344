"""What is measured about a set of runs: success, speed, sparsity, each with a 95% interval.

The definitions are those of the papers (Madsen & Johansen 2020, section 4.1.1; Mistry, Farrahi & Hare 2022,
section 4), which were inherited from one to the next:

* **success rate**: share of the runs whose test error, at the weights with the lowest validation error, is
  below a threshold; Wilson score interval;
* **solved at**: first logged iteration whose test error is below the threshold; mean over the solved runs
  with the profile-likelihood interval of a gamma distribution;
* **sparsity error**: largest distance of a weight from the values a unit may take; mean over the solved runs
  with the profile-likelihood interval of a beta distribution on [0, 0.5].

Intervals are Interval values, spreads (standard error, median absolute deviation) are Spread values.
Quantiles, distributions, root finding and the Wilson interval are SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from nalm.units.checks import nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Interval",
    "Spread",
    "independent_runs",
    "mean",
    "mean_and_standard_error",
    "median",
    "median_and_mad",
    "median_of_best",
    "nondominated",
    "operands_first",
    "require_columns",
    "solved_at",
    "solved_at_median",
    "sparsity_error",
    "success_rate",
    "summarise",
    "wilson",
]

_LARGEST_ERROR = 0.5  # a weight is never further than this from the nearest allowed value
_SMALLEST_ERROR = 1e-16  # the papers' clipping of sparsity errors, keeps the beta likelihood finite
_KEPT = 10_000  # of intervals that take milliseconds: a board asks for many of them more than once


@dataclass(frozen=True)
class Interval:
    """An estimate from `n` values and the ends of its confidence interval (NaN where there is none)."""

    estimate: float
    low: float
    high: float
    n: int

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a point; False if an end is missing."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Spread:
    """A central value of `n` values and a measure of spread that is no confidence interval."""

    estimate: float
    spread: float
    n: int


def success_rate(
    success: Sequence[bool], confidence: float = 0.95, *, seeds: Sequence[int] | None = None
) -> Interval:
    """Share of true values with the Wilson score interval (no continuity correction).

    A missing value counts as a failure.

    Args:
        success: of each run.
        confidence: of the interval.
        seeds: of each run, where several runs share one. Those start from the same weights, so they are not
            independent: the interval is that of :func:`independent_runs`.

    >>> success_rate([True] * 16 + [False] * 9)
    Interval(estimate=0.64, low=0.4451..., high=0.7975..., n=25)
    >>> success_rate([True, True, False, False], seeds=[0, 0, 1, 1])
    Interval(estimate=0.5, low=0.0945..., high=0.9054..., n=4)
    """
    values = np.nan_to_num(_vector(success, "success")).astype(bool)
    n, count = values.size, int(np.count_nonzero(values))
    if n == 0:
        return _nothing()
    runs = n if seeds is None else independent_runs(values, seeds, confidence)
    low, high = wilson(count / n, runs, confidence)
    return Interval(count / n, low if count else 0.0, high if count < n else 1.0, n)


def wilson(rate: float, runs: float, confidence: float = 0.95) -> tuple[float, float]:
    """The ends of the score interval of a rate of any number of runs, whole or not (Wilson, 1927).

    >>> wilson(0.64, 25)
    (0.4451..., 0.7975...)
    """
    from scipy.special import ndtri

    z = ndtri((1 + confidence) / 2)
    centre, half = rate + z**2 / (2 * runs), z * sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return float((centre - half) / (1 + z**2 / runs)), float((centre + half) / (1 + z**2 / runs))


def independent_runs(success: Sequence[bool], seeds: Sequence[int], confidence: float = 0.95) -> float:
    r"""How many independent runs would know a success rate as well as these, of which several share a seed.

    Of :math:`n` runs with :math:`S` seeds and success rate :math:`p` that is (Korn and Graubard, 1998)

    .. math:: \frac{p (1 - p)}{\operatorname{Var}(p)} \left(\frac{t_{n - 1}}{t_{S - 1}}\right)^2,

    where the variance is that between seeds and the quantiles of Student's distribution say how well so few
    seeds know it. It is at least :math:`S`, to which it falls where the runs of a seed all have the same
    outcome, and at most :math:`n`.

    Args:
        success: of each run.
        seeds: of each run.
        confidence: of the interval that is made of it, which decides the quantiles.

    >>> independent_runs([True, True, False, False], seeds=[0, 0, 1, 1])
    2.0
    """
    from scipy.special import stdtrit

    outcomes = np.asarray(success, dtype=float)
    _, places = np.unique(np.asarray(seeds), return_inverse=True)
    runs, groups, rate = outcomes.size, int(places.max()) + 1, outcomes.mean()
    if groups in (1, runs):  # one seed says nothing of others
        return float(groups)
    apart = np.bincount(places, outcomes - rate)
    variance = groups / (groups - 1) * np.sum(apart**2) / runs**2
    if not variance:
        return float(groups if rate in (0.0, 1.0) else runs)
    of_runs, of_seeds = stdtrit([runs - 1, groups - 1], (1 + confidence) / 2)
    return float(np.clip(rate * (1 - rate) / variance * (of_runs / of_seeds) ** 2, groups, runs))


def mean(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Mean with Student's t interval, for errors that no distribution is assumed for. NaN values are left
    out.
    """
    return _student(_present(values, "values"), confidence)


def median(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Median with the distribution-free interval between two order statistics.

    NaN values are left out, infinite ones kept. An end is NaN where too few values are there for the
    confidence asked for.

    >>> median([1000.0, 2000.0, 3000.0])
    Interval(estimate=2000.0, low=nan, high=nan, n=3)
    """
    x = np.sort(_present(values, "values"))
    if x.size == 0:
        return _nothing()
    low, high = (float("nan") if place is None else x[place] for place in _places(x.size, confidence))
    return Interval(float(np.median(x)), float(low), float(high), x.size)


@cache
def _places(n: int, confidence: float) -> list[int | None]:
    """Which of so many ordered values are the ends of the median's interval."""
    from scipy.stats import quantile_test

    ends = quantile_test(np.arange(n), p=0.5).confidence_interval(confidence_level=confidence)
    return [None if np.isnan(end) else int(end) for end in (ends.low, ends.high)]


def solved_at(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    variance: Literal["likeliest", "sample"] = "likeliest",
) -> Interval:
    r"""Mean first solved iteration with the profile-likelihood interval of a gamma distribution.

    The gamma distribution is parameterised by its mean :math:`\mu` and variance :math:`\sigma^2` (shape
    :math:`\mu^2/\sigma^2`, rate :math:`\mu/\sigma^2`); for every :math:`\mu` the likelihood is maximised over
    :math:`\sigma^2`, and the interval holds every :math:`\mu` that a likelihood-ratio test does not reject.
    The likeliest :math:`\mu` is exactly the sample mean.

    ``variance="sample"`` leaves :math:`\sigma^2` at the variance of the sample, as the statistics behind the
    printed means of Madsen & Johansen did, whose optimiser takes no step in it. A few values far above the
    others then raise the likeliest :math:`\mu` over the sample mean, one far below lowers it, and the
    interval, which takes the variance for known, is too narrow for such values.

    NaN values (runs that were never solved) are left out. With fewer than two values, with a standard
    deviation of at most 1e-5, or where a value is zero (a gamma likelihood has none there) the interval is
    Student's, cut at 0; a single value has no interval.

    >>> solved_at([1000.0, 2000.0, 3000.0, 4000.0])
    Interval(estimate=2500.0, low=1450..., high=4861..., n=4)
    >>> solved_at([1000.0] * 9 + [50_000.0], variance="sample")
    Interval(estimate=9699..., low=6725..., high=12995..., n=10)
    """
    if variance not in ("likeliest", "sample"):
        raise ValueError(f'variance is {variance!r}; it must be "likeliest" or "sample".')
    x = _present(values, "solved_at")
    if (x < 0).any():
        raise ValueError("solved_at holds negative values; an iteration is zero or more.")
    if x.size < 2 or x.std(ddof=1) <= 1e-5 or (x == 0).any():
        return _student(x, confidence, lowest=0.0)
    average = x.mean()
    log_dispersion = np.log(x.var(ddof=1) / average**2) if variance == "sample" else None
    places = _gamma(x.size, np.log(x / average).mean(), log_dispersion, confidence)
    return Interval(*(float(average * np.exp(position)) for position in places), x.size)


@lru_cache(_KEPT)
def _gamma(n: int, mean_log: float, log_dispersion: float | None, confidence: float) -> tuple[float, ...]:
    """The likeliest mean of a gamma distribution and the ends of its interval, each as log(mean / sample
    mean), from what the likelihood depends on.

    Args:
        n: of values.
        mean_log: the mean of log(value / sample mean).
        log_dispersion: log(variance / sample mean²); ``None``: the likeliest for each mean.
        confidence: of the interval.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import gammaln

    def likelihood(log_ratio: float, log_shape: float) -> float:  # log_ratio = log(mu / sample mean)
        shape = np.exp(log_shape)
        return n * (
            shape * (log_shape - log_ratio - np.exp(-log_ratio)) - gammaln(shape) + (shape - 1) * mean_log
        )

    def profile(log_ratio: float) -> float:
        if log_dispersion is not None:
            return likelihood(log_ratio, 2 * log_ratio - log_dispersion)
        return -minimize_scalar(
            lambda log_shape: -likelihood(log_ratio, log_shape),
            bounds=(-20.0, 45.0),
            method="bounded",
            options={"xatol": 1e-9},
        ).fun

    best = (
        0.0
        if log_dispersion is None
        else float(minimize_scalar(lambda at: -profile(at), bracket=(-0.05, 0.05), tol=1e-6).x)
    )
    return best, *_likelihood_interval(profile, best, confidence)


def solved_at_median(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Median first solved iteration; as median."""
    return median(values, confidence)


def sparsity_error(
    values: Sequence[float],
    confidence: float = 0.95,
    *,
    scale: Literal["true", "published"] = "true",
    ends: bool = True,
) -> Interval:
    r"""Mean sparsity error with the profile-likelihood interval of a beta distribution on [0, 0.5].

    Its mean is :math:`\mu`: twice the error follows :math:`\mathrm{Beta}(2\mu v, (1 - 2\mu) v)`, and
    :math:`v` is profiled out. Values are clipped to [1e-16, 0.5 - 1e-16]. The estimate is the likeliest
    :math:`\mu`; it is the sample mean for small errors and departs from it where errors pile up at both ends
    (see mean for that one).

    ``scale="published"`` evaluates that likelihood at the error itself instead of at twice the error, as the
    statistics behind all three papers' figures did: the mean and both ends come out **half as large**. With
    fewer than two values or a standard deviation of at most 1e-10 the interval is Student's, cut to [0, 0.5];
    this one was never halved, so published values mix two scales.

    ``ends=False`` finds the estimate alone, where samples are many; the ends are NaN.

    >>> true = sparsity_error([1e-5, 3e-5, 2e-5, 5e-5])
    >>> halved = sparsity_error([1e-5, 3e-5, 2e-5, 5e-5], scale="published")
    >>> round(halved.estimate / true.estimate, 3)
    0.5
    """
    from scipy.special import expit

    if scale not in ("true", "published"):
        raise ValueError(f'scale is {scale!r}; it must be "true" or "published".')
    x = _present(values, "sparsity_error")
    if (x < 0).any():
        raise ValueError("sparsity_error holds negative values; it is a distance, zero or more.")
    if x.size < 2 or x.std(ddof=1) <= 1e-10:
        return _student(x, confidence, lowest=0.0, highest=_LARGEST_ERROR)
    clipped = np.clip(x, _SMALLEST_ERROR, _LARGEST_ERROR - _SMALLEST_ERROR)
    data = 2 * clipped if scale == "true" else clipped
    places = _beta(
        x.size, data.mean(), np.log(data).mean(), np.log1p(-data).mean(), confidence if ends else None
    )
    return Interval(*(float(expit(position) / 2) for position in places), x.size)


@lru_cache(_KEPT)
def _beta(
    n: int, mean: float, mean_log: float, mean_log1p: float, confidence: float | None
) -> tuple[float, ...]:
    """The likeliest mean of a beta distribution and the ends of its interval, each as logit(mean), from what
    the likelihood depends on.

    Args:
        n: of values.
        mean: theirs, near which the likeliest is looked for.
        mean_log: the mean of log(value).
        mean_log1p: the mean of log(1 - value).
        confidence: of the interval; ``None``: the ends are NaN.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import betaln, expit, logit

    def profile(position: float) -> float:  # position = logit(2 mu)
        share, rest = expit(position), expit(-position)

        def negative(log_precision: float) -> float:
            precision = np.exp(log_precision)
            a, b = share * precision, rest * precision
            return -n * ((a - 1) * mean_log + (b - 1) * mean_log1p - betaln(a, b))

        start = -np.log(share)  # the shape parameter a is 1 there
        return -minimize_scalar(
            negative, bounds=(start - 12.0, start + 40.0), method="bounded", options={"xatol": 1e-9}
        ).fun

    centre = float(logit(mean))
    best = float(minimize_scalar(lambda at: -profile(at), bracket=(centre - 0.05, centre + 0.05), tol=1e-6).x)
    if confidence is None:
        return best, np.nan, np.nan
    return best, *_likelihood_interval(profile, best, confidence)


def mean_and_standard_error(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (n - 1) over the square root of n. NaN values are left out.

    >>> mean_and_standard_error([1.0, 2.0, 3.0])
    Spread(estimate=2.0, spread=0.577..., n=3)
    """
    x = _present(values, "values")
    if x.size == 0:
        return Spread(float("nan"), float("nan"), 0)
    error = x.std(ddof=1) / np.sqrt(x.size) if x.size > 1 else float("nan")
    return Spread(float(x.mean()), float(error), x.size)


def median_and_mad(values: Sequence[float]) -> Spread:
    """Median and median absolute deviation from it, unscaled. NaN values are left out, infinite ones kept.

    >>> median_and_mad([1.0, 2.0, 4.0, 100.0])
    Spread(estimate=3.0, spread=1.5, n=4)
    """
    x = _present(values, "values")
    if x.size == 0:
        return Spread(float("nan"), float("nan"), 0)
    middle = np.median(x)
    with np.errstate(invalid="ignore"):
        deviation = np.where(x == middle, 0.0, np.abs(x - middle))
    return Spread(float(middle), float(np.median(deviation)), x.size)


def median_of_best(values: Sequence[float], best: int, of: int, confidence: float = 0.95) -> Interval:
    """What is reported by who trains ``of`` runs and takes the median of the ``best`` smallest errors.

    Estimate and interval are quantiles over 10,000 sets of so many runs, drawn from ``values`` with
    replacement (and always the same ones). NaN values count as infinite.

    Raises:
        ValueError: no values, or ``best`` not between 1 and ``of``.

    >>> errors = [1.0, 2.0, 3.0, 50.0]
    >>> median_of_best(errors, best=10, of=10).estimate, median_of_best(errors, best=10, of=40).estimate
    (2.5, 1.0)
    """
    x = np.nan_to_num(_vector(values, "values"), nan=np.inf)
    if x.size == 0:
        raise ValueError("There are no values to draw from.")
    if not 1 <= best <= of:
        raise ValueError(f"best must lie between 1 and of = {of}, not {best}.")
    drawn = np.sort(np.random.default_rng(0).choice(x, (10_000, of)))[:, :best]
    with np.errstate(over="ignore"):  # the middle of two huge errors
        medians = np.median(drawn, axis=1)
    low, estimate, high = np.quantile(
        medians, [(1 - confidence) / 2, 0.5, (1 + confidence) / 2], method="nearest"
    )
    return Interval(float(estimate), float(low), float(high), of)


def summarise(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row per group of runs, with the three measures of the papers.

    `rows` needs the columns success, solved_at and sparsity_error and those named in `by`; groups keep the
    order in which they appear. Speed and sparsity are means over the solved runs of a group. Columns of the
    result: those of `by`, n, solved, success, success_low, success_high, solved_at_median, solved_at_mean,
    solved_at_low, solved_at_high, sparsity_error, sparsity_error_low, sparsity_error_high.
    """
    import pandas as pd

    by = [by] if isinstance(by, str) else list(by)
    require_columns(rows, [*by, "success", "solved_at", "sparsity_error"])
    if rows.empty:
        raise ValueError("There are no rows to summarise.")
    groups = rows.groupby(by, sort=False, dropna=False) if by else [((), rows)]
    table = []
    for names, group in groups:
        won = np.nan_to_num(_vector(group["success"], "success")).astype(bool)
        seeds = group["seed"] if "seed" in group else None
        rate = success_rate(won, seeds=seeds)
        steps = group["solved_at"][won]
        speed, middle, sparsity = (
            solved_at(steps),
            solved_at_median(steps),
            sparsity_error(group["sparsity_error"][won]),
        )
        table.append(
            dict(zip(by, names, strict=True))
            | {
                "n": rate.n,
                "solved": int(won.sum()),
                "success": rate.estimate,
                "success_low": rate.low,
                "success_high": rate.high,
                "solved_at_median": middle.estimate,
                "solved_at_mean": speed.estimate,
                "solved_at_low": speed.low,
                "solved_at_high": speed.high,
                "sparsity_error": sparsity.estimate,
                "sparsity_error_low": sparsity.low,
                "sparsity_error_high": sparsity.high,
            }
        )
    return pd.DataFrame(table)


def operands_first(
    rows: pd.DataFrame, name: str = "0.weight", inputs: int = 10, parts: int = 1
) -> np.ndarray:
    """A recorded parameter of single-module runs, (runs, parts, inputs), with the inputs a and b before the
    redundant ones.

    The place of a and b among the inputs depends on the seed. The weight of an NMRU has two parts, one that
    multiplies and one that divides.

    >>> import pandas as pd
    >>> weights = ['{"0.weight": [[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 0.1, 0.2, 0.3]]}']
    >>> operands_first(pd.DataFrame({"seed": [0], "weights": weights}))[0, 0].tolist()
    [1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.3]
    """
    import json

    from nalm.tasks import SingleModuleTask

    require_columns(rows, ["seed", "weights"])
    task = SingleModuleTask.on("U[1,2)", operation="div", inputs=inputs)
    table = np.zeros((len(rows), parts, inputs))
    for number, (seed, weights) in enumerate(zip(rows["seed"], rows["weights"], strict=True)):
        values = np.reshape(json.loads(weights)[name], (parts, inputs))
        order = np.argsort(~task.operands(int(seed)).any(0), kind="stable")
        table[number] = values[:, order]
    return table


def nondominated(first: Sequence[float], second: Sequence[float]) -> np.ndarray:
    """Whether each of n points is on the Pareto front: no other point is at most as large in both coordinates
    and smaller in one.

    Points with a coordinate that is no number are never on it.

    >>> nondominated([1, 2, 2, 3], [5.0, 4.0, 6.0, 4.0]).tolist()
    [True, True, False, False]
    """
    a, b = (np.asarray(values, dtype=float)[:, None] for values in (first, second))
    dominated = ((a.T <= a) & (b.T <= b) & ((a.T < a) | (b.T < b))).any(1)
    return ~dominated & ~np.isnan(a[:, 0]) & ~np.isnan(b[:, 0])


def require_columns(rows: pd.DataFrame, names: Sequence[str]) -> None:
    """Raise a ValueError of one sentence for the first column that is missing."""
    for name in names:
        if name not in rows.columns:
            raise ValueError(f"The rows have no column {name!r}: {nearest(name, map(str, rows.columns))}")


def _likelihood_interval(
    profile: Callable[[float], float], best: float, confidence: float
) -> tuple[float, float]:
    """Where the profile log-likelihood has fallen by half the chi-square quantile, below and above its
    maximum.
    """
    from scipy.optimize import brentq
    from scipy.special import chdtri

    level = profile(best) - chdtri(1, 1 - confidence) / 2

    def end(direction: float) -> float:
        inner, step = best, 0.05
        while step < 200:
            outer = best + direction * step
            if profile(outer) < level:
                return brentq(lambda position: profile(position) - level, inner, outer, xtol=1e-7)
            inner, step = outer, 2 * step
        return direction * np.inf

    return end(-1.0), end(1.0)


def _student(x: np.ndarray, confidence: float, lowest: float = -np.inf, highest: float = np.inf) -> Interval:
    from scipy.special import stdtrit

    if x.size == 0:
        return _nothing()
    average = float(np.clip(x.mean(), lowest, highest))
    if x.size == 1:
        return Interval(average, float("nan"), float("nan"), 1)
    half = stdtrit(x.size - 1, (1 + confidence) / 2) * x.std(ddof=1) / np.sqrt(x.size)
    return Interval(average, float(max(average - half, lowest)), float(min(average + half, highest)), x.size)


def _nothing() -> Interval:
    return Interval(float("nan"), float("nan"), float("nan"), 0)


def _vector(values: Sequence, name: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must hold numbers (or true and false); it holds something else.") from None
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; it must be one value per run.")
    return array


def _present(values: Sequence, name: str) -> np.ndarray:
    array = _vector(values, name)
    return array[~np.isnan(array)]
