"""A stack of units, as a value."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Literal

import torch
from pydantic import PositiveInt, model_validator
from torch import nn

from nalm.units import UNITS, Unit
from nalm.units.checks import choose, nearest
from nalm.values import Value

__all__ = ["Layer", "Stack"]


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
        placed = "device", "dtype"  # an ensemble says where its parameters are
        allowed = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in placed]
        for name in self.options:
            if name not in allowed:
                raise ValueError(f"{self.unit} has no option {name!r}: {nearest(name, allowed)}")
        with torch.device("meta"):  # the unit checks the values of its options; nothing is drawn or allocated
            self.build(1)
        return self

    def build(self, in_features: int) -> Unit:
        # JSON has no tuples
        options: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in self.options.items()
        }
        return UNITS[self.unit](in_features, self.out_features, **options)


class Stack(Value):
    """A stack of units, for instance ``Stack.of("NAU", 2, "NMU", 1)``.

    Args:
        layers: from input to output.
        draws: the initial weights are drawn this many times and the last draw is kept. The papers' code draws
            twice, once in the constructor of the model and once in the script.

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
        return cls(layers=tuple(Layer(unit=unit, out_features=size) for unit, size in pairs))  # type: ignore[arg-type]

    def build(self, in_features: int) -> nn.Sequential:
        """A module with fresh weights from torch's global generator."""
        sizes = [in_features, *(layer.out_features for layer in self.layers)]
        for _ in range(self.draws):
            units = [layer.build(size) for layer, size in zip(self.layers, sizes, strict=False)]
        return nn.Sequential(*units)
