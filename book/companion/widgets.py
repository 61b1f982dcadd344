"""The figures that stand where a page's widgets cannot run, and what the widgets share with Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.colors import AsinhNorm, LinearSegmentedColormap
from nalm import NMRU, NMU, NRU, NACMul, RealNPU

from companion.beyond.which_unit import picker_data
from companion.division import no_redundancy
from companion.division.compared import MIXED, MODIFIED
from companion.division.states import initial, with_states
from companion.experiment.rows import Rows
from companion.figures import UNIT_STYLES, Figure, style, unit_style
from companion.figures.styles import legend_entry
from companion.recorded import read

__all__ = [
    "COLOURS",
    "WIDGETS",
    "Widget",
    "draw_runs",
    "draw_saddle",
    "draw_units",
    "pairs",
    "recorded_runs",
    "surface",
]

COLOURS = {name: colour for name, (colour, _) in UNIT_STYLES.items()}
"""The colour of each unit."""

_EXPERIMENT = "division/no-redundancy"
_BANDS = LinearSegmentedColormap.from_list(
    "better than answering 0, worse", ["#003E73", "#56AAE1", "#FAF8F2", "#F09146", "#8C3200"], N=33
)


def pairs(count: int, seed: int) -> np.ndarray:
    """Numbers ``(count, 2)`` from U[-2,2), never 0: those of the generator in ``landscape.js``, mulberry32.

    >>> pairs(2, seed=0).round(3).tolist()
    [[-0.934, -1.999], [-1.107, -1.415]]
    """
    word, state, numbers = 2**32 - 1, seed, []
    for _ in range(2 * count):
        state = (state + 0x6D2B79F5) & word
        t = (state ^ state >> 15) * (1 | state) & word
        t = (t + ((t ^ t >> 7) * (61 | t) & word) & word) ^ t
        numbers.append(((t ^ t >> 14) + 0.5) / 2**30 - 2)
    return np.reshape(numbers, (count, 2))


def surface(line: np.ndarray, gates: tuple[float, float], examples: np.ndarray) -> np.ndarray:
    """The mean squared error of a Real NPU that is to divide, less that of always answering 0.

    Args:
        line: the weights that each of the two inputs may have.
        gates: those of the two inputs.
        examples: pairs (a, b), ``(examples, 2)``; the target is a / b.

    Returns:
        ``(points, points)``, a row for each weight of b, a column for each of a.

    >>> examples = pairs(256, seed=0)
    >>> lost = surface(np.array([-1.0, 1.0]), (1.0, 1.0), examples)
    >>> bool(np.isclose(lost[0, 1], -((examples[:, 0] / examples[:, 1]) ** 2).mean(), rtol=1e-6))
    True
    """
    unit, x = RealNPU(2, 1, eps=2.0**-23).double(), torch.from_numpy(examples)
    gate = torch.tensor(gates, dtype=torch.float64)
    target = x[:, :1] / x[:, 1:]

    def lost(weight: torch.Tensor) -> torch.Tensor:
        y = torch.func.functional_call(unit, {"weight": weight[None], "gate": gate}, x)
        return (y * (y - 2 * target)).mean()

    weights = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    found = torch.func.vmap(lost)(torch.from_numpy(weights))
    return found.detach().numpy().reshape(len(line), len(line))


def draw_saddle() -> Figure:
    """The surface for half-open gates, and where the recorded runs of the modified Real NPU start and end."""
    line = np.linspace(-1.1, 1.1, 67)
    rows = Rows(read(_EXPERIMENT)).of(model=MODIFIED, range=MIXED)
    with style():
        figure = Figure(figsize=(5.6, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.grid(False)
        image = axes.pcolormesh(
            line,
            line,
            surface(line, (0.5, 0.5), pairs(256, seed=0)),
            norm=AsinhNorm(1, -300, 300),
            cmap=_BANDS,
            shading="nearest",
            rasterized=True,
        )
        axes.axline((0, 0), slope=1, color="#4C4C4C", linestyle="--", linewidth=1)
        for runs, mark in ((rows.solved, "o"), (rows.failed, "X")):
            with_ends = with_states(no_redundancy.with_starts(runs).frame)
            starts, ends = (with_ends[names].to_numpy() for names in (["start_a", "start_b"], ["W_a", "W_b"]))
            axes.plot(*np.stack([starts, ends], axis=-1).transpose(1, 2, 0), color="black", linewidth=0.5)
            axes.plot(*starts.T, mark, color="white", markeredgecolor="black", markersize=6)
        for x, name in ((1, "a / b"), (-1, "b / a")):
            axes.annotate(name, (x, -x), (-22 * x, 0), textcoords="offset points", ha="center", va="center")
        axes.set(xlabel="weight of a", ylabel="weight of b", aspect="equal")
        ticks = [-100, -10, -1, 0, 1, 10, 100]
        figure.colorbar(image, ticks=ticks, format="{x:,.0f}", label="loss, less that of answering 0")
    return figure


_PRODUCT = {
    "NAC•": NACMul(2, 1, weight="linear"),
    "NMU": NMU(2, 1),
    "Real NPU": RealNPU(2, 1, eps=2.0**-23),
    "NRU": NRU(2, 1),
    "NMRU": NMRU(2, 1),
}
"""Units that can multiply, with parameters that are the weights themselves."""


def draw_units() -> Figure:
    """Outputs of five units over the first input, with weights halfway to a product and at it."""
    x = np.linspace(-5, 5, 400)  # without 0
    inputs = torch.from_numpy(np.stack([x, np.full_like(x, 2.0)], axis=-1))
    with style(), torch.no_grad():
        figure = Figure(figsize=(7, 3.4), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, share, title in zip(panels, (0.5, 1.0), ("weights 0.5", "weights 1"), strict=True):
            for name, unit in _PRODUCT.items():
                half = torch.tensor([1.0, 1.0, 0.0, 0.0][: unit.weight.shape[1]])
                state = {"weight": (share * half)[None].double()}
                if isinstance(unit, RealNPU):
                    state["gate"] = torch.ones(2, dtype=torch.float64)
                y = torch.func.functional_call(unit.eval(), state, inputs)[:, 0]
                colour, marker = unit_style(name)
                axes.plot(x, y, color=colour, marker=marker, markevery=(28, 57), markersize=5)
            axes.set(title=title, xlabel="$x_1$", ylim=(-11, 11))
        panels[0].set_ylabel("output at $x_2 = 2$")
        handles = [legend_entry(name, line=True) for name in _PRODUCT]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


@cache
def recorded_runs() -> dict[str, object]:
    """The runs of Figure 3 for ``seeds.js``: by model and range, and by model the weights they start from."""
    rows = read(_EXPERIMENT)
    rows = rows[rows["model"].isin(no_redundancy.FIGURE_3)]
    runs: dict[str, dict[str, object]] = {name: {} for name in no_redundancy.FIGURE_3}
    for (model, place), part in rows.groupby(["model", "range"], sort=False):
        runs[model][place] = {
            "key": part["key"].iloc[0].rpartition("-")[0],
            "rows": [_run(row) for _, row in part.sort_values("seed").iterrows()],
        }
    seeds, arms = sorted(set(rows["seed"])), no_redundancy.arms()
    starts = {
        name: dict(zip(seeds, map(_short, initial(arms[name].model, 2, seeds)), strict=True)) for name in runs
    }
    return {"experiment": _EXPERIMENT, "runs": runs, "starts": starts}


def _run(row: pd.Series) -> list[object]:
    state = json.loads(row["weights"])
    solved_at = None if pd.isna(row["solved_at"]) else int(row["solved_at"])
    errors = _short([row["test_mse"], row["valid_mse"]])
    weights, gates = _short(state["0.weight"][0]), _short(state.get("0.gate", []))
    return [int(row["seed"]), bool(row["success"]), solved_at, *errors, weights, gates]


def _short(values: Iterable[float]) -> list[float]:
    """Six digits, which is more than a page shows."""
    return [float(f"{value:.6g}") for value in values]


def _apart(weights: list[float]) -> float:
    """The power of a less that of b; half of the NMRU's weights are those of the reciprocals."""
    of_a, of_b, *reciprocals = weights
    return of_a - of_b - (reciprocals[0] - reciprocals[1] if reciprocals else 0)


def draw_runs() -> Figure:
    """The test error of each run of Figure 3 over the difference of the weights from which it started."""
    data = recorded_runs()
    with style():
        figure = Figure(figsize=(7, 5), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
        for axes, (model, ranges) in zip(panels, data["runs"].items(), strict=True):
            for solved, colour, mark in ((True, "#009E73", "o"), (False, "#D55E00", "x")):
                chosen = [run for part in ranges.values() for run in part["rows"] if run[1] == solved]
                apart = [_apart(data["starts"][model][run[0]]) for run in chosen]
                axes.semilogy(apart, [run[3] for run in chosen], mark, color=colour, markersize=4)
            axes.set_title(model)
        figure.supxlabel("initial weight of a − initial weight of b", fontsize=10)
        figure.supylabel("test error  (● solved  × failed)", fontsize=10)
    return figure


class Widget(NamedTuple):
    """What stands in the place of a widget: a figure and what it shows, in words, or words that say where
    the page has the same; and the widget's data.
    """

    draw: Callable[[], Figure] | None
    alt: str
    data: Callable[[], object] | None = None


WIDGETS = {
    "playground": Widget(
        draw_units,
        "The output of NAC•, NMU, Real NPU, NRU and NMRU over one input while the other is 2. With "
        "weights of one half the five curves differ; with weights of 1 all are the product but that of "
        "the NAC•, which loses the sign.",
    ),
    "landscape": Widget(
        draw_saddle,
        "A map of the loss over the two weights of a Real NPU: two low regions, at a / b and at b / a, and a "
        "saddle between them. Lines lead from the start of each recorded run to its end. Runs that start "
        "well below the diagonal end at a / b and are solved, the others end at b / a.",
    ),
    "seeds": Widget(
        draw_runs,
        "Four panels, a unit each: the test error of every run over the difference of its two initial "
        "weights. Runs of the NRU and the NMRU are all solved. Those of the modified Real NPU that fail "
        "start with a smaller weight of a, or nearly so; those of the baseline start anywhere.",
        recorded_runs,
    ),
    "picker": Widget(None, "The tables below have the same answers.", picker_data),
}
"""The widgets by name; ``book/_static/NAME.js`` is the script, ``NAME-data.js`` is written with the book."""
