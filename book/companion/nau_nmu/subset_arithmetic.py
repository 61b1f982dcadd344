"""Verdicts on the subset arithmetic of *Neural Arithmetic Units*: its Tables 2, 3, 4 and 6, and Figure 6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from nalm.tasks import SubsetArithmeticTask

from companion import measures, published
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.statements import Claim, Comparison, Judge, exactly, rate, solved

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "JUDGES",
    "PRINTED_TABLE_4",
    "TABLE_2",
    "TABLE_6",
    "Cell",
    "cells",
    "published_cell",
    "settings_of",
]

TABLE_2 = {
    "mul": ("NAC•", "NALU", "NMU"),
    "add": ("NAC+", "Linear", "NALU", "NAU"),
    "sub": ("NAC+", "Linear", "NALU", "NAU"),
}
"""Operation -> the models of Table 2."""

TABLE_6 = {operation: tuple(nau_nmu.arms()) for operation in ("mul", "div", "add", "sub", "root", "squared")}
"""Operation -> the models of Table 6."""


@dataclass(frozen=True)
class Cell:
    """One number of Table 2 or 6 beside ours; ``agrees`` is ``None`` where there is none on either side."""

    operation: str
    model: str
    measure: str
    ours: Interval
    published: Interval

    @property
    def agrees(self) -> bool | None:
        missing = [np.isnan(one.estimate) for one in (self.ours, self.published)]
        return None if any(missing) else self.ours.overlaps(self.published)


def cells(rows: pd.DataFrame, table: dict[str, tuple[str, ...]] = TABLE_6) -> Iterator[Cell]:
    """The numbers of Table 2 or 6 for all runs that rows hold, in the table's order.

    Published numbers are the authors' unrounded ones, from their summary and from their file of single runs (the gated unit, which these leave out,
    has the printed ones). The printed mean of *solved at*, a fit, is compared only where it is within 5 % of the mean of their runs; elsewhere that
    is, with an interval of the same relative width. Their sparsity errors are halved where a beta distribution was fitted;
    ours are then halved likewise.

    Args:
        rows: with the columns ``operation``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
        table: operation -> models.
    """
    for operation, models in table.items():
        for model in models:
            of_cell = rows[(rows["operation"] == operation) & (rows["model"] == model)]
            if of_cell.empty:
                continue
            won, theirs = solved(of_cell), published_cell(operation, model)
            plain = abs(theirs["sparsity"].estimate / theirs["sparsity_sample"] - 1) < 0.01
            sparsity = measures.mean if plain else partial(measures.sparsity_error, scale="published")
            yield Cell(
                operation, model, "success rate", measures.success_rate(of_cell["success"]), theirs["success"]
            )
            yield Cell(
                operation,
                model,
                "solved at, median",
                measures.solved_at_median(won["solved_at"]),
                theirs["median"],
            )
            yield Cell(
                operation, model, "solved at, mean", measures.solved_at(won["solved_at"]), theirs["mean"]
            )
            yield Cell(
                operation, model, "sparsity error", sparsity(won["sparsity_error"]), theirs["sparsity"]
            )


@cache
def published_cell(operation: str, model: str) -> dict:
    """What is published on a line of Table 6, see :func:`cells`; ``fit`` is the printed mean of *solved at*, ``average`` that of the authors' runs.

    ``sparsity_sample`` is the mean sparsity error of the authors' runs.
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


def _of_table(table: dict[str, tuple[str, ...]], rows: pd.DataFrame) -> pd.DataFrame:
    if "operation" not in rows:
        return rows.iloc[:0]
    return rows[
        [row.model in table.get(row.operation, ()) for row in rows[["operation", "model"]].itertuples()]
    ]


def _table(table: dict[str, tuple[str, ...]], headline: str, rows: pd.DataFrame) -> Iterable[Comparison]:
    for cell in sorted(
        cells(rows, table), key=lambda cell: (cell.operation, cell.model) != ("mul", headline)
    ):
        if cell.agrees is not None:
            yield Comparison(f"{cell.operation}, {cell.model}, {cell.measure}", cell.ours, cell.published)


def _table_3() -> Iterable[Claim]:
    task = SubsetArithmeticTask(operation="mul")
    ours = (
        task.inputs,
        task.subset_ratio,
        task.overlap_ratio,
        str(task.interpolation),
        str(task.extrapolation),
    )
    printed = (100, 0.25, 0.5, "U[1,2)", "U[2,6)")
    for name, one, other in zip(
        ("input size", "subset ratio", "overlap ratio", "interpolation range", "extrapolation range"),
        ours,
        printed,
        strict=True,
    ):
        yield Claim(name, one == other, f"{one}")


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
"""Model -> both layers and, if it is regularised, the factor of the sparsity penalty, its first iteration and the one at which it is in full force."""


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
        yield Claim(
            model, settings_of(model) == printed, ", ".join(f"{one}" for one in settings_of(model)[:2])
        )


def _figure_6() -> Iterable[Claim]:
    """Two contiguous subsets of equal size, the second begins within the first; wherever they lie."""
    tasks = [
        SubsetArithmeticTask(operation="mul", overlap_ratio=ratio) for ratio in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    drawn = [(task, *task.operands(seed)) for task in tasks for seed in range(100)]
    places = [(np.flatnonzero(a), np.flatnonzero(b)) for _, a, b in drawn]
    yield Claim(
        "subsets are contiguous",
        all((np.diff(part) == 1).all() for pair in places for part in pair),
        "two subsets that overlap",
    )
    yield Claim(
        "of equal size, the subset ratio of the input", all(len(a) == len(b) == 25 for a, b in places)
    )
    shares = [len(np.intersect1d(a, b)) for a, b in places]
    yield Claim(
        "they share the overlap ratio",
        all(n == int(task.overlap_ratio * 25) for n, (task, *_) in zip(shares, drawn, strict=True)),
    )
    yield Claim("the second ends where or after the first does", all(a[-1] <= b[-1] for a, b in places))


JUDGES = {
    ("nau-nmu", "Figure 6"): _figure_6,
    ("nau-nmu", "Table 2"): Judge(
        partial(_of_table, TABLE_2), ("operation", "model"), partial(_table, TABLE_2, "NMU")
    ),
    ("nau-nmu", "Table 3"): _table_3,
    ("nau-nmu", "Table 4"): _table_4,
    ("nau-nmu", "Table 6"): Judge(
        partial(_of_table, TABLE_6), ("operation", "model"), partial(_table, TABLE_6, "NAC•,σ")
    ),
}
