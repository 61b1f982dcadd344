"""How far an NMU is off whose weights are exact: by rounding, which depends on how its first layer sums."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from nalm.training import Run
from torch import Tensor

__all__ = ["errors", "in_parts"]


def in_parts(x: Tensor, weights: Tensor, parts: int) -> Tensor:
    """The products ``x @ weights.T``, one input after another in each of several parts, which are added last.

    Part k has the inputs k, k + parts, k + 2 parts, …, as the lanes of a processor's vectors have.

    Args:
        x: (examples, inputs).
        weights: (outputs, inputs), zeros and ones.
        parts: how many.

    >>> in_parts(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.0, 1.0]]), parts=2)
    tensor([[4.]])
    """
    sums = torch.zeros(parts, len(x), len(weights), dtype=x.dtype)
    for place in range(x.shape[1]):
        sums[place % parts] += x[:, [place]] * weights[:, place]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = torch.cat([sums[:half] + sums[half : 2 * half], sums[2 * half :]])
    return sums[0]


def errors(runs: Sequence[Run], parts: Sequence[int]) -> dict[int, float]:
    """Parts -> the validation error of networks on products whose weights are exact, median over the runs.

    Targets are computed in 64 bits and rounded. 0 parts are sums in 64 bits, rounded once.
    """
    x = runs[0].task.evaluation(runs[0].seed)["valid"].inputs
    weights = torch.cat([torch.as_tensor(run.task.operands(run.seed)) for run in runs]).to(x)
    exact = x.double() @ weights.double().T

    def error(sums: Tensor) -> float:
        y, target = (values.unflatten(1, (-1, 2)).prod(-1) for values in (sums, exact))
        return (y.double() - target.float()).square().mean(0).median().item()

    return {count: error(in_parts(x, weights, count) if count else exact.float()) for count in parts}
