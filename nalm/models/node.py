"""Neural ordinary differential equations: a run's model as a value, and its module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, model_validator
from torch import Tensor, nn

from nalm.models.stack import Layer
from nalm.units.functional import clamped
from nalm.values import Value

__all__ = ["NODE", "AdjointNODE", "Method", "ODENetwork"]

Method = Literal["euler", "rk4"]


class NODE(Value):
    """A neural ordinary differential equation: the units are the right-hand side, the output is the state at
    the times asked for.

    Args:
        layers: of the right-hand side, from the state to its derivative.
        initial_state: the state at time 0.
        method: ``"euler"`` or ``"rk4"``, both with fixed steps.
        step: their length. Times between two steps are interpolated by a cubic polynomial.
        positive: the right-hand side sees negative entries of the state as 0.
        imaginary_until: iterations after which imaginary weights stay as they are; ``None``: they are always
            trained.

    Computes in 64 bits. No weight is held within bounds while it is trained (:func:`nalm.units.project_`),
    neither here nor in the authors' code.

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
            raise ValueError(
                f"The last layer of a NODE must have as many outputs as the state has entries, {size}."
            )
        return self

    def build(self, in_features: int) -> ODENetwork:
        """A module with fresh weights from torch's global generator."""
        sizes = [len(self.initial_state), *(layer.out_features for layer in self.layers)]
        units = [layer.build(size) for layer, size in zip(self.layers, sizes, strict=False)]
        field = nn.Sequential(*units).double()
        return ODENetwork(field, self.initial_state, self.method, self.step, self.positive)


class AdjointNODE(NODE):
    """A :class:`NODE` that is trained with the gradient of the continuous adjoint, as Julia's DiffEqFlux 1.10
    does by default, in place of that of its discrete solution.

    The adjoint equation is solved backwards in time with the same method and step.

    >>> layers = (Layer(unit="RealNPU", out_features=6), Layer(unit="NAU", out_features=3))
    >>> AdjointNODE(layers=layers, initial_state=(100.0, 0.01, 0.0)).step
    1.0
    """

    kind: Literal["AdjointNODE"] = "AdjointNODE"  # type: ignore[assignment]
    method: Literal["euler"] = "euler"


class ODENetwork(nn.Module):
    """The solution of y' = field(y) from a fixed initial state, by torchdiffeq with fixed steps and cubic
    interpolation between them.

    Args:
        field: module from (..., entries) to (..., entries).
        initial_state: y at time 0.
        method: ``"euler"`` or ``"rk4"``, torchdiffeq's (Kutta's rule with 3/8).
        step: length of a step.
        positive: the field sees negative entries of the state as 0.

    Shapes: times (n, 1), from 0 on and strictly increasing -> states (n, entries), in 64 bits.

    >>> model = ODENetwork(nn.Linear(1, 1, bias=False).double(), [1.0], "rk4", step=0.1)
    >>> _ = nn.init.constant_(model.field.weight, -1.0)
    >>> model(torch.tensor([[0.0], [1.0]])).detach()
    tensor([[1.0000],
            [0.3679]], dtype=torch.float64)
    """

    def __init__(
        self,
        field: nn.Module,
        initial_state: Sequence[float],
        method: Method,
        step: float,
        positive: bool = False,
    ) -> None:
        super().__init__()
        self.field, self.initial_state, self.method, self.step, self.positive = (
            field,
            tuple(initial_state),
            method,
            step,
            positive,
        )

    def forward(self, times: Tensor) -> Tensor:
        from torchdiffeq import odeint

        start = torch.tensor(self.initial_state, dtype=torch.float64, device=times.device)
        asked = times[:, 0].double()
        later = asked > 0
        options = {"step_size": self.step, "interp": "cubic"}
        from_start = torch.cat([asked.new_zeros(1), asked[later]])
        states = odeint(
            lambda t, state: self.derivative(state), start, from_start, method=self.method, options=options
        )
        return torch.cat([start.expand(int((~later).sum()), -1), states[1:]])

    def derivative(self, state: Tensor) -> Tensor:
        """The right-hand side at a state (..., entries)."""
        return self.field(clamped(state, low=0) if self.positive else state)
