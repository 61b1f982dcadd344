"""The power units: Figures 1 to 3 of *Neural Power Units*, of which nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from nalm import NPU, NaiveNPU
from nalm.models import Layer, Stack
from nalm.tasks import Task
from nalm.training import Adam, Ensemble, Log, Recipe, Run
from torch import Tensor
from torch.func import functional_call, grad, vmap

from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, between
from companion.experiment.statements import Claim, Item
from companion.experiment.tables import text
from companion.figures import Figure, Map, diagrams, style, unit_style

PANELS = {"NaiveNPU": None, "NPU, gates ½, ½": (0.5, 0.5), "NPU, gates 1, 0": (1.0, 0.0)}
"""Panel of Figure 3 -> the gates of its unit."""

_HALF = "NPU, gates ½, ½"


class Reading(NamedTuple):
    """A reading of Figure 3: from where x₂ goes to 0.05, the loss, the end of the colour bar."""

    low: float
    loss: Callable[[Tensor], Tensor]
    limit: float


READINGS = {
    "code": Reading(-0.05, lambda error: error.square().mean(), 2.5),
    "paper": Reading(0.0, lambda error: error.abs().mean(), 1.0),
}
"""That of the code, which drew the figure, and that of Eqs. 12 and 13."""


def spiral(x: float) -> Figure:
    """On which way a gate takes a negative number from 1 to itself: in an NPU around zero, in an NMU through
    it.
    """
    gates = np.linspace(0, 1, 201)
    steps = diagrams.power_unit(gate=True)
    npu = NPU(1, 1).double()
    npu.weight.data.fill_(1.0)
    ways = {"NPU": np.zeros((len(gates), 2)), "NMU": np.stack([gates * x + 1 - gates, 0 * gates], 1)}
    for at, gate in enumerate(gates):
        npu.gate.data.fill_(gate)
        found = diagrams.execute(steps, npu, torch.tensor([x], dtype=torch.float64))
        radius, angle = found["gated r"].item(), np.pi * found["gated k"].item()
        ways["NPU"][at] = radius * np.cos(angle), radius * np.sin(angle)
    with style():
        figure = Figure(figsize=(6, 3.4), layout="constrained")
        axis = figure.subplots()
        for name, way in ways.items():
            colour, marker = unit_style(name)
            axis.plot(*way.T, color=colour, marker=marker, markevery=50, markersize=7, label=name)
        for at in range(0, 201, 50):
            outside = 14 * ways["NPU"][at] / np.linalg.norm(ways["NPU"][at])
            place = dict(textcoords="offset points", ha="center", va="center")
            axis.annotate(f"{gates[at]:g}", ways["NPU"][at], outside, **place)
        axis.plot(0, 0, "x", color="#D55E00", markersize=13, markeredgewidth=2.5, zorder=4)
        axis.margins(0.12)
        axis.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
        axis.legend(loc="upper left")
    return figure


def examples(low: float, count: int, seed: int) -> Tensor:
    """Pairs of x₁ of U(0, 2) and x₂ of U(low, 0.05), ``(count, 2)``."""
    generator = torch.Generator().manual_seed(seed)
    u = torch.rand(count, 2, generator=generator, dtype=torch.float64)
    return torch.stack([2 * u[:, 0], low + (0.05 - low) * u[:, 1]], 1)


def square(low: float, side: int = 32) -> Tensor:
    """The middles of side × side equal parts of the square of examples: for the expected loss."""
    u = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    return torch.cartesian_prod(2 * u, low + (0.05 - low) * u)


def gradients(
    panel: str, weights: Tensor, x: Tensor, loss: Callable[[Tensor], Tensor] = READINGS["code"].loss
) -> Tensor:
    """The gradient of the loss of learning x₁, by w₁, w₂ and their imaginary parts, which are 0.

    Args:
        panel: one of :data:`PANELS`.
        weights: the real weights, ``(points, 2)``.
        x: examples, ``(examples, 2)``.
        loss: errors -> loss.

    Returns:
        ``(points, 4)``.
    """
    gates = PANELS[panel]
    unit = (NPU if gates else NaiveNPU)(2, 1).double()
    fixed = {"gate": torch.tensor(gates, dtype=torch.float64)} if gates else {}

    def total(real: Tensor, imaginary: Tensor) -> Tensor:
        state = {"weight": real[None], "weight_im": imaginary[None]} | fixed
        return loss(functional_call(unit, state, x)[:, 0] - x[:, 0])

    slopes = vmap(grad(total, (0, 1)), chunk_size=1000)(weights, torch.zeros_like(weights))
    return torch.cat(slopes, 1)


def norms(
    panel: str, weights: Tensor, x: Tensor, reading: str = "code", imaginary: bool | None = None
) -> np.ndarray:
    """Norms of these gradients.

    Args:
        panel, weights, x: as in :func:`gradients`.
        reading: whose loss.
        imaginary: whether derivatives by imaginary weights count; by default as in the reading: those of the
            NPU with half-open gates do in the code's.
    """
    if imaginary is None:
        imaginary = reading == "code" and panel == _HALF
    slopes = gradients(panel, weights, x, READINGS[reading].loss)
    return slopes[:, : 4 if imaginary else 2].norm(dim=1).numpy()


def figure_3(w1: np.ndarray, w2: np.ndarray, surfaces: Mapping[str, Mapping[str, np.ndarray]]) -> Figure:
    """A row of maps for each reading, a column for each panel; ``surfaces``: ``(len(w2), len(w1))``."""
    colours = colormaps["inferno_r"].with_extremes(over="black")
    with style():
        figure = Map(figsize=(7, 5.4), layout="constrained")
        axes = figure.subplots(len(surfaces), len(PANELS), sharex=True, sharey=True, squeeze=False)
        for row, (reading, maps) in zip(axes, surfaces.items(), strict=True):
            limit = READINGS[reading].limit
            scale = BoundaryNorm(np.linspace(0, limit, 16), colours.N, extend="max")
            how = {"norm": scale, "cmap": colours, "shading": "nearest", "rasterized": True}
            for axis, values in zip(row, maps.values(), strict=True):
                axis.grid(False)
                axis.pcolormesh(w1, w2, np.minimum(values, 2 * limit), **how)
                axis.plot(1, 0, "o", color="white", markeredgecolor="black", markersize=6)
                axis.axhline(0.75, color="black", linestyle=":", linewidth=1)
            row[0].set_ylabel(f"{reading}'s reading\n$w_2$")
            ticks = np.linspace(0, limit, 6)
            bar = figure.colorbar(
                ScalarMappable(scale, colours), ax=row, ticks=ticks, aspect=15, extend="max"
            )
            bar.set_label("gradient norm")
        for axis, panel in zip(axes[0], PANELS, strict=True):
            axis.set_title(panel)
        for axis in axes[-1]:
            axis.set_xlabel("$w_1$")
    return figure


class Trained(NamedTuple):
    """What a short training has to tell: parameters of all runs before and after it, and its log."""

    start: dict[str, Tensor]
    log: Log
    end: dict[str, Tensor]


def trained(
    task: Task, layers: Sequence[tuple[str, int, Mapping]], unit: str, seeds: int, updates: int
) -> Trained:
    """Networks with the power unit ``unit`` in the place of the layer ``"unit"``, one for each seed."""
    model = Stack(
        layers=tuple(
            Layer(unit=unit if name == "unit" else name, out_features=size, options=options)
            for name, size, options in layers
        )
    )
    recipe = Recipe(iterations=updates, optimiser=Adam(lr=0.005), batch_size=100, selection="last")
    runs = [Run(task=task, model=model, recipe=recipe, seed=seed) for seed in range(seeds)]
    ensemble = Ensemble(runs, compiled=False)
    start = ensemble.parameters
    return Trained(start, ensemble.train(), ensemble.parameters)


def equal_pairs(npu: Mapping[str, Tensor], real: Mapping[str, Tensor]) -> str:
    """How many NPUs have imaginary weights of 0 and all other parameters of the RealNPU, ``"3 of 3"``."""
    fits = [~value.flatten(1).any(1) for name, value in npu.items() if name.endswith("weight_im")]
    fits += [(npu[name] == value).flatten(1).all(1) for name, value in real.items()]
    equal = torch.stack(fits).all(0)
    return f"{int(equal.sum())} of {len(equal)}"


def _diagram(gate: bool) -> Iterable[Claim]:
    """Whether the drawn boxes and arrows compute the unit, and show all that is trained."""
    name, unit = ("NPU", NPU(2, 5)) if gate else ("NaiveNPU", NaiveNPU(2, 5))
    unit, steps = unit.double(), diagrams.power_unit(gate)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for parameter in unit.parameters():
            torch.nn.init.uniform_(parameter, -1.2, 1.2)
    x = torch.cartesian_prod(*[torch.tensor([-2.0, -0.5, 0.0, 3.0], dtype=torch.float64)] * 2)
    same = torch.allclose(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-10, atol=0)
    yield Claim(f"the arrows compute the {name}", same, f"the {name}")
    drawn = {step.parameter for step in steps} | {arrow.weight for step in steps for arrow in step.arrows}
    trainable = {parameter for parameter, _ in unit.named_parameters()}
    yield Claim("all trainables are drawn", drawn - {""} == trainable, ", ".join(sorted(trainable)))


def _figure_3() -> Iterable[Claim]:
    """By the expected loss, in the reading of the code, which drew the figure.

    "No gradient" is a norm below a fifth of the colour bar, which ends at 2.5.
    """
    x, limit = square(READINGS["code"].low), READINGS["code"].limit

    def at(panel: str, w1: Sequence[float], w2: Sequence[float]) -> np.ndarray:
        """``(len(w1), len(w2))``."""
        points = torch.cartesian_prod(*(torch.tensor(w, dtype=torch.float64) for w in (w1, w2)))
        return norms(panel, points, x).reshape(len(w1), len(w2))

    above = np.linspace(-0.2, 2.5, 10).tolist(), [0.76, 0.8, 0.9, 1.0]
    most = float(at("NaiveNPU", *above).max())
    what = "NaiveNPU: no gradient for w₂ > 0.75"
    yield Claim(what, most < limit / 5, f"w₂ > 0.75 (norm at most {text(most, 2)})")
    least = float(at(_HALF, *above).min())
    yield Claim("NPU with gates ½: a gradient there", least > limit / 5, f"norm at least {text(least, 2)}")
    stripes = at("NPU, gates 1, 0", [0.0, 1.5], [-0.2, 0.4, 1.0])
    apart = float(np.ptp(stripes, axis=1).max())
    yield Claim("NPU with gates 1, 0: independent of w₂", apart == 0, f"differs by {text(apart)}")
    for panel, name in (("NaiveNPU", "NaiveNPU"), ("NPU, gates 1, 0", "NPU with gates 1, 0")):
        norm = at(panel, [1.0], [0.0]).item()
        shown = "norm below 1e-9" if norm < 1e-9 else f"norm {text(norm, 2)}"
        yield Claim(f"{name}: (1, 0) is stationary", norm < 1e-9, shown)
    left = np.arange(-1, 0, 0.05)
    black = left[at("NPU, gates 1, 0", left.tolist(), [0.0])[:, 0] >= limit].max()
    what = "NPU with gates 1, 0: black left of about w₁ = -0.2"
    yield Claim(what, bool(-0.4 <= black <= -0.15), f"from {text(float(black), 2)} leftwards")


EXPERIMENT = Experiment(
    chapter="book/npu/power-units.ipynb",
    rules={
        "points": between(2, 1000),
        "draws": between(1, 10_000),
        "step1": between(0.001, 1),
        "step2": between(0.001, 1),
        "updates": at_least(1),
        "descent": at_least(1),
    },
    runs=lambda p: {},
    items=(
        Item(
            "npu",
            "Figure 1",
            "Diagram of the NaiveNPU",
            "schematic",
            lambda: _diagram(gate=False),
            headline="what the drawn arrows compute",
            published="the NaiveNPU",
        ),
        Item(
            "npu",
            "Figure 2",
            "Diagram of the NPU with its relevance gate",
            "schematic",
            lambda: _diagram(gate=True),
            headline="what the drawn arrows compute",
            published="the NPU",
        ),
        Item(
            "npu",
            "Figure 3",
            "Gradient norms of NaiveNPU and NPU when learning the identity",
            "analytic",
            _figure_3,
            headline="region without gradient of the NaiveNPU",
            published="w₂ > 0.75",
        ),
    ),
    errata=(
        Erratum(
            "Equation 12",
            "description",
            (
                r"Figure 3 has $x_2 \sim \mathcal U(0, 0.05)$ and the absolute error, and its "
                "gradient is that of the real weights."
            ),
            (
                r"The code that drew it has $x_2 \sim \mathcal U(-0.05, 0.05)$ and the squared "
                "error, and in the middle panel the derivatives by imaginary weights count."
            ),
            "Both readings are drawn, beside each other.",
            ("As printed, the contrast between NaiveNPU and NPU is much smaller than in the figure."),
        ),
    ),
)
