"""The Real NPU made robust: L1, clipping, whole numbers, a smaller start. Figures 1, 2 and 14."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
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
    of,
    ranges_where,
    success,
    when_solved,
)
from companion.division.no_redundancy import MIDDLES
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim
from companion.experiment.tables import Table
from companion.figures import Figure, style, styles_of

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


def _solved_more(rows: pd.DataFrame, one: str, other: str, place: str) -> int:
    """How many runs more the first variant solves on a range."""
    first, second = (len(when_solved(rows, model, [place])) for model in (one, other))
    return first - second


def _figure_1(rows: pd.DataFrame) -> Compared:
    for relation, stated, word in ((np.less, 5, "worse"), (np.equal, 2, "equal"), (np.greater, 2, "better")):
        yield partial(
            ranges_where, rows, NONE, BASE, relation, stated, f"ranges on which removing L1 is {word}"
        )
    for place in ("U[-1.2,-1.1)", "U[1.1,1.2)"):
        more = _solved_more(rows, NONE, BASE, place)
        yield Claim(f"removing L1 is better on {place}", more > 0, f"{more:+d} runs")
    best = max(SWEEP, key=lambda name: success(rows, name).estimate)
    yield Claim("the best strength is 1e-9 to 1e-7", best == BASE, best)
    for name in list(SWEEP)[2:]:
        yield higher(rows, BASE, name, f"{name} is worse")


def _figure_2(rows: pd.DataFrame) -> Compared:
    yield partial(
        ranges_where, rows, BOTH, CLIP, np.less, 1, "ranges on which discretising is worse than not"
    )
    lost = [place for place in UNIFORM_RANGES if _solved_more(rows, BOTH, CLIP, place) < 0]
    what = "discretising loses on U[10,20) and nowhere else"
    yield Claim(what, lost == ["U[10,20)"], ", ".join(lost) or "nowhere")
    last = rows[rows["range"] == "U[10,20)"]
    yield partial(ranges_where, last, CLIP, BOTH, np.subtract, 2, "seeds lost by discretising on U[10,20)")
    for name in ("clip weight", CLIP):
        yield partial(ranges_where, rows, name, BASE, np.greater, 8, f"{name}: ranges on which it is better")
    yield higher(rows, GATE, CLIP, "discretising the gate is better than not")
    yield higher(rows, BOTH, GATE, "discretising the weight too is better than the gate alone")
    gains = {place: _solved_more(rows, BOTH, GATE, place) for place in UNIFORM_RANGES}
    most = max(gains, key=gains.get)
    what = "discretising the weight too gains most on U[-0.2,-0.1)"
    yield Claim(what, most == "U[-0.2,-0.1)" and gains[most] > 0, f"{most}, {gains[most]:+d} runs")
    better = [place for place in UNIFORM_RANGES if _solved_more(rows, ALL, BOTH, place) > 0]
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


def draw_diagram() -> Figure:
    """The paper's state diagram of the sign."""
    from matplotlib.patches import Circle

    dark = "#00473A"
    with style():
        figure = Figure(figsize=(7, 1.7), layout="constrained")
        axis = figure.subplots()
        axis.set(xlim=(-4.6, 4.6), ylim=(-1.1, 1.2), aspect="equal")
        axis.axis("off")
        for side, name, start in ((-1, "+1", "right"), (1, "$-$1", "left")):
            place = 1.6 * side
            axis.add_patch(Circle((place, 0), 0.45, facecolor="#E6F2EF", edgecolor=dark))
            axis.text(place, 0, name, ha="center", va="center")
            ends = (place + 0.3 * side, 0.34), (place + 0.3 * side, -0.34)
            bow = dict(arrowstyle="->", color=dark, connectionstyle=f"arc3,rad={1.6 * side}")
            axis.annotate("", *ends, arrowprops=bow)
            axis.text(place + 1.2 * side, 0, "b: stay", ha=start, va="center")
            bow = dict(arrowstyle="->", color=dark, connectionstyle="arc3,rad=-0.3")
            axis.annotate("", (-1.15 * side, -0.2 * side), (1.15 * side, -0.2 * side), arrowprops=bow)
        axis.text(0, 0.55, "a: $x_i<0$, $W_i=\\pm1$, $g_i=1$", ha="center", va="bottom")
        axis.text(0, -0.55, "a", ha="center", va="top")
    return figure


def draw_schedules(
    coefficients: Mapping[str, Sequence[float]], paths: Mapping[str, np.ndarray], back: Mapping[str, int]
) -> Figure:
    """How a penalty grows, and how it leads a gate back to [0, 1].

    Args:
        coefficients: name of the penalty -> its factor, every 10,000 updates.
        paths: the gate after each update.
        back: when it is back, 0 for never.
    """
    with style():
        figure = Figure(figsize=(7, 4.6), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True)
        for name, (colour, marker) in styles_of(list(coefficients)).items():
            drawn = {"color": colour, "marker": marker, "label": name}
            staircase = [*coefficients[name], coefficients[name][-1]]
            upper.step(range(0, 60_000, 10_000), staircase, where="post", **drawn)
            until = back[name] + 1 if back[name] else 50_000
            lower.plot(paths[name][:until], color=colour, marker=marker, markevery=[until - 1])
        upper.set(yscale="log", ylabel="β")
        lower.set(ylabel="gate", xlabel="iteration")
        lower.xaxis.set_major_formatter("{x:,.0f}")
        lower.axhline(0, color="black", linewidth=0.8)
        figure.legend(*upper.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def draw_streams(loss: Callable, places: list[str], false: dict[str, tuple[float, float]]) -> Figure:
    """Where gradient descent leads the weight and the gate of b: the loss and its negative gradient.

    Args:
        loss: of (weight, gate) and inputs, in torch.
        places: training ranges.
        false: false solutions by range.
    """
    weights, gates = np.linspace(-2.0, 0.8, 57), np.linspace(-0.3, 1.3, 49)
    shape = gates.size, weights.size
    grid = torch.tensor(np.stack(np.meshgrid(weights, gates), -1).reshape(-1, 2))
    blue, on = "#0072B2", np.linspace(0.3, 1, 100)
    with style():
        figure = Figure(figsize=(7, 3.9), layout="constrained")
        axes = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
        for axis, place in zip(axes, places, strict=True):
            inputs = torch.tensor(UNIFORM_RANGES[place][0].sample(np.random.RandomState(0), (256, 2)))
            slopes = torch.func.vmap(torch.func.grad(loss), (0, None))(grid, inputs)
            level = torch.func.vmap(loss, (0, None))(grid, inputs).reshape(shape).log10()
            axis.grid(False)
            filled = axis.contourf(
                weights, gates, level, np.arange(-6.5, 2), cmap="Greens_r", extend="both", alpha=0.75
            )
            along = (-slopes.T.reshape(2, *shape)).numpy()
            axis.streamplot(
                weights, gates, *along, color="#4C4C4C", linewidth=0.5, density=0.8, arrowsize=0.7
            )
            axis.plot(-(1 + (1 - on) / (on * MIDDLES[place])), on, "--", color=blue, linewidth=2)
            axis.plot(-1, 1, "*", color=blue, markersize=14, markeredgecolor="white")
            if place in false:
                axis.plot(*false[place], "X", color="#D55E00", markersize=10, markeredgecolor="white")
            for edge in (0, 1):
                axis.axhline(edge, color="black", linewidth=0.8)
            axis.set(title=place, xlabel="$W_b$", xlim=(-2, 0.8), ylim=(-0.3, 1.3))
        axes[0].set_ylabel("$g_b$")
        figure.colorbar(filled, ax=axes, label="$\\log_{10}$ of the loss", shrink=0.9)
    return figure


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
