r"""Initial distributions of weights, drawn in place from torch's global generator.

Every function fills a weight ``(out, in)`` and returns it; fan-in and fan-out are its shape.
"""

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

NAC_FAN_FLOOR = 5
"""Smallest fan sum in the NAC's variance equation. The authors' code has it, the paper does not: below 5 the
equation asks for a variance of 1/2 or more, which no range reaches (Var(W) < 1/2)."""


def nac_variance(r: float) -> float:
    r"""Variance of :math:`\tanh(\hat W)\,\sigma(\hat M)` for both parameters drawn from U[-r, r].

    Madsen & Johansen (2020), Eq. 38: :math:`\frac{1}{2r}(1 - \tanh(r)/r)(r - \tanh(r/2))`.
    """
    return (1 - math.tanh(r) / r) * (r - math.tanh(r / 2)) / (2 * r)


@cache
def nac_bound(fan_in: int, fan_out: int) -> float:
    """The r for which the NAC weight has the Glorot variance ``2 / max(fan_in + fan_out, 5)``, by bisection.

    Example:
        >>> round(nac_bound(100, 2), 3), round(nac_bound(2, 1), 2)
        (0.504, 9.47)
    """
    target = 2 / max(fan_in + fan_out, NAC_FAN_FLOOR)
    low, high = 1e-6, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        if nac_variance(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def nac_(weight: Tensor) -> Tensor:
    """U[-r, r] with r of :func:`nac_bound`, for each of the two parameters of a NAC weight."""
    r = nac_bound(weight.shape[1], weight.shape[0])
    return nn.init.uniform_(weight, -r, r)


def capped_glorot_(weight: Tensor) -> Tensor:
    """U[-r, r] with ``r = min(0.5, sqrt(6 / (in + out)))``, the NAU's range; the paper leaves out the cap."""
    r = min(0.5, math.sqrt(6 / (weight.shape[0] + weight.shape[1])))
    return nn.init.uniform_(weight, -r, r)


def nmu_(weight: Tensor) -> Tensor:
    """U[0.25, 0.75]: mean 1/2, variance 1/48. The paper derives 1/4, which a uniform distribution has only
    beyond [0, 1].
    """
    return nn.init.uniform_(weight, 0.25, 0.75)


def he_(weight: Tensor) -> Tensor:
    """He uniform with the gain of ReLU: U[-r, r], ``r = sqrt(6 / in)``."""
    return nn.init.kaiming_uniform_(weight, nonlinearity="relu")


INITS: dict[str, Callable[[Tensor], Tensor]] = {
    "glorot": nn.init.xavier_uniform_,
    "glorot-normal": nn.init.xavier_normal_,
    "capped-glorot": capped_glorot_,
    "he": he_,
    "nac": nac_,
    "nmu": nmu_,
    "uniform": nn.init.uniform_,  # U[0, 1)
}


def fill_(weight: Tensor, name: str, scale: float = 1.0) -> Tensor:
    """Fill ``weight`` from the distribution ``name`` of ``INITS`` and multiply it by ``scale``.

    Example:
        >>> weight = fill_(torch.empty(1, 100), "uniform", scale=0.1)
        >>> bool((weight >= 0).all() and (weight < 0.1).all())
        True
    """
    INITS[name](weight)
    with torch.no_grad():
        return weight.mul_(scale)
