"""Division of operands of known signs: Figure 4 and Table 6."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.training import Run

from companion import measures, thresholds
from companion.division import settings, states
from companion.division.compared import MIXED, MODIFIED, UNITS, Compared, of, part, success
from companion.division.states import Side, draw_starts
from companion.experiment import Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.statements import Claim, Explanation, Item, solved
from companion.experiment.tables import text
from companion.figures import Figure, style

DATA_SETS = ["1", "2", "3", "4", "5"]
PRINTED = "3 (paper's test set)"


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    arms = settings.arms(inputs=2, iterations=p.iterations)
    tasks = {name: settings.task(settings.MIXED_SIGNS[name]) for name in p.ranges}
    asked = {name: arms[name] for name in p.models}
    return {"division/mixed-signs": runs_of(asked, tasks, p.seeds, thresholds.FIXED)}


def initial(seeds: int, draws: int = 1) -> np.ndarray:
    """What the modified Real NPU starts with, (seeds, 2): the first draw of each seed or a later one."""
    return states.initial(settings.arms(inputs=2)[MODIFIED].model.but(draws=draws), 2, range(seeds))


def starts(weights: np.ndarray, won: Mapping[str, np.ndarray], good: Mapping[str, Side]) -> Figure:
    """Initial weights, solved or failed, of each data set, on the side that is good for it."""
    with style():
        figure = Figure(figsize=(7, 4.9), layout="constrained")
        axes = figure.subplots(2, 3, sharex=True, sharey=True).flatten()
        for axis, (name, side) in zip(axes, good.items(), strict=False):
            draw_starts(axis, weights if name in won else weights[:0], won.get(name, np.zeros(0, bool)), side)
            axis.set_title(f"data set {name}" if name in won else f"data set {name}: not run")
        said = "●  solved\n×  failed\nshaded: good starts,\ncomputed beforehand"
        axes[-1].axis("off")
        axes[-1].text(0.02, 0.5, said, transform=axes[-1].transAxes, va="center", linespacing=1.8)
        for axis in axes[[2, 3, 4]]:
            axis.set_xlabel("initial $W_a$")
            axis.tick_params(labelbottom=True)
        for axis in axes[[0, 3]]:
            axis.set_ylabel("initial $W_b$")
    return figure


def _figure_4(rows: pd.DataFrame) -> Compared:
    for name in DATA_SETS:
        found = success(rows, MODIFIED, [name])
        yield Claim(f"the modified Real NPU struggles on data set {name}", found.estimate < 0.75, text(found))
    fast, slow = (
        measures.solved_at(solved(part(rows, MODIFIED, names))["solved_at"])
        for names in (["1", "2"], ["4", "5"])
    )
    yield Claim(
        "positive divisors (1, 2) are solved faster than negative ones (4, 5)",
        fast.estimate < slow.estimate,
        f"{text(fast)} against {text(slow)}",
    )
    sparsity = {
        name: measures.sparsity_error(solved(part(rows, MODIFIED, [name]))["sparsity_error"])
        for name in DATA_SETS
    }
    others = max(sparsity[name].estimate for name in DATA_SETS if name != "3")
    yield Claim(
        "sparsity errors are slightly higher on data set 3",
        sparsity["3"].estimate > others,
        f"{text(sparsity['3'])}, others at most {text(others, 2)}",
    )


def _table_6() -> Compared:
    low, high = "U[-6,-2)", "U[2,6)"
    printed = {
        "1": ("U[-2,-0.1) then U[0.1,2)", f"{low} then {high}"),
        "2": ("U[-2,-1) then U[1,2)", f"{low} then {high}"),
        "3": (MIXED, f"{low} then {high}"),
        "4": ("U[0.1,2) then U[-2,-0.1)", f"{high} then {low}"),
        "5": ("U[1,-2) then U[-2,-1)", f"{high} then {low}"),
    }
    for name, ranges in printed.items():
        ours = tuple(map(str, settings.MIXED_SIGNS[name]))
        yield Claim(f"data set {name}", ours == ranges, ", tested on ".join(ours))


EXPERIMENT = Experiment(
    chapter="book/division/mixed-signs.ipynb",
    rules={"models": some_of(UNITS), "ranges": some_of(settings.MIXED_SIGNS)},
    runs=_runs,
    items=(
        Item(
            "division",
            "Table 6",
            "Mixed-sign data sets",
            "settings",
            _table_6,
            explanations=(
                Explanation(
                    ("data set 3", "data set 5"),
                    "Data set 5 is misprinted: U[1,-2) is empty. Data set 3 is tested with a sign for every "
                    "number, as the authors' code draws it; printed is one sign for each operand, which "
                    "would leave out three of the four combinations. The chapter tests that as well.",
                ),
            ),
        ),
        Item(
            "division",
            "Figure 4",
            "Division of operands with controlled signs",
            "experiment",
            _figure_4,
            headline="the modified Real NPU",
            published="struggles on all five data sets",
            seeds=25,
            iterations=50_000,
            runs=125,
            experiment=("division/mixed-signs",),
            rows=lambda rows: of(MODIFIED)(rows[rows["range"].isin(DATA_SETS)]),
            by=("range",),
        ),
    ),
    errata=(
        Erratum(
            "Table 6",
            "misprint",
            ("The first operand of data set 5 is from U[1,-2), and data set 3 tests one sign per operand."),
            ("It is U[1,2), and data set 3 picks a sign for every number, as U[-2,2) of Table 1 does."),
            "The printed lines beside the ranges of the task.",
            ("Tested as printed, data set 3 would say nothing of three of the four combinations of signs."),
        ),
    ),
)
