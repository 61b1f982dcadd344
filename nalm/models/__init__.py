"""Models: what a run trains, as a value; and what a whole model says of its units.

A :class:`Stack` is a stack of units, a :class:`GatedStack` one whose gate is recorded, a :class:`DigitSequence` reads sequences of digits with a unit,
a :class:`NODE` is a differential equation made of units. ``recorded`` is how the names of the parameters begin that rows keep. The functions
:func:`penalty`, :func:`project_` and :func:`sparsity_error` work on any module that contains units, a reader's own network included.
"""

from nalm.models.digit_sequence import DigitSequence
from nalm.models.gated_stack import GatedStack
from nalm.models.node import NODE
from nalm.models.stack import Layer, Stack
from nalm.models.whole import outermost_units, penalty, project_, sparsity_error

__all__ = ["NODE", "AnyModel", "DigitSequence", "GatedStack", "Layer", "Stack", "outermost_units", "penalty", "project_", "sparsity_error"]

AnyModel = Stack | GatedStack | DigitSequence | NODE
