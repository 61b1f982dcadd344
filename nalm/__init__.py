"""nalm: neural arithmetic units, the tasks of three papers about them, and an engine that trains thousands of runs at once.

The units are here for use in any network: ``from nalm import NMU``. Everything else is one room further:
:mod:`nalm.tasks`, :mod:`nalm.models`, :mod:`nalm.training`, :mod:`nalm.dynamics`, :mod:`nalm.records`, :mod:`nalm.measures`, :mod:`nalm.figures`, :mod:`nalm.published`.
"""

from nalm.units import (
    INALU,
    NAC,
    NALU,
    NAU,
    NMRU,
    NMU,
    NPU,
    NRU,
    Dense,
    GatedNAUNMU,
    Linear,
    NACMul,
    NaiveNPU,
    RealNPU,
    ReLU,
    ReLU6,
)

__version__ = "0.1.0"

__all__ = [
    "Dense",
    "GatedNAUNMU",
    "INALU",
    "Linear",
    "NAC",
    "NACMul",
    "NALU",
    "NAU",
    "NMRU",
    "NMU",
    "NPU",
    "NRU",
    "NaiveNPU",
    "ReLU",
    "ReLU6",
    "RealNPU",
]
