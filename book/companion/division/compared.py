"""What the experiments of the division paper share: names of models and ranges, and how its statements are
decided.

The figures print no numbers. Compared are the rates that the text states and, one by one, the statements
that it draws from a figure. Where it counts the ranges on which one model beats another, ours is the count
with the 95% interval of what another 25 seeds would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
from nalm.tasks import UNIFORM_RANGES

from companion import measures, published
from companion.experiment.statements import (
    FALSE_ALARM,
    Claim,
    Comparison,
    Item,
    Later,
    Statement,
    exactly,
    rate,
    solved_runs,
)
from companion.experiment.tables import text
from companion.measures import Interval

REAL_NPU, MODIFIED = "Real NPU (baseline)", "Real NPU (modified)"
UNITS = [MODIFIED, "NRU", "NMRU"]
NEGATIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.high <= 0]
POSITIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.low >= 0]
MIXED = "U[-2,2)"
EVERYWHERE = "all ranges"
"""The nine uniform ranges together."""

SMALL = ["U[0,1e-4)", "U[0,1e-3)", "U[0,1e-2)", "U[0,0.1)", "U[0,1)"]
QUESTIONS = {"1/a from a": ("reciprocal", 1), "1/a from a, b": ("reciprocal", 2), "a/b from a, b": ("div", 2)}

Compared = Iterable[Statement | Later]

experiment_item = partial(Item, "division", kind="experiment", seeds=25, by=("model", "range"))
"""An item that is judged by runs of the paper's 25 seeds for each unit and range."""


def of(*models: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows[rows["model"].isin(models)]


def part(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> pd.DataFrame:
    """The rows of a model."""
    return rows[_chosen(rows, model, ranges)]


def success(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> Interval:
    chosen = _chosen(rows, model, ranges)
    outcomes, seeds = (rows[column].to_numpy()[chosen] for column in ("success", "seed"))
    return measures.success_rate(outcomes, seeds=seeds)


def when_solved(
    rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None, column: str = "solved_at"
) -> pd.Series:
    """Of solved runs, when they were, or another column."""
    return rows[column][_chosen(rows, model, ranges) & solved_runs(rows)]


def _chosen(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None) -> np.ndarray:
    """Which rows are those of a model. Samples are many, and NumPy compares faster than pandas does."""
    chosen = rows["model"].to_numpy() == model
    if ranges is not None:
        places = rows["range"].to_numpy()
        chosen = chosen & np.any([places == one for one in ranges], axis=0)
    return chosen


def solved_at(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> float:
    return float(when_solved(rows, model, ranges).mean())


def stated_rates(item: str, names: dict[str, str] | None = None) -> pd.DataFrame:
    """The success rates that the text states for one figure, the lowest first: ``model``, ``range``,
    ``success``.

    Those that the abstract states of all ranges together have the range :data:`EVERYWHERE`.

    Args:
        item: ``"Fig 6"``.
        names: of our arms, where the paper's are others.

    >>> stated_rates("Fig 10", {"NRU lr 1": "NRU"})[["model", "success"]].drop_duplicates().values.tolist()
    [['NRU', 1.0]]
    """
    table = published.load("division_values").query("metric == 'success rate'")
    table = table[table["item"].isin([item, f"abstract/{item}"])]
    table = table.assign(
        success=pd.to_numeric(table["value"], errors="coerce"),
        range=table["range"].where(table["item"] == item, EVERYWHERE),
    )
    table = table.dropna(subset="success").sort_values("success", kind="stable")
    return table.replace({"model": names or {}})


def stated(rows: pd.DataFrame, item: str, names: dict[str, str] | None = None) -> list[Comparison]:
    """Our rates beside :func:`stated_rates`."""
    found = []
    for one in stated_rates(item, names).to_dict("records"):
        place = None if one["range"] == EVERYWHERE else [one["range"]]
        runs = part(rows, one["model"], place)
        independent = measures.independent_runs(runs["success"], runs["seed"]) if len(runs) else None
        if independent:  # theirs have 25 seeds, whichever number ours have
            independent = min(independent * 25 / runs["seed"].nunique(), 25 if place else 225)
        theirs = rate(one["success"], 25 if place else 225, independent)
        found.append(
            Comparison(f"{one['model']} on {one['range']}", success(rows, one["model"], place), theirs)
        )
    return found


def ranges_where(
    rows: pd.DataFrame, one: str, other: str, relation: Callable, stated: int, what: str
) -> Comparison:
    """On how many ranges ``relation(successes of one, successes of other)`` holds.

    The interval, and the probability that decides: what another such experiment would count. Both models and
    all ranges have the same seeds, so seeds are drawn with replacement, for all of them alike, and from each
    draw as many once more: the first draw is what is not known of the seeds, the second the other experiment.
    Beside the seeds there is one whose outcomes are coins, as in Jeffreys' prior: 25 of 25 does not say that
    no seed ever fails.
    """
    ranges = [name for name in UNIFORM_RANGES if name in set(rows["range"])]
    table = rows.pivot(index=["model", "range"], columns="seed", values="success").astype(float)
    won = np.array([[table.loc[(model, name)] for name in ranges] for model in (one, other)])
    times = _drawn_twice(won.shape[-1])
    coins = np.random.default_rng(1).integers(2, size=(*won.shape[:2], len(times)))
    counts = won @ times[:, :-1].T + coins * times[:, -1]
    count = int(relation(*won.sum(-1)).sum())
    return counted(what, count, len(ranges), relation(*counts).sum(0), stated)


@cache
def _drawn_twice(seeds: int, samples: int = 10_000) -> np.ndarray:
    """How often each seed, and one more, is in another experiment of as many, ``(samples, seeds + 1)``."""
    generator = np.random.default_rng(0)
    drawn = generator.integers(seeds + 1, size=(samples, seeds))
    again = np.take_along_axis(drawn, generator.integers(seeds, size=(samples, seeds)), axis=1)
    places = (again + (seeds + 1) * np.arange(samples)[:, None]).ravel()
    return np.bincount(places, minlength=samples * (seeds + 1)).reshape(samples, seeds + 1).astype(float)


def counted(what: str, count: int, of: int, elsewhere: np.ndarray, stated: int) -> Comparison:
    """A count beside the stated one.

    Args:
        what: is counted.
        count: ours.
        of: at most.
        elsewhere: what other such experiments would count.
        stated: the paper's.
    """
    low, high = np.quantile(elsewhere, [0.025, 0.975])
    probability = min(1.0, 2 * min(np.mean(elsewhere >= stated), np.mean(elsewhere <= stated)))
    ours = Interval(count, int(low), int(high), of)
    return Comparison(what, ours, exactly(stated), id=what, probability=float(probability))


def faster(rows: pd.DataFrame, one: str, other: str, ranges: list[str], what: str) -> Comparison:
    """On how many ranges ``one`` is solved earlier in the mean, of all those on which both have solved
    runs. Where there is no such range, none of ``ranges`` shows it.

    The interval and the probability: what another such experiment would count, see
    :func:`ranges_where`.
    """
    generator = np.random.default_rng(0)

    def elsewhere(times: np.ndarray) -> np.ndarray:
        drawn = generator.choice(times, (10_000, len(times)))
        return np.take_along_axis(drawn, generator.integers(len(times), size=drawn.shape), 1).mean(1)

    earlier, again = [], []
    for place in ranges:
        first, second = (when_solved(rows, name, [place]).to_numpy() for name in (one, other))
        if len(first) and len(second):
            earlier.append(first.mean() < second.mean())
            again.append(elsewhere(first) < elsewhere(second))
    others = np.sum(again, 0) if again else np.zeros(1)
    return counted(what, int(sum(earlier)), len(earlier), others, len(earlier) or len(ranges))


def lowest(values: Mapping[str, float]) -> list[str]:
    """The names of the lowest of some numbers: of several, where they are equal.

    >>> lowest({"a": 1.0, "b": 0.5, "c": 0.5})
    ['b', 'c']
    """
    return [name for name, value in values.items() if value == min(values.values())]


def higher(rows: pd.DataFrame, one: str, other: str, what: str, ranges: Iterable[str] | None = None) -> Claim:
    first, second = success(rows, one, ranges), success(rows, other, ranges)
    return Claim(
        what,
        bool(first.estimate > second.estimate),
        f"{text(first.estimate)} against {text(second.estimate)}",
    )


def alike(rows: pd.DataFrame, one: str, other: str, what: str) -> Claim:
    """Whether two success rates differ neither over all ranges nor on any: a test by seeds, at the level of
    :data:`companion.experiment.statements.FALSE_ALARM` for all of these together.
    """
    places = [place for place in UNIFORM_RANGES if place in set(rows["range"])]
    limit = FALSE_ALARM / (len(places) + 1)
    both = rows[rows["model"].isin([one, other])]
    won = both.pivot(index="seed", columns=["model", "range"], values="success").astype(float)
    more = won[one] - won[other]
    apart = [place for place in places if _of_one_kind(more[place]) < limit]
    together = _of_one_kind(more[places].sum(axis=1))
    first, second = success(rows, one), success(rows, other)
    shown = f"{text(first.estimate)} against {text(second.estimate)}; apart on: {', '.join(apart) or 'none'}"
    return Claim(what, together >= limit and not apart, shown)


def _of_one_kind(more: pd.Series) -> float:
    """The probability that two models of one kind differ as much in what their seeds solve: signs of the
    differences are drawn, or all of them asked where there are few.

    Args:
        more: what one solves more than the other, by seed.
    """
    apart = more.to_numpy()
    apart = apart[apart != 0]
    if not len(apart):
        return 1.0
    signs = (
        np.array(list(product((-1, 1), repeat=len(apart))))
        if len(apart) <= 12
        else np.random.default_rng(0).choice((-1, 1), (10_000, len(apart)))
    )
    return float(np.mean(np.abs(signs @ apart) >= abs(apart.sum())))
