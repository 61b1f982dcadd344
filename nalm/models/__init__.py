"""Models: what a run trains, as a value, and its module.

A :class:`Stack` is a stack of units, a :class:`GatedStack` one whose gate is recorded, a
:class:`DigitSequence` reads sequences of digits with a unit, a :class:`NODE` is a differential equation made
of units. ``recorded`` is how the names of the parameters begin that rows keep.
"""

from nalm.extras import train as _  # noqa: F401
from nalm.models.digit_sequence import DigitCNN, DigitSequence, DigitSequenceNetwork, activation_penalty
from nalm.models.gated_stack import GatedStack
from nalm.models.node import NODE, AdjointNODE, ODENetwork
from nalm.models.stack import Layer, Stack

__all__ = [
    "NODE",
    "AdjointNODE",
    "AnyModel",
    "DigitCNN",
    "DigitSequence",
    "DigitSequenceNetwork",
    "GatedStack",
    "Layer",
    "ODENetwork",
    "Stack",
    "activation_penalty",
]

AnyModel = Stack | GatedStack | DigitSequence | NODE | AdjointNODE
