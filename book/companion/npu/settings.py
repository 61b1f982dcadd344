"""Settings of *Neural Power Units* (Heim, Pevny & Smidl, 2020), as its code has them, with switches for what its text says otherwise.

Large-scale arithmetic: Tables A4 to A6. Fractional SIR: Table A1. Where text and code differ, the defaults are the
code's, which made the published numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from nalm.models import NODE, Layer, Stack
from nalm.training import L1, LBFGS, Adam, Norms, Recipe, RMSProp

from companion.experiment import Arm

__all__ = ["EXACT_FSIR", "HIDDEN", "LARGE_SCALE", "PENALTIES", "fsir_arm", "large_scale_arm", "layers_of"]

LARGE_SCALE = ("NPU", "RealNPU", "NaiveNPU", "NMU", "NALU", "iNALU")
"""The models of the large-scale task; the paper ran the iNALU and did not report it."""

_GROWTH = {"add": (1e-5, 1e-4), "mul": (1e-5, 1e-4), "reciprocal": (1e-9, 1e-7), "root": (1e-6, 1e-4)}
_SHORT = {"add": (1e-7, 10_000), "mul": (1e-9, 20_000)}
_START_GATE = {"NPU": 1.0, "RealNPU": 0.5}

HIDDEN = (6, 9, 12, 15, 20)
PENALTIES = (0.0, 0.01, 0.1, 1.0)
"""The grid of the fractional SIR experiment: hidden units and factors of the L1 penalty."""

EXACT_FSIR = {
    "field.0.weight": [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "field.0.gate": [1.0, 1.0, 1.0],
    "field.1.weight": [[-0.06, 0.0, 0.01], [0.06, -0.05, 0.0], [0.0, 0.05, -0.01]],
}
"""Weights of a RealNPU with three hidden units and an NAU that are the fractional SIR system, Eq. 19 with the sign of its last entry put right."""


def layers_of(network: Iterable) -> tuple[str, ...]:
    """Layers as the paper's tables write them: unit(inputs, outputs)."""
    return tuple(f"{type(layer).__name__}({layer.in_features}, {layer.out_features})" for layer in network)


def large_scale_arm(
    model: str,
    operation: str,
    penalty: Literal["norms", "L1"] | None = None,
    gate: float | None = None,
    short: bool = False,
    iterations: int = 100_000,
    arm: Literal["code", "text"] = "code",
) -> Arm:
    """A model of the large-scale task (Table 1 and Figure 7).

    Args:
        model: one of :data:`LARGE_SCALE`.
        operation: of :class:`nalm.tasks.LargeScaleTask`.
        penalty: the sum of the norms of the parameter tensors, as the code computes it, or the L1 norm of the paper's Eq. 24; by default the arm's.
        gate: first value of the gates; by default the arm's.
        short: train the NMU on sums and products as the code's last version does, shorter and with a smaller penalty.
        iterations: updates per run.
        arm: ``"code"``: all weights start in U(0, 0.1), the gates of the NPU at 1 and those of the RealNPU at 0.5, the penalty is ``"norms"``;
            ``"text"``: weights start as Glorot's, gates at 0.5 (section 3.2), the penalty is ``"L1"``, the NAU is clipped to [-1, 1] (Eq. 5) and
            the gate of the NALU has no bias (Eq. 3).

    The penalty grows tenfold every 10,000 iterations (the code's counter is one ahead: after 9,999). Table A6 prints 1e-7 as the last factor for
    products, less than the first; both arms have the code's 1e-4. The text names no optimiser, no batch size and no first weights of the NMU: both
    arms have RMSProp with batches of 128, and the NMU of the text arm starts as it does by default in the authors' code, in U(0, 1).

    >>> large_scale_arm("NPU", "reciprocal").recipe.penalties
    (Norms(start=1e-09, end=1e-07, every=10000, growth=10.0, kind='Norms'),)
    """
    start, end = _GROWTH[operation]
    if short:
        start, iterations = _SHORT[operation]
        end = start
    penalty = penalty or {"code": "norms", "text": "L1"}[arm]
    grown = {"norms": Norms, "L1": L1}[penalty](start=start, end=end)
    recipe = Recipe(
        iterations=iterations,
        optimiser=RMSProp(lr=1e-2 if operation == "add" else 5e-3),
        log_interval=min(10_000, iterations),
        penalties=(grown,),
        selection="last",
        stream="common",
    )
    return Arm(model=Stack(layers=_large_scale_layers(model, gate, text=arm == "text")), recipe=recipe)


def _large_scale_layers(model: str, gate: float | None, text: bool) -> tuple[Layer, ...]:
    initial = {"init": "glorot"} if text else {"init": "uniform", "init_scale": 0.1}
    if model == "NALU":
        return tuple(
            Layer(unit="NALU", out_features=size, options=initial | {"gate_bias": not text, "eps": 1e-8})
            for size in (100, 1)
        )
    if model == "iNALU":
        return tuple(Layer(unit="INALU", out_features=size, options=initial) for size in (100, 1))
    options = dict(initial)
    if model == "NMU":
        options |= {"clamp": "forward"} | ({"init": "uniform"} if text else {})
    elif model in _START_GATE:
        usual = 0.5 if text else _START_GATE[model]
        options["gate_init"] = usual if gate is None else gate
    nau = Layer(unit="NAU", out_features=100, options=initial | {"clamp": "step" if text else "none"})
    return (nau, Layer(unit=model, options=options))


def fsir_arm(
    model: Literal["NPU", "RealNPU", "Dense"],
    hidden: int,
    penalty: float,
    method: Literal["euler", "rk4"] = "euler",
    positive: bool = False,
    imaginary_until: int | None = None,
    iterations: int = 3000,
    finish: int = 1000,
    arm: Literal["code", "text"] = "code",
) -> Arm:
    """A neural differential equation of the fractional SIR experiment (Figures 4 and 5, Table A1).

    Args:
        model: the right-hand side.
        hidden: its hidden units.
        penalty: factor of the L1 norm of all parameters.
        method: explicit Euler with steps of 1, as in the code, or Runge-Kutta with steps of 1/2, under which the true equations have an error of 7e-6.
        positive, imaginary_until: as in :class:`nalm.models.NODE`.
        iterations: first-order updates.
        finish: at most so many iterations of L-BFGS.
        arm: ``"code"``: RMSProp, and power units and NAU start with a fifth of Glorot's weights; ``"text"``: Adam, and all of Glorot's weights.

    >>> fsir_arm("RealNPU", hidden=6, penalty=1.0).model.layers[0].out_features
    6
    """
    scale = {"init_scale": 0.2} if arm == "code" else {}
    nau = Layer(unit="NAU", out_features=3, options={"clamp": "none", "init": "glorot"} | scale)
    if model == "Dense":
        layers = tuple(
            Layer(unit="Dense", out_features=hidden, options={"activation": "tanh"}) for _ in range(2)
        )
        layers += (Layer(unit="Dense", out_features=3, options={"activation": "identity"}),)
    else:
        layers = (Layer(unit=model, out_features=hidden, options=scale), nau)
    step = 1.0 if method == "euler" else 0.5
    node = NODE(
        layers=layers,
        initial_state=(100.0, 0.01, 0.0),
        method=method,
        step=step,
        positive=positive,
        imaginary_until=imaginary_until,
    )
    recipe = Recipe(
        iterations=iterations,
        optimiser=RMSProp(lr=0.005) if arm == "code" else Adam(lr=0.005),
        batch_size=40,
        log_interval=500,
        penalties=(L1(start=penalty, end=penalty),) if penalty else (),
        finish=LBFGS(iterations=finish),
        selection="last",
        stream="common",
    )
    return Arm(model=node, recipe=recipe)
