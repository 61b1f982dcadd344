"""The units that divide: what their chapter derives, of which nothing is trained."""

from __future__ import annotations

import numpy as np
import torch
from nalm import NRU
from torch.func import functional_call

from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.figures import Figure, functions


def wall() -> Figure:
    """What one input multiplies the output of an NRU by while its weight passes 0, Eq. {eq}`eq-nru-wall`."""
    weights = np.linspace(-0.006, 0.006, 601)
    panels = {}
    for name, training in (("in training", True), ("in evaluation", False)):
        unit = NRU(1, 1).double().train(training)
        panels[name] = {
            f"$x = {x:+.0f}$": (weights, [_factor(unit, weight, x) for weight in weights]) for x in (2, -2)
        }
    return functions(panels, xlabel="weight $W_a$", ylabel="factor $f$", xticks=[-0.005, 0, 0.005])


def _factor(unit: NRU, weight: float, x: float) -> float:
    at = {"weight": torch.tensor([[weight]], dtype=torch.float64)}
    return functional_call(unit, at, torch.tensor([[x]], dtype=torch.float64)).item()


EXPERIMENT = Experiment(
    chapter="book/division/units.ipynb",
    runs=lambda p: {},
    errata=(
        Erratum(
            "Equation 6",
            "misprint",
            (
                "The derivative of the NRU has $|x_i|$ without an exponent, and ends in a fraction "
                "of two equal terms."
            ),
            (
                "It is $|x_i|^{w_i}$, and the factor is the product over the other inputs, without "
                "a denominator."
            ),
            "SymPy and automatic differentiation both confirm the corrected derivative.",
            "The observations below it are unchanged but for one.",
        ),
        Erratum(
            "Section 6.2.1, gradient at $x_i = -1$",
            "claim",
            "The gradients for $x_i = -1$ and $x_i = 1$ are 0 regardless of the value of $w_i$.",
            (
                "For $x_i = 1$ it is so. For $x_i = -1$ only once $|w_i|$ is above about 0.01; "
                "below, this is one of the steepest places there are."
            ),
            "The derivative, at both inputs and over all weights.",
            ("This steep place is the wall that stops an NRU with small steps on negative inputs."),
        ),
        Erratum(
            "Section 3.2, tanh",
            "claim",
            r"$\tanh(1000\,W)^2$ approximates $|W|$, the better the larger the factor.",
            r"It approximates the step $W \ne 0$.",
            "Both functions, and the output of the unit in training and in evaluation.",
            (
                "An NRU trains with inputs selected that are hardly selected in evaluation. Its "
                "loss and its validation error agree at discrete weights only."
            ),
        ),
    ),
)
