"""Large-scale arithmetic of the NPU paper: operations on sums of half of 100 inputs, on a Sobol sequence."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Literal

import numpy as np
from torch import Tensor
from torch.quasirandom import SobolEngine

from nalm.tasks.operations import OPERATIONS
from nalm.tasks.ranges import Uniform
from nalm.tasks.task import EvaluationSet, Task, Tensors, as_float32

__all__ = ["LargeScaleTask", "sobol"]

INPUTS = 100
FIRST_INPUTS = slice(0, 50)
SECOND_INPUTS = slice(38, 88)
"""Which inputs are summed to a and to b, in all runs; twelve belong to both and the last twelve to neither.
"""

EVALUATION_EXAMPLES = 10_000
VALIDATION_SEED = 43953907

RANGES = {
    "add": (Uniform(low=-1.0, high=1.0), Uniform(low=-2.0, high=2.0), Uniform(low=-4.0, high=4.0)),
    "mul": (Uniform(low=-1.0, high=1.0), Uniform(low=-2.0, high=2.0), Uniform(low=-4.0, high=4.0)),
    "reciprocal": (Uniform(low=0.0, high=0.5), Uniform(low=-0.5, high=0.0), Uniform(low=-0.5, high=0.5)),
    "root": (Uniform(low=0.0, high=2.0), Uniform(low=0.0, high=4.0), Uniform(low=0.0, high=4.0)),
}
"""Of each operation: the training range, the test range of the authors' code and that of the paper's Table
A5.
"""

_sequences = threading.local()


@lru_cache(maxsize=1)
def _batch(iteration: int, batch_size: int) -> Tensor:
    """All runs of an ensemble ask for it, one after another."""
    return sobol(iteration * batch_size, batch_size, INPUTS)


def sobol(first: int, count: int, dimensions: int) -> Tensor:
    """Points ``first`` to ``first + count`` - 1 of the unscrambled Sobol sequence without its point of zeros,
    (dimensions, count) float32.

    The first 2**24 points are exact. Point 0 is all 0.5:

    >>> sobol(0, 3, 2)
    tensor([[0.5000, 0.7500, 0.2500],
            [0.5000, 0.2500, 0.7500]])
    """
    engines = _sequences.__dict__.setdefault("engines", {})
    engine = engines.setdefault(dimensions, SobolEngine(dimensions, scramble=False))
    if engine.num_generated != first + 1:  # not where the last call ended
        engine.reset()
        engine.fast_forward(first + 1)
    return engine.draw(count).mT.contiguous()


class LargeScaleTask(Task):
    """a + b, a * b, 1 / a or the root of a, where a and b are sums of 50 of 100 inputs.

    Args:
        operation: ``"add"``, ``"mul"``, ``"reciprocal"`` or ``"root"``.
        mirrored: the points of the test sets run down from the upper end of the range, as in the authors'
            script, and not up from its lower end.

    Training inputs are the successive points of a Sobol sequence, so all runs see the same batches whatever
    their seed, and differ by their initial weights alone: train them on the stream ``"common"``. Evaluation
    sets: ``valid`` (10,000 uniform examples of the training range), ``test`` (10,000 Sobol points of the test
    range in the authors' code, which made the published numbers) and ``test_paper`` (of the range that the
    paper prints; for ``"reciprocal"`` it holds inputs whose sum is nearly 0). Source: NPU paper, section 4.3
    and Tables A4 to A6.

    >>> task = LargeScaleTask(operation="root")
    >>> print(task.interpolation, sorted(task.evaluation(seed=0)))
    U[0,2) ['test', 'test_paper', 'valid']
    """

    kind: Literal["LargeScaleTask"] = "LargeScaleTask"
    operation: Literal["add", "mul", "reciprocal", "root"]
    mirrored: bool = False

    @property
    def interpolation(self) -> Uniform:
        return RANGES[self.operation][0]

    @property
    def in_features(self) -> int:
        return INPUTS

    @property
    def out_features(self) -> int:
        return 1

    def label(self) -> str:
        return str(self.interpolation)

    def structure(self) -> tuple:
        return (type(self).__name__, self.operation)

    def constants(self, seed: int) -> Tensors:
        return self.interpolation.numbers(INPUTS)

    def host_draw(self, seed: int, iteration: int, batch_size: int) -> Tensor:
        return _batch(iteration, batch_size)

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        x = Uniform.transform(noise, constants)
        a, b = x[FIRST_INPUTS].sum(0), x[SECOND_INPUTS].sum(0)
        return x.mT, OPERATIONS[self.operation](a, b).unsqueeze(-1)

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        interpolation, in_code, in_paper = RANGES[self.operation]
        return {
            "valid": _evaluation_set(self.operation, interpolation, "uniform"),
            "test": _evaluation_set(self.operation, in_code, "down" if self.mirrored else "up"),
            "test_paper": _evaluation_set(self.operation, in_paper, "down" if self.mirrored else "up"),
        }


@lru_cache
def _evaluation_set(
    operation: str, range_: Uniform, points: Literal["uniform", "up", "down"]
) -> EvaluationSet:
    if points == "uniform":
        x = range_.sample(np.random.RandomState(VALIDATION_SEED), (EVALUATION_EXAMPLES, INPUTS))
    else:  # the authors' code discards the first point, which is all 0.5
        steps = (range_.high - range_.low) * sobol(1, EVALUATION_EXAMPLES, INPUTS).mT.double().numpy()
        x = range_.low + steps if points == "up" else range_.high - steps
    target = OPERATIONS[operation](x[:, FIRST_INPUTS].sum(1), x[:, SECOND_INPUTS].sum(1))
    return EvaluationSet(as_float32(x), as_float32(target[:, None]))
