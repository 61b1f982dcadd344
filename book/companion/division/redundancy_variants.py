"""Variants of units with eight redundant inputs: Figures 15, 16 and 20."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Layer, Stack
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import Run

from companion import thresholds
from companion.division import settings
from companion.division.compared import (
    MODIFIED,
    NEGATIVE,
    POSITIVE,
    Compared,
    alike,
    experiment_item,
    faster,
    higher,
    of,
    part,
    success,
)
from companion.division.redundancy import left_out
from companion.division.states import shown
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.parameters import some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim
from companion.experiment.tables import Table, text
from companion.measures import operands_first

TERNARY, APART = f"{MODIFIED}, {{-1,0,1}}", "NRU, separate sign"
COMPLEX, CLIPPED = "NPU (no constraints)", "NPU (clip & reg)"
VARIANTS = [TERNARY, APART, COMPLEX, CLIPPED]


def _arms(iterations: int) -> dict[str, Arm]:
    arms = settings.arms(inputs=10, iterations=iterations)

    def variant(name: str, unit: str, **options: object) -> Arm:
        return arms[name].but(model=Stack(layers=(Layer(unit=unit, options=options),)))

    parts = ("weight", "weight_im", "gate")
    return arms | {
        TERNARY: variant(MODIFIED, "RealNPU", **settings.REPAIRED, discretise_to=(-1, 0, 1)),
        APART: variant("NRU", "NRU", separate_sign=True),
        COMPLEX: variant(MODIFIED, "NPU", **settings.REPAIRED),
        CLIPPED: variant(MODIFIED, "NPU", init="capped-glorot", clip=parts, discretise=parts),
    }


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those of the modified Real NPU and of the NRU are runs of Figure 6 as well."""
    arms = _arms(p.iterations)
    tasks = [SingleModuleTask.on(place, operation="div", inputs=10) for place in p.ranges]
    asked = {name: arms[name] for name in p.models}
    return {"division/redundancy": runs_of(asked, tasks, p.seeds, thresholds.FIXED)}


def _by_formula(place: str, seed: int, c: float) -> float:
    """The test error of y = t cos(c log t) for the targets t of a run."""
    task = SingleModuleTask.on(place, operation="div", inputs=10)
    targets = task.evaluation(seed=seed)["test"].targets.double().numpy()
    return float(np.square(targets * np.cos(c * np.log(targets)) - targets).mean())


def imaginary(rows: Rows) -> tuple[Table, dict[str, object]]:
    """The imaginary weights of failed NPUs on negative ranges, and the test error that follows from them."""
    lost = rows.of(model=COMPLEX, range=NEGATIVE).failed.frame
    a, b = operands_first(lost, "0.weight_im")[:, 0, :2].T
    formula = [_by_formula(*run) for run in zip(lost["range"], lost["seed"], a, strict=True)]
    still = operands_first(rows.of(model=COMPLEX, range=POSITIVE).frame, "0.weight_im")
    close = (lost["test_mse"] / formula).between(0.8, 1.25)
    numbers = {
        "formula_fits": Rows(lost).share(close),
        "im_still": text(np.abs(still).max(initial=0), 1) if len(still) else NOT_RUN,
    }
    names = ("imaginary W_a", "imaginary W_b", "test range, by the formula")
    found = lost.assign(**dict(zip(names, (a, b, formula), strict=True)))
    few = found.groupby("range", sort=False).head(4)
    columns = ["range", "seed", *names[:2], "valid_mse", "test_mse", names[2]]
    return Table(
        shown(few, columns), "Some failed runs of the NPU without constraints on negative ranges"
    ), numbers


def beside_a_half(rows: Rows) -> Table:
    """Where the weights of the operands of failed NRUs with a separate sign ended."""
    lost = rows.of(model=APART, range=NEGATIVE).failed
    ends = np.abs(operands_first(lost.frame)[:, 0, :2])
    line = {
        "failed runs on negative ranges": len(lost),
        "with |W_a| or |W_b| below 0.51": lost.share((ends < 0.51).any(1)),
        "with one of them within 0.01 of a half": lost.share((np.abs(ends - 0.5) < 0.01).any(1)),
    }
    return Table([line], "NRU with separate sign: where the weights of a and b ended")


def _figure_15(rows: pd.DataFrame) -> Compared:
    yield higher(rows, MODIFIED, COMPLEX, "complex weights lower the success on negative ranges", NEGATIVE)
    what = "negative ranges on which complex weights are slower"
    yield partial(faster, rows, MODIFIED, COMPLEX, NEGATIVE, what)
    better = [
        place
        for place in UNIFORM_RANGES
        if success(rows, CLIPPED, [place]).low > success(rows, MODIFIED, [place]).high
    ]
    first, second = success(rows, CLIPPED), success(rows, MODIFIED)
    yield Claim(
        "clipped and penalised complex weights are nowhere significantly better",
        first.low <= second.high and not better,
        f"{text(first.estimate)} against {text(second.estimate)}; better on: {', '.join(better) or 'none'}",
    )


def _figure_16(rows: pd.DataFrame) -> Compared:
    yield alike(rows, TERNARY, MODIFIED, "the set that weights are pulled to has no effect on success")
    old, new = (left_out(part(rows, model))["gate 0, weight ±1"] for model in (MODIFIED, TERNARY))
    what = "with {-1, 0, 1} fewer inputs are left out by a closed gate and a weight of ±1"
    yield Claim(what, new < old, f"{text(new, 2)} against {text(old, 2)}")


def _figure_20(rows: pd.DataFrame) -> Compared:
    yield alike(rows, APART, "NRU", "a separate sign makes no difference in success")


_item = partial(experiment_item, iterations=100_000, experiment=("division/redundancy",))

EXPERIMENT = Experiment(
    chapter="book/division/redundancy-variants.ipynb",
    rules={"models": some_of(_arms(1)), "ranges": some_of(UNIFORM_RANGES)},
    runs=_runs,
    items=(
        _item(
            "Figure 15",
            "Complex weights: NPU against Real NPU",
            statements=_figure_15,
            headline="complex weights on negative ranges",
            published="hinder success and speed",
            runs=675,
            rows=of(MODIFIED, COMPLEX, CLIPPED),
        ),
        _item(
            "Figure 16",
            "Discretising the Real NPU to {-1, 1} or {-1, 0, 1}",
            statements=_figure_16,
            headline="effect on success",
            published="none",
            runs=450,
            rows=of(MODIFIED, TERNARY),
        ),
        _item(
            "Figure 20",
            "NRU with the sign inside or apart from the magnitude",
            statements=_figure_20,
            headline="difference in success",
            published="none",
            runs=450,
            rows=of("NRU", APART),
        ),
    ),
)
