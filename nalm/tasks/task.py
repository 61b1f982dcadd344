"""What every task offers to training. A task draws data; it trains nothing."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nalm.values import Value

__all__ = ["EvaluationSet", "Task"]

Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """A fixed set of examples on which models are evaluated.

    Args:
        inputs: (examples, ...) float32; digits are whole numbers, the times of a differential equation
            float64. Runs whose sets hold the *same tensor* are evaluated on it together.
        targets: (examples, outputs) of the dtype that models compute in, float32 but for differential
            equations.
        error: ``"mse"`` or ``"mae"``, the mean over examples and outputs.
        output: the one output that is compared; ``None`` for all.
    """

    inputs: Tensor
    targets: Tensor
    error: Literal["mse", "mae"] = "mse"
    output: int | None = None


class Task(Value):
    """A task. All random choices come from explicit seeds; validation and test inputs are the same for all
    seeds.
    """

    @property
    @abstractmethod
    def in_features(self) -> int:
        """Number of inputs of a model."""

    @property
    @abstractmethod
    def out_features(self) -> int:
        """Number of outputs of a model."""

    @abstractmethod
    def label(self) -> str:
        """A short name for tables, e.g. the interpolation range."""

    @abstractmethod
    def structure(self) -> tuple:
        """What must be equal for the runs of two tasks to share an ensemble."""

    @abstractmethod
    def constants(self, seed: int) -> Tensors:
        """What differs between runs of one structure: ranges, operand positions. Tensors whose shapes depend
        on the structure only.
        """

    def shared(self) -> Tensors:
        """Large tables that all runs of one structure share, e.g. images."""
        return {}

    def host_draw(self, seed: int, iteration: int, batch_size: int) -> Tensor | None:
        """Drawn on the host for one iteration of one run; ``None`` if the task needs only uniform numbers."""
        return None

    def noise_rows(self) -> int:
        """How many uniform numbers one training example needs."""
        return self.in_features

    @abstractmethod
    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        """One training batch of one run: inputs (batch, in) and targets (batch, out).

        ``noise`` is (noise_rows, batch) of uniform numbers in (0, 1), or this run's ``host_draw``. Pure torch
        operations: the engine maps this over runs and compiles it.
        """

    def model_inputs(self, inputs: Tensor, shared: Tensors) -> Tensor:
        """What a model sees of an evaluation set's inputs; the inputs themselves unless they are indices into
        a shared table.
        """
        return inputs

    def model_numbers_per_example(self, inputs: Tensor) -> int:
        """How many numbers a model reads per example of these evaluation inputs; bounds how many are
        evaluated at once.
        """
        return inputs[0].numel()

    @abstractmethod
    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        """The evaluation sets of a run by name; ``"valid"`` (interpolation) and ``"test"`` (extrapolation)
        are always among them.
        """


def as_float32(array: np.ndarray) -> Tensor:
    """Sampling and targets are computed in float64 and rounded once, as in the papers' code."""
    return torch.from_numpy(array).to(torch.float32)
