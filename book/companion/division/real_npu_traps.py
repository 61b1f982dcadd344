"""Where a Real NPU gets stuck: what its weights and gates can do at the middle of a training range.

The functions of a gate take numbers, arrays, and the symbols with which their page derives them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.colors import ListedColormap
from nalm.tasks import UNIFORM_RANGES

from companion.division.no_redundancy import MIDDLES
from companion.figures import Figure, Map, style, styles_of


def gated(gate: Any, middle: Any) -> Any:
    """What a gate makes of the size of an input, Eq. {eq}`eq-robust-unit`.

    >>> gated(1.0, 15.0), gated(0.5, 15.0), gated(0.0, 15.0)
    (15.0, 8.0, 1.0)
    """
    return gate * middle + 1 - gate


def valley(gate: Any, middle: Any) -> Any:
    """The size of the weight that makes up for a gate, Eq. {eq}`eq-robust-valley`.

    >>> valley(1.0, 15.0), valley(0.5, 0.5)
    (1.0, 3.0)
    """
    return 1 + (1 - gate) / (gate * middle)


def least_penalised(middle: float) -> float:
    """The gate at which the penalty is least along the valley, Eq. {eq}`eq-robust-lowest`, at most 1.

    >>> least_penalised(4.0), least_penalised(0.25)
    (0.5, 1.0)
    """
    return min(1.0, middle**-0.5)


LEAST_PENALISED = {name: least_penalised(middle) for name, middle in MIDDLES.items() if middle}
"""Training range of one sign -> that gate."""


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
        for name, look in styles_of(list(coefficients)).items():
            drawn = look.mark | {"linestyle": look.line}
            staircase = [*coefficients[name], coefficients[name][-1]]
            upper.step(range(0, 60_000, 10_000), staircase, where="post", label=name, **drawn)
            until = back[name] + 1 if back[name] else 50_000
            lower.plot(paths[name][:until], **drawn, markevery=[until - 1])
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
    pale = ListedColormap(0.25 + 0.75 * colormaps["Greens_r"](np.linspace(0, 1, 256))[:, :3])
    with style():
        figure = Map(figsize=(7, 3.9), layout="constrained")
        axes = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
        for axis, place in zip(axes, places, strict=True):
            inputs = torch.tensor(UNIFORM_RANGES[place][0].sample(np.random.RandomState(0), (256, 2)))
            slopes = torch.func.vmap(torch.func.grad(loss), (0, None))(grid, inputs)
            level = torch.func.vmap(loss, (0, None))(grid, inputs).reshape(shape).log10()
            axis.grid(False)
            filled = axis.contourf(weights, gates, level, np.arange(-6.5, 2), cmap=pale, extend="both")
            along = (-slopes.T.reshape(2, *shape)).numpy()
            axis.streamplot(
                weights, gates, *along, color="#4E565E", linewidth=0.5, density=0.8, arrowsize=0.7
            )
            axis.plot(-valley(on, MIDDLES[place]), on, "--", color=blue, linewidth=2)
            axis.plot(-1, 1, "*", color=blue, markersize=14, markeredgecolor="white")
            if place in false:
                axis.plot(*false[place], "X", color="#D55E00", markersize=10, markeredgecolor="white")
            for edge in (0, 1):
                axis.axhline(edge, color="black", linewidth=0.8)
            axis.set(title=place, xlabel="$W_b$", xlim=(-2, 0.8), ylim=(-0.3, 1.3))
        axes[0].set_ylabel("$g_b$")
        figure.colorbar(filled, ax=axes, label="$\\log_{10}$ of the loss", shrink=0.9)
    return figure
