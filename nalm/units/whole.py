"""What a training loop asks of a whole model: functions of any module that contains units, a reader's own
network included.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nalm.units.unit import Unit

__all__ = ["outermost_units", "penalty", "project_", "ramp", "round_", "sparsity_error"]


def outermost_units(module: nn.Module) -> Iterator[Unit]:
    """The units of a module, each once and without the units inside units."""
    units = [part for part in module.modules() if isinstance(part, Unit)]
    inside = {part for unit in units for part in unit.modules() if part is not unit}
    yield from (unit for unit in units if unit not in inside)


def penalty(model: nn.Module) -> Tensor:
    """The sum of the discretisation penalties of the model's units (a sum over layers, not a mean).

    Raises:
        ValueError: if the model has no units.
    """
    return sum(unit.penalty() for unit in _units(model))  # type: ignore[return-value]


def ramp(step: float, start: float, end: float) -> float:
    r"""The share of its weight that a penalty has at a step,
    :math:`\mathrm{clip}((t - s)/(e - s), 0, 1)`: 0 until ``start``, 1 from ``end`` on.

    Madsen & Johansen (2020), section 2.7, Eq. 14; Mistry et al. (2022), appendix B, Eq. 10.

    Raises:
        ValueError: if ``end`` is not after ``start``.

    Example:
        >>> [ramp(step, 100, 200) for step in (0, 100, 150, 200, 1000)]
        [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    if not end > start:
        raise ValueError(f"A ramp ends after it starts, but start={start} and end={end}.")
    return min(max((step - start) / (end - start), 0.0), 1.0)


@torch.no_grad()
def project_(model: nn.Module) -> None:
    """Apply each unit's constraint in place; to be called after every optimiser step.

    So that no step is forgotten, the optimiser can call it:

        >>> from nalm import NAU, NMU, project_
        >>> model = nn.Sequential(NAU(2, 2), NMU(2, 1))
        >>> optimiser = torch.optim.SGD(model.parameters(), lr=1000.0)
        >>> hook = optimiser.register_step_post_hook(lambda *_: project_(model))
        >>> model(torch.rand(8, 2)).mean().backward()
        >>> optimiser.step()
        >>> bool((model[1].weight >= 0).all() and (model[1].weight <= 1).all())
        True
    """
    for unit in outermost_units(model):
        unit.project_()


def round_(model: nn.Module) -> None:
    """Round the parameters of all units to the nearest of their discrete values, in place.

    Raises:
        ValueError: if the model has no units, or one without discrete values; then nothing is rounded.

    Example:
        >>> from nalm import NMU
        >>> model = nn.Sequential(NMU(2, 1))
        >>> _ = nn.init.constant_(model[0].weight, 0.9)
        >>> round_(model)
        >>> model(torch.tensor([3.0, 4.0])).detach()
        tensor([12.])
    """
    before = [parameter.detach().clone() for parameter in model.parameters()]
    try:
        for unit in _units(model):
            unit.round_()
    except Exception:
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), before, strict=True):
                parameter.copy_(value)
        raise


@torch.no_grad()
def sparsity_error(model: nn.Module) -> Tensor:
    """The largest sparsity error of the model's units; NaN for a model without units."""
    errors = [unit.sparsity_error() for unit in outermost_units(model)]
    if errors:
        return torch.stack(errors).amax()
    like = next(model.parameters(), torch.empty(0))
    return like.new_full((), torch.nan)


def _units(model: nn.Module) -> list[Unit]:
    if units := list(outermost_units(model)):
        return units
    raise ValueError(f"This {type(model).__name__} contains no unit.")
