"""How visible a mistake is: what the smallest one changes in a network of exact weights."""

from __future__ import annotations

import numpy as np
from nalm.tasks import OPERATIONS, SubsetArithmeticTask

__all__ = ["smallest_mistake"]


def smallest_mistake(
    task: SubsetArithmeticTask, seed: int = 1, examples: int = 100_000
) -> tuple[float, float]:
    """The mean square of what the smallest mistake in exact weights changes, and that of the target.

    On a product, the two sums have swapped a pair of their own inputs; on a sum, one input is taken for
    another.

    Args:
        task: whose subsets have an input each of their own.
        seed: of the subsets.
        examples: drawn from the interpolation range.

    >>> mistake, square = smallest_mistake(SubsetArithmeticTask(operation="mul"), examples=10_000)
    >>> f"{mistake:.1f} {square:.1e}"
    '0.3 2.0e+06'
    """
    right, operation = task.operands(seed), OPERATIONS[task.operation]
    of_a, of_b, neither = (
        np.flatnonzero(which) for which in (right[0] > right[1], right[1] > right[0], right.sum(0) == 0)
    )
    swapped = [of_a[0], of_b[0] if task.operation == "mul" else neither[0]]
    wrong = right.copy()
    wrong[:, swapped] = right[:, swapped[::-1]]
    used = (right + wrong).any(0)  # the others are not summed
    x = task.interpolation.sample(np.random.RandomState(0), (np.count_nonzero(used), examples))
    t = operation(*(right[:, used] @ x))
    return float(np.mean((operation(*(wrong[:, used] @ x)) - t) ** 2)), float(np.mean(t**2))
