"""From the NALU to the NAU and the NMU: Figures 1, 2 and 5 of *Neural Arithmetic Units*, of which nothing
is trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from nalm import NMU
from scipy.integrate import quad
from torch.func import hessian

from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, between
from companion.experiment.statements import Claim, Explanation, Item, Read
from companion.experiment.tables import text
from companion.figures import Figure, Map, diagrams, style

EPSILONS = {"NAC•, ε = 10⁻⁷": 1e-7, "NAC•, ε = 0.1": 0.1, "NAC•, ε = 1": 1.0}
PANELS = (*EPSILONS, "NMU")
"""Of Figure 2, and one that is in the authors' repository only."""

_SMALL, _TENTH, _ONE = EPSILONS
_TARGET, _SUMS = 13.2, torch.tensor([2.2, 6.0], dtype=torch.float64)
_BEYOND = 500.0
"""The end of Figure 2's axis."""
_RIGHT = torch.ones(2, dtype=torch.float64)


def squared_error(panel: str, weights: torch.Tensor) -> torch.Tensor:
    """Of the example of Figure 2, whose first layer makes w₁ times the two sums; ``weights``: w₁ and w₂,
    (..., 2).
    """
    hidden, w2 = weights[..., :1] * _SUMS, weights[..., 1:]
    if panel == "NMU":
        return ((hidden * w2 + 1 - w2).prod(-1) - _TARGET) ** 2
    return (((hidden.abs() + EPSILONS[panel]) ** w2).prod(-1) - _TARGET) ** 2


def edge(epsilon: float, w2: np.ndarray | float) -> np.ndarray:
    """The w₁ with error zero for each w₂: (2.2 w₁ + ε)(6 w₁ + ε) = 13.2^(1 / w₂). Only w₁ > 0 is meant."""
    left = epsilon**2 - _TARGET ** (1 / np.asarray(w2))
    return (-8.2 * epsilon + np.sqrt((8.2 * epsilon) ** 2 - 4 * 13.2 * left)) / (2 * 13.2)


def leaves_below(panel: str) -> float:
    """The w₂ below which the error at w₁ = 0, where the output is ε^(2 w₂), is beyond the figure."""
    epsilon = EPSILONS.get(panel, 1.0)
    return float(np.log(_TARGET + _BEYOND**0.5) / (2 * np.log(epsilon))) if epsilon < 1 else -np.inf


def curvature(panel: str, weights: torch.Tensor = _RIGHT) -> float:
    """The largest of the surface."""
    return torch.linalg.eigvalsh(hessian(partial(squared_error, panel))(weights)).max().item()


def draw_surfaces(axis: torch.Tensor, surfaces: Mapping[str, np.ndarray]) -> Figure:
    """Figure 2: the squared error over w₁ and w₂, ``(points, points)`` in each panel."""
    with style():
        figure = Map(figsize=(7, 6.2), layout="constrained")
        panels = figure.subplots(2, 2, sharex=True)
        colours = colormaps["viridis"].with_extremes(over="black")
        how = {"norm": LogNorm(1e-1, _BEYOND), "cmap": colours, "shading": "nearest", "rasterized": True}
        for axes, (panel, surface) in zip(panels.flat, surfaces.items(), strict=True):
            axes.grid(False)
            image = axes.pcolormesh(axis, axis, surface.clip(1e-2, 1e9), **how)
            if panel in EPSILONS:
                _draw_edges(axes, EPSILONS[panel])
            right = {"color": "white", "markeredgecolor": "black", "markersize": 7}
            axes.plot(1, 1, "o", clip_on=False, zorder=5, **right)
            axes.set(title=panel, ylim=(0, 1) if panel == "NMU" else (-1, 1), ylabel="$w_2$")
        for axes in panels[1]:
            axes.set_xlabel("$w_1$")
        figure.colorbar(image, ax=panels, extend="max", label="squared error", aspect=30)
    return figure


def _draw_edges(axes: Axes, epsilon: float) -> None:
    w2 = np.concatenate([np.linspace(-1, -0.02, 400), [np.nan], np.linspace(0.05, 1, 400)])
    with np.errstate(invalid="ignore", over="ignore"):
        w1 = edge(epsilon, w2)
    w1[~((w1 >= 0) & (w1 <= 1))] = np.nan
    for side in (-1, 1):
        axes.plot(side * w1, w2, color="white", linewidth=1.2)


_EPSILON = 1e-8
"""The authors' in Figure 5; their units have 1e-7."""


def exact(r_w: float, r_z: float) -> float:
    """The mean of (z + ε) to the power of W, where z is of U(0, r_z) and W of U(-r_w, r_w)."""

    def integrand(s: float) -> float:  # z = r_z exp(-s), in which it is smooth
        t = r_w * np.log(r_z * np.exp(-s) + _EPSILON)
        return float(np.exp(-s) * (np.sinh(t) / t if t else 1.0))

    return quad(integrand, 0, 40, points=[np.log(r_z)], limit=200)[0]


def taylor(r_w: float, r_z: float) -> float:
    """The approximation of it, to second order in W and z around their means."""
    return 1 + r_w**2 / 6 * np.log(r_z / 2 + _EPSILON) ** 2


CROSSING = float(np.exp((2 - np.log(2) ** 2) / (2 - 2 * np.log(2))))
"""The r_z at which both are the same for small r_w."""


def draw_taylor(r_w: np.ndarray, r_z: np.ndarray, difference: np.ndarray) -> Figure:
    """Figure 5: the approximation less the mean, ``(r_z, r_w)``."""
    with style():
        figure = Map(figsize=(7, 3.8), layout="constrained")
        axes = figure.subplots()
        axes.grid(False)
        limit = float(np.abs(difference).max())
        how = {"cmap": "RdBu", "vmin": -limit, "vmax": limit, "shading": "nearest", "rasterized": True}
        image = axes.pcolormesh(r_w, r_z, difference, **how)
        how = {"colors": "#555555", "linewidths": 0.8, "linestyles": "solid"}
        lines = axes.contour(r_w, r_z, difference, levels=[-0.03, -0.01, 0.005], **how)
        axes.clabel(lines, fmt="%g", fontsize=10)
        axes.axhline(CROSSING, color="black", linestyle=":", linewidth=1.2)
        axes.set(xlabel="$r_w$", ylabel="$r_z$")
        figure.colorbar(image, label="approximation minus expectation")
    return figure


def _figure_1() -> Iterable[Claim]:
    unit, steps = NMU(3, 1).double(), diagrams.product_unit()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        unit.reset_parameters()
    x = torch.cartesian_prod(*[torch.tensor([-2.0, 0.0, 0.5], dtype=torch.float64)] * 3)
    same = torch.allclose(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-10, atol=0)
    yield Claim("the arrows compute the NMU", same, "the NMU")
    drawn = {step.parameter for step in steps} - {""}
    trainable = {name for name, _ in unit.named_parameters()}
    yield Claim("all trainables are drawn", drawn == trainable, f"{len(drawn)} of {len(trainable)}")


def _figure_2() -> Iterable[Claim]:
    """A weight above -0.25 counts as slightly negative."""
    for panel, name in ((_TENTH, "0.1"), (_SMALL, "1e-7")):
        what = f"ε = {name}: explodes where w₂ is just slightly negative"
        below = leaves_below(panel)
        yield Claim(what, below > -0.25, text(below, 2), id=f"explodes with {name}")
    square = torch.cartesian_prod(*[torch.linspace(-1, 1, 21, dtype=torch.float64)] * 2)
    worst = max(squared_error(_ONE, weights).item() for weights in square)
    yield Claim("ε = 1: does not", worst < _BEYOND, f"at most {text(worst)}")
    right = squared_error(_SMALL, _RIGHT).item()
    yield Claim("w₁ = w₂ = 1 is the solution with ε = 1e-7", right < 1e-9, f"error {text(right, 1)}")
    beside = torch.tensor([float(edge(1e-7, -1.0)), -1.0], dtype=torch.float64)
    steeper = curvature(_SMALL, beside) / curvature(_SMALL)
    unstable = squared_error(_SMALL, beside).item() < 1e-6 and steeper > 10
    yield Claim("there are unstable alternatives", unstable, f"{text(steeper, 2)} times as curved")


def _figure_5() -> Iterable[Claim]:
    grid = [(r_w, r_z) for r_w in np.linspace(0.001, 0.496, 10) for r_z in (1, 2, 5, 10, 20, 30, 40, 50)]
    errors = {at: taylor(*at) - exact(*at) for at in grid}
    lowest, highest = min(errors, key=errors.get), max(errors, key=errors.get)
    yield Claim("lowest about -0.07", -0.085 < errors[lowest] < -0.055, text(errors[lowest], 2))
    yield Claim("highest about 0.01", 0 < errors[highest] < 0.015, text(errors[highest], 2))
    widest = lowest == max(errors, key=lambda at: (at[0], -at[1]))
    place = f"at r_w = {text(float(lowest[0]))}, r_z = {lowest[1]}"
    yield Claim("largest at wide weights and small inputs", widest, place)


def _leaves_late(read: Read) -> str:
    return (
        "With ε = 0.1 the output where both hidden values are zero is 0.01 to the power of w₂, which leaves "
        f"the figure only below w₂ = {text(leaves_below(_TENTH), 2)}; with ε = 1e-7 it does so from "
        f"{text(leaves_below(_SMALL), 2)} on."
    )


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/units.ipynb",
    rules={
        "draws": between(100, 10_000_000),
        "points": between(11, 2001),
        "starts": between(1, 100_000),
        "updates": at_least(1),
    },
    runs=lambda p: {},
    items=(
        Item(
            "nau-nmu",
            "Figure 1",
            "How the NMU's weights choose between 1 and the input",
            "schematic",
            _figure_1,
            headline="what the drawn arrows compute",
            published="the NMU",
        ),
        Item(
            "nau-nmu",
            "Figure 2",
            "Loss surface of NAC+ followed by NAC• for three values of ε",
            "analytic",
            _figure_2,
            headline="w₂ below which the output leaves the figure, ε = 0.1",
            published="just slightly negative",
            explanations=(Explanation(("explodes with 0.1",), _leaves_late),),
        ),
        Item(
            "nau-nmu",
            "Figure 5",
            "Error of the Taylor approximation of the expected NAC• output",
            "analytic",
            _figure_5,
            headline="error of the approximation, at worst",
            published="about -0.07",
        ),
    ),
    errata=(
        Erratum(
            "Section 2.3, a large ε",
            "claim",
            (
                r"The output of the NAC• explodes near zero even for $\epsilon = 0.1$ and a slightly"
                " negative weight, as Figure 2 shows."
            ),
            _leaves_late,
            "The surface in the paper's limits, and the output at $w_1 = 0$ in closed form.",
            (
                r"The case against division stands for small $\epsilon$. What a large one costs is "
                "accuracy at the right weights, not an explosion."
            ),
        ),
        Erratum(
            "Section 2.6, initial weights of the NMU",
            "claim",
            r"The NMU can be optimally initialised with $\mathrm{Var}[W] = \tfrac14$.",
            (
                r"Weights in $[0, 1]$ with mean $\tfrac12$ have that variance in one way only: as "
                "coin flips between 0 and 1, all at an end of their range. The authors' code draws "
                r"from U(0.25, 0.75), whose variance is $\tfrac1{48}$."
            ),
            ("The bound is derived, and the moments of both distributions are compared with draws."),
            ("The NMU of the experiments is not started as the theory says; it learns all the same."),
        ),
        Erratum(
            "Equation 29",
            "claim",
            (
                r"$r$ is chosen so that weights from $\tanh$ and $\sigma$ of U$(-r, r)$ have "
                "Glorot's variance."
            ),
            (
                r"The variance stays below $\tfrac12$ for every $r$, and a layer from two inputs to "
                r"one asks for $\tfrac23$. The code counts at least five inputs and outputs. Such a "
                r"layer starts where $\tanh$ and $\sigma$ are flat."
            ),
            ("The variance for all $r$, and the derivatives of such a layer at its initial weights."),
            (
                "Second layers of NAC+, NAC• and NALU with two hidden units, and their recurrent "
                "cells, start saturated. Their published rates are those of this start."
            ),
        ),
        Erratum(
            "Figure 2, caption",
            "misprint",
            "RMS loss curvature.",
            "The authors' code draws the squared error of one example.",
            ("The surface is computed from the units and has the figure's limits as a squared error."),
            "Nothing but the scale.",
        ),
    ),
)
