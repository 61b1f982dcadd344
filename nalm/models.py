"""Models: what a run trains, as a value; and what a whole model says of its units.

A :class:`Stack` is a stack of units. ``recorded`` is how the names of the parameters begin that rows keep. The functions :func:`penalty`, :func:`project_` and :func:`sparsity_error` work on any module that contains
units, a reader's own network included.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor, nn

from nalm.networks import DigitSequenceNetwork
from nalm.units import UNITS, Unit
from nalm.values import Value, choose, nearest

__all__ = ["AnyModel", "DigitSequence", "Layer", "Stack", "outermost_units", "penalty", "project_", "sparsity_error"]


class Layer(Value):
    """One unit of a model: its name, its number of outputs and the options of its constructor.

    >>> Layer(unit="RealNPU", out_features=1, options={"clip": ("weight", "gate")}).build(2)
    RealNPU(in_features=2, out_features=1, clip=('weight', 'gate'))
    """

    unit: str
    out_features: PositiveInt = 1
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _known(self) -> Layer:
        choose("unit", self.unit, UNITS)
        parameters = inspect.signature(UNITS[self.unit]).parameters.values()
        allowed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        for name in self.options:
            if name not in allowed:
                raise ValueError(f"{self.unit} has no option {name!r}: {nearest(name, allowed)}")
        with torch.device("meta"):  # the unit checks the values of its options; nothing is drawn or allocated
            self.build(1)
        return self

    def build(self, in_features: int) -> Unit:
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in self.options.items()}  # JSON has no tuples
        return UNITS[self.unit](in_features, self.out_features, **options)


class Stack(Value):
    """A stack of units, for instance ``Stack.of("NAU", 2, "NMU", 1)``.

    Args:
        layers: from input to output.
        draws: the initial weights are drawn this many times and the last draw is kept. The papers' code draws twice, once in the constructor of
            the model and once in the script.

    >>> Stack.of("NAU", 2, "NMU", 1).build(4)
    Sequential(
      (0): NAU(in_features=4, out_features=2)
      (1): NMU(in_features=2, out_features=1)
    )
    """

    kind: Literal["Stack"] = "Stack"
    layers: tuple[Layer, ...]
    draws: PositiveInt = 1
    one_by_one: ClassVar[bool] = False
    recorded: ClassVar[str] = ""  # all parameters

    @model_validator(mode="after")
    def _not_empty(self) -> Stack:
        if not self.layers:
            raise ValueError("A model needs at least one layer.")
        return self

    @classmethod
    def of(cls, *units_and_sizes: str | int) -> Stack:
        """``Stack.of("NAU", 2, "NMU", 1)``: unit names, each followed by its number of outputs."""
        pairs = zip(units_and_sizes[::2], units_and_sizes[1::2], strict=True)
        return cls(layers=tuple(Layer(unit=unit, out_features=size) for unit, size in pairs))

    def build(self, in_features: int) -> nn.Sequential:
        """A module with fresh weights from torch's global generator."""
        sizes = [in_features, *(layer.out_features for layer in self.layers)]
        for _ in range(self.draws):
            units = [layer.build(size) for layer, size in zip(self.layers, sizes, strict=False)]
        return nn.Sequential(*units)


class DigitSequence(Value):
    """A digit reader with a recurrent cell, see :class:`nalm.networks.DigitSequenceNetwork`.

    Args:
        cell: a unit with one output, for instance ``Layer(unit="NMU")``; ``None`` for the exact product.
        initial_state: 1 for products, 0 for sums.
    """

    kind: Literal["DigitSequence"] = "DigitSequence"
    cell: Layer | None
    initial_state: float = 1.0
    one_by_one: ClassVar[bool] = True  # a CNN fills the processor by itself; stacked convolutions would be slower
    recorded: ClassVar[str] = "cell."  # the digit reader is too large

    def build(self, in_features: int) -> nn.Module:
        return DigitSequenceNetwork(self.cell and self.cell.build(2), self.initial_state)


AnyModel = Stack | DigitSequence


def outermost_units(module: nn.Module) -> Iterator[Unit]:
    """The units of a module, without the units inside units."""
    if isinstance(module, Unit):
        yield module
    else:
        for child in module.children():
            yield from outermost_units(child)


def penalty(model: nn.Module) -> Tensor:
    """The sum of the discretisation penalties of the model's units (a sum over layers, not a mean)."""
    return sum(unit.penalty() for unit in outermost_units(model))


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
