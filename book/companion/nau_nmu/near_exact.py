"""What training does to a product of two sums whose weights are exact already: how well it stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from nalm.tasks import SubsetArithmeticTask
from nalm.units.functional import distance
from torch import Tensor

__all__ = ["FACTORS", "errors_from_exact"]

FACTORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "NMU": lambda s, w: w * s + 1 - w,
    "NAC•,NMU": lambda s, w: torch.exp(w * torch.log(s)),
}
"""Model -> the factors of its product, of the sums s and the weights w of its second layer."""


def errors_from_exact(
    task: SubsetArithmeticTask, model: str, seeds: int, updates: int, second_lr: float = 1e-3
) -> np.ndarray:
    """Errors (evaluations, seeds) of networks that begin at the exact weights of their products, every 100
    updates of Adam, with the penalty in full force.

    It has formulas in place of units, so that ten seeds take little longer than one.

    Args:
        task: a product of sums of positive inputs, whose places differ between seeds.
        model: one of :data:`FACTORS`; its first layer is a NAU.
        seeds: seeds 0 to ``seeds`` - 1.
        updates: how long they are trained.
        second_lr: the learning rate of the second layer; that of the first is 0.001.

    >>> errors_from_exact(SubsetArithmeticTask(operation="mul"), "NMU", seeds=2, updates=100).shape
    (1, 2)
    """
    exact = torch.cat([torch.tensor(task.operands(seed)) for seed in range(seeds)])  # in 64 bits
    first, second = exact.float().requires_grad_(), torch.ones(2 * seeds, requires_grad=True)
    optimiser = torch.optim.Adam([{"params": [first], "lr": 1e-3}, {"params": [second], "lr": second_lr}])
    generator, of = torch.Generator().manual_seed(0), task.interpolation

    def errors(examples: int) -> Tensor:
        x = of.low + (of.high - of.low) * torch.rand(examples, task.inputs, generator=generator)
        outputs, targets = FACTORS[model](x @ first.T, second), x.double() @ exact.T
        return (_products(outputs) - _products(targets).float()).square().mean(0)

    found = []
    for update in range(1, updates + 1):
        penalty = distance(first, (-1, 0, 1)).sum() / task.inputs + distance(second, (0, 1)).sum()
        optimiser.zero_grad()
        (errors(128).sum() + 10 / 2 * penalty).backward()
        optimiser.step()
        with torch.no_grad():
            first.clamp_(-1, 1)
            second.clamp_(0, 1)
            if update % 100 == 0:
                found.append(errors(1000))
    return torch.stack(found).numpy()


def _products(factors: Tensor) -> Tensor:
    return factors[:, ::2] * factors[:, 1::2]
