"""nalm: neural arithmetic units in PyTorch, and an engine that trains thousands of runs at once.

The units are here for use in any network, with what a training loop of one's own asks of them: ``from nalm
import NMU``. Everything else is one room further: :mod:`nalm.tasks`, :mod:`nalm.models`,
:mod:`nalm.training`, :mod:`nalm.records`.
"""

from typing import Any

from nalm.formulas import *  # noqa: F403
from nalm.formulas import __all__ as _formulas
from nalm.units import *  # noqa: F403
from nalm.units import __all__ as _units

__all__ = [*_formulas, *_units]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """:func:`nalm.study.compare`, which needs more than the units do: imported when it is asked for."""
    if name != "compare":
        raise AttributeError(f"module 'nalm' has no attribute {name!r}")
    from nalm.study import compare

    return compare
