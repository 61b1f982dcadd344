"""The common part of the two operand tasks: targets op(a, b), where a and b are sums of inputs."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from nalm.tasks.operations import Operation, check_operation, operation
from nalm.tasks.ranges import Range, TrainingRange
from nalm.tasks.task import EvaluationSet, Task, Tensors, as_float32

__all__ = ["OperandTask", "VALIDATION_SEED", "TEST_SEED", "EVALUATION_EXAMPLES"]

VALIDATION_SEED = 43953907
TEST_SEED = 8689336
EVALUATION_EXAMPLES = 10_000
"""Seeds and size of the fixed validation and test inputs of the nau-nmu and division papers."""


@lru_cache(maxsize=64)
def _inputs(range_: Range, in_features: int, seed: int) -> np.ndarray:
    return range_.sample(np.random.RandomState(seed), (EVALUATION_EXAMPLES, in_features))


@lru_cache(maxsize=64)
def _inputs_float32(range_: Range, in_features: int, seed: int) -> Tensor:
    return as_float32(_inputs(range_, in_features, seed))


class OperandTask(Task):
    """y = op(a, b) with a and b sums of some of the inputs; see the subclasses.

    Training inputs are drawn in float32; validation and test sets in float64, then rounded. The targets of
    training batches are computed in the precision that ``targets`` says: ``"float32"`` or, as in the papers'
    code, ``"float64"``, then rounded.
    """

    operation: Operation
    interpolation: TrainingRange
    extrapolation: Range
    targets: Literal["float32", "float64"] = "float32"

    @model_validator(mode="after")
    def _known_operation(self) -> OperandTask:
        check_operation(self.operation)
        return self

    @property
    def out_features(self) -> int:
        return 1

    @abstractmethod
    def operands(self, seed: int) -> np.ndarray:
        """(2, in_features) of zeros and ones: which inputs are summed to a and to b in the run with this
        seed.
        """

    def place(self, generator: np.random.RandomState) -> int:
        """The first of the inputs that are used, which the papers' code draws before anything else; 0 where
        it draws none.
        """
        return 0

    def label(self) -> str:
        return str(self.interpolation)

    def structure(self) -> tuple:
        numbers = self.interpolation.numbers(self.in_features)  # of equal shapes
        shapes = (n.shape for n in numbers.values())
        return (
            type(self).__name__,
            self.operation,
            self.in_features,
            self.targets,
            type(self.interpolation),
            *shapes,
        )

    def constants(self, seed: int) -> Tensors:
        return self.interpolation.numbers(self.in_features) | {"operands": as_float32(self.operands(seed))}

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        x = self.interpolation.transform(noise, constants).mT
        summed, operands = (of.to(getattr(torch, self.targets)) for of in (x, constants["operands"]))
        # A matrix product per run costs more than it computes while there are few inputs; with many, this
        # order folds into one where x is shared.
        a, b = (
            torch.matmul(operands, summed.mT).unbind(0)
            if self.in_features > 32
            else ((summed * operand).sum(-1) for operand in operands)
        )
        return x, operation(self.operation)(a, b).unsqueeze(-1).to(x.dtype)

    def generator(self, seed: int) -> np.random.RandomState:
        """What the papers' code draws the training batches of the run with this seed from."""
        parent = np.random.RandomState(seed)
        self.place(parent)
        return np.random.RandomState(parent.randint(0, 2**32 - 1))

    def draw(self, generator: np.random.RandomState, seed: int, batches: int, batch_size: int) -> np.ndarray:
        """The next training batches, (batches, in_features + 1, batch_size) float32: inputs and targets as
        the papers' code draws and computes them.

        Args:
            generator: that of the run, which goes forward by so many batches.
            seed: of the run.
            batches: how many.
            batch_size: examples in each.
        """
        x = self.interpolation.batches(generator, batches, (batch_size, self.in_features))
        used = [np.flatnonzero(operand) for operand in self.operands(seed)]
        # in the order in which the papers' code sums
        a, b = (x[..., inputs[0] : inputs[-1] + 1].sum(-1) for inputs in used)
        drawn = np.empty((batches, self.in_features + 1, batch_size), np.float32)
        drawn[:, :-1], drawn[:, -1] = x.swapaxes(1, 2), operation(self.operation)(a, b)
        return drawn

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        sets = {"valid": (self.interpolation, VALIDATION_SEED), "test": (self.extrapolation, TEST_SEED)}
        return {name: self._evaluation_set(seed, *range_and_seed) for name, range_and_seed in sets.items()}

    def _evaluation_set(self, seed: int, range_: Range, input_seed: int) -> EvaluationSet:
        a, b = self.operands(seed) @ _inputs(range_, self.in_features, input_seed).T
        targets = operation(self.operation)(a, b)[:, None]
        return EvaluationSet(_inputs_float32(range_, self.in_features, input_seed), as_float32(targets))
