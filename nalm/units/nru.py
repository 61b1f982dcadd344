"""Neural reciprocal units."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from nalm.units import init as initial
from nalm.units.checks import boolean, number, one_of
from nalm.units.functional import (
    Rounding,
    clamped,
    distance,
    identity_product,
    phase,
    product,
    selected,
    weighted_sum,
)
from nalm.units.unit import Device, Unit

NMRUGate = Literal["zero", "identity"] | None
Power = Literal["exp-log", "pow"]

TANH_SCALE = 1000.0
"""Steepness of the smooth absolute value in the NRU (Mistry et al., 2022, below Eq. 4)."""


class NRU(Unit):
    r"""The neural reciprocal unit: a product in which each input counts as itself, its reciprocal or 1.

    .. math::

        y_o = \prod_i \bigl(\operatorname{sign}(x_i)\, |x_i|^{W_{oi}} A_{oi} + 1 - A_{oi}\bigr), \qquad
        A = \begin{cases} \tanh(1000\, W)^2 & \text{in training} \\ |W| & \text{in evaluation} \end{cases}

    Mistry et al. (2022), Eq. 4. With ``separate_sign`` (their Eq. 11)

    .. math::

        y_o = \prod_i \bigl(|x_i|^{W_{oi}} A_{oi} + 1 - A_{oi}\bigr)
              \prod_i \operatorname{sign}(x_i)^{\operatorname{round}(W_{oi})}.

    The weight is held in [-1, 1] by :meth:`project_` and pulled to {-1, 0, 1} by :meth:`penalty`. There is
    no epsilon: in evaluation an input of 0 under a negative weight has no finite power.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        separate_sign: compute the sign apart from the magnitude; it then has no gradient.
        rounding: how a factor :math:`v A + 1 - A` is rounded. ``"exact"``: as :math:`v A + (1 - A)`, which
            is v where A is 1, as in the authors' code; ``"sequential"``: from left to right, which loses the
            digits of v below the rounding of 1. They differ for values near zero.
        power: how :math:`|x|^W` is computed in training. ``"exp-log"``: as :math:`\exp(W \log |x|)`, more
            than twice as fast, with finite gradients at 0, which counts as the smallest normal number
            (not with ``separate_sign``, where the sign of 0 has no power below zero);
            ``"pow"``: by :func:`torch.pow`, as in evaluation and in the authors' code, which loses fewer
            digits of large powers.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``, initially U[-r, r], r = min(0.5, sqrt(6 / (in + out)))

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``rounding`` or ``power`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import NRU
        >>> unit = NRU(3, 1).eval()
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0, 0.0]]))
        >>> unit(torch.tensor([-3.0, 2.0, 9.0])).detach()
        tensor([-1.5000])
    """

    discrete_values = {"weight": (-1, 0, 1)}

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        separate_sign: bool = False,
        rounding: Rounding = "exact",
        power: Power = "exp-log",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            separate_sign=separate_sign,
            rounding=rounding,
            power=power,
        )
        self.separate_sign = boolean("separate_sign", separate_sign)
        self.rounding = one_of("rounding", rounding, get_args(Rounding))
        self.power = one_of("power", power, get_args(Power))
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, "capped-glorot")

    def powers(self, magnitude: Tensor) -> Tensor:
        """The powers ``(..., out, in)`` of the magnitudes ``(..., 1, in)``."""
        if not self.training or self.power == "pow":
            return torch.pow(magnitude, self.weight)
        return torch.exp(self.weight * torch.log(clamped(magnitude, low=torch.finfo(magnitude.dtype).tiny)))

    def forward(self, x: Tensor) -> Tensor:
        # The smooth |W| has a gradient at 0, but lets every |W| > 0.003 count in full: a run's training loss
        # and its validation error agree only once the weight is discrete.
        select = torch.tanh(TANH_SCALE * self.weight).square() if self.training else torch.abs(self.weight)
        powers = self.powers(torch.abs(x).unsqueeze(-2))
        # Detached: neither sign nor round has a gradient, and autograd would take the logarithm of -1 first.
        sign = torch.sign(x).detach().unsqueeze(-2)
        exact = self.rounding == "exact"
        if not self.separate_sign:
            return product(selected(sign * powers, select, exact))
        signs = torch.pow(sign, torch.round(self.weight).detach())
        return product(selected(powers, select, exact)) * product(signs)


class NMRU(Unit):
    r"""The neural multiplicative reciprocal unit: an NMU on the inputs and their reciprocals.

    .. math::

        y_o = \prod_{j=1}^{2I} (W_{oj} |c_j| + 1 - W_{oj}) \cdot \cos\Bigl(\sum_{j=1}^{2I} W_{oj} k_j\Bigr),
        \qquad c = [x, 1 / x], \qquad k_j = \begin{cases} 0 & c_j \ge 0 \\ \pi & c_j < 0 \end{cases}

    Mistry et al. (2022), Eq. 5. The weight is held in [0, 1] by :meth:`project_` and pulled to {0, 1} by
    :meth:`penalty`. In evaluation an input of 0 has no finite reciprocal: the output is infinite, or NaN
    where that reciprocal is not selected.

    Args:
        in_features: number of inputs, I.
        out_features: number of outputs.
        sign: recover the sign by the cosine; without it :math:`y_o = \prod_j (W_{oj} c_j + 1 - W_{oj})`, on
            signed values (the authors' vanilla NMRU).
        gate: a gate of length 2I on c, from 0.5, or None. ``"zero"``, the authors' code: :math:`g_j c_j`
            takes the place of :math:`c_j`, a gate of 0 makes the entry 0. ``"identity"``: as in the NPU,
            :math:`g_j |c_j| + 1 - g_j` takes the place of :math:`|c_j|` (without ``sign`` the same of
            :math:`c_j`) and :math:`g_j k_j` that of :math:`k_j`, a gate of 0 makes the entry 1.
        gate_share: weight of the gate's term in :meth:`penalty` beside the weight's: the authors multiply the
            one by 1 and the other by 10.
        eps: in training the reciprocal is :math:`1 / (x + \epsilon)`, with the signed x as in the authors'
            code; None for the machine epsilon of the input's dtype. In evaluation it is exact.
        rounding: how a factor is rounded, ``"exact"`` or ``"sequential"``, as in :class:`NRU`; the authors'
            code rounds from left to right.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, 2 * in_features)``, initially U[0.25, 0.75]; the first half
          multiplies, the second divides
        - ``gate``: ``(2 * in_features,)`` or None

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1, ``gate`` or ``rounding`` is unknown, or ``gate_share`` or ``eps``
            is negative.

    Example:
        >>> import torch
        >>> from nalm.units import NMRU
        >>> unit = NMRU(2, 1).eval()
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
        >>> unit(torch.tensor([-3.0, 2.0])).detach()
        tensor([-1.5000])
    """

    gate: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        sign: bool = True,
        gate: NMRUGate = None,
        gate_share: float = 0.1,
        eps: float | None = None,
        rounding: Rounding = "exact",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            sign=sign,
            gate=gate,
            gate_share=gate_share,
            eps=eps,
            rounding=rounding,
        )
        self.sign = boolean("sign", sign)
        self.gate_to = one_of("gate", gate, ("zero", "identity", None))
        self.gate_share = number("gate_share", gate_share, low=0.0)
        self.eps = None if eps is None else number("eps", eps, low=0.0)
        self.rounding = one_of("rounding", rounding, get_args(Rounding))
        self.discrete_values = {"weight": (0, 1)} if gate is None else {"weight": (0, 1), "gate": (0, 1)}
        self.weight = self.new_weight(2 * self.in_features)
        self.register_parameter("gate", None if gate is None else self.new_parameter(2 * self.in_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, "nmu")
        if self.gate is not None:
            nn.init.constant_(self.gate, 0.5)

    def _half(self, c: Tensor, weight: Tensor, gate: Tensor | None) -> tuple[Tensor, Tensor]:
        """Product and angle ``(..., out)`` of one half of c; without ``sign`` the product is signed."""
        if self.gate_to == "zero":
            c = gate * c  # type: ignore[operator]
        magnitude, k = torch.abs(c) if self.sign else c, phase(c)
        if self.gate_to == "identity":
            magnitude, k = gate * magnitude + (1 - gate), gate * k  # type: ignore[operator]
        return identity_product(magnitude, weight, self.rounding == "exact"), weighted_sum(k, weight)

    def forward(self, x: Tensor) -> Tensor:
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        reciprocal = 1 / (x + eps) if self.training else 1 / x
        weights = self.weight.chunk(2, dim=-1)
        gates = (None, None) if self.gate is None else self.gate.chunk(2)
        # The two halves of c are never concatenated: apart, they fuse into one loop when compiled.
        product_x, angle_x = self._half(x, weights[0], gates[0])
        product_r, angle_r = self._half(reciprocal, weights[1], gates[1])
        y = product_x * product_r
        return y * torch.cos(angle_x + angle_r) if self.sign else y

    def penalty(self) -> Tensor:
        """Mean distance of the weight from {0, 1}, and ``gate_share`` times that of the gate."""
        total = distance(self.weight, (0, 1)).mean()
        return total if self.gate is None else total + self.gate_share * distance(self.gate, (0, 1)).mean()
