"""What gates choose: Table 5 and Figure 9 of *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import SimpleNamespace

import pandas as pd
from nalm.training import Run

from companion import measures, published
from companion.experiment import Experiment
from companion.experiment.parameters import between, one_of, some_of
from companion.experiment.statements import (
    Claim,
    Comparison,
    Explanation,
    Item,
    Later,
    Read,
    exactly,
    printed,
    rate,
    rounded,
)
from companion.experiment.tables import text
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import MEASURES
from companion.nau_nmu.merged_order import LAYOUTS, means_in_either_order

RIGHT = {"mul": "multiplication", "add": "addition"}
"""Operation -> the choice that can solve it."""


def table_5(rows: pd.DataFrame) -> Iterator[Comparison]:
    """The numbers of Table 5 for the lines that rows hold.

    Their sparsity errors are means of beta distributions fitted to the error in place of twice the error,
    so halved. Their means of *solved at* are those of gamma distributions with the variance of the runs.
    Ours are found likewise.

    Args:
        rows: with the columns ``operation``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
    """
    for (operation, model), part in _lines(rows):
        theirs = published_line(operation, model)
        for metric, (name, measure) in MEASURES.items():
            yield Comparison(f"{model} on {nau_nmu.SIGNS[operation]}, {name}", measure(part), theirs[metric])


def published_line(operation: str, model: str) -> dict[str, Interval]:
    """A line of Table 5 by the published values' names of its measures.

    >>> published_line("add", "Gated NAU/NMU")["solved_at_step_mean"].estimate
    420000.0
    """
    table = published.load("nau_nmu_table5").set_index(["op", "model", "metric"])
    found = {}
    for metric in MEASURES:
        one = table.loc[operation, model, metric]
        if metric == "success_rate":
            found[metric] = rate(one["value"], 100)
        elif metric == "solved_at_step_median":
            found[metric] = rounded(one["value"], digits=2)
        else:
            found[metric] = printed(*(float(one[column]) for column in ("value", "minus", "plus")), runs=100)
    return found


def published_histogram() -> pd.DataFrame:
    """Figure 9: columns ``operation``, ``model``, ``gate`` (middle of a bin), ``success`` and ``count``."""
    table = published.load("nau_nmu_fig9_gate_histogram")
    success = ~table["note"].str.startswith("not solved")
    counts = table["value"].astype(int)
    return pd.DataFrame(
        {
            "operation": table["op"],
            "model": table["model"],
            "gate": table["x"],
            "success": success,
            "count": counts,
        }
    )


def chose(rows: pd.DataFrame, choice: str) -> pd.Series:
    """Whether the gate of each run ended on the side of ``"addition"`` or ``"multiplication"``."""
    return rows["gate"] > 0.5 if choice == "addition" else rows["gate"] < 0.5


def figure_9(rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """Shares of runs by their choice, and the observations of appendix C.5, as far as rows hold their
    lines.

    Args:
        rows: lines of Table 5, with the column ``gate`` as well.
    """
    ours = dict(_lines(rows))
    yield lambda: _choices(ours)
    added = {line: _share(chose(part, "addition")) for line, part in ours.items()}
    for operation in RIGHT:
        pair = [added.get((operation, model)) for model in ("NALU (separate)", "NALU (shared)")]
        if None not in pair:
            claim = f"on {nau_nmu.SIGNS[operation]}, more NALUs choose addition if their weights are separate"
            yield Claim(claim, pair[0].low > pair[1].high, f"{text(pair[0], 2)} and {text(pair[1], 2)}")
    rates = {
        model: _share(part.loc[chose(part, "multiplication"), "success"])
        for (operation, model), part in ours.items()
        if operation == "mul"
    }
    for model in ("NALU (separate)", "NALU (shared)"):
        pair = [rates.get("Gated NAU/NMU"), rates.get(model)]
        if None not in pair:
            claim = f"having chosen multiplication, the NMU solves it more often than the {model}"
            yield Claim(claim, pair[0].low > pair[1].high, f"{text(pair[0], 2)} and {text(pair[1], 2)}")
    for model in nau_nmu.gate_arms():
        pair = [added.get((operation, model)) for operation in RIGHT]
        if None not in pair:
            claim = f"{model}: the choice does not depend on the task"
            yield Claim(claim, pair[0].overlaps(pair[1]), f"{text(pair[0], 2)} and {text(pair[1], 2)} add")


def _choices(ours: Mapping[tuple[str, str], pd.DataFrame]) -> Iterator[Comparison]:
    """How many runs of each line made the right choice, and how many of them are solved."""
    theirs = published_histogram()
    theirs = theirs.loc[theirs.index.repeat(theirs["count"])]
    for (operation, model), part in ours.items():
        drawn = theirs[(theirs["operation"] == operation) & (theirs["model"] == model)]
        choice = RIGHT[operation]
        right = [_share(chose(runs, choice)) for runs in (part, drawn)]
        line = f"{model} on {nau_nmu.SIGNS[operation]}"
        yield Comparison(f"{line}, runs that chose {choice}", *right)
        won = [_share(chose(runs, choice) & runs["success"].astype(bool)) for runs in (part, drawn)]
        yield Comparison(f"{line}, runs that chose {choice} and are solved", *won)


def _share(values: pd.Series) -> Interval:
    return measures.success_rate(values)


def _lines(rows: pd.DataFrame) -> Iterator[tuple[tuple[str, str], pd.DataFrame]]:
    for operation in RIGHT:
        for model in nau_nmu.gate_arms():
            part = rows[(rows["operation"] == operation) & (rows["model"] == model)]
            if len(part):
                yield (operation, model), part


_MORE = "on a × b, more NALUs choose addition if their weights are separate"


def touching(rows: pd.DataFrame) -> float:
    """The probability, by Fisher's exact test, that NALUs on products choose alike with either weights.

    NaN unless both kinds have runs.
    """
    from scipy.stats import fisher_exact

    lines = dict(_lines(rows))
    pair = [lines.get(("mul", model)) for model in ("NALU (separate)", "NALU (shared)")]
    if any(part is None for part in pair):
        return float("nan")
    adds = [int(chose(part, "addition").sum()) for part in pair]
    return float(fisher_exact([[n, len(part) - n] for n, part in zip(adds, pair, strict=True)]).pvalue)


def _by_counts(read: Read) -> str:
    probability = text(touching(read("nau-nmu/gates")), 1)
    return (
        "The intervals of the two shares touch, which does not count as a difference here. A test on the "
        f"counts finds one, as published (p = {probability})."
    )


_LATE = "Gated NAU/NMU on a + b, solved at, mean"


def _read_twice(read: Read) -> tuple[Interval, Interval]:
    """The mean of *solved at* of the gated NAU/NMU on sums, from rows in order and out of order."""
    rows, line = read("nau-nmu/gates"), ("Gated NAU/NMU", "add")
    part = rows[(rows["model"] == line[0]) & (rows["operation"] == line[1])].sort_values("seed")
    times = part["solved_at"].where(part["success"].astype(bool)).to_numpy(float)
    return means_in_either_order(line, times, LAYOUTS["Table 5"])


def _out_of_order(read: Read) -> str:
    return (
        "The published mean of the gated NAU/NMU on sums, 420,000, was found from rows out of order. Found "
        f"so as well, ours is {text(_read_twice(read)[1])}."
    )


def _by_the_order(read: Read) -> dict[str, Interval]:
    ours, likewise = _read_twice(read)
    return {_LATE: exactly(ours.estimate - likewise.estimate)}


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    asked = nau_nmu.gate_runs(p.models, p.operations, p.seeds, p.iterations, p.stream)
    return {"nau-nmu/gates": asked}


_item = partial(
    Item,
    "nau-nmu",
    kind="experiment",
    seeds=100,
    iterations=5_000_000,
    runs=600,
    experiment=("nau-nmu/gates",),
    by=("operation", "model"),
)

EXPERIMENT = Experiment(
    chapter="book/nau-nmu/gates.ipynb",
    rules={
        "models": some_of(nau_nmu.gate_arms()),
        "operations": some_of(RIGHT),
        "stream": one_of(["common", "own"]),
        "draws": between(100, 1_000_000),
    },
    runs=_runs,
    items=(
        _item(
            "Table 5",
            "Gated units: shared, separate, NAU with NMU",
            statements=table_5,
            headline="success rate of gated NAU/NMU on multiplication",
            published="62%",
            explanations=(Explanation((_LATE,), _out_of_order, _by_the_order),),
        ),
        _item(
            "Figure 9",
            "Gate values of NALU and gated NAU/NMU",
            statements=figure_9,
            headline="multiplication runs of gated NAU/NMU that chose the NMU",
            published="63 of 100",
            explanations=(Explanation((_MORE,), _by_counts),),
        ),
    ),
)
