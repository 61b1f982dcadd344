"""The strength of the sparsity penalty: Figures 10, 11 and 12 of *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.training import Run

from companion import measures
from companion.experiment import Experiment
from companion.experiment.parameters import one_of, some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Comparison, Item, Read
from companion.experiment.tables import Table, text
from companion.figures import Figure, functions
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import within_axes
from companion.nau_nmu.subset_arithmetic import published_cell
from companion.replay import in_place

FIGURES = {"add": "Figure 10", "sub": "Figure 11", "mul": "Figure 12"}
"""Operation -> the figure."""

WEIGHTS = 200
"""Of the first layer, over which its penalty is a mean."""

NEXT_TICKS: dict[str, dict[str, float | None]] = {
    "add": {"solved_at_mean": 1_600_000, "sparsity_error": None},
    "sub": {"solved_at_mean": 5_000, "sparsity_error": None},
    "mul": {"solved_at_mean": 2_500_000, "sparsity_error": 6e-4},
}
"""Operation -> the ticks that would come next on the axes. ``None``: the axis ends where the error must."""


def chosen_factor(operation: str) -> float:
    """λ̂ of Table 4 for the model that is swept on an operation.

    >>> chosen_factor("mul")
    10.0
    """
    return nau_nmu.arms()[nau_nmu.PENALTY_SWEEPS[operation]].recipe.penalties[0].weight


def claims(operation: str, rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """What the figure, the text of appendix C.6 and Table 2 say of one operation.

    Table 2 has the same runs with the chosen factor.

    Args:
        operation: a key of :data:`FIGURES`.
        rows: of it, with the columns ``factor``, ``success``, ``solved_at`` and ``sparsity_error``.
    """
    parts = {float(factor): part for factor, part in rows.groupby(rows["factor"].astype(float))}
    rates = {factor: measures.success_rate(part["success"]) for factor, part in parts.items()}
    chosen = rates[chosen_factor(operation)]
    printed = published_cell(operation, nau_nmu.PENALTY_SWEEPS[operation])["success"]
    yield Comparison("success rate with the chosen factor, in Table 2", chosen, printed)
    best = max(rates.values(), key=lambda one: one.low)
    yield Claim("no factor succeeds more often than the chosen one", best.low <= chosen.high, text(best))
    yield from within_axes(parts.values(), NEXT_TICKS[operation], "with every factor")


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    asked = nau_nmu.penalty_runs(p.operations, p.factors, p.seeds, p.iterations, p.stream)
    return {"nau-nmu/penalty": asked}


def reach_figure(slopes: Mapping[str, np.ndarray], deltas: np.ndarray, factors: Sequence[float]) -> Figure:
    """The slope of the error of weights that are off by δ, and of the penalty that pulls them back.

    Args:
        slopes: operation -> those of the error.
        deltas: how far weights are off.
        factors: λ̂ of the penalties.
    """
    panels, marks = {}, {}
    for operation, slope in slopes.items():
        title, moved = ("sums", 2) if operation == "add" else ("products", 4)
        panels[title] = {"error": (deltas, slope)}
        marks[title] = []
        for factor in factors:
            pull = moved * factor / WEIGHTS
            panels[title][f"penalty, $\\hat\\lambda$ = {factor:g}"] = (deltas, np.full(len(deltas), pull))
            if slope[0] < pull < slope[-1]:
                marks[title].append((float(np.interp(pull, slope, deltas)), pull))
    return functions(
        panels,
        marks,
        xlabel="distance from a discrete value, δ",
        ylabel="slope",
        xlim=(0, 0.5),
        ylim=(3e-3, 4),
        yscale="log",
    )


def replayed_factors(rows: Rows, read: Read) -> tuple[Table, dict[str, str]]:
    """Success, mean of *solved at* and sparsity error over the factors, from either draw of the weights. And
    how many runs are solved, ``first-100`` and ``replay-100``, and when on average, ``first-at-0`` and
    ``replay-at-0``.

    Args:
        rows: of one operation, from the first draw; those of factors that are not replayed are left out.
        read: recorded rows by experiment.
    """
    lines, numbers = [], {}
    for factor in sorted(rows.frame["factor"].unique(), key=float):
        first = rows.of(factor=factor)
        arms = {"first weights": first, "replay": Rows(in_place(first.frame, read))}
        if not len(arms["replay"]):
            continue
        found = {"λ̂": factor}
        for what, measure in {
            "solved": lambda arm: arm.count(),
            "solved at, mean": lambda arm: arm.solved.whole("solved_at"),
            "sparsity error": lambda arm: arm.solved.middle("sparsity_error", 1, _mean),
        }.items():
            found |= {f"{what}, {name}": measure(arm) for name, arm in arms.items()}
        lines.append(found)
        for name, arm in zip(("first", "replay"), arms.values(), strict=True):
            numbers[f"{name}-{factor}"] = arm.count()
            numbers[f"{name}-at-{factor}"] = arm.solved.whole("solved_at")
    return Table(lines, "NMU on products, from either draw of the weights"), numbers


def _mean(errors: pd.Series) -> float:
    return measures.sparsity_error(errors).estimate


def _of(operation: str, rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["operation"] == operation]


_TITLES = {
    "add": ("NAU on addition", 100),
    "sub": ("NAU on subtraction", 100),
    "mul": ("NMU on multiplication", 98),
}

EXPERIMENT = Experiment(
    chapter="book/nau-nmu/penalty.ipynb",
    rules={
        "operations": some_of(nau_nmu.PENALTY_SWEEPS),
        "factors": some_of(nau_nmu.PENALTY_FACTORS),
        "stream": one_of(["common", "own"]),
    },
    runs=_runs,
    items=tuple(
        Item(
            "nau-nmu",
            FIGURES[operation],
            f"Strength of the sparsity penalty: {title}",
            "experiment",
            partial(claims, operation),
            headline=f"success rate with the chosen factor {chosen_factor(operation):g}",
            published=f"drawn only; {printed}% in Table 2",
            seeds=50,
            iterations=5_000_000,
            runs=300,
            experiment=("nau-nmu/penalty",),
            rows=partial(_of, operation),
            by=("factor",),
            compared="the chosen factor, and the ends of the axes",
        )
        for operation, (title, printed) in _TITLES.items()
    ),
)
