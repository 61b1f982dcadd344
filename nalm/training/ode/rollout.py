"""The solution of many differential equations at once, with fixed steps, several of them in one compiled
function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # noqa: F401 - named in a type comment

import torch
from torch import Tensor

from nalm.models.node import Method

__all__ = ["Rollout"]

Derivative = Callable[[Tensor], Tensor]

STEPS_AT_ONCE = {"euler": 10, "rk4": 3}
"""Steps in one compiled function: to call it costs about as much as the arithmetic of ten derivatives of
twenty small models.
"""


def _euler(f: Derivative, y: Tensor, step: float) -> tuple[Tensor, Tensor]:
    k1 = f(y)
    return y + step * k1, k1


def _rk4(f: Derivative, y: Tensor, step: float) -> tuple[Tensor, Tensor]:
    """Kutta's rule with 3/8, as torchdiffeq's ``rk4``."""
    k1 = f(y)
    k2 = f(y + step / 3 * k1)
    k3 = f(y + step * (k2 - k1 / 3))
    k4 = f(y + step * (k1 - k2 + k3))
    return y + step / 8 * (k1 + 3 * (k2 + k3) + k4), k1


_METHODS = {"euler": _euler, "rk4": _rk4}


class Rollout:
    """States at given times, as :class:`~nalm.models.ODENetwork` has them; the tests compare the two.

    Args:
        derivative: of (parameters, states (runs, entries)).
        initial_state: (entries,) float64, of all runs.
        times: (times,) float64, not negative.
        method, step: as in :class:`~nalm.models.ODENetwork`.
        wrap: compiles a function, or leaves it.

    Raises:
        ValueError: a step that does not divide the last time.
    """

    def __init__(
        self,
        derivative: Callable,
        initial_state: Tensor,
        times: Tensor,
        method: Method,
        step: float,
        wrap: Callable,
    ) -> None:
        at = times / step
        self.steps = max(1, round(float(at.max())))
        if abs(float(at.max()) - self.steps) > 1e-9 * self.steps:
            raise ValueError(
                f"The step of a NODE must divide the last time, {float(times.max()):g}, but it is {step:g}."
            )
        self.left = at.floor().clamp(max=self.steps - 1).long()
        self.share = (at - self.left)[:, None, None]
        self.initial_state, self.step = initial_state, step
        self._derivative = wrap(derivative)

        def several(parameters: dict[str, Tensor], state: Tensor, count: int) -> tuple[Tensor, Tensor]:
            states, derivatives = [], []
            for _ in range(count):
                following, slope = _METHODS[method](lambda y: derivative(parameters, y), state, step)
                states.append(state)
                derivatives.append(slope)
                state = following
            return torch.stack([*states, state]), torch.stack(derivatives)

        self._several, self._at_once = wrap(several), STEPS_AT_ONCE[method]

    def __call__(self, parameters: dict[str, Tensor], runs: int) -> tuple[Tensor, Tensor]:
        """The states (times, runs, entries), and those after each step, (steps + 1, runs, entries)."""
        states, slopes = [self.initial_state.expand(1, runs, -1)], []  # type: Any, Any
        while (done := sum(len(s) for s in slopes)) < self.steps:
            new, slope = self._several(parameters, states[-1][-1], min(self._at_once, self.steps - done))
            states.append(new[1:])
            slopes.append(slope)
        states = torch.cat(states)
        slopes = torch.cat([*slopes, self._derivative(parameters, states[-1])[None]])
        return self._interpolate(states, slopes), states

    def _interpolate(self, y: Tensor, slopes: Tensor) -> Tensor:
        """Between two steps, the cubic polynomial with the states and slopes at both (Hermite)."""
        u, left, right = self.share, self.left, self.left + 1
        d0, d1 = self.step * slopes[left], self.step * slopes[right]
        return (
            (1 + 2 * u) * (1 - u) ** 2 * y[left]
            + u * (1 - u) ** 2 * d0
            + u**2 * (3 - 2 * u) * y[right]
            + u**2 * (u - 1) * d1
        )
