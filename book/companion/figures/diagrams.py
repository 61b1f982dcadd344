"""Diagrams of units, drawn from a list of steps that can also be executed: the picture computes what the unit
computes.

A step is a box; its arrows say which boxes it takes its numbers from, and which weight matrix they pass on
the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from companion.figures import Figure, style

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Arrow", "Step", "draw", "execute", "power_unit", "product_unit", "subsets"]

WIDTH = 4.6  # inches: narrower than other figures, so that a phone need not shrink it much
COLOURS = {"vector": "#00735A", "trainable": "#C04F00", "function": "#0067A5"}
BOXES = {
    "vector": "round,pad=0,rounding_size=0.18",
    "trainable": "square,pad=0",
    "function": "round,pad=0,rounding_size=0.04",
}
HEIGHT = 0.38  # of a box, inches


@dataclass(frozen=True)
class Arrow:
    """From which step numbers come, and which parameter of the unit, with which sign, they are multiplied by
    on the way.
    """

    source: str
    weight: str = ""
    label: str = ""
    sign: int = 1
    label_at: float = 0.5


@dataclass(frozen=True)
class Step:
    """A box: its kind sets the colour, ``at`` and ``width`` are inches from the top left corner.

    ``compute`` takes what the arrows bring; a box that names a ``parameter`` takes that parameter of the
    unit.
    """

    name: str
    kind: Literal["vector", "trainable", "function"]
    label: str
    at: tuple[float, float]
    width: float
    arrows: tuple[Arrow, ...] = ()
    compute: Callable[..., Tensor] = lambda value: value
    parameter: str = ""
    gated: bool = False


def power_unit(gate: bool) -> list[Step]:
    """The steps of the NPU, or without gate those of the NaiveNPU, from ``x`` to ``y``.

    >>> [step.name for step in power_unit(gate=False)]
    ['x', 'r', 'k', 'log', 'angle', 'u', 'v', 'exp', 'cos', 'product', 'y']
    """
    left, middle, right = 1.05, 2.3, 3.55
    below = 1.15 if gate else 0.0
    magnitude, phase = ("gated r", "gated k") if gate else ("r", "k")
    steps = [
        Step("x", "vector", "$x$", (middle, 0.3), 0.5),
        Step(
            "r",
            "function",
            r"$r = |x| + \epsilon$",
            (left, 1.05),
            1.4,
            (Arrow("x"),),
            lambda x: x.abs() + torch.finfo(x.dtype).eps,
        ),
        Step(
            "k",
            "function",
            "$k = 1$ if $x < 0$, else 0",
            (right, 1.05),
            1.86,
            (Arrow("x"),),
            lambda x: (x < 0).to(x.dtype),
        ),
    ]
    if gate:
        steps += [
            Step("g", "trainable", r"$\hat g$", (middle, 2.05), 0.46, (),
                 lambda g: g.clamp(0, 1), "gate", gated=True),
            Step("gated r", "function", r"$\hat g\, r + 1 - \hat g$", (left, 2.05), 1.4,
                 (Arrow("r"), Arrow("g")), lambda r, g: g * r + (1 - g), gated=True),
            Step("gated k", "function", r"$\hat g\, k$", (right, 2.05), 1.0,
                 (Arrow("k"), Arrow("g")), lambda k, g: g * k, gated=True),
        ]  # fmt: skip
    return steps + [
        Step("log", "function", r"$\log$", (left, 1.85 + below), 0.8, (Arrow(magnitude),), torch.log),
        Step("angle", "function", r"$\times\,\pi$", (right, 1.85 + below), 0.8, (Arrow(phase),),
             lambda k: math.pi * k),
        Step("u", "vector", "$u$", (left, 3.45 + below), 0.5,
             (Arrow("log", "weight", "$W_r$"), Arrow("angle", "weight_im", "$-W_i$", -1, 0.3)), torch.add),
        Step("v", "vector", "$v$", (right, 3.45 + below), 0.5,
             (Arrow("log", "weight_im", "$W_i$", 1, 0.3), Arrow("angle", "weight", "$W_r$")), torch.add),
        Step("exp", "function", r"$\exp$", (left, 4.2 + below), 0.8, (Arrow("u"),), torch.exp),
        Step("cos", "function", r"$\cos$", (right, 4.2 + below), 0.8, (Arrow("v"),), torch.cos),
        Step("product", "function", r"$\odot$", (middle, 4.75 + below), 0.5,
             (Arrow("exp"), Arrow("cos")), torch.mul),
        Step("y", "vector", "$y$", (middle, 5.45 + below), 0.5, (Arrow("product"),)),
    ]  # fmt: skip


def product_unit() -> list[Step]:
    """The steps of an NMU with three inputs and one output: each weight chooses between its input and 1.

    >>> [step.label for step in product_unit() if step.kind == "trainable"]
    ['$W_1$', '$W_2$', '$W_3$']
    """
    steps = [Step("x", "vector", "$x$", (2.3, 0.3), 0.5)]
    for entry, column in enumerate((0.8, 2.3, 3.8)):
        number = entry + 1
        steps += [
            Step(f"x{number}", "vector", f"$x_{number}$", (column - 0.4, 1.15), 0.5, (Arrow("x"),),
                 partial(_column, entry)),
            Step(f"W{number}", "trainable", f"$W_{number}$", (column + 0.4, 1.15), 0.5, (),
                 partial(_column, entry), "weight"),
            Step(f"factor {number}", "function", f"$W_{number} x_{number} + 1 - W_{number}$",
                 (column, 1.95), 1.46, (Arrow(f"x{number}"), Arrow(f"W{number}")),
                 lambda x, w: w * x + (1 - w)),
        ]  # fmt: skip
    factors = tuple(Arrow(f"factor {number}") for number in (1, 2, 3))
    return steps + [
        Step(
            "product",
            "function",
            r"$\prod$",
            (2.3, 2.85),
            0.5,
            factors,
            lambda first, second, third: first * second * third,
        ),
        Step("y", "vector", "$z$", (2.3, 3.55), 0.5, (Arrow("product"),)),
    ]


def _column(entry: int, values: Tensor) -> Tensor:
    return values[..., entry : entry + 1]


def execute(steps: Sequence[Step], unit: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """What every step computes from the input ``x`` with the parameters of ``unit``, in which the last is the
    output.

    >>> from nalm import NaiveNPU
    >>> unit, x = NaiveNPU(2, 1), torch.tensor([[-3.0, 2.0]])
    >>> bool(torch.allclose(execute(power_unit(gate=False), unit, x)["y"], unit(x)))
    True
    """
    parameters, values = dict(unit.named_parameters()), {}
    for step in steps:
        taken = [parameters[step.parameter]] if step.parameter else []
        for arrow in step.arrows:
            value = values[arrow.source]
            taken.append(arrow.sign * (value @ parameters[arrow.weight].mT) if arrow.weight else value)
        values[step.name] = step.compute(*taken or [x])
    return values


def draw(steps: Sequence[Step]) -> Figure:
    """The steps as boxes with arrows, from top to bottom; those of the gate stand on a hatched ground.

    >>> len(draw(power_unit(gate=True)).axes)
    1
    """
    height = max(step.at[1] for step in steps) + 0.9
    with style():
        figure = Figure(figsize=(WIDTH, height))
        axis = figure.add_axes((0, 0, 1, 1))
        axis.set(xlim=(0, WIDTH), ylim=(height, 0))
        axis.set_axis_off()
        gated = [step.at[1] for step in steps if step.gated]
        if gated:
            ground = (0.12, min(gated) - 0.42), WIDTH - 0.24, 0.84
            axis.add_patch(
                Rectangle(
                    *ground, facecolor="#F7F7F7", edgecolor="#C4C4C4", hatch="///", linewidth=0.8, zorder=0
                )
            )
            axis.text(WIDTH / 2, min(gated) + 0.56, "relevance gate", ha="center", va="center", fontsize=10)
        boxes = {step.name: _box(axis, step.kind, step.label, step.at, step.width) for step in steps}
        places = {step.name: step.at for step in steps}
        for step in steps:
            for arrow in step.arrows:
                start, end = places[arrow.source], step.at
                line = FancyArrowPatch(
                    start,
                    end,
                    patchA=boxes[arrow.source],
                    patchB=boxes[step.name],
                    arrowstyle="-|>",
                    shrinkA=1.5,
                    shrinkB=1.5,
                    mutation_scale=11,
                    color="#4C4C4C",
                    linewidth=1.1,
                    zorder=1,
                )
                axis.add_patch(line)
                if arrow.weight:
                    at = tuple(a + arrow.label_at * (b - a) for a, b in zip(start, end, strict=True))
                    _box(axis, "trainable", arrow.label, at, 0.58)
        for kind, x in zip(COLOURS, (0.8, 2.3, 3.8), strict=True):
            _box(axis, kind, kind, (x, height - 0.32), 0.95, 10)
    return figure


def subsets(operands: np.ndarray) -> Figure:
    """The inputs as a row of cells, with the two subsets whose sums are the operands above and below it.

    Args:
        operands: (2, inputs) of zeros and ones, a task's ``operands(seed)``.

    Raises:
        ValueError: a subset that is empty or has a gap.

    >>> from nalm.tasks import SubsetArithmeticTask
    >>> operands = SubsetArithmeticTask(operation="mul").operands(seed=1)
    >>> [text.get_text() for text in subsets(operands).axes[0].texts]
    ['a: 25 inputs', 'b: 25 inputs', '12 shared']
    """
    places = [np.flatnonzero(operand) for operand in operands]
    if any(part.size == 0 or (np.diff(part) != 1).any() for part in places):
        raise ValueError("Only operands that sum one contiguous subset each can be drawn.")
    inputs, shared = operands.shape[1], np.intersect1d(*places)
    with style():
        figure = Figure(figsize=(WIDTH, 1.7))
        axis = figure.add_axes((0.01, 0, 0.98, 1))
        axis.set(xlim=(-0.7, inputs - 0.3), ylim=(-2.8, 2.0))
        axis.set_axis_off()
        for place in range(inputs):
            colours = [
                colour for colour, part in zip(("#0067A5", "#C04F00"), places, strict=True) if place in part
            ]
            # an input of both subsets is half and half
            for half, colour in enumerate(2 * colours if len(colours) == 1 else colours):
                axis.add_patch(Rectangle((place - 0.5, -0.5 * half), 1, 0.5, facecolor=colour, alpha=0.45))
            axis.add_patch(
                Rectangle((place - 0.5, -0.5), 1, 1, facecolor="none", edgecolor="#4C4C4C", linewidth=0.4)
            )
        for name, part, side, colour in zip("ab", places, (1, -1), ("#0067A5", "#C04F00"), strict=True):
            _span(axis, f"{name}: {part.size} inputs", part, 1.0 * side, 1.5 * side, colour)
        if shared.size:
            _span(axis, f"{shared.size} shared", shared, -2.0, -2.4, "#4C4C4C")
    return figure


def _span(axis, label: str, part: np.ndarray, at: float, label_at: float, colour: str) -> None:
    """A line with ends over or under some inputs, and what they are."""
    axis.plot(
        (part[0] - 0.5, part[-1] + 0.5),
        (at, at),
        color=colour,
        linewidth=1.5,
        marker="|",
        markersize=8,
        markeredgewidth=1.5,
    )
    axis.text(part.mean(), label_at, label, ha="center", va="center", color=colour)


def _box(
    axis, kind: str, label: str, at: tuple[float, float], width: float, size: float = 12
) -> FancyBboxPatch:
    box = FancyBboxPatch(
        (at[0] - width / 2, at[1] - HEIGHT / 2),
        width,
        HEIGHT,
        boxstyle=BOXES[kind],
        facecolor="white",
        edgecolor=COLOURS[kind],
        linewidth=1.8,
        zorder=2,
    )
    axis.add_patch(box)
    axis.text(
        *at,
        label,
        ha="center",
        va="center_baseline" if size == 10 else "center",
        color=COLOURS[kind],
        fontsize=size,
        zorder=3,
    )
    return box
