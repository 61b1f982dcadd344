"""A function of ten parameters: Table 1 of *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import TenParameterTask
from nalm.training import Run

from companion import measures, published
from companion.experiment import Experiment, runs_of
from companion.measures import Interval
from companion.nau_nmu import settings
from companion.nau_nmu.drawn import MEASURES
from companion.parameters import at_least, some_of
from companion.replay import in_place, replays
from companion.rows import Rows
from companion.statements import (
    Comparison,
    Explanation,
    Item,
    Read,
    above,
    exactly,
    printed,
    rate,
    rounded,
    solved,
)
from companion.thresholds import nearly_perfect_mse

NAME = "nau-nmu/ten-parameter"
MODELS = ("NAC•", "NALU", "NMU")
ROUNDING = 2.0**-24
"""Between float32 numbers next to 1: a sparsity error below it is none."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """The runs of Table 1, further seeds of NAC•, and NAC• with the authors' initial weights and batches."""
    task, arms = TenParameterTask(), settings.arms(iterations=p.iterations)
    seeds = dict.fromkeys(p.models, p.seeds)
    seeds["NAC•"] = max(seeds.get("NAC•", 0), p.nac_seeds)
    threshold = nearly_perfect_mse(task)
    asked = [run for name in seeds for run in runs_of({name: arms[name]}, [task], seeds[name], threshold)]
    return {NAME: asked, "nau-nmu/replay": replays(NAME, models=("NAC•",), seeds=p.seeds)}


def _of_table_1(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's number of seeds; of NAC• there are more."""
    return rows[rows["model"].isin(MODELS) & (rows["seed"] < 100)]


_MEASURES = MEASURES | {
    "solved_at_step_median": ("median of solved at", MEASURES["solved_at_step_median"][1]),
    "solved_at_step_mean": ("mean of solved at", MEASURES["solved_at_step_mean"][1]),
    # the printed intervals are symmetric, thus Student's, which were never halved
    "sparsity_error_mean": ("sparsity error", lambda part: measures.mean(solved(part)["sparsity_error"])),
}


def _table_1(rows: pd.DataFrame) -> Iterable[Comparison]:
    table = published.load("nau_nmu_table1").set_index(["model", "metric"])
    for model in ("NMU", "NAC•", "NALU"):
        for metric, (name, measure) in _MEASURES.items():
            value, plus, minus = table.loc[(model, metric), ["value", "plus", "minus"]]
            if metric == "success_rate":
                theirs = rate(value, 100)
            else:
                theirs = rounded(value, digits=2) if np.isnan(plus) else printed(value, minus, plus, 100)
            ours = measure(rows[rows["model"] == model])
            noise = ROUNDING if metric == "sparsity_error_mean" else 0.0
            yield Comparison(f"{model}, {name}", ours, theirs, resolution=noise)


def _by_the_draw(read: Read) -> dict[str, Interval]:
    """By how much the runs from the first draw are above their replays, in each number."""
    rows = _of_table_1(read(NAME))
    again = in_place(rows, read)
    if again.empty:
        return {one.what: exactly(0.0) for one in _table_1(rows)}
    pairs = zip(_table_1(rows), _table_1(again), strict=True)
    return {one.what: above(one.ours.estimate, other.ours) for one, other in pairs}


def _initial_weights(read: Read) -> str:
    ours = Rows(read(NAME)).of(model="NAC•")
    theirs = Rows(read("nau-nmu/replay")).of(model="NAC•", task="TenParameterTask")
    return (
        "The count belongs to the authors' initial weights: with these and their batches "
        f"{theirs.count()} seeds are solved, with ours {ours.count(seed=range(100))}, "
        f"and of more seeds {ours.count()}."
    )


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/ten-parameter.ipynb",
    rules={"models": some_of(MODELS), "nac_seeds": at_least(1)},
    runs=_runs,
    items=(
        Item(
            "nau-nmu",
            "Table 1",
            "A function of ten parameters: NAC•, NALU, NMU",
            "experiment",
            _table_1,
            headline="success rate of the NMU",
            published="94 %",
            seeds=100,
            iterations=200_000,
            runs=300,
            experiment=(NAME,),
            rows=_of_table_1,
            by=("model",),
            explanations=(Explanation(("NAC•, success rate",), _initial_weights, _by_the_draw),),
        ),
    ),
)
