"""Division of numbers from other distributions: Figures 7 and 8 and Table 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import Benford
from nalm.training import Run

from companion import thresholds
from companion.division import settings
from companion.division.compared import (
    MODIFIED,
    UNITS,
    Compared,
    experiment_item,
    of,
    stated,
    stated_rates,
    success,
)
from companion.experiment import Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Explanation, Item
from companion.experiment.tables import Table, text
from companion.figures import Figure

TRUNCATED = ["TN(-1,3)[-5,10)", "TN(0,1)[-5,5)", "TN(1,3)[-10,5)"]
BENFORD = "B[10,100)"
WIDE = ["U[-100,100)", "U[-50,50)"]
_FIGURES = {"2": "Fig 7", "10": "Fig 8"}


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """With ten inputs training takes twice the iterations; the label ``inputs`` tells them apart."""
    runs = []
    for inputs in p.inputs:
        arms = settings.arms(inputs, p.iterations if inputs == 2 else 2 * p.iterations)
        tasks = [settings.task(settings.DISTRIBUTIONS[name], inputs) for name in p.distributions]
        found = runs_of({model: arms[model] for model in p.models}, tasks, p.seeds, thresholds.FIXED)
        runs += [run.but(labels=run.labels | {"inputs": str(inputs)}) for run in found]
    return {"division/distributions": runs}


def draw(rows: Rows, inputs: str) -> Figure | None:
    """The paper's figure for a number of inputs; nothing if it was not run."""
    part, rates = rows.of(inputs=inputs), stated_rates(_FIGURES[inputs])
    return part.by_range(published=rates, xlabel="training distribution") if len(part) else None


def divides(rows: Rows) -> np.ndarray:
    """Whether rounded weights divide exactly the right two inputs, ``(runs,)``, of runs of one unit."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    model, inputs = rows.frame["model"].iloc[0], int(rows.frame["inputs"].iloc[0])
    powers = np.round(rows.weights("0.weight")[:, 0])
    if model == "NMRU":
        powers = powers[:, :inputs] - powers[:, inputs:]
    if model == MODIFIED:
        powers = powers * np.round(rows.weights("0.gate")).clip(0, 1)
    task = settings.task(settings.DISTRIBUTIONS[BENFORD], inputs)  # the operands depend on the seed alone
    operands = [task.operands(seed) for seed in rows.frame["seed"]]
    return (powers == [numerator - denominator for numerator, denominator in operands]).all(1)


def failed(rows: Rows) -> Table:
    """The failed runs of each unit on each distribution: their errors and weights."""
    lines = []
    for (inputs, unit, name), part in rows.failed.frame.groupby(["inputs", "model", "range"], sort=False):
        asked = settings.task(settings.DISTRIBUTIONS[name], int(inputs))
        targets = [asked.evaluation(seed)["valid"].targets.double() for seed in part["seed"]]
        idle = np.array([target.square().mean().item() for target in targets])
        line = {"inputs": inputs, "unit": unit, "distribution": name, "failed": len(part)}
        line |= {"training error": part["valid_mse"].median(), "test error": part["test_mse"].median()}
        line["no better than 0"] = int((part["valid_mse"] > 0.95 * idle).sum())
        line["whole numbers"] = int((part["sparsity_error"] < 0.05).sum())
        lines.append(line | {"right powers": int(divides(Rows(part)).sum())})
    return Table(lines, "Failed runs", digits=2)


def tossed(rows: Rows, places: Iterable[str]) -> Table:
    """The runs of a Real NPU with two inputs by the side on which they start, ``good`` if W_a > W_b."""
    lines = []
    for name in places:
        part = rows.of(range=name)
        W = part.weights("0.weight").reshape(-1, 2)
        good, won, turned = part.frame["good"], part.success, (W[:, 0] < 0) & (W[:, 1] > 0)
        line = {"distribution": name, "start with W_a > W_b": int(good.sum())}
        line |= {"of them solved": int((won & good).sum()), "start otherwise": int((~good).sum())}
        line["solved "] = int((won & ~good).sum())
        line["unsolved, end at W_a < 0 < W_b"] = int((turned & ~won).sum())
        lines.append(line | {"unsolved": int((~won).sum())})
    return Table(lines, "Initial weights and success of the Real NPU with two inputs")


def _figure(rows: pd.DataFrame, inputs: str, first: str) -> Compared:
    """The rates that the text states, the ``first`` before the others, and for Figure 7 ticks of Table 3."""
    yield from sorted(stated(rows, _FIGURES[inputs]), key=lambda one: one.what != first)
    for unit in UNITS if inputs == "2" else []:
        found = success(rows, unit, [BENFORD])
        yield Claim(f"{unit} on {BENFORD} above 0.75", found.estimate > 0.75, text(found))


_FLOATS = "B[10,100) and B[100,1000) are floats"


def _table_2() -> Compared:
    printed = {
        "TN(-1,3)[-5,10)": "TN(-10,3)[-15,-5)",
        "TN(0,1)[-5,5)": "TN(10,1)[5,15)",
        "TN(1,3)[-10,5)": "TN(10,3)[5,15)",
        "B[10,100)": "B[100,1000)",
        "U[-100,100)": "U[-200,-100)|U[100,200)",
        "U[-50,50)": "U[-100,-50)|U[50,100)",
    }
    for training, test in printed.items():
        ours = str(settings.DISTRIBUTIONS[training][1])
        yield Claim(f"training on {training}, test on {test}", ours == test, ours)
    numbers = np.concatenate([Benford(digits=digits).values()[0] for digits in (2, 3)])
    whole = bool((numbers == np.round(numbers)).all())
    yield Claim(_FLOATS, not whole, f"{len(numbers)} {'whole ' if whole else ''}numbers")


def _of(inputs: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Those of this number of inputs, where rows say it; recorded ones are told apart by their length."""

    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        known = rows.reindex(columns=["inputs"]).astype(object)["inputs"].fillna(inputs)
        return of(*UNITS)(rows[known == inputs])

    return chosen


_item = partial(experiment_item, runs=450, experiment=("division/distributions",), compared="success rates")
_WHOLE = Explanation((_FLOATS,), "The authors' code, which made the published numbers, draws whole numbers.")

EXPERIMENT = Experiment(
    chapter="book/division/distributions.ipynb",
    rules={
        "models": some_of(UNITS),
        "distributions": some_of(settings.DISTRIBUTIONS),
        "inputs": some_of([2, 10]),
    },
    runs=_runs,
    items=(
        Item(
            "division",
            "Table 2",
            "Truncated normal, Benford and wide uniform distributions",
            "settings",
            _table_2,
            headline="test distribution of TN(-1,3)[-5,10)",
            published="TN(-10,3)[-15,-5)",
            explanations=(_WHOLE,),
        ),
        _item(
            "Figure 7",
            "Division on other distributions, without redundancy",
            statements=partial(_figure, inputs="2", first=f"{MODIFIED} on U[-100,100)"),
            headline="success rate of the modified Real NPU on U[-100,100)",
            published="0.72",
            iterations=50_000,
            rows=_of("2"),
        ),
        _item(
            "Figure 8",
            "Division on other distributions, with redundancy",
            statements=partial(_figure, inputs="10", first="NMRU on TN(1,3)[-10,5)"),
            headline="success rate of the NMRU on TN(1,3)[-10,5)",
            published="0.92",
            iterations=100_000,
            rows=_of("10"),
        ),
    ),
    errata=(
        Erratum(
            "Table 2, caption",
            "description",
            "Data are drawn as floats.",
            (
                "The Benford numbers are whole, follow the law in the first digit only, and leave "
                "out multiples of ten in training."
            ),
            "The printed lines beside the ranges of the task, and its draws.",
            "Units that succeed on them have been trained on few numbers.",
        ),
    ),
)
