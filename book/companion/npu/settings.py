"""Settings of the fractional SIR experiment of *Neural Power Units* (Heim, Pevny & Smidl, 2020).

They are those of the authors' code, with switches for what the text says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from nalm.models import NODE, AdjointNODE, Layer
from nalm.training import L1, LBFGS, Adam, HagerZhangLBFGS, Recipe, RMSProp

from companion.experiment import Arm

HIDDEN = (6, 9, 12, 15, 20)
PENALTIES = (0.0, 0.01, 0.1, 1.0)
"""The grid of the fractional SIR experiment: hidden units and factors of the L1 penalty."""

EXACT_FSIR = {
    "field.0.weight": [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "field.0.gate": [1.0, 1.0, 1.0],
    "field.1.weight": [[-0.06, 0.0, 0.01], [0.06, -0.05, 0.0], [0.0, 0.05, -0.01]],
}
"""Weights of a RealNPU with three hidden units and an NAU that are the fractional SIR system, Eq. 19 with the
sign of its last entry put right.
"""


def layers_of(network: Iterable) -> tuple[str, ...]:
    """Layers as the paper's tables write them: unit(inputs, outputs)."""
    return tuple(f"{type(layer).__name__}({layer.in_features}, {layer.out_features})" for layer in network)


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
    gradient: Literal["discrete", "adjoint"] = "discrete",
    line_search: Literal["more-thuente", "hager-zhang"] = "more-thuente",
    step: float = 0.5,
) -> Arm:
    """A neural differential equation of the fractional SIR experiment (Figures 4 and 5, Table A1).

    Args:
        model: the right-hand side.
        hidden: its hidden units.
        penalty: factor of the L1 norm of all parameters.
        method: explicit Euler with steps of 1, as in the code, or Runge-Kutta.
        positive, imaginary_until: as in :class:`nalm.models.NODE`.
        iterations: first-order updates.
        finish: at most so many iterations of L-BFGS.
        arm: ``"code"``: RMSProp, and power units and NAU start with a fifth of Glorot's weights;
            ``"text"``: Adam, and all of Glorot's weights.
        gradient: of the discrete solution, or by the continuous adjoint, as in the code.
        line_search: of L-BFGS: SciPy's, or that of Hager and Zhang as the code has it.
        step: of Runge-Kutta. With 1/2 the true equations have an error of 7e-6.

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
    node = (AdjointNODE if gradient == "adjoint" else NODE)(
        layers=layers,
        initial_state=(100.0, 0.01, 0.0),
        method=method,
        step=1.0 if method == "euler" else step,
        positive=positive,
        imaginary_until=imaginary_until,
    )
    recipe = Recipe(
        iterations=iterations,
        optimiser=RMSProp(lr=0.005) if arm == "code" else Adam(lr=0.005),
        batch_size=40,
        log_interval=500,
        penalties=(L1(start=penalty, end=penalty),) if penalty else (),
        finish=(HagerZhangLBFGS if line_search == "hager-zhang" else LBFGS)(iterations=finish),
        selection="last",
        stream="common",
    )
    return Arm(model=node, recipe=recipe)
