"""Subset arithmetic of the nau-nmu paper: an operation on the sums of two overlapping subsets."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from nalm.tasks.arithmetic import OperandTask
from nalm.tasks.operations import Operation, operation
from nalm.tasks.ranges import Range, Uniform
from nalm.tasks.task import Tensors

__all__ = ["SubsetArithmeticTask", "TenParameterTask"]


class SubsetArithmeticTask(OperandTask):
    """y = op(a, b) where a and b sum two adjacent subsets of the inputs that share a part.

    Args:
        operation: see :data:`nalm.tasks.OPERATIONS`.
        interpolation: training and validation range, U[1, 2) in the paper.
        extrapolation: test range, U[2, 6) in the paper.
        inputs: number of inputs.
        subset_ratio: size of each subset as a fraction of the inputs (rounded down).
        overlap_ratio: shared inputs as a fraction of the *subset* (rounded down); the paper's Algorithm 1
            reads as a fraction of the inputs.

    The position of the subsets is one integer per seed, fixed for the whole run (the algorithm as printed
    would draw a real number per example). Source: nau-nmu paper, section 4.1 and appendix C.

    >>> task = SubsetArithmeticTask(operation="mul")
    >>> task.operands(seed=0).sum(1), int((task.operands(seed=0).sum(0) == 2).sum())
    (array([25., 25.]), 12)
    """

    kind: Literal["SubsetArithmeticTask"] = "SubsetArithmeticTask"
    interpolation: Uniform = Uniform(low=1.0, high=2.0)
    extrapolation: Range = Uniform(low=2.0, high=6.0)
    inputs: PositiveInt = 100
    subset_ratio: float = Field(0.25, gt=0, le=1)
    overlap_ratio: float = Field(0.5, ge=0, le=1)

    @property
    def in_features(self) -> int:
        return self.inputs

    def sizes(self) -> tuple[int, int]:
        """Inputs per subset and shared inputs."""
        subset = int(self.subset_ratio * self.inputs)
        return subset, int(self.overlap_ratio * subset)

    def structure(self) -> tuple:
        # float64 targets are a product with the operands, whatever their sizes
        return *super().structure(), *(() if self.targets == "float64" else self.sizes())

    def constants(self, seed: int) -> Tensors:
        if self.targets == "float64":
            return super().constants(seed)
        return self.interpolation.numbers(self.inputs) | {"offset": torch.tensor(self.offset(seed))}

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        if self.targets == "float64":  # holds sums of a range's float32 numbers exactly: in any order
            return super().batch(noise, constants, shared)
        x, (subset, overlap) = self.interpolation.transform(noise, constants), self.sizes()
        # Two slices are summed. A product with the operands would cost as much again as a first layer of two
        # outputs.
        used = x[constants["offset"] + torch.arange(2 * subset - overlap, device=x.device)]
        a, b = used[:subset].sum(0), used[subset - overlap :].sum(0)
        return x.mT, operation(self.operation)(a, b).unsqueeze(-1)

    def place(self, generator: np.random.RandomState) -> int:
        subset, overlap = self.sizes()
        return int(generator.randint(0, self.inputs - 2 * subset + overlap + 1))

    def offset(self, seed: int) -> int:
        """Where the first subset of the run with this seed begins.

        Raises:
            ValueError: subsets that are empty or need more inputs than there are.
        """
        subset, overlap = self.sizes()
        used = 2 * subset - overlap
        if subset < 1 or used > self.inputs:
            raise ValueError(
                f"Two subsets of {subset} inputs that share {overlap} need 1 to {self.inputs} inputs, "
                f"but use {used}: "
                "choose another subset_ratio or overlap_ratio."
            )
        return self.place(np.random.RandomState(seed))

    def operands(self, seed: int) -> np.ndarray:
        offset, (subset, overlap) = self.offset(seed), self.sizes()
        operands = np.zeros((2, self.inputs))
        operands[0, offset : offset + subset] = 1.0
        operands[1, offset + subset - overlap : offset + 2 * subset - overlap] = 1.0
        return operands


class TenParameterTask(OperandTask):
    """The function with ten parameters, y = (x1 + x2 + x3 + x4) * (x1 + x2): 4 inputs, no random position.

    Source: nau-nmu paper, section 1.1 and Table 1.

    >>> TenParameterTask().operands(seed=7)
    array([[1., 1., 1., 1.],
           [1., 1., 0., 0.]])
    """

    kind: Literal["TenParameterTask"] = "TenParameterTask"
    operation: Operation = "mul"
    interpolation: Uniform = Uniform(low=1.0, high=2.0)
    extrapolation: Range = Uniform(low=2.0, high=6.0)

    @property
    def in_features(self) -> int:
        return 4

    def operands(self, seed: int) -> np.ndarray:
        return np.array([[1.0, 1, 1, 1], [1, 1, 0, 0]])
