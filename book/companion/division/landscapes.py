"""Loss surfaces of a NAU and a unit that divides: Figures 9 and 24, of which nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.colors import LogNorm
from nalm import NAU, NMRU, NRU, RealNPU

from companion.division.compared import Compared
from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import above, between
from companion.experiment.statements import Claim, Explanation, Item, Read
from companion.experiment.tables import text
from companion.figures import Figure, Map, style

DRAWN = ("NAU, Real NPU", "NAU, NRU", "NAU, NMRU")
"""The panels of Figure 9, each enlarged in Figure 24."""
DIVIDING = "NAU, NMRU dividing"
"""The NMRU with the weights of its reciprocals, which the paper does not draw."""

_INPUT = torch.tensor([1.0, 1.2, 1.8, 2.0], dtype=torch.float64)
TARGET = float(_INPUT[:2].sum() * _INPUT.sum())
_FIRST = torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
_SECOND = {
    "NAU, Real NPU": [1.0, 1.0],
    "NAU, NRU": [1.0, 1.0],
    "NAU, NMRU": [1.0, 1.0, 0.0, 0.0],
    DIVIDING: [0.0, 0.0, 1.0, 1.0],
}
"""By what w₂ is multiplied."""
_BOUND = 2 * TARGET
"""Of the loss where the output is between -13.2 and 13.2."""


def loss(panel: str, w1: np.ndarray, w2: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    """|13.2 - y| for every pair of tied weights; NaN where the NMRU has none, below 0.

    Args:
        panel: one of ``DRAWN`` or ``DIVIDING``.
        w1: weights of the NAU.
        w2: as many weights of the unit.
        eps: of the Real NPU.

    >>> loss("NAU, NRU", [1.0, 0.1], [1.0, -1.0]).round(2).tolist()
    [0.0, 5.62]
    """
    units = {"NAU, Real NPU": RealNPU(2, 1, eps=eps), "NAU, NRU": NRU(2, 1)}
    unit, nau = units.get(panel, NMRU(2, 1, eps=2.0**-23)).double(), NAU(4, 2).double()
    gate = {"gate": torch.ones(2, dtype=torch.float64)} if isinstance(unit, RealNPU) else {}
    second = torch.tensor([_SECOND[panel]], dtype=torch.float64)

    def output(w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        z = torch.func.functional_call(nau, {"weight": w1 * _FIRST}, _INPUT)
        return torch.func.functional_call(unit, gate | {"weight": w2 * second}, z)[0]

    w1, w2 = (np.asarray(w, dtype=float) for w in (w1, w2))
    y = torch.func.vmap(output)(torch.from_numpy(w1.ravel()), torch.from_numpy(w2.ravel()))
    found = np.abs(y.detach().numpy().reshape(w1.shape) - TARGET)
    return np.where(w2 < 0, np.nan, found) if isinstance(unit, NMRU) else found


def draw_surfaces(line: np.ndarray, surfaces: Mapping[str, np.ndarray]) -> Figure:
    """The loss over w₁ and w₂, ``(points, points)`` in each panel."""
    with style():
        figure = Map(figsize=(7, 6.1), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True, sharey=True)
        colours = colormaps["viridis"].with_extremes(over="black", bad="#9A9A9A")
        how = {"norm": LogNorm(0.1, 1e4), "cmap": colours, "shading": "nearest", "rasterized": True}
        for axes, (panel, surface) in zip(panels.flat, surfaces.items(), strict=True):
            axes.grid(False)
            image = axes.pcolormesh(line, line, surface.clip(0.1), **how)
            if panel in DRAWN:
                right = {"color": "white", "markeredgecolor": "black", "markersize": 7}
                axes.plot([-1, 1], [1, 1], "o", clip_on=False, zorder=3, **right)
            axes.set(title=panel, xlim=(-1, 1), ylim=(-1, 1), aspect="equal")
        figure.supxlabel("$w_1$, weights of the NAU", fontsize=10)
        figure.supylabel("$w_2$, weights of the unit", fontsize=10)
        figure.colorbar(image, ax=panels, shrink=0.7, aspect=30, extend="max", label="loss")
    return figure


def _explodes(panel: str, w2: float) -> tuple[bool, str]:
    """Whether the loss grows in proportion to 1 / w₁² as w₁ goes to 0."""
    near = np.array([1e-2, 1e-3, 1e-4])
    found = loss(panel, near, np.full(3, w2))
    shown = ", ".join(map(text, found))
    return bool((found[1:] > 50 * found[:-1]).all()), f"{shown} at w₁ = 0.01, 0.001, 0.0001"


def _figure_9() -> Compared:
    for panel in DRAWN:
        found = [f"({w1:g}, 1)" for w1 in (1, -1) if loss(panel, [w1], [1])[0] < 1e-3]
        yield Claim(f"{panel}: solutions at (1, 1) and (-1, 1)", len(found) == 2, " and ".join(found))
    for panel in DRAWN[:2]:
        yield Claim(f"{panel}: explodes", *_explodes(panel, -1.0))
    highest = np.nanmax(_surface(DRAWN[2]))
    yield Claim("NAU, NMRU: does not explode, as drawn", highest <= _BOUND, f"{text(highest)} or less")
    explodes, shown = _explodes(DIVIDING, 1.0)
    yield Claim("NAU, NMRU: does not explode where it divides", not explodes, shown)


@cache
def _surface(panel: str) -> np.ndarray:
    """The enlarged one: 400 points along each weight, without 0."""
    line = np.linspace(-1, 1, 400)
    return loss(panel, *np.meshgrid(line, line))


def _figure_24() -> Compared:
    """The paper prints no number. Compared is where each surface has its lowest and its highest points."""
    line = np.linspace(-1, 1, 400)
    for panel in DRAWN:
        surface = np.where(line[:, None] > 0, _surface(panel), np.nan)
        corners = np.argwhere(surface < np.nanmin(surface) + 1e-9)
        lowest = [f"({line[w1]:g}, {line[w2]:g})" for w2, w1 in corners]
        agrees = sorted(lowest) == ["(-1, 1)", "(1, 1)"]
        yield Claim(f"{panel}: lowest for w₂ > 0 at (1, 1) and (-1, 1)", agrees, " and ".join(lowest[::-1]))
    for panel in DRAWN[:2]:
        w2, w1 = np.unravel_index(np.argmax(_surface(panel)), (400, 400))
        shown = f"{text(_surface(panel).max())} at ({line[w1]:.2g}, {line[w2]:g})"
        yield Claim(f"{panel}: highest beside w₁ = 0, at w₂ = -1", w1 in (199, 200) and w2 == 0, shown)
    highest = np.nanmax(_surface(DRAWN[2]))
    yield Claim("NAU, NMRU: no wall anywhere", highest <= _BOUND, f"{text(highest)} or less")


def _in_the_slice(read: Read) -> str:
    explodes = text(loss(DIVIDING, [1e-4], [1.0])[0])
    return (
        "The figure holds the weights of the NMRU's reciprocals, with which it divides, at 0. With these in "
        f"place of the others its loss is {explodes} at (0.0001, 1)."
    )


EXPERIMENT = Experiment(
    chapter="book/division/landscapes.ipynb",
    rules={"steps": between(11, 4000), "eps": above(0)},
    runs=lambda p: {},
    items=(
        Item(
            "division",
            "Figure 9",
            "Loss surfaces of a NAU followed by Real NPU, NRU, NMRU",
            "analytic",
            _figure_9,
            headline="solutions (w₁, w₂)",
            published="(1, 1) and (-1, 1)",
            explanations=(Explanation(("NAU, NMRU: does not explode where it divides",), _in_the_slice),),
        ),
        Item(
            "division",
            "Figure 24",
            "The loss surfaces of Figure 9, enlarged",
            "analytic",
            _figure_24,
            headline="lowest points (w₁, w₂) for w₂ > 0",
            published="(1, 1) and (-1, 1)",
            compared="lowest and highest points of three surfaces",
        ),
    ),
    errata=(
        Erratum(
            "Section 8, Figure 9",
            "claim",
            "The NMRU does not have exploding losses, as its weights are limited to [0, 1].",
            _in_the_slice,
            "The surface over the weights of the reciprocals, as a fourth panel.",
            "All three units explode where they divide by a number close to zero.",
        ),
    ),
)
