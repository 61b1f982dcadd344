"""Verdicts on *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from nalm import NMU
from torch.func import hessian

from companion.nau_nmu import digits, gates, penalty, subset_arithmetic
from companion.nau_nmu import hidden_sizes as hidden
from companion.statements import Claim
from companion.tables import text

__all__ = ["JUDGES"]


def _figure_1() -> Iterable[Claim]:
    from companion.figures import diagrams

    unit, steps = NMU(3, 1).double(), diagrams.product_unit()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        unit.reset_parameters()
    x = torch.cartesian_prod(*[torch.tensor([-2.0, 0.0, 0.5], dtype=torch.float64)] * 3)
    yield Claim(
        "the arrows compute the NMU",
        torch.allclose(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-10, atol=0),
        "the NMU",
    )
    yield Claim(
        "all trainables are drawn",
        {step.parameter for step in steps} - {""} == {name for name, _ in unit.named_parameters()},
    )


_BEYOND, _TARGET = 500.0, 13.2
"""The end of Figure 2's axis, and the target of its example."""


def _squared_error(eps: float, weights: torch.Tensor) -> torch.Tensor:
    """Of Figure 2's NAC+ and NAC• over w₁ and w₂: the square, as in the authors' code, not its root."""
    hidden = weights[0] * torch.tensor([2.2, 6.0], dtype=torch.float64)
    return ((hidden.abs() + eps).pow(weights[1]).prod() - _TARGET) ** 2


def _figure_2() -> Iterable[Claim]:
    """A weight above -0.25 counts as slightly negative."""
    leaves = {eps: np.log(_TARGET + _BEYOND**0.5) / (2 * np.log(eps)) for eps in (1e-7, 0.1)}
    yield Claim(
        "ε = 0.1: explodes where w₂ is just slightly negative",
        leaves[0.1] > -0.25,
        text(float(leaves[0.1]), 2),
    )
    yield Claim("ε = 1e-7: explodes where w₂ is just slightly negative", leaves[1e-7] > -0.25)
    square = torch.cartesian_prod(*[torch.linspace(-1, 1, 21, dtype=torch.float64)] * 2)
    yield Claim("ε = 1: does not", all(_squared_error(1.0, weights) < _BEYOND for weights in square))
    right = torch.ones(2, dtype=torch.float64)
    yield Claim("w₁ = w₂ = 1 is the solution with ε = 1e-7", bool(_squared_error(1e-7, right) < 1e-9))
    beside = torch.tensor(
        [(_TARGET**-1 / _TARGET) ** 0.5, -1.0], dtype=torch.float64
    )  # (2.2 w₁)(6 w₁) = 1 / 13.2, to the power of -1
    curvature = [
        torch.linalg.eigvalsh(hessian(partial(_squared_error, 1e-7))(weights)).max()
        for weights in (beside, right)
    ]
    yield Claim(
        "there are unstable alternatives",
        bool(_squared_error(1e-7, beside) < 1e-6 and curvature[0] > 10 * curvature[1]),
    )


def _figure_5() -> Iterable[Claim]:
    """Taylor approximation less the exact mean of (z + ε) to the power of W, where z is of U(0, r_z) and W of U(-r_w, r_w)."""
    from scipy.integrate import quad

    def error(r_w: float, r_z: float) -> float:
        def mean_over_w(s: float) -> float:  # z = r_z exp(-s)
            t = r_w * np.log(r_z * np.exp(-s) + 1e-8)
            return float(np.exp(-s) * np.sinh(t) / t) if t else float(np.exp(-s))

        return (
            1
            + r_w**2 / 6 * np.log(r_z / 2 + 1e-8) ** 2
            - quad(mean_over_w, 0, 40, points=[np.log(r_z)], limit=200)[0]
        )

    errors = {
        (r_w, r_z): error(r_w, r_z)
        for r_w in np.linspace(0.001, 0.496, 10)
        for r_z in (1, 2, 5, 10, 20, 30, 40, 50)
    }
    lowest, highest = min(errors, key=errors.get), max(errors, key=errors.get)
    yield Claim("lowest about -0.07", -0.085 < errors[lowest] < -0.055, text(errors[lowest], 2))
    yield Claim("highest about 0.01", 0 < errors[highest] < 0.015, text(errors[highest], 2))
    yield Claim(
        "largest at wide weights and small inputs", lowest == max(errors, key=lambda at: (at[0], -at[1]))
    )


JUDGES = {
    ("nau-nmu", "Figure 1"): _figure_1,
    ("nau-nmu", "Figure 2"): _figure_2,
    ("nau-nmu", "Figure 5"): _figure_5,
    **subset_arithmetic.JUDGES,
    **penalty.JUDGES,
    **gates.JUDGES,
    **hidden.JUDGES,
    **digits.JUDGES,
}
