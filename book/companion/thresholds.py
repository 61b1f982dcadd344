"""Thresholds on the test error, below which a run counts as a success."""

from __future__ import annotations

import numpy as np
from nalm.tasks.arithmetic import OperandTask
from nalm.tasks.operations import operation as operation_of

__all__ = ["FIXED", "nearly_perfect_mse"]

FIXED = 1e-5
"""The division paper's threshold on all of its uniform ranges."""


def nearly_perfect_mse(
    task: OperandTask, eps: float = 1e-5, samples: int = 1_000_000, seed: int = 0
) -> float:
    """The test error of a nearly perfect solution: a threshold that knows the scale of the task.

    The operand weights are off by ``eps`` (ones are ``1 - eps``, zeros are ``eps``), the operation on the
    operands is exact; the result is the mean squared error over inputs from the extrapolation range, rounded
    to three significant digits, which is about its Monte-Carlo error.

    Args:
        task: any task on two operands; the operands of seed 0 are used, as their position does not matter.
        eps: error of the weights.
        samples: number of simulated inputs.
        seed: of the inputs; the papers fix none.

    Source: nau-nmu paper, section 4.1. Its code simulates subsets that are one input too long; this function
    takes the task's own.

    >>> from nalm.tasks import TenParameterTask
    >>> nearly_perfect_mse(TenParameterTask())
    2.16e-06
    """
    generator = np.random.RandomState(seed)
    operands = task.operands(0)
    weights = operands * (1 - eps) + (1 - operands) * eps
    operation, chunk, total = operation_of(task.operation), 50_000, 0.0
    for first in range(0, samples, chunk):
        x = task.extrapolation.sample(generator, (min(chunk, samples - first), task.in_features))
        total += float(((operation(*(weights @ x.T)) - operation(*(operands @ x.T))) ** 2).sum())
    return float(f"{total / samples:.3g}")
