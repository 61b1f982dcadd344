"""Optimisers for many runs at once: elementwise updates with one learning rate per run.

``torch.optim`` knows one learning rate per parameter tensor, but a stacked tensor holds many runs. The
updates are those of ``torch.optim`` (the tests compare them), except where the docstring says otherwise.
State: a dict of tensors per slot, shaped like the parameters.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from nalm.values import Value

__all__ = ["LBFGS", "SGD", "Adam", "HagerZhangLBFGS", "Optimiser", "RMSProp"]


class Adam(Value):
    """Adam (Kingma and Ba, 2015, Algorithm 1), with the defaults of the paper and of torch.

    >>> Adam(lr=0.001).slots
    ('mean', 'square')
    """

    kind: Literal["Adam"] = "Adam"
    lr: PositiveFloat
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.999
    eps: NonNegativeFloat = 1e-8

    @property
    def slots(self) -> tuple[str, ...]:
        return ("mean", "square")

    def update(
        self, parameter: Tensor, gradient: Tensor, state: tuple[Tensor, ...], lr: Tensor, step: Tensor
    ) -> tuple[Tensor, ...]:
        mean, square = state
        mean = self.beta1 * mean + (1 - self.beta1) * gradient
        square = self.beta2 * square + (1 - self.beta2) * gradient * gradient
        t = (step + 1).to(torch.float64)  # 1 - beta2**t needs more than float32 while t is small
        correction1 = (1 - self.beta1**t).to(parameter.dtype)
        correction2 = (1 - self.beta2**t).to(parameter.dtype)
        change = (mean / correction1) / ((square / correction2).sqrt() + self.eps)
        return parameter - lr * change, mean, square


class SGD(Value):
    """Stochastic gradient descent without momentum."""

    kind: Literal["SGD"] = "SGD"
    lr: PositiveFloat

    @property
    def slots(self) -> tuple[str, ...]:
        return ()

    def update(
        self, parameter: Tensor, gradient: Tensor, state: tuple[Tensor, ...], lr: Tensor, step: Tensor
    ) -> tuple[Tensor, ...]:
        return (parameter - lr * gradient,)


class RMSProp(Value):
    """RMSProp as in Julia's Flux 0.10, which made the numbers of the NPU paper: decay 0.9 (torch:
    ``alpha=0.99``), eps after the root.
    """

    kind: Literal["RMSProp"] = "RMSProp"
    lr: PositiveFloat
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.9
    eps: NonNegativeFloat = 1e-8

    @property
    def slots(self) -> tuple[str, ...]:
        return ("square",)

    def update(
        self, parameter: Tensor, gradient: Tensor, state: tuple[Tensor, ...], lr: Tensor, step: Tensor
    ) -> tuple[Tensor, ...]:
        square = self.decay * state[0] + (1 - self.decay) * gradient * gradient
        return parameter - lr * gradient / (square.sqrt() + self.eps), square


class LBFGS(Value):
    """L-BFGS with a strong-Wolfe line search, on a loss that is the same in every iteration; finishes what a
    first-order optimiser began.

    Args:
        iterations: at most so many.
        memory: pairs of steps and gradient differences that are kept.
        gradient_tolerance: it ends when no entry of the gradient is larger.

    >>> LBFGS().iterations
    1000
    """

    kind: Literal["LBFGS"] = "LBFGS"
    iterations: PositiveInt = 1000
    memory: PositiveInt = 10
    gradient_tolerance: PositiveFloat = 1e-8


class HagerZhangLBFGS(LBFGS):
    """L-BFGS with the line search of Hager and Zhang (2005), as Julia's Optim 0.21 has it: it ends with the
    first line search that fails and keeps the last parameters, not the best ones. Where losses and slopes
    contradict each other, it keeps those with which it began.

    The defaults are Optim's.

    >>> HagerZhangLBFGS().memory
    10
    """

    kind: Literal["HagerZhangLBFGS"] = "HagerZhangLBFGS"  # type: ignore[assignment]


Optimiser = Adam | SGD | RMSProp
