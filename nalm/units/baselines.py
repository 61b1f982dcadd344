"""Ordinary dense layers, for comparison."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from nalm.units import init as initial
from nalm.units.checks import boolean, number, one_of
from nalm.units.functional import weighted_sum
from nalm.units.unit import Device, Unit

Activation = Literal["sigmoid", "tanh", "relu", "relu6", "identity"]
DenseInit = Literal["glorot", "he"]

ACTIVATIONS = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "relu6": nn.functional.relu6,
    "identity": lambda x: x,
}


class Dense(Unit):
    r"""A dense layer with an activation.

    .. math::

        y = \phi(W x + b)

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        activation: :math:`\phi`: ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"relu6"`` or ``"identity"``.
        bias: whether there is a bias; it starts at zero.
        init: initial distribution of the weight: ``"glorot"`` (uniform) or ``"he"`` (uniform, gain of ReLU).
        init_scale: factor on the initial weight.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``; ``bias``: ``(out_features,)`` or None

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``activation`` or ``init`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import Dense
        >>> unit = Dense(2, 1, activation="relu")
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0]]))
        >>> unit(torch.tensor([[3.0, 2.0], [2.0, 3.0]])).detach()
        tensor([[1.],
                [0.]])
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        activation: Activation = "sigmoid",
        bias: bool = True,
        init: DenseInit = "glorot",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            activation=activation,
            bias=bias,
            init=init,
            init_scale=init_scale,
        )
        self.activation = one_of("activation", activation, get_args(Activation))
        self.init = one_of("init", init, get_args(DenseInit))
        self.init_scale = number("init_scale", init_scale)
        self.weight = self.new_weight()
        has_bias = boolean("bias", bias)
        self.register_parameter("bias", self.new_parameter(self.out_features) if has_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, self.init, self.init_scale)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        y = weighted_sum(x, self.weight)
        return ACTIVATIONS[self.activation](y if self.bias is None else y + self.bias)


class Linear(Dense):
    r"""The affine layer :math:`y = W x + b`: Glorot uniform weight, zero bias.

    The baseline "Linear" of Madsen & Johansen (2020), whose paper does not mention its bias.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        bias: whether there is a bias.
        device, dtype: of the parameters, as in torch's own layers.

    Example:
        >>> import torch
        >>> from nalm.units import Linear
        >>> unit = Linear(2, 1, bias=False)
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0]]))
        >>> unit(torch.tensor([3.0, 2.0])).detach()
        tensor([1.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, activation="identity", bias=bias, device=device, dtype=dtype
        )


class ReLU(Dense):
    r"""The layer :math:`y = \max(W x + b, 0)`: He uniform weight, zero bias.

    The first layer of the baseline "ReLU" of Madsen & Johansen (2020).

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        bias: whether there is a bias.
        device, dtype: of the parameters, as in torch's own layers.

    Example:
        >>> import torch
        >>> from nalm.units import ReLU
        >>> unit = ReLU(2, 1)
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0]]))
        >>> unit(torch.tensor([2.0, 3.0])).detach()
        tensor([0.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, activation="relu", bias=bias, init="he", device=device, dtype=dtype
        )


class ReLU6(Dense):
    r"""The layer :math:`y = \min(\max(W x + b, 0), 6)`: He uniform weight, zero bias.

    The first layer of the baseline "ReLU6" of Madsen & Johansen (2020).

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        bias: whether there is a bias.
        device, dtype: of the parameters, as in torch's own layers.

    Example:
        >>> import torch
        >>> from nalm.units import ReLU6
        >>> unit = ReLU6(2, 1)
        >>> with torch.no_grad():
        ...     _ = unit.weight.fill_(1.0)
        >>> unit(torch.tensor([4.0, 3.0])).detach()
        tensor([6.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, activation="relu6", bias=bias, init="he", device=device, dtype=dtype
        )
