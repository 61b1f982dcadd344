"""The reader of digit sequences, as a value."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator
from torch import nn

from nalm.models.stack import Layer
from nalm.networks import DigitSequenceNetwork
from nalm.values import Value

__all__ = ["DigitSequence"]


class DigitSequence(Value):
    """A digit reader with a recurrent cell, see :class:`nalm.networks.DigitSequenceNetwork`.

    Args:
        cell: a unit with one output, for instance ``Layer(unit="NMU")``; ``"LSTM"`` for one of size 1; ``None`` for the exact product or sum.
        initial_state: the state before the first digit, 1 or 0. The exact result is a product from 1 and a sum from 0.

    Raises:
        ValueError: a cell with several outputs, or another initial state.

    >>> DigitSequence(cell="LSTM", initial_state=0.0).build(1).cell
    LSTMCell(1, 1)
    """

    kind: Literal["DigitSequence"] = "DigitSequence"
    cell: Layer | Literal["LSTM"] | None
    initial_state: float = 1.0
    one_by_one: ClassVar[bool] = True  # a CNN fills the processor by itself; stacked convolutions would be slower
    recorded: ClassVar[str] = "cell."  # the digit reader is too large

    @field_validator("cell", mode="before")
    @classmethod
    def _known(cls, cell: object) -> object:
        if isinstance(cell, str) and cell != "LSTM":
            raise ValueError(f"Unknown cell {cell!r}: allowed are a Layer, 'LSTM' and None.")
        return cell

    @field_validator("cell")
    @classmethod
    def _of_one_output(cls, cell: Layer | str | None) -> Layer | str | None:
        if isinstance(cell, Layer) and cell.out_features != 1:
            raise ValueError(f"A recurrent cell has one output, its next state, but out_features={cell.out_features}.")
        return cell

    @field_validator("initial_state")
    @classmethod
    def _of_an_identity(cls, state: float) -> float:
        if state not in (0.0, 1.0):
            raise ValueError(f"The initial state must be 1 (products) or 0 (sums), but is {state:g}.")
        return state

    def build(self, in_features: int) -> nn.Module:
        cell = nn.LSTMCell(1, 1) if self.cell == "LSTM" else self.cell and self.cell.build(2)
        return DigitSequenceNetwork(cell, self.initial_state)
