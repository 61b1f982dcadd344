"""The mass-conserving fully connected layer."""

import torch
from torch import Tensor, nn

from nalm.units import init as initial
from nalm.units.checks import boolean, number
from nalm.units.functional import weighted_sum
from nalm.units.unit import Device, Unit


class MCFC(Unit):
    r"""The mass-conserving fully connected layer, MC-FC: an input is a mass that outputs share.

    .. math::

        y = o \odot R x, \qquad R_{oi} = \frac{\exp(B_{oi})}{\sum_{o'} \exp(B_{o'i})}, \qquad o = \sigma(b)

    and with ``multiply``, where the masses are logarithms and the sign of the input is lost,

    .. math::

        y = \exp\bigl(o \odot R \log(|x| + \epsilon) + c\bigr).

    Hoedt et al. (2021, arXiv 2101.05186), with the product as in their code. There the logarithm is that of x
    itself, which negative inputs do not have, and the gate is :math:`\sigma(w + b)` with a second parameter w
    that does the same. The shares of an input sum to 1, so it can be left out only where another output takes
    its share: with one output R is 1 throughout. The authors multiply with one more output than they use.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        multiply: multiply instead of add.
        eps: :math:`\epsilon`, added to the magnitudes.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight`` (B): ``(out_features, in_features)``, initially Glorot uniform; theirs is orthogonal
        - ``gate_bias`` (b): ``(out_features,)``, initially zero
        - ``bias`` (c): ``(out_features,)``, initially zero, or None without ``multiply``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``eps`` is negative.

    Example:
        >>> import torch
        >>> from nalm.units import MCFC
        >>> unit = MCFC(3, 2)
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[40.0, 40.0, 0.0], [0.0, 0.0, 40.0]]))
        ...     _ = unit.gate_bias.fill_(40.0)
        >>> unit(torch.tensor([5.0, 2.0, 9.0])).detach()
        tensor([7., 9.])
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        multiply: bool = False,
        eps: float = 1e-7,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, device=device, dtype=dtype, multiply=multiply, eps=eps)
        self.multiply = boolean("multiply", multiply)
        self.eps = number("eps", eps, low=0.0)
        self.weight = self.new_weight()
        self.gate_bias = self.new_parameter(self.out_features)
        self.register_parameter("bias", self.new_parameter(self.out_features) if multiply else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, "glorot")
        nn.init.zeros_(self.gate_bias)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The shares behind the gate, :math:`o_o R_{oi}`."""
        return (torch.sigmoid(self.gate_bias).unsqueeze(-1) * torch.softmax(self.weight, -2),)

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        if self.bias is None:
            return weighted_sum(x, weight)
        return torch.exp(weighted_sum(torch.log(torch.abs(x) + self.eps), weight) + self.bias)
