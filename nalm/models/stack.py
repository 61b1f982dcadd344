"""A stack of units, as a value."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PositiveInt, model_validator
from torch import nn

from nalm.models.outline import outline
from nalm.own import find, name_of
from nalm.units import UNITS
from nalm.units.checks import choose, nearest
from nalm.values import Value

__all__ = ["Layer", "Stack"]


def unit_class(name: str) -> type[nn.Module]:
    """The unit of that name; one of the reader's own has an importable name, ``"square:SquareUnit"``."""
    try:
        return UNITS[name]
    except KeyError:
        return find(name)


def _named(unit: object) -> object:
    """The name of a unit that was given as a class, or in a file."""
    if isinstance(unit, str) and unit.endswith(".py"):
        raise ValueError(f"{unit!r} names a file only: write FILE:CLASS, as '{unit}:SquareUnit'.")
    if isinstance(unit, str) and ":" in unit:
        unit = find(unit)
    if not isinstance(unit, type):
        return unit
    if not issubclass(unit, nn.Module):
        raise ValueError(f"{unit.__name__} is no unit: a unit is a class of torch.nn.Module.")
    return unit.__name__ if unit in UNITS.values() else name_of(unit)


def _plain(value: object) -> object:
    """Numbers of NumPy, also inside of options, as Python's, which can be written."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(one) for one in value)
    return value.item() if isinstance(value, np.generic) else value


_RIGHT: set[tuple[str, str]] = set()
"""Units and options that were found to fit together."""


class Layer(Value):
    """One unit of a model: its name, its number of outputs and the options of its constructor.

    Args:
        unit: the name of a unit of the library; of one's own, the class, its importable name
            ``"square:SquareUnit"``, or its file ``"folder/square.py:SquareUnit"``. It is any module whose
            constructor takes ``in_features`` and ``out_features``, and keeps its importable name.
        out_features: number of outputs.
        options: of the unit's constructor, by name.

    >>> Layer(unit="RealNPU", out_features=1, options={"clip": ("weight", "gate")}).build(2)
    RealNPU(in_features=2, out_features=1, clip=('weight', 'gate'))
    """

    unit: Annotated[str, BeforeValidator(_named)]
    out_features: Annotated[int, Field(gt=0, lt=2**31)] = 1
    options: Annotated[dict[str, Any], BeforeValidator(_plain)] = {}

    @model_validator(mode="after")
    def _known(self) -> Layer:
        asked = self.unit, repr(sorted(self.options.items()))
        if asked in _RIGHT:
            return self
        if ":" not in self.unit:
            choose("unit", self.unit, UNITS)
        # behind in_features and out_features; an ensemble says where its parameters are
        options = list(inspect.signature(unit_class(self.unit)).parameters)[2:]
        allowed = [name for name in options if name not in ("device", "dtype")]
        for name in self.options:
            if name not in allowed:
                raise ValueError(f"{self.unit} has no option {name!r}: {nearest(name, allowed)}")
        with outline():  # the unit checks the values of its options
            try:
                self.build(1)
            except ValueError:
                raise
            except Exception as error:
                if ":" not in self.unit:
                    raise
                name = self.unit.rpartition(":")[2]  # whatever the reader's code raises
                raise ValueError(
                    f"{name} cannot be made by {name}(in_features, out_features): "
                    f"{type(error).__name__}: {error}."
                ) from None
        if ":" not in self.unit:  # a reader's own may be defined anew
            _RIGHT.add(asked)
        return self

    def build(self, in_features: int) -> nn.Module:
        # JSON has no tuples
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in self.options.items()}
        return unit_class(self.unit)(in_features, self.out_features, **options)


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
    def of(cls, *units_and_sizes: str | type[nn.Module] | int) -> Stack:
        """``Stack.of("NAU", 2, "NMU", 1)``: units as :class:`Layer` takes them, each followed by its number
        of outputs.

        Raises:
            ValueError: a unit without a number, or one that :class:`Layer` refuses.
        """
        if len(units_and_sizes) % 2:
            raise ValueError(
                f"Each unit is followed by its number of outputs, as in Stack.of('NAU', 2, 'NMU', 1), "
                f"but given are {len(units_and_sizes)} values."
            )
        pairs = zip(units_and_sizes[::2], units_and_sizes[1::2], strict=True)
        return cls(layers=tuple(Layer(unit=unit, out_features=size) for unit, size in pairs))  # type: ignore[arg-type]

    def build(self, in_features: int) -> nn.Sequential:
        """A module with fresh weights from torch's global generator."""
        sizes = [in_features, *(layer.out_features for layer in self.layers)]
        for _ in range(self.draws):
            units = [layer.build(size) for layer, size in zip(self.layers, sizes, strict=False)]
        return nn.Sequential(*units)
