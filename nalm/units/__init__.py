"""Units: ordinary modules ``Unit(in_features, out_features)``, one family per file."""

from nalm.units.baselines import Dense, Linear, ReLU, ReLU6
from nalm.units.gnalu import GNALU
from nalm.units.inalu import INALU
from nalm.units.mcfc import MCFC
from nalm.units.nac import NAC, NALU, NACMul
from nalm.units.nau import NAU, NMU, GatedNAUNMU
from nalm.units.npu import NPU, NaiveNPU, RealNPU
from nalm.units.nru import NMRU, NRU
from nalm.units.snmu import SNMU
from nalm.units.unit import Unit
from nalm.units.whole import outermost_units, penalty, project_, ramp, round_, sparsity_error

__all__ = [
    "Dense",
    "GNALU",
    "GatedNAUNMU",
    "INALU",
    "Linear",
    "MCFC",
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
    "SNMU",
    "UNITS",
    "Unit",
    "outermost_units",
    "penalty",
    "project_",
    "ramp",
    "round_",
    "sparsity_error",
]

_UNITS = (
    NAC,
    NACMul,
    NALU,
    GNALU,
    INALU,
    NAU,
    NMU,
    SNMU,
    GatedNAUNMU,
    MCFC,
    NaiveNPU,
    NPU,
    RealNPU,
    NRU,
    NMRU,
    Linear,
    ReLU,
    ReLU6,
    Dense,
)

UNITS: dict[str, type[Unit]] = {unit.__name__: unit for unit in _UNITS}
"""All units by the name of their class."""
