"""What the experiments of the division paper share: names of models and ranges, and how its statements are
decided.

The figures print no numbers. Compared are the rates that the text states and, one by one, the statements
that it draws from a figure. Where it counts the ranges on which one model beats another, ours is the count
with the 95 % interval of what another 25 seeds would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from nalm.tasks import UNIFORM_RANGES

from companion import measures, published
from companion.measures import Interval
from companion.statements import Claim, Comparison, Item, exactly, rate, solved
from companion.tables import text

REAL_NPU, MODIFIED = "Real NPU (baseline)", "Real NPU (modified)"
UNITS = [MODIFIED, "NRU", "NMRU"]
NEGATIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.high <= 0]
POSITIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.low >= 0]
MIXED = "U[-2,2)"

SMALL = ["U[0,1e-4)", "U[0,1e-3)", "U[0,1e-2)", "U[0,0.1)", "U[0,1)"]
QUESTIONS = {"1/a from a": ("reciprocal", 1), "1/a from a, b": ("reciprocal", 2), "a/b from a, b": ("div", 2)}

Compared = Iterable[Comparison | Claim]

experiment_item = partial(Item, "division", kind="experiment", seeds=25, by=("model", "range"))
"""An item that is judged by runs of the paper's 25 seeds for each unit and range."""


def of(*models: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows[rows["model"].isin(models)]


def part(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> pd.DataFrame:
    rows = rows[rows["model"] == model]
    return rows if ranges is None else rows[rows["range"].isin(list(ranges))]


def success(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> Interval:
    runs = part(rows, model, ranges)
    return measures.success_rate(runs["success"], seeds=runs["seed"])


def solved_at(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> float:
    return float(solved(part(rows, model, ranges))["solved_at"].mean())


def stated_rates(item: str, names: dict[str, str] | None = None) -> pd.DataFrame:
    """The success rates that the text states for one figure, the lowest first: ``model``, ``range``,
    ``success``.

    ``names``: of our arms, where the paper's are others.
    """
    table = published.load("division_values").query("item == @item and metric == 'success rate'")
    table = table.assign(success=pd.to_numeric(table["value"], errors="coerce")).dropna(subset=["success"])
    return table.sort_values("success", kind="stable").replace({"model": names or {}})


def stated(rows: pd.DataFrame, item: str, names: dict[str, str] | None = None) -> list[Comparison]:
    """Our rates beside :func:`stated_rates`."""
    found = []
    for one in stated_rates(item, names).to_dict("records"):
        runs = part(rows, one["model"], [one["range"]])
        found.append(
            Comparison(
                f"{one['model']} on {one['range']}",
                measures.success_rate(runs["success"]),
                rate(one["success"], 25),
            )
        )
    return found


def ranges_where(
    rows: pd.DataFrame, one: str, other: str, relation: Callable, stated: int, what: str
) -> Comparison:
    """On how many ranges ``relation(successes of one, successes of other)`` holds.

    The interval: what another such experiment would count. Both models and all ranges have the same seeds, so
    seeds are drawn with replacement, for all of them alike, and from each draw as many once more: the first
    draw is what is not known of the seeds, the second the other experiment. Beside the seeds there is one
    whose outcomes are coins, as in Jeffreys' prior: 25 of 25 does not say that no seed ever fails.
    """
    ranges = [name for name in UNIFORM_RANGES if name in set(rows["range"])]
    table = rows.pivot(index=["model", "range"], columns="seed", values="success").astype(float)
    won = np.array([[table.loc[(model, name)] for name in ranges] for model in (one, other)])
    seeds, samples, generator = won.shape[-1], 10_000, np.random.default_rng(0)
    coins = generator.integers(2, size=(*won.shape[:2], samples, 1))
    outcomes = np.concatenate([np.repeat(won[:, :, None], samples, axis=2), coins], axis=-1)
    drawn = generator.integers(seeds + 1, size=(samples, seeds))
    again = np.take_along_axis(drawn, generator.integers(seeds, size=(samples, seeds)), axis=1)
    counts = np.take_along_axis(outcomes, again[None, None], axis=-1).sum(-1)
    low, high = np.quantile(relation(*counts).sum(0), [0.025, 0.975])
    count = int(relation(*won.sum(-1)).sum())
    ours = Interval(count, int(low), int(high), len(ranges))
    return Comparison(what, ours, exactly(stated), predicted=True)


def higher(rows: pd.DataFrame, one: str, other: str, what: str, ranges: Iterable[str] | None = None) -> Claim:
    first, second = success(rows, one, ranges), success(rows, other, ranges)
    return Claim(
        what,
        bool(first.estimate > second.estimate),
        f"{text(first.estimate)} against {text(second.estimate)}",
    )


def alike(rows: pd.DataFrame, one: str, other: str, what: str) -> Claim:
    first, second = success(rows, one), success(rows, other)
    return Claim(what, first.overlaps(second), f"{text(first.estimate)} against {text(second.estimate)}")
