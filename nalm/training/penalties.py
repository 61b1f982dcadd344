"""Penalties that are added to the data loss, each with its schedule.

A penalty is a coefficient, which depends on the iteration and on numbers that may differ between the runs of
an ensemble, times a value, which depends on the model alone. A weight of 0 switches a penalty off, so runs
with and without it can share an ensemble.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor, nn

from nalm.units import penalty
from nalm.values import Value

__all__ = ["ActivationPenalty", "Discretisation", "L1", "Norms", "Penalty"]

Numbers = dict[str, float]
Tensors = dict[str, Tensor]


class Discretisation(Value):
    r"""The units' own penalty towards discrete weights,
    :math:`\hat\lambda \cdot \mathrm{clip}((t - s)/(e - s), 0, 1) \cdot R`.

    ``R`` is the sum over the layers of each unit's ``penalty()``; the ramp goes from iteration ``start`` to
    ``end`` and stays at one after it. (nau-nmu paper, Eq. 6 and 14; division paper, Eq. 10.)

    >>> Discretisation(weight=10.0, start=20_000, end=35_000).numbers()
    {'weight': 10.0, 'start': 20000.0, 'end': 35000.0}
    """

    kind: Literal["Discretisation"] = "Discretisation"
    weight: NonNegativeFloat
    start: NonNegativeInt
    end: PositiveInt

    @model_validator(mode="after")
    def _ordered(self) -> Discretisation:
        if self.end <= self.start:
            raise ValueError(
                "Discretisation: the ramp must end after it starts, "
                f"but start={self.start} and end={self.end}."
            )
        return self

    def numbers(self) -> Numbers:
        return {"weight": self.weight, "start": float(self.start), "end": float(self.end)}

    @staticmethod
    def coefficient(n: Tensors, step: Tensor) -> Tensor:
        return n["weight"] * ((step - n["start"]) / (n["end"] - n["start"])).clamp(0, 1)

    @staticmethod
    def value(model: nn.Module) -> Tensor:
        return penalty(model)


class _Growing(Value):
    """A coefficient that starts at ``start`` and is multiplied by ``growth`` every ``every`` iterations while
    it is below ``end``.
    """

    start: PositiveFloat
    end: PositiveFloat
    every: PositiveInt = 10_000
    growth: float = Field(10.0, gt=1)

    @model_validator(mode="after")
    def _ordered(self) -> _Growing:
        if self.end < self.start:
            raise ValueError(
                f"{type(self).__name__}: end must be at least start, "
                f"but start={self.start} and end={self.end}."
            )
        return self

    def numbers(self) -> Numbers:
        times = math.ceil(math.log(self.end / self.start) / math.log(self.growth) - 1e-9)
        return {
            "weight": self.start,
            "times": float(times),
            "every": float(self.every),
            "growth": math.log(self.growth),
        }

    @staticmethod
    def coefficient(n: Tensors, step: Tensor) -> Tensor:
        return n["weight"] * (n["growth"] * torch.minimum((step / n["every"]).floor(), n["times"])).exp()


class L1(_Growing):
    r"""The growing :math:`\beta \sum_p \lVert p \rVert_1` of the NPU papers, over all parameters, gates
    included.

    >>> L1(start=1e-9, end=1e-7).numbers()["times"]
    2.0
    """

    kind: Literal["L1"] = "L1"

    @staticmethod
    def value(model: nn.Module) -> Tensor:
        return sum(parameter.abs().sum() for parameter in model.parameters())  # type: ignore[return-value]


class Norms(_Growing):
    r"""As :class:`L1` with the sum of the Euclidean norms of the parameter tensors,
    :math:`\beta \sum_p \lVert p \rVert_2`, not squared.

    The division paper's "L2" (Fig. 14); also what the NPU authors' code computes where their paper says L1
    (large-scale task). The gradient at a tensor of zeros is zero.
    """

    kind: Literal["Norms"] = "Norms"

    @staticmethod
    def value(model: nn.Module) -> Tensor:
        squares = [parameter.square().sum() for parameter in model.parameters()]
        return sum(torch.where(s > 0, s, 1.0).sqrt() * (s > 0) for s in squares)  # type: ignore[return-value]


class ActivationPenalty(Value):
    """A constant weight times the penalty that a model computes from its activations (the nau-nmu paper's R_z
    on digit sequences).

    The model must offer ``forward_with_activation_penalty(x) -> (output, penalty)``.
    """

    kind: Literal["ActivationPenalty"] = "ActivationPenalty"
    weight: NonNegativeFloat

    def numbers(self) -> Numbers:
        return {"weight": self.weight}

    @staticmethod
    def coefficient(n: Tensors, step: Tensor) -> Tensor:
        return n["weight"]


Penalty = Discretisation | L1 | Norms | ActivationPenalty
