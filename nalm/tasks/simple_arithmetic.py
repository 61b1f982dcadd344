"""The simple arithmetic task of the NPU paper: four functions of two inputs, learned by one model with four
outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from nalm.tasks.ranges import Uniform
from nalm.tasks.task import EvaluationSet, Task, Tensors, as_float32

__all__ = ["SimpleArithmeticTask"]

VALIDATION_SEED = 43953907


def targets(x: Any, y: Any, stack: Callable[..., Any]) -> Any:
    """(x + y, x * y, x / y, sqrt(x)), NPU paper, Eq. 20."""
    return stack([x + y, x * y, x / y, x**0.5], -1)


@lru_cache
def _grid(low: float, step: float, points: int) -> np.ndarray:
    axis = low + step * np.arange(points)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


@lru_cache
def _grid_set(low: float, step: float, points: int, output: int) -> EvaluationSet:
    xy = _grid(low, step, points)
    with np.errstate(invalid="ignore"):  # the square root of the grid's negative numbers is not asked for
        t = targets(xy[:, 0], xy[:, 1], np.stack)
    return EvaluationSet(_grid_inputs(low, step, points), as_float32(t), "mae", output)


@lru_cache
def _grid_inputs(low: float, step: float, points: int) -> Tensor:
    return as_float32(_grid(low, step, points))


class SimpleArithmeticTask(Task):
    """f(x, y) = (x + y, x * y, x / y, sqrt(x)), trained on positive inputs, tested on a grid of positive and
    negative ones.

    Args:
        interpolation: training range of both inputs. The paper prints U(0.1, 2); its code draws U(0.1, 2.1),
            the default.

    Evaluation sets: ``valid`` (10,000 examples of the training range, mean squared error), ``test_add``,
    ``test_mul``, ``test_div`` (mean absolute error of one output on the grid -4.1, -3.9, ..., 3.9),
    ``test_sqrt`` (on 0.1, 0.2, ..., 4.0) and ``test`` (mean squared error on 0.1 ... 4.0). Source: NPU paper,
    section 4.2 and Eq. 20-22.

    >>> sorted(SimpleArithmeticTask().evaluation(seed=0))
    ['test', 'test_add', 'test_div', 'test_mul', 'test_sqrt', 'valid']
    """

    kind: Literal["SimpleArithmeticTask"] = "SimpleArithmeticTask"
    interpolation: Uniform = Uniform(low=0.1, high=2.1)

    @property
    def in_features(self) -> int:
        return 2

    @property
    def out_features(self) -> int:
        return 4

    def label(self) -> str:
        return str(self.interpolation)

    def structure(self) -> tuple:
        return (type(self).__name__,)

    def constants(self, seed: int) -> Tensors:
        low, high = self.interpolation.low, self.interpolation.high
        return {"low": torch.tensor(low), "width": torch.tensor(high - low)}

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        x = constants["low"] + constants["width"] * noise
        return x.mT, targets(x[0], x[1], torch.stack)

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        with_negatives, positive = (-4.1, 0.2, 41), (0.1, 0.1, 40)
        sets = {
            f"test_{name}": _grid_set(*with_negatives, output)
            for output, name in enumerate(["add", "mul", "div"])
        }
        sets["test_sqrt"] = _grid_set(*positive, 3)
        sets["test"] = EvaluationSet(sets["test_sqrt"].inputs, sets["test_sqrt"].targets)
        sets["valid"] = _validation_set(self.interpolation)
        return sets


@lru_cache
def _validation_set(range_: Uniform) -> EvaluationSet:
    xy = range_.sample(np.random.RandomState(VALIDATION_SEED), (10_000, 2))
    return EvaluationSet(as_float32(xy), as_float32(targets(xy[:, 0], xy[:, 1], np.stack)))
