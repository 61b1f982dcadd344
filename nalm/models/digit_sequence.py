"""The reader of digit sequences, as a value."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import nn

from nalm.models.stack import Layer
from nalm.networks import DigitSequenceNetwork
from nalm.values import Value

__all__ = ["DigitSequence"]


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
