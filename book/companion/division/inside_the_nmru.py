"""The NMRU taken apart: Figures 17 to 19."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Layer, Stack
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import SGD, Adam, Run

from companion import measures, thresholds
from companion.division import settings
from companion.division.compared import (
    MIXED,
    NEGATIVE,
    POSITIVE,
    Compared,
    experiment_item,
    higher,
    of,
    ranges_where,
    success,
)
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.statements import Claim, Comparison, exactly, rate, solved
from companion.experiment.tables import text
from companion.figures import Figure, style, unit_style

NAMES = [
    "NMRU, vanilla", "NMRU, clipped gradient", "NMRU, sign", "NMRU", "NMRU, gate to 0",
    "NMRU, gate to 1", "NMRU, no epsilon", "NMRU, lr 1e-3", "NMRU, lr 1e-1", "NMRU, SGD",
]  # fmt: skip
VANILLA, CLIPPED, SIGN, FULL, ZERO, ONE, EXACT, SLOW, FAST, PLAIN = NAMES


def _arms(iterations: int) -> dict[str, Arm]:
    full = settings.arms(inputs=10, iterations=iterations)[FULL]
    recipe, unclipped = full.recipe, full.recipe.but(clip_gradient_norm=None)

    def unit(**options: object) -> Stack:
        return Stack(layers=(Layer(unit="NMRU", options=options),))

    return {
        VANILLA: full.but(model=unit(sign=False), recipe=unclipped),
        CLIPPED: full.but(model=unit(sign=False)),
        SIGN: full.but(recipe=unclipped),
        FULL: full,
        ZERO: full.but(model=unit(gate="zero")),
        ONE: full.but(model=unit(gate="identity")),
        EXACT: full.but(model=unit(eps=0.0)),
        SLOW: full.but(recipe=recipe.but(optimiser=Adam(lr=1e-3))),
        FAST: full.but(recipe=recipe.but(optimiser=Adam(lr=1e-1))),
        PLAIN: full.but(recipe=recipe.but(optimiser=SGD(lr=1e-2))),
    }


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    arms = _arms(p.iterations)
    tasks = [SingleModuleTask.on(place, operation="div", inputs=10) for place in p.ranges]
    asked = {name: arms[name] for name in p.models}
    return {"division/inside-the-nmru": runs_of(asked, tasks, p.seeds, thresholds.FIXED)}


def draw_coins(runs: pd.DataFrame, start: np.ndarray, end: np.ndarray) -> Figure:
    """The sums m + d of each redundant input, ``(runs, inputs)``, at the end over those at the start."""
    with style():
        figure = Figure(figsize=(7, 3.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        look = {"color": unit_style(FULL)[0], "markersize": 4, "alpha": 0.5}
        for axis, place in zip(axes, ("U[1,2)", "U[-2,-1)"), strict=True):
            here = (runs["range"] == place).to_numpy()
            axis.axvline(1, color="#4C4C4C", linewidth=1, linestyle="--")
            axis.plot(start[here].ravel(), end[here].ravel(), "s", **look)
            axis.set_title(place if here.any() else f"{place}: not run")
            axis.set(xlabel="$m + d$ at the start", xlim=(0.5, 1.5), ylim=(-0.1, 2.1))
        axes[0].set_ylabel("$m + d$ at the end")
    return figure


def _figure_17(rows: pd.DataFrame) -> Compared:
    yield Comparison(f"{CLIPPED} alone on {MIXED}", success(rows, CLIPPED, [MIXED]), rate(1.0, 25))
    for place in NEGATIVE:
        yield Comparison(f"{CLIPPED} alone on {place}", success(rows, CLIPPED, [place]), rate(0.0, 25))
    poor = [place for place in UNIFORM_RANGES if success(rows, VANILLA, [place]).estimate < 0.75]
    positive = [place for place in poor if place in POSITIVE]
    yield Claim(
        "vanilla is poor on a majority of the ranges, positive ones included",
        2 * len(poor) > len(UNIFORM_RANGES) and bool(positive),
        f"below 0.75 on {len(poor)}, positive: {', '.join(positive) or 'none'}",
    )
    yield higher(rows, SIGN, CLIPPED, "the sign alone gains on negative ranges", NEGATIVE)
    yield higher(rows, CLIPPED, SIGN, f"the sign alone loses on {MIXED}", [MIXED])
    for other in (VANILLA, CLIPPED, SIGN, ZERO):
        what = f"clipping and sign together are better than {other.removeprefix('NMRU, ')}"
        yield higher(rows, FULL, other, what)
    groups = solved(rows).groupby(["model", "range"])
    latest = groups.get_group(groups["solved_at"].mean().idxmax())["solved_at"]
    what = "the largest mean of solved at is about 50,000 (within a tenth)"
    yield Comparison(what, measures.solved_at(latest), exactly(50_000), factor=1.1)
    largest = groups["sparsity_error"].mean().max()
    what = "sparsity errors of solved runs are extremely low"
    yield Claim(what, largest < 1e-3, f"at most {text(largest, 1)}")


def _figure_18(rows: pd.DataFrame) -> Compared:
    none = [place for place in UNIFORM_RANGES if success(rows, FAST, [place]).estimate == 0]
    what = "learning rate 0.1 has no success on several ranges"
    yield Claim(what, len(none) > 1, f"0 on {len(none)} ranges")
    yield higher(rows, FULL, SLOW, f"learning rate 1e-3 is worse than 1e-2 on {MIXED}", [MIXED])


def _figure_19(rows: pd.DataFrame) -> Compared:
    yield ranges_where(rows, PLAIN, FULL, np.equal, 2, "ranges with equal success")
    yield ranges_where(rows, PLAIN, FULL, np.less, 7, "ranges on which Adam is better")


_item = partial(experiment_item, iterations=100_000, experiment=("division/inside-the-nmru",))

EXPERIMENT = Experiment(
    chapter="book/division/inside-the-nmru.ipynb",
    rules={"models": some_of(NAMES), "ranges": some_of(UNIFORM_RANGES)},
    runs=_runs,
    items=(
        _item(
            "Figure 17",
            "Ablation of the NMRU: gradient clipping, sign, gate",
            statements=_figure_17,
            headline="success rate with gradient clipping alone on U[-2,2)",
            published="1.0",
            runs=1125,
            rows=of(VANILLA, CLIPPED, SIGN, FULL, ZERO),
        ),
        _item(
            "Figure 18",
            "Learning rates of the NMRU",
            statements=_figure_18,
            headline="learning rate 0.1 on several ranges",
            published="0.0",
            runs=675,
            rows=of(FULL, SLOW, FAST),
        ),
        _item(
            "Figure 19",
            "Adam against SGD for the NMRU",
            statements=_figure_19,
            headline="ranges with equal success",
            published="2 of 9",
            runs=450,
            rows=of(FULL, PLAIN),
        ),
    ),
    errata=(
        Erratum(
            "Appendix I, range", "misprint", "U[2,-2).", "U[-2,2).", "The ranges of the task.", "Nothing."
        ),
        Erratum(
            "Appendix I, gate",
            "description",
            "The gate is like that of the Real NPU.",
            (
                "It has a length of $2I$ and multiplies: a closed gate makes an entry 0, not 1, so "
                "nothing can be left out by it."
            ),
            "Both gates are trained.",
            "That a gate hinders holds for either; the gate of the Real NPU costs less.",
        ),
    ),
)
