r"""The gradient of a loss of the solution of many differential equations by the continuous adjoint.

With the states y of :math:`\dot y = f(y, \theta)` and a loss L of the states at times :math:`t_i`,

.. math::

    \dot\lambda = -J^T \lambda, \qquad
    \lambda(t_i^-) = \lambda(t_i^+) + \frac{\partial L}{\partial y(t_i)}, \qquad
    \frac{dL}{d\theta} = \int \lambda^T \frac{\partial f}{\partial \theta}\, dt

with :math:`J = \partial f / \partial y` and :math:`\lambda = 0` after the last time. Both are integrated from
there back to 0 by explicit Euler. Every :math:`t_i` ends a step, so the step to it may be a shorter one. The
states on the way are interpolated from those of the forward solution. That is what ``InterpolatingAdjoint``
of Julia's DiffEqSensitivity 6.14 does with ``Euler(), dt=step``. It is not the gradient of the discrete
solution; the two are apart by an amount of the order of the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.func import vjp

from nalm.training.compiler import Compiled, Eager
from nalm.training.ode.hager_zhang import HagerZhangEnsemble
from nalm.training.ode.rollout import Rollout
from nalm.training.stacked import Tensors

__all__ = ["AdjointEnsemble", "AdjointRollout", "backward_points"]


def backward_points(times: Tensor, step: float) -> Tensor:
    """Where the steps of the way back begin, the latest first, and 0, where the last one ends.

    Args:
        times: (times,) at which steps have to end, increasing and not negative.
        step: the length of all other steps.

    >>> backward_points(torch.tensor([0.0, 2.5, 3.5]), 1.0).tolist()
    [3.5, 2.5, 1.5, 0.5, 0.0]
    """
    ends = [0.0, *(time for time in times.tolist() if time > 0)]
    points = [
        high - step * number
        for low, high in zip(ends[-2::-1], ends[:0:-1], strict=True)
        for number in range(math.ceil((high - low) / step - 1e-9))
    ]
    return times.new_tensor([*points, 0.0])


class AdjointRollout:
    """As ``Rollout``, but the states at the times are differentiated by the
    adjoint equation. Those after all steps are not differentiated.

    Args:
        derivative: of (parameters, states (runs, points, entries)), with stacked parameters.
        path: the solution at :func:`backward_points`.
        points: these.
        times: (times,) at which states are asked for.
        wrap: compiles a function that is not differentiated, or leaves it.
    """

    def __init__(
        self, derivative: Callable, path: Rollout, points: Tensor, times: Tensor, wrap: type[Eager]
    ) -> None:
        self.path, self.lengths = path, points[:-1] - points[1:]
        self.shown = (points - times[:, None]).abs().argmin(1)

        def jacobian(parameters: Tensors, y: Tensor) -> Tensor:
            pull = vjp(lambda y: derivative(parameters, y), y)[1]
            rows = torch.eye(y.shape[-1], dtype=y.dtype, device=y.device)
            return torch.stack([pull(row.expand_as(y))[0] for row in rows], -2)

        def pulled(parameters: Tensors, y: Tensor, adjoint: Tensor) -> Tensors:
            return vjp(lambda p: derivative(p, y), parameters)[1](adjoint)[0]

        self._jacobian, self._pulled = wrap(jacobian), wrap(pulled)

    def __call__(self, parameters: Tensors, runs: int) -> tuple[Tensor, Tensor]:
        """The states (times, runs, entries), and those after each step, (steps + 1, runs, entries)."""
        return _Solution.apply(self, tuple(parameters), *parameters.values())

    def gradients(self, parameters: Tensors, on_the_way: Tensor, slopes: Tensor) -> Tensors:
        """The gradient of a loss of the states.

        Args:
            parameters: stacked.
            on_the_way: (points, runs, entries), the states at the backward points.
            slopes: (times, runs, entries), the gradient by the states at the times.
        """
        jumps: list[Any] = [None] * len(on_the_way)
        for point, slope in zip(self.shown.tolist(), slopes, strict=True):
            jumps[point] = slope[:, None]
        y = on_the_way[:-1].transpose(0, 1).contiguous()
        moves = self.lengths[:, None, None] * self._jacobian(parameters, y)
        adjoint, before_moves = torch.zeros_like(y[:, :1]), []
        for move, jump in zip(moves.unbind(1), jumps, strict=False):
            adjoint = adjoint if jump is None else adjoint + jump
            before_moves.append(adjoint)
            adjoint = torch.baddbmm(adjoint, adjoint, move)
        return self._pulled(parameters, y, self.lengths[:, None] * torch.cat(before_moves, 1))


class _Solution(torch.autograd.Function):
    """The states of a rollout, whose gradient by the parameters is that of the adjoint."""

    @staticmethod
    def forward(ctx: Any, rollout: AdjointRollout, names: tuple[str, ...], *parameters: Tensor) -> tuple:
        on_the_way, states = rollout.path(dict(zip(names, parameters, strict=True)), len(parameters[0]))
        ctx.rollout, ctx.names = rollout, names
        ctx.save_for_backward(on_the_way, *parameters)
        ctx.mark_non_differentiable(states)
        return on_the_way[rollout.shown], states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slopes: Tensor, _: Tensor) -> tuple:
        on_the_way, *parameters = ctx.saved_tensors
        named = dict(zip(ctx.names, parameters, strict=True))
        gradients = ctx.rollout.gradients(named, on_the_way, slopes)
        return None, None, *(gradients[name] for name in ctx.names)


class AdjointEnsemble(HagerZhangEnsemble):
    """As :class:`~nalm.training.ode.ensemble.NODEEnsemble`, for models that are
    :class:`~nalm.models.AdjointNODE`: the penalties are differentiated as they are, the mean squared error by
    ``AdjointRollout``. It takes both kinds of second stage.
    """

    def _rollout(self, times: Tensor, compiled: bool) -> Any:
        points = backward_points(times[:, 0], self.runs[0].model.step)  # type: ignore[union-attr]
        derivative = self.model.over_runs(
            lambda p, y: self.model.apply(lambda network: network.derivative(y), p, training=True), (0, 0)
        )
        path = super()._rollout(points[:, None], compiled)
        return AdjointRollout(
            derivative,
            path,
            points.to(self.device),
            times[:, 0].to(self.device),
            Compiled if compiled else Eager,
        )
