"""The Real NPU made robust: L1, clipping, whole numbers, a smaller start. Figures 1, 2 and 14."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Layer, Stack
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import L1, Norms, Run

from companion import thresholds
from companion.division import settings
from companion.division.compared import (
    MODIFIED,
    REAL_NPU,
    Compared,
    experiment_item,
    higher,
    lowest,
    of,
    ranges_where,
    success,
)
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim
from companion.experiment.tables import Table

SWEEP = {
    "L1 1e-11 to 1e-09": L1(start=1e-11, end=1e-9),
    "L1 1e-09 to 1e-07": L1(start=1e-9, end=1e-7),
    "L1 1e-08 to 1e-06": L1(start=1e-8, end=1e-6),
    "L1 1e-07 to 1e-05": L1(start=1e-7, end=1e-5),
    "L1 1e-05 to 0.001": L1(start=1e-5, end=1e-3),
    "L1 0.001 to 0.1": L1(start=1e-3, end=1e-1),
    "L1 0.1 to 10": L1(start=1e-1, end=10.0),
}
"""The penalties of Figure 1b."""

NONE, BASE, L2 = "no L1", "L1 1e-09 to 1e-07", "L2 1e-07 to 1e-05"
CLIP, GATE, BOTH, ALL = "clip both", "discretise gate", "discretise both", "constrained start"
ARMS = [NONE, *SWEEP, L2, "clip gate", "clip weight", CLIP, GATE, BOTH, ALL]


def arms(iterations: int | None = None) -> dict[str, Arm]:
    """All variants of the Real NPU; the last is the modified one."""
    units = settings.arms(inputs=2, iterations=iterations)
    baseline, modified = units[REAL_NPU], units[MODIFIED]

    def changed(penalties: tuple = baseline.recipe.penalties, **options: tuple) -> Arm:
        model = Stack(layers=(Layer(unit="RealNPU", options=options),))
        return baseline.but(model=model, recipe=baseline.recipe.but(penalties=penalties))

    pulled, both = modified.recipe.penalties, ("weight", "gate")
    return {
        NONE: changed(penalties=()),
        **{name: changed(penalties=(penalty,)) for name, penalty in SWEEP.items()},
        L2: changed(penalties=(Norms(start=1e-7, end=1e-5),)),
        "clip gate": changed(clip=("gate",)),
        "clip weight": changed(clip=("weight",)),
        CLIP: changed(clip=both),
        GATE: changed(pulled, clip=both, discretise=("gate",)),
        BOTH: changed(pulled, clip=both, discretise=both),
        ALL: modified,
    }


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    every = arms(p.iterations)
    tasks = [SingleModuleTask.on(place, operation="div") for place in p.ranges]
    asked = runs_of({name: every[name] for name in p.models}, tasks, p.seeds, thresholds.FIXED)
    return {"division/robust-real-npu": asked}


def _solved_more(rows: pd.DataFrame, one: str, other: str) -> dict[str, int]:
    """How many runs more the first variant solves, on each range."""
    counts = rows["success"].groupby([rows["model"], rows["range"]]).sum()
    return {p: int(counts.get((one, p), 0)) - int(counts.get((other, p), 0)) for p in UNIFORM_RANGES}


def _figure_1(rows: pd.DataFrame) -> Compared:
    for relation, stated, word in ((np.less, 5, "worse"), (np.equal, 2, "equal"), (np.greater, 2, "better")):
        yield partial(
            ranges_where, rows, NONE, BASE, relation, stated, f"ranges on which removing L1 is {word}"
        )
    for place in ("U[-1.2,-1.1)", "U[1.1,1.2)"):
        more = _solved_more(rows, NONE, BASE)[place]
        yield Claim(f"removing L1 is better on {place}", more > 0, f"{more:+d} runs")
    best = lowest({name: -success(rows, name).estimate for name in SWEEP})
    yield Claim("the best strength is 1e-9 to 1e-7", best == [BASE], ", ".join(best))
    for name in list(SWEEP)[2:]:
        yield higher(rows, BASE, name, f"{name} is worse")


def _figure_2(rows: pd.DataFrame) -> Compared:
    yield partial(
        ranges_where, rows, BOTH, CLIP, np.less, 1, "ranges on which discretising is worse than not"
    )
    lost = [place for place, more in _solved_more(rows, BOTH, CLIP).items() if more < 0]
    what = "discretising loses on U[10,20) and nowhere else"
    yield Claim(what, lost == ["U[10,20)"], ", ".join(lost) or "nowhere")
    last = rows[rows["range"] == "U[10,20)"]
    yield partial(ranges_where, last, CLIP, BOTH, np.subtract, 2, "seeds lost by discretising on U[10,20)")
    for name in ("clip weight", CLIP):
        yield partial(ranges_where, rows, name, BASE, np.greater, 8, f"{name}: ranges on which it is better")
    yield higher(rows, GATE, CLIP, "discretising the gate is better than not")
    yield higher(rows, BOTH, GATE, "discretising the weight too is better than the gate alone")
    gains = _solved_more(rows, BOTH, GATE)
    most = max(gains, key=gains.get)
    what = "discretising the weight too gains most on U[-0.2,-0.1)"
    yield Claim(what, most == "U[-0.2,-0.1)" and gains[most] > 0, f"{most}, {gains[most]:+d} runs")
    better = [place for place, more in _solved_more(rows, ALL, BOTH).items() if more > 0]
    yield Claim("the constrained start is better on several ranges", len(better) > 1, f"{len(better)} ranges")


def _figure_14(rows: pd.DataFrame) -> Compared:
    for other, name, worse, equal, better in ((BASE, "L1", 5, 4, 0), (NONE, "no penalty", 3, 3, 3)):
        yield partial(
            ranges_where, rows, L2, other, np.less, worse, f"ranges on which L2 is worse than {name}"
        )
        yield partial(ranges_where, rows, L2, other, np.equal, equal, f"ranges on which L2 equals {name}")
        yield partial(
            ranges_where, rows, L2, other, np.greater, better, f"ranges on which L2 is better than {name}"
        )


def splits(rows: Rows) -> Table:
    """Run by run: how many only one of two variants solves, and a sign test of that split."""
    from scipy.stats import binomtest

    pairs = [(NONE, BASE), (L2, BASE), (L2, NONE), ("clip weight", BASE), (CLIP, BASE)]
    pairs += [(GATE, CLIP), (BOTH, CLIP), (BOTH, GATE), (ALL, BOTH)]
    single = rows.frame.assign(success=rows.success)
    single = single.pivot(index=["range", "seed"], columns="model", values="success")
    lines = []
    for first, second in pairs:
        if {first, second} <= set(single):
            only = [int((single[a] & ~single[b]).sum()) for a, b in ((first, second), (second, first))]
            odds = binomtest(only[0], sum(only)).pvalue if sum(only) else 1.0
            lines.append([first, second, *only, odds])
    columns = ["first", "second", "only first", "only second", "p"]
    return Table(lines, "Runs that only one of two variants solves; sign test", columns=columns, digits=2)


_item = partial(
    experiment_item,
    iterations=50_000,
    experiment=("division/robust-real-npu",),
    compared="what the text says",
)

EXPERIMENT = Experiment(
    chapter="book/division/robust-real-npu.ipynb",
    rules={"models": some_of(ARMS), "ranges": some_of(UNIFORM_RANGES)},
    runs=_runs,
    items=(
        _item(
            "Figure 1",
            "L1 regularisation of the Real NPU: on or off, and its strength",
            statements=_figure_1,
            headline="ranges on which removing L1 is worse",
            published="5 of 9",
            runs=1800,
            rows=of(NONE, *SWEEP),
        ),
        _item(
            "Figure 2",
            "Clipping, discretisation and initialisation of the Real NPU",
            statements=_figure_2,
            headline="ranges on which discretising loses to none",
            published="1 of 9",
            runs=1575,
            rows=of(BASE, "clip gate", "clip weight", CLIP, GATE, BOTH, ALL),
        ),
        _item(
            "Figure 14",
            "No, L1 and L2 regularisation of the Real NPU",
            statements=_figure_14,
            headline="ranges on which L2 is worse than L1",
            published="5 of 9",
            runs=675,
            rows=of(NONE, BASE, L2),
        ),
    ),
    errata=(
        Erratum(
            "Appendix G, Figure 14",
            "misprint",
            "The results are those of the NPU.",
            "They are those of the Real NPU.",
            "The runs are those of the authors' scripts.",
            "Nothing.",
        ),
    ),
)
