"""What Figures 3 and 7 of *Neural Arithmetic Units* draw over ranges and hidden sizes, as read off the
authors' files, beside recorded rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from companion import measures, published
from companion.experiment.statements import Claim, Comparison, rate, solved
from companion.experiment.tables import text
from companion.measures import Interval

if TYPE_CHECKING:
    import pandas as pd

_NAMES = {
    "success_rate": "success",
    "solved_at_step_mean": "solved_at_mean",
    "sparsity_error_mean": "sparsity_error",
}

MEASURES: dict[str, tuple[str, Callable[[pd.DataFrame], Interval]]] = {
    "success_rate": ("success rate", lambda part: measures.success_rate(part["success"])),
    "solved_at_step_median": ("solved at, median", lambda part: measures.median(solved(part)["solved_at"])),
    "solved_at_step_mean": (
        "solved at, mean",
        lambda part: measures.solved_at(solved(part)["solved_at"], variance="sample"),
    ),
    "sparsity_error_mean": (
        "sparsity error",
        lambda part: measures.sparsity_error(solved(part)["sparsity_error"], scale="published"),
    ),
}
"""Published measure -> its name, and ours of some rows.

Published sparsity errors are halved where a beta distribution was fitted, and published means of *solved at*
are fits with the variance of the runs; ours are found likewise.
"""
_MEASURES = {name: MEASURES[metric] for metric, name in _NAMES.items()}


def drawn(item: str, x: str) -> pd.DataFrame:
    """The success rates and means of *solved at* of a figure, to be drawn beside ours.

    Its sparsity errors are left out, being of two scales.

    Args:
        item: ``"Fig3-top"``, ``"Fig3-bottom"`` or ``"Fig7"``.
        x: what to call the horizontal axis.

    Returns:
        A row for each place and model: the columns ``x``, ``model``, ``success``, ``solved_at_mean``,
        ``runs``.

    >>> drawn("Fig7", "hidden").query("hidden == '10' and model == 'NMU'").to_dict("records")
    [{'hidden': '10', 'model': 'NMU', 'success': 0.58, 'solved_at_mean': 3459000.0, 'runs': 50}]
    """
    table = _table(item).rename(columns={"x": x})
    wide = table.pivot_table(index=[x, "model"], columns="metric", values="value").rename(columns=_NAMES)
    runs = table.groupby([x, "model"])["n_runs"].max()
    return wide[["success", "solved_at_mean"]].assign(runs=runs).reset_index().rename_axis(columns=None)


def values(item: str) -> dict[tuple[str, str, str], Interval]:
    """The values of a figure by place, model and measure: ``"success"``, ``"solved_at_mean"`` or
    ``"sparsity_error"``.

    >>> values("Fig7")["10", "NMU", "success"].estimate
    0.58
    """
    return {(one.x, one.model, _NAMES[one.metric]): _interval(one) for one in _table(item).itertuples()}


def measured(part: pd.DataFrame, which: Collection[str] | None = None) -> dict[str, Interval]:
    """Success rate, mean of *solved at* and sparsity error of a place and model, as the figures have them.

    Args:
        part: rows of the place and model.
        which: of the measures ``"success"``, ``"solved_at_mean"`` and ``"sparsity_error"``; all if ``None``.
    """
    return {
        measure: ours(part) for measure, (_, ours) in _MEASURES.items() if which is None or measure in which
    }


def beside_drawn(item: str, at: str, parts: Mapping[tuple[str, str], pd.DataFrame]) -> Iterator[Comparison]:
    """Every drawn value beside ours, as far as there are rows, and enough solved runs for an interval.

    A mean is compared as one of so few runs as the smaller number of the two.

    Args:
        item: as of :func:`drawn`.
        at: what comes between the model and the place in the name of a comparison.
        parts: place and model -> rows with the columns ``success``, ``solved_at`` and ``sparsity_error``.
    """
    theirs = values(item)
    for (place, model), part in parts.items():
        for measure, ours in measured(part).items():
            if (place, model, measure) in theirs and ours.n > 1:
                printed = theirs[place, model, measure]
                runs = min(one.n for one in (ours, printed) if one.n)
                yield Comparison(
                    f"{model} {at} {place}, {_MEASURES[measure][0]}",
                    ours,
                    printed,
                    degrees=math.inf if measure == "success" else max(1, runs - 1),
                )


AXES = {"solved_at_mean": "solved at", "sparsity_error": "the sparsity error"}


def within_axes(
    parts: Iterable[pd.DataFrame], ticks: Mapping[str, float | None], where: str
) -> Iterator[Claim]:
    """That all that a figure draws, intervals included, may be below the ticks that would come next on its
    axes. Where nothing is published but the drawing, this follows from the ticks that are there.

    Args:
        parts: rows of a place and model each. Of a single solved run there is no interval.
        ticks: of ``"solved_at_mean"`` and ``"sparsity_error"``; ``None``: the axis says nothing.
        where: how a claim ends, ``"with every factor"``.
    """
    won = [part for part in parts if part["success"].any()]
    for name, tick in ticks.items():
        if tick is not None:
            found = [likeliest(part, name) for part in won]
            below = bool(found) and all(
                one < tick or measured(part, [name])[name].low < tick
                for one, part in zip(found, won, strict=True)
            )
            most = text(measured(won[int(np.argmax(found))], [name])[name]) if found else "none solved"
            yield Claim(f"{AXES[name]} may be below {tick:,} {where}", below, most)


def likeliest(part: pd.DataFrame, name: str) -> float:
    """A measure without the ends of its interval, which take most of the time for sparsity errors."""
    if name == "sparsity_error":
        errors = solved(part)["sparsity_error"]
        return measures.sparsity_error(errors, scale="published", ends=False).estimate
    return measured(part, [name])[name].estimate


def _table(item: str) -> pd.DataFrame:
    table = published.load("nau_nmu_figures")
    return table[table["item"] == item].assign(x=lambda found: found["x"].str.replace("]", ")"))


def _interval(one: tuple) -> Interval:
    """A drawn value and its interval, either of which is known as finely as the file resolves it."""
    if one.metric == "success_rate":
        return rate(one.value, int(one.n_runs))
    resolution = float(re.search(r"resolution about ([\d.e+-]+)", one.note)[1])
    minus, plus = (0.0 if math.isnan(width) else width for width in (one.minus, one.plus))
    # of one solved run nothing is drawn but its value, which says nothing of other runs
    runs = 0 if math.isnan(one.minus) and math.isnan(one.plus) else int(one.n_solved)
    return Interval(one.value, one.value - minus - resolution, one.value + plus + resolution, runs)
