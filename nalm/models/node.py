"""Neural ordinary differential equations, as a value."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveFloat, model_validator
from torch import nn

from nalm.dynamics.network import ODENetwork
from nalm.models.stack import Layer
from nalm.values import Value

__all__ = ["NODE"]


class NODE(Value):
    """A neural ordinary differential equation: the units are the right-hand side, the output is the state at the times asked for.

    Args:
        layers: of the right-hand side, from the state to its derivative.
        initial_state: the state at time 0.
        method: ``"euler"`` or ``"rk4"``, both with fixed steps.
        step: their length. Times between two steps are interpolated by a cubic polynomial.
        positive: the right-hand side sees negative entries of the state as 0.
        imaginary_until: iterations after which imaginary weights stay as they are; ``None``: they are always trained.

    Computes in 64 bits.

    >>> layers = (Layer(unit="RealNPU", out_features=6), Layer(unit="NAU", out_features=3))
    >>> model = NODE(layers=layers, initial_state=(100.0, 0.01, 0.0)).build(1)
    >>> import torch
    >>> model(torch.tensor([[0.0], [5.0]])).shape
    torch.Size([2, 3])
    """

    kind: Literal["NODE"] = "NODE"
    layers: tuple[Layer, ...]
    initial_state: tuple[float, ...]
    method: Literal["euler", "rk4"] = "euler"
    step: PositiveFloat = 1.0
    positive: bool = False
    imaginary_until: NonNegativeInt | None = None
    one_by_one: ClassVar[bool] = False
    recorded: ClassVar[str] = ""  # all parameters

    @model_validator(mode="after")
    def _fits(self) -> NODE:
        size = len(self.initial_state)
        if not self.layers or self.layers[-1].out_features != size:
            raise ValueError(f"The last layer of a NODE must have as many outputs as the state has entries, {size}.")
        return self

    def build(self, in_features: int) -> ODENetwork:
        """A module with fresh weights from torch's global generator."""
        sizes = [len(self.initial_state), *(layer.out_features for layer in self.layers)]
        units = [layer.build(size) for layer, size in zip(self.layers, sizes, strict=False)]
        field = nn.Sequential(*units).double()
        return ODENetwork(field, self.initial_state, self.method, self.step, self.positive)
