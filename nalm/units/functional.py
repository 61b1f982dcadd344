r"""Formulas that several units share, as pure functions of tensors.

Shapes: ``x`` is ``(..., in)``, a weight is ``(out, in)``, a result is ``(..., out)``. All functions are
elementwise operations and small reductions without branches on data, so that they pass through
``torch.func`` transforms and fuse under ``torch.compile``.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

Rounding = Literal["exact", "sequential"]
"""How a factor that may be selected is rounded, see :func:`selected`."""

UNROLLED_FACTORS = 16
"""Largest number of factors that :func:`product` multiplies one by one, which the compiler fuses best."""

UNROLLED_SIZE = 32
"""Largest ``out * in`` for which :func:`weighted_sum` multiplies elementwise, without a matrix product."""


def weighted_sum(x: Tensor, weight: Tensor) -> Tensor:
    r"""The linear map :math:`y_o = \sum_i W_{oi} x_i`.

    Small weights are applied as a broadcast product and a sum: under ``vmap`` a matrix product becomes one
    batched product of tiny matrices, which on a CPU is many times slower than the fused elementwise loop.

    Args:
        x: input ``(..., in)``.
        weight: weight ``(out, in)``.

    Returns:
        The tensor ``(..., out)``.

    Example:
        >>> weighted_sum(torch.tensor([3.0, 2.0]), torch.tensor([[1.0, -1.0]]))
        tensor([1.])
    """
    if weight.shape[-2] * weight.shape[-1] <= UNROLLED_SIZE:
        if x.dim() == 1:
            return (x * weight).sum(-1)
        # Examples last: the fused loop then runs over examples, of which there are many, and not over
        # outputs.
        return (x.mT.unsqueeze(-3) * weight.unsqueeze(-1)).sum(-2).mT
    if x.dim() == 1:
        return torch.mv(weight, x)
    # The weight first: under vmap, where x is shared, the stacked weights fold into one wide product, forward
    # and backward.
    return torch.matmul(weight, x.mT).mT


def product(factors: Tensor, dim: int = -1) -> Tensor:
    r"""The product over one dimension, :math:`\prod_i f_i`.

    A tree of multiplications, so that the gradient of each factor is the product of the others by plain
    multiplication: exact where factors are zero, and without the division or the branch of ``torch.prod``,
    whose backward pass is several times slower once compiled.

    Args:
        factors: tensor with at least one entry along ``dim``.
        dim: the dimension of the factors, -1 or -2.

    Returns:
        The tensor without that dimension.

    Example:
        >>> factors = torch.tensor([2.0, 0.0, 5.0], requires_grad=True)
        >>> product(factors).backward()
        >>> factors.grad
        tensor([ 0., 10.,  0.])
    """
    rest = []
    while (n := factors.shape[dim]) > UNROLLED_FACTORS:  # halve wide products: one operation for many factors
        if n % 2:
            rest.append(factors.select(dim, n - 1))
        factors = factors.narrow(dim, 0, n // 2) * factors.narrow(dim, n // 2, n // 2)
    level = [*factors.unbind(dim), *rest]
    while len(level) > 1:
        pairs = [a * b for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[2 * len(pairs) :]
    return level[0]


def selected(value: Tensor, select: Tensor, exact: bool = True) -> Tensor:
    r"""The factor :math:`s v + 1 - s`: the value where it is selected, 1 where it is not.

    Args:
        value: v.
        select: s, in [0, 1].
        exact: compute :math:`s v + (1 - s)`, which returns v unrounded where s is 1. Otherwise compute
            :math:`(s v + 1) - s`, from left to right as the authors' code does, which loses the digits of v
            below the rounding of 1: all of them for :math:`|v| < 6 \cdot 10^{-8}` in float32.

    Returns:
        The factor.

    Example:
        >>> one, small = torch.tensor(1.0), torch.tensor(1e-8)
        >>> selected(small, one).item() > 0, selected(small, one, exact=False).item() > 0
        (True, False)
    """
    return select * value + (1 - select) if exact else select * value + 1 - select


def identity_product(x: Tensor, weight: Tensor, exact: bool = True) -> Tensor:
    r"""The product with selectable factors, :math:`y_o = \prod_i (W_{oi} x_i + 1 - W_{oi})`.

    Madsen & Johansen (2020), Eq. 12: weight 1 multiplies by :math:`x_i`, weight 0 by 1.

    Args:
        x: input ``(..., in)``.
        weight: weight ``(out, in)``.
        exact: see :func:`selected`.

    Returns:
        The tensor ``(..., out)``.

    Example:
        >>> identity_product(torch.tensor([3.0, 2.0, 7.0]), torch.tensor([[1.0, 1.0, 0.0]]))
        tensor([6.])
    """
    if x.dim() == 1:
        return product(selected(x, weight, exact))
    # Examples last, as in weighted_sum.
    return product(selected(x.mT.unsqueeze(-3), weight.unsqueeze(-1), exact), dim=-2).mT


def clamped(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    r"""As ``torch.clamp``, :math:`\min(\max(x, l), h)`, with a gradient that does not depend on torch's
    version.

    The gradient is 1 inside the bounds and *at* them, else 0, so that a parameter that ``project_`` has put
    on a bound can leave it again. That of ``torch.clamp`` is 1 at the bounds up to torch 2.13, and 0 from
    2.14 on.

    Args:
        x: the tensor. A NaN stays NaN and has gradient 0.
        low: lower bound; None for none.
        high: upper bound; None for none. One of the two must be given.

    Returns:
        The tensor within its bounds.

    Example:
        >>> x = torch.tensor([-0.5, 0.0, 0.5, 1.0, 1.5], requires_grad=True)
        >>> y = clamped(x, 0, 1)
        >>> y.detach()
        tensor([0.0000, 0.0000, 0.5000, 1.0000, 1.0000])
        >>> y.sum().backward()
        >>> x.grad
        tensor([0., 1., 1., 1., 0.])
    """
    if low is None:
        inside = x <= high  # type: ignore[operator]
    elif high is None:
        inside = x >= low
    else:
        inside = (x >= low) & (x <= high)
    return torch.where(inside, x, x.detach().clamp(low, high))


def nac_weight(weight_tanh: Tensor, weight_sigmoid: Tensor) -> Tensor:
    r"""The NAC weight :math:`\tanh(\hat W) \odot \sigma(\hat M)`, biased towards {-1, 0, 1}."""
    return torch.tanh(weight_tanh) * torch.sigmoid(weight_sigmoid)


def exp_log(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    r"""The product of powers of magnitudes, :math:`y_o = \exp(\sum_i W_{oi} \log(|x_i| + \epsilon))`.

    Args:
        x: input ``(..., in)``; its sign is lost.
        weight: exponents ``(out, in)``.
        eps: added to the magnitude.

    Returns:
        The tensor ``(..., out)``.
    """
    return torch.exp(weighted_sum(torch.log(torch.abs(x) + eps), weight))


def phase(x: Tensor) -> Tensor:
    r"""The angle of a real number in the complex plane: :math:`\pi` where x < 0, else 0 (also at 0)."""
    return math.pi * (x < 0).to(x.dtype)


def complex_power(r: Tensor, k: Tensor, weight: Tensor, weight_im: Tensor | None = None) -> Tensor:
    r"""The real part of :math:`\prod_i z_i^{W_{oi}}` with :math:`z_i = r_i e^{\mathrm{i} k_i}` and complex W.

    :math:`y = \exp(W_r \log r - W_i k) \odot \cos(W_r k + W_i \log r)`: Heim et al. (2020), Eq. 10. Here k
    contains the factor :math:`\pi` that the paper writes beside it.

    Args:
        r: magnitudes ``(..., in)``, positive.
        k: angles ``(..., in)``.
        weight: real part of the exponents ``(out, in)``.
        weight_im: their imaginary part ``(out, in)``; None for zero.

    Returns:
        The tensor ``(..., out)``.

    Example:
        >>> x = torch.tensor([-3.0, 2.0], dtype=torch.float64)
        >>> complex_power(x.abs(), phase(x), torch.tensor([[1.0, -1.0]], dtype=torch.float64))
        tensor([-1.5000], dtype=torch.float64)
    """
    log_r = torch.log(r)
    if weight_im is None:
        return torch.exp(weighted_sum(log_r, weight)) * torch.cos(weighted_sum(k, weight))
    magnitude = torch.exp(weighted_sum(log_r, weight) - weighted_sum(k, weight_im))
    return magnitude * torch.cos(weighted_sum(k, weight) + weighted_sum(log_r, weight_im))


def distance_to_binary(weight: Tensor) -> Tensor:
    r"""Entrywise distance to {0, 1}: :math:`\min(|W|, |1 - W|)`."""
    return torch.minimum(torch.abs(weight), torch.abs(1 - weight))


def distance_to_ternary(weight: Tensor) -> Tensor:
    r"""Entrywise distance to {-1, 0, 1}: :math:`\min(|W|, |1 - |W||)`.

    The papers write :math:`1 - |W|`; the outer absolute value, which the authors' code has, differs only for
    entries beyond -1 and 1, where it keeps the distance positive.
    """
    magnitude = torch.abs(weight)
    return torch.minimum(magnitude, torch.abs(1 - magnitude))


def distance_to_signs(weight: Tensor) -> Tensor:
    r"""Entrywise distance to {-1, 1}: :math:`|1 - |W||`; a zero counts as 1."""
    return torch.abs(1 - torch.abs(weight))


DISTANCES: dict[tuple[float, ...], Callable[[Tensor], Tensor]] = {
    (0, 1): distance_to_binary,
    (-1, 0, 1): distance_to_ternary,
    (-1, 1): distance_to_signs,
}


def distance(weight: Tensor, values: Sequence[float]) -> Tensor:
    """Entrywise distance to the nearest of some values; to the papers' values by their formulas.

    >>> distance(torch.tensor([-0.25, 1.75]), (-2, 0, 2))
    tensor([0.2500, 0.2500])
    """
    if (known := tuple(values)) in DISTANCES:
        return DISTANCES[known](weight)
    return torch.stack([torch.abs(weight - value) for value in values]).amin(0)


def nearest(weight: Tensor, values: Sequence[float]) -> Tensor:
    """For each entry the nearest of some values, the first of two that are equally near; NaN stays NaN.

    >>> nearest(torch.tensor([-0.3, 0.5, 7.0]), (0, 1))
    tensor([0., 0., 1.])
    """
    to = weight.new_tensor(values)
    # beyond the last value all would be equally far in few digits
    within = weight.clamp(min(values), max(values))
    return torch.where(weight.isnan(), weight, to[torch.abs(within.unsqueeze(-1) - to).argmin(-1)])
