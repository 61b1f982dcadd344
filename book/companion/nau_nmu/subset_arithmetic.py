"""Arithmetic on subsets: Tables 2, 3, 4 and 6 and Figure 6 of *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import SubsetArithmeticTask
from nalm.training import Run

from companion import measures, published
from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import between, one_of, some_of
from companion.experiment.rows import NOT_RUN
from companion.experiment.statements import (
    Claim,
    Comparison,
    Explanation,
    Item,
    Later,
    Read,
    exactly,
    rate,
    solved,
)
from companion.experiment.tables import text
from companion.measures import Interval
from companion.nau_nmu import seed_by_seed
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.merged_order import read_in_merged_order, table_6

NAME, TRIED = "nau-nmu/arithmetic", "nau-nmu/streams"
"""Results files: of the tables, and of the comparison of streams."""

Lines = Mapping[str, tuple[str, ...]]

TABLE_2: Lines = {
    "mul": ("NAC•", "NALU", "NMU"),
    "add": ("NAC+", "Linear", "NALU", "NAU"),
    "sub": ("NAC+", "Linear", "NALU", "NAU"),
}
"""Operation -> the models of Table 2."""

TABLE_6: Lines = {
    operation: tuple(nau_nmu.arms()) for operation in ("mul", "div", "add", "sub", "root", "squared")
}
"""Operation -> the models of Table 6."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those of the tables on one kind of stream, and 200,000 iterations of two models on both kinds."""
    short = min(p.iterations, 200_000)
    tried = [
        run
        for stream in ("own", "common")
        for run in nau_nmu.subset_runs(["NAU", "NAC+"], ["add", "sub"], p.seeds, short, stream)
    ]
    return {TRIED: tried, NAME: nau_nmu.subset_runs(p.models, p.operations, p.seeds, p.iterations, p.stream)}


def lines(rows: pd.DataFrame, table: Lines = TABLE_6) -> Iterator[Comparison]:
    """The numbers of Table 2 or 6 for all models that rows hold, in the table's order.

    Published numbers are the authors' unrounded ones, from their summary and from their file of single
    runs; the gated unit, which these leave out, has the printed ones. The printed mean of *solved at* is a
    fit. It is compared only where it is within 5% of the mean of the authors' runs. Elsewhere that mean
    is compared, with an interval of the same relative width. Their sparsity errors are halved where a beta
    distribution was fitted; ours are then halved likewise.

    Args:
        rows: with the columns ``operation``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
        table: operation -> models.
    """
    parts = dict(iter(rows.groupby(["operation", "model"])))
    for line in [(operation, model) for operation, models in table.items() for model in models]:
        if line not in parts:
            continue
        won, theirs = solved(parts[line]), published_cell(*line)
        distinct = won.drop_duplicates(["solved_at", "sparsity_error"])
        if len(distinct) == 1:  # of one run, drawn several times in a sample of seeds, no spread is known
            won = distinct
        plain = abs(theirs["sparsity"].estimate / theirs["sparsity_sample"] - 1) < 0.01
        sparsity = measures.mean if plain else partial(measures.sparsity_error, scale="published")
        found = {
            "success rate": (measures.success_rate(parts[line]["success"]), theirs["success"]),
            "solved at, median": (measures.solved_at_median(won["solved_at"]), theirs["median"]),
            "solved at, mean": (measures.solved_at(won["solved_at"]), theirs["mean"]),
            "sparsity error": (sparsity(won["sparsity_error"]), theirs["sparsity"]),
        }
        for measure, (ours, printed) in found.items():
            if not np.isnan([ours.estimate, printed.estimate]).any():
                what = f"{line[1]} on {nau_nmu.SIGNS[line[0]]}, {measure}"
                degrees = ours.n - 1 if measure in ("solved at, mean", "sparsity error") else np.inf
                yield Comparison(what, ours, printed, degrees=degrees)


@cache
def published_cell(operation: str, model: str) -> dict:
    """What is published on a line of Table 6, see :func:`lines`.

    ``fit`` is the printed mean of *solved at*, ``average`` the mean of the authors' runs,
    ``sparsity_sample`` the mean sparsity error of the authors' runs.
    """
    table = published.load("nau_nmu_table6_repo_fullprecision")
    found = table[(table["op"] == operation) & (table["model"] == model)]
    if found.empty:
        table = published.load("nau_nmu_table6")
        found = table[(table["op"] == operation) & (table["model"] == model)]
    values = found.set_index("metric")

    def value(name: str) -> float:
        return float(values["value"].get(name, np.nan))

    def with_ends(name: str, estimate: float) -> Interval:
        plus, minus = (float(values[side].get(name, np.nan)) for side in ("plus", "minus"))
        return Interval(estimate, estimate - minus, estimate + plus, 100)

    average, fit = (
        value("solved_at_step_samplemean"),
        with_ends("solved_at_step_mean", value("solved_at_step_mean")),
    )
    near = np.isnan(average) or abs(fit.estimate / average - 1) < 0.05
    return {
        "success": rate(value("success_rate"), 100),
        "median": exactly(value("solved_at_step_median")),
        "mean": fit
        if near
        else Interval(average, average * fit.low / fit.estimate, average * fit.high / fit.estimate, 100),
        "fit": fit,
        "average": average,
        "sparsity": with_ends("sparsity_error_mean", value("sparsity_error_mean")),
        "sparsity_sample": value("sparsity_error_samplemean"),
    }


def _of(table: Lines, rows: pd.DataFrame) -> pd.DataFrame:
    if "operation" not in rows:
        return rows.iloc[:0]
    rows = nau_nmu.usual(rows)
    return rows[
        [row.model in table.get(row.operation, ()) for row in rows[["operation", "model"]].itertuples()]
    ]


def _table_6(rows: pd.DataFrame) -> Iterable[Comparison]:
    yield from sorted(lines(rows), key=lambda one: not one.what.startswith("NAC•,σ on a × b"))


def _table_2(rows: pd.DataFrame) -> Iterable[Claim | Later]:
    """Its numbers, and what section 4.1.2 says of them."""
    yield lambda: sorted(lines(rows, TABLE_2), key=lambda one: not one.what.startswith("NMU on a × b"))

    def found(column: str, statistic: Callable, *line: str) -> Interval:
        part = rows[(rows["operation"] == line[0]) & (rows["model"] == line[1])]
        return statistic((part if column == "success" else solved(part))[column])

    won = partial(found, "success", measures.success_rate)
    when = partial(found, "solved_at", measures.solved_at_median)
    sparsity = partial(found, "sparsity_error", measures.mean)

    def apart(what: str, lower: Interval, higher: Interval) -> Claim:
        return Claim(what, lower.high < higher.low, f"{text(lower, 2)} and {text(higher, 2)}")

    nmu = won("mul", "NMU")
    yield apart("on products, the NMU succeeds more often than the NAC•", won("mul", "NAC•"), nmu)
    yield apart("on products, the NMU succeeds more often than the NALU", won("mul", "NALU"), nmu)
    what = "on products, the NMU converges faster than the NAC•"
    yield apart(what, when("mul", "NMU"), when("mul", "NAC•"))
    rates = [won(*line) for line in (("add", "NAU"), ("add", "NAC+"), ("sub", "NAU"), ("sub", "NAC+"))]
    what = "on sums and differences, NAU and NAC+ solve nearly all"
    yield Claim(
        what, min(one.estimate for one in rates) >= 0.95, ", ".join(text(one.estimate, 2) for one in rates)
    )
    for name, operation in {"sums": "add", "differences": "sub"}.items():
        pair = ((operation, "NAU"), (operation, "NAC+"))
        yield apart(f"on {name}, the NAU is faster than the NAC+", *(when(*line) for line in pair))
        yield apart(f"on {name}, the NAU is sparser than the NAC+", *(sparsity(*line) for line in pair))
    linear = won("sub", "Linear")
    yield Claim("a linear model has a hard time with differences", linear.high < 0.5, text(linear, 2))


def _mean_of(operation: str, model: str) -> str:
    return f"{model} on {nau_nmu.SIGNS[operation]}, solved at, mean"


def _often_solved(table: Lines) -> list[tuple[str, str]]:
    """Operation and model of a table's lines that have enough solved runs for a mean."""
    lines = [(operation, model) for operation, models in table.items() for model in models]
    return [line for line in lines if published_cell(*line)["success"].estimate > 0.3]


def _found_later(table: Lines, read: Read) -> Iterator[tuple[str, str, pd.Series, pd.Series]]:
    """Operation, model, by seed when its solved replays are solved, and when the authors' analysis, with its
    order of rows, would find them to be.
    """
    won = solved(nau_nmu.usual(read(nau_nmu.REPLAY)).query("stream == 'common'"))
    for operation, model in _often_solved(table):
        part = won[(won["operation"] == operation) & (won["model"] == model)].drop_duplicates("seed")
        if len(part):
            times, line = part.set_index("seed")["solved_at"].reindex(range(100)), (model, operation)
            found = pd.Series(read_in_merged_order({line: times.tolist()}, table_6())[line])
            yield operation, model, times.dropna(), found[times.notna()]


def _said_of_order(table: Lines, read: Read) -> str:
    late, alike, means = 0, 0, []
    for operation, model, times, found in _found_later(table, read):
        theirs = published.load("nau_nmu_runs").query("operation == @operation and model == @model")
        at = found[found > 1.5 * times]
        printed = theirs.set_index("seed")["solved_at"].reindex(at.index).dropna()
        late, alike = late + len(printed), alike + int((printed == at[printed.index]).sum())
        if found.mean() > 1.05 * times.mean():
            name = f"{model} on {nau_nmu.SIGNS[operation]}"
            means.append(f"{text(found.mean())} instead of {text(times.mean())} ({name})")
    return (
        "The authors read the rows of some logs out of order, as the chapter on late runs shows. The lengths "
        f"of all logs tell which row of each was read first. For {late} of the solved runs that are "
        f"published one by one, that row comes long after the run was solved; for {alike} of these the "
        f"published iteration is exactly that row's. Our replays, read so, have means of "
        f"{', '.join(means) or NOT_RUN}."
    )


def _later(table: Lines, read: Read) -> dict[str, Interval]:
    """By how much it moves means."""
    still = {_mean_of(*line): exactly(0.0) for line in _often_solved(table)}
    return still | {
        _mean_of(operation, model): exactly(times.mean() - found.mean())
        for operation, model, times, found in _found_later(table, read)
    }


def _out_of_order(table: Lines) -> Explanation:
    """Rows of some logs were read out of order, see :mod:`companion.nau_nmu.merged_order`."""
    of = tuple(_mean_of(*line) for line in _often_solved(table))
    return Explanation(of, partial(_said_of_order, table), partial(_later, table))


def _table_3() -> Iterable[Claim]:
    task = SubsetArithmeticTask(operation="mul")
    values = {
        "input size": (task.inputs, 100),
        "subset ratio": (task.subset_ratio, 0.25),
        "overlap ratio": (task.overlap_ratio, 0.5),
        "interpolation range": (str(task.interpolation), "U[1,2)"),
        "extrapolation range": (str(task.extrapolation), "U[2,6)"),
    }
    for name, (ours, printed) in values.items():
        yield Claim(f"{name}: {printed}", ours == printed, f"{ours}")


PRINTED_TABLE_4 = {
    "NMU": ("NAU", "NMU", 10, 1e6, 2e6),
    "NAU": ("NAU", "NAU", 0.01, 5e3, 5e4),
    "NAC•": ("NAC+", "NAC•"),
    "NAC•,σ": ("NAC+", "NAC•,σ"),
    "NAC•,NMU": ("NAC+", "NAC•,NMU", 10, 1e6, 2e6),
    "NAC+": ("NAC+", "NAC+"),
    "NALU": ("NALU", "NALU"),
    "Linear": ("Linear", "Linear"),
    "ReLU": ("ReLU", "ReLU"),
    "ReLU6": ("ReLU6", "ReLU6"),
}
"""Model -> both layers and, if it is regularised, the factor of the sparsity penalty, its first iteration
and the one at which it is in full force."""


def settings_of(model: str) -> tuple:
    """A line of Table 4 as our runs have it."""
    names = {"NAC": "NAC+", "tanh-sigmoid": "NAC•", "sigmoid": "NAC•,σ", "linear": "NAC•,NMU"}
    arm = nau_nmu.arms()[model]
    layers = [
        layer.options.get("weight", "tanh-sigmoid") if layer.unit == "NACMul" else layer.unit
        for layer in arm.model.layers
    ]
    return *(names.get(layer, layer) for layer in layers), *(
        number for p in arm.recipe.penalties for number in (p.weight, p.start, p.end)
    )


def _table_4() -> Iterable[Claim]:
    for model, printed in PRINTED_TABLE_4.items():
        ours = settings_of(model)
        yield Claim(model, ours == printed, ", ".join(f"{one}" for one in ours[:2]))


def _figure_6() -> Iterable[Claim]:
    """Two contiguous subsets of equal size, the second begins within the first; wherever they lie."""
    ratios = (0.0, 0.25, 0.5, 0.75, 1.0)
    tasks = [SubsetArithmeticTask(operation="mul", overlap_ratio=ratio) for ratio in ratios]
    drawn = [
        (ratio, *map(np.flatnonzero, task.operands(seed)))
        for ratio, task in zip(ratios, tasks, strict=True)
        for seed in range(100)
    ]

    def of_all(holds: list[bool]) -> tuple[bool, str]:
        return all(holds), f"{sum(holds)} of {len(holds)} drawn"

    contiguous = [all((np.diff(part) == 1).all() for part in pair) for _, *pair in drawn]
    yield Claim("subsets are contiguous", all(contiguous), "two subsets that overlap")
    equal = [len(a) == len(b) == 25 for _, a, b in drawn]
    yield Claim("of equal size, the subset ratio of the input", *of_all(equal))
    shared = [len(np.intersect1d(a, b)) == int(ratio * 25) for ratio, a, b in drawn]
    yield Claim("they share the overlap ratio", *of_all(shared))
    after = [bool(a[-1] <= b[-1]) for _, a, b in drawn]
    yield Claim("the second ends where or after the first does", *of_all(after))


def _item(name: str, title: str, kind: str, statements: Callable, **more: object) -> Item:
    if kind == "experiment":
        more |= {"seeds": 100, "iterations": 5_000_000, "experiment": (NAME,), "by": ("operation", "model")}
    return Item("nau-nmu", name, title, kind, statements, **more)


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/subset-arithmetic.ipynb",
    rules={
        "models": some_of(nau_nmu.arms()),
        "operations": some_of(nau_nmu.THRESHOLDS),
        "stream": one_of(["common", "own"]),
        "draws": between(1000, 10_000_000),
    },
    runs=_runs,
    items=(
        _item(
            "Figure 6",
            "How subsets and their overlap are drawn from the input",
            "schematic",
            _figure_6,
            headline="what is drawn",
            published="two subsets that overlap",
        ),
        _item(
            "Table 3",
            "Default parameters of the arithmetic task",
            "settings",
            _table_3,
            headline="input size, first of five",
            published="100",
        ),
        _item(
            "Table 4",
            "Models of the arithmetic task and their regularisers",
            "settings",
            _table_4,
            headline="layers of the NMU",
            published="NAU, NMU",
            explanations=(
                Explanation(
                    ("NAC•,NMU", "ReLU", "ReLU6"),
                    "The authors' code differs from the printed table, and made the published numbers: "
                    "NAC•,NMU begins with a NAU, and the second layer of ReLU and ReLU6 has no activation.",
                ),
            ),
        ),
        _item(
            "Table 2",
            "Multiplication, addition and subtraction of subsets",
            "experiment",
            _table_2,
            headline="success rate of the NMU on multiplication",
            published="98%",
            runs=1100,
            rows=partial(_of, TABLE_2),
            explanations=(_out_of_order(TABLE_2),),
            lines=partial(seed_by_seed.lines, TABLE_2),
        ),
        _item(
            "Table 6",
            "Eleven models on six operations",
            "experiment",
            _table_6,
            headline="success rate of NAC•,σ on multiplication",
            published="100%",
            runs=6600,
            replays=nau_nmu.REPLAY,
            from_seeds=10,
            rows=partial(_of, TABLE_6),
            explanations=(
                _out_of_order(TABLE_6),
                Explanation(
                    tuple(f"Gated NAU/NMU on {sign}, success rate" for sign in nau_nmu.SIGNS.values()),
                    "With 32-bit numbers, as the authors have them, the test error of the doubly gated unit "
                    "is not a number before its first update, and their code stops or goes on with it.",
                ),
            ),
            lines=partial(seed_by_seed.lines, TABLE_6),
        ),
    ),
    errata=(
        Erratum(
            "Section 4.1.2, early stopping",
            "description",
            "Training is stopped early by the validation error.",
            (
                "All runs are trained to their end. Of the logged models, the one with the smallest "
                "validation error is chosen afterwards."
            ),
            "The runs of this book are trained and selected like this.",
            "A run that improves late counts, where early stopping could have ended it.",
        ),
        Erratum(
            "Algorithm 1",
            "description",
            (
                "The place of the subsets is a real number, drawn with each example, and the "
                "overlap ratio is a share of the input."
            ),
            (
                "It is a whole number, drawn once per run, and the overlap ratio is a share of the "
                "subset, rounded down. With the default ratios the printed second subset would "
                "begin before the first."
            ),
            "Figure 6 is drawn from the task, for a hundred seeds and five ratios.",
            "A network built on the printed algorithm learns another task.",
        ),
        Erratum(
            "Table 4",
            "description",
            "NAC•,NMU begins with a NAC+; ReLU and ReLU6 have the activation in both layers.",
            (
                "NAC•,NMU begins with a NAU, with its penalty, and the second layer of ReLU and "
                "ReLU6 is linear."
            ),
            "The printed lines beside the settings of the runs.",
            "The rates of NAC•,NMU are those of a network with a NAU.",
        ),
        Erratum(
            "Equation 16",
            "evaluation",
            "A run succeeds if its error is below that of a nearly perfect solution.",
            (
                "The authors' simulation of that error takes subsets one input longer than the "
                "task's, 26 in place of 25."
            ),
            ("The recorded thresholds come out with a subset ratio of 0.26, and others with the task's own."),
            (
                "Thresholds on sums, roots and quotients are lower than described, those on products the "
                "same. At four points of Figure 8 products have others: with 4 inputs a lower one, with "
                "other subset ratios a higher one."
            ),
        ),
    ),
)
