"""What a whole model says of its units: functions of any module that contains units, a reader's own network
included.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nalm.units.unit import Unit

__all__ = ["outermost_units", "penalty", "project_", "sparsity_error"]


def outermost_units(module: nn.Module) -> Iterator[Unit]:
    """The units of a module, without the units inside units."""
    if isinstance(module, Unit):
        yield module
    else:
        for child in module.children():
            yield from outermost_units(child)


def penalty(model: nn.Module) -> Tensor:
    """The sum of the discretisation penalties of the model's units (a sum over layers, not a mean)."""
    return sum(unit.penalty() for unit in outermost_units(model))  # type: ignore[return-value]


@torch.no_grad()
def project_(model: nn.Module) -> None:
    """Apply each unit's constraint in place; to be called after an optimiser step."""
    for unit in outermost_units(model):
        unit.project_()


@torch.no_grad()
def sparsity_error(model: nn.Module) -> Tensor:
    """The largest sparsity error of the model's units; NaN for a model without units."""
    errors = [unit.sparsity_error() for unit in outermost_units(model)]
    return torch.stack(errors).amax() if errors else next(model.parameters()).new_full((), torch.nan)
