"""A neural ordinary differential equation as a module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torchdiffeq import odeint

from nalm.units.functional import clamped

__all__ = ["Method", "ODENetwork"]

Method = Literal["euler", "rk4"]


class ODENetwork(nn.Module):
    """The solution of y' = field(y) from a fixed initial state, by torchdiffeq with fixed steps and cubic interpolation between them.

    Args:
        field: module from (..., entries) to (..., entries).
        initial_state: y at time 0.
        method: ``"euler"`` or ``"rk4"``, torchdiffeq's (Kutta's rule with 3/8).
        step: length of a step.
        positive: the field sees negative entries of the state as 0.

    Shapes: times (n, 1), increasing -> states (n, entries), in 64 bits.

    >>> model = ODENetwork(nn.Linear(1, 1, bias=False).double(), [1.0], "rk4", step=0.1)
    >>> _ = nn.init.constant_(model.field.weight, -1.0)
    >>> model(torch.tensor([[0.0], [1.0]])).detach()
    tensor([[1.0000],
            [0.3679]], dtype=torch.float64)
    """

    def __init__(self, field: nn.Module, initial_state: Sequence[float], method: Method, step: float, positive: bool = False) -> None:
        super().__init__()
        self.field, self.initial_state, self.method, self.step, self.positive = field, tuple(initial_state), method, step, positive

    def forward(self, times: Tensor) -> Tensor:
        start = torch.tensor(self.initial_state, dtype=torch.float64, device=times.device)
        asked = times[:, 0].double()
        later = asked > 0
        options = {"step_size": self.step, "interp": "cubic"}
        from_start = torch.cat([asked.new_zeros(1), asked[later]])
        states = odeint(lambda t, state: self.derivative(state), start, from_start, method=self.method, options=options)
        return torch.cat([start.expand(int((~later).sum()), -1), states[1:]])

    def derivative(self, state: Tensor) -> Tensor:
        """The right-hand side at a state (..., entries)."""
        return self.field(clamped(state, low=0) if self.positive else state)
