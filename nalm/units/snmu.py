"""The stochastic neural multiplication unit."""

from typing import Literal, get_args

import torch
from torch import Tensor

from nalm.units.checks import number, one_of
from nalm.units.functional import Rounding, identity_product
from nalm.units.nau import NMU, NMUClamp, NMUInit
from nalm.units.unit import Device

Noise = Literal["example", "fresh"]

_MASK = 0xFFFFFFFF
_INPUT, _NOISE = 0x85EBCA6B, 0x9E3779B9
"""Odd numbers, whose multiples tell places apart."""


class SNMU(NMU):
    r"""The stochastic NMU, sNMU: in training inputs are multiplied by noise, and the noise is divided out.

    .. math::

        y_o = \prod_i (W_{oi} x_i n_i + 1 - W_{oi}) \Bigm/ \prod_i (W_{oi} n_i + 1 - W_{oi}), \qquad
        n_i \sim U[l, h]

    Mistry, Farrahi & Hare (2022, arXiv 2211.05624). In evaluation it is the :class:`NMU`. At weights of 0 and
    1 the noise cancels, so a solution stays one; in between it does not, and the loss gets another slope.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        noise: where the noise comes from. ``"example"``: it is computed from the example's inputs, as whole
            multiples of 2**-40; it does not tell inputs of a magnitude of 2**23 and more apart. It looks
            random, but the same example always gets the same noise. So a training gives the same numbers
            whichever runs train beside it and after any interruption; its examples should not repeat.
            ``"fresh"``: torch's global generator, as in the authors' code, which the runs of an ensemble
            cannot have.
        low, high: bounds of the noise, l and h.
        clamp, init, init_scale, rounding: as in :class:`NMU`.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1, ``noise``, ``clamp``, ``init`` or ``rounding`` is unknown, ``low``
            is not positive or ``high`` is below it.

    Example:
        >>> import torch
        >>> from nalm.units import SNMU
        >>> unit, x = SNMU(2, 1), torch.tensor([[-5.0, 2.0]])
        >>> _ = torch.nn.init.constant_(unit.weight, 0.5)
        >>> bool(unit.train()(x) == unit.eval()(x))
        False
        >>> _ = torch.nn.init.ones_(unit.weight)
        >>> bool(unit.train()(x).isclose(unit.eval()(x)))
        True
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        noise: Noise = "example",
        low: float = 1.0,
        high: float = 5.0,
        clamp: NMUClamp = "step",
        init: NMUInit = "nmu",
        init_scale: float = 1.0,
        rounding: Rounding = "exact",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            clamp=clamp,
            init=init,
            init_scale=init_scale,
            rounding=rounding,
            device=device,
            dtype=dtype,
        )
        self.noise = one_of("noise", noise, get_args(Noise))
        self.low = number("low", low, low=torch.finfo(torch.float32).tiny)
        self.high = number("high", high, low=self.low)
        self._options |= {"noise": noise, "low": low, "high": high}

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        (weight,) = self.effective_weights()
        uniform = torch.rand_like(x) if self.noise == "fresh" else uniform_of(x)
        noise, exact = self.low + (self.high - self.low) * uniform, self.rounding == "exact"
        return identity_product(x * noise, weight, exact) / identity_product(noise, weight, exact)


def uniform_of(x: Tensor) -> Tensor:
    """A number of (0, 1) for each input, rounded to its dtype, which looks random and depends on all inputs
    of its example.

    Args:
        x: input ``(..., in)``; in it whole multiples of 2**-40 count, below a magnitude of 2**23.

    Returns:
        The tensor ``(..., in)`` without gradient.

    Example:
        >>> x = torch.tensor([[1.5, 2.0], [1.5, 2.0], [1.5, 2.0000002]])
        >>> u = uniform_of(x)
        >>> bool((u[0] == u[1]).all()), bool((u[0] == u[2]).any()), bool(((0 < u) & (u < 1)).all())
        (True, False, True)
    """
    whole = (x.detach().to(torch.float64) * 2.0**40).to(torch.int64)
    bits = (whole ^ (whole >> 32)) & _MASK
    places = torch.arange(1, x.shape[-1] + 1, device=x.device)
    # Each with its place, so that inputs that change places make another example.
    example = _mixed(_mixed(bits ^ (places * _INPUT & _MASK)).sum(-1, keepdim=True))
    words = _mixed(example + places * _NOISE)
    return (((words >> 9).to(torch.float32) + 0.5) * 2.0**-23).to(x.dtype)


def _mixed(word: Tensor) -> Tensor:
    """A permutation of the 32-bit words in which each bit depends on all; higher bits do not count.

    Wellons (2018), *Prospecting for Hash Functions*.
    """
    word = word & _MASK
    word = (word ^ (word >> 16)) * 0x7FEB352D & _MASK
    word = (word ^ (word >> 15)) * 0x846CA68B & _MASK
    return word ^ (word >> 16)
