"""Units: ordinary modules ``Unit(in_features, out_features)``, one family per file."""

from nalm.units.baselines import Dense, Linear, ReLU, ReLU6
from nalm.units.inalu import INALU
from nalm.units.nac import NAC, NALU, NACMul
from nalm.units.nau import NAU, NMU, GatedNAUNMU
from nalm.units.npu import NPU, NaiveNPU, RealNPU
from nalm.units.nru import NMRU, NRU
from nalm.units.unit import Unit
from nalm.values import choose

UNITS: dict[str, type[Unit]] = {
    unit.__name__: unit
    for unit in (
        NAC,
        NACMul,
        NALU,
        INALU,
        NAU,
        NMU,
        GatedNAUNMU,
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
}
"""All units by the name of their class."""


def unit_class(name: str) -> type[Unit]:
    """The unit of this name.

    Args:
        name: a key of ``UNITS``.

    Returns:
        The class.

    Raises:
        ValueError: if there is no such unit; the sentence gives the nearest name.

    Example:
        >>> unit_class("NMU")(2, 1)
        NMU(in_features=2, out_features=1)
    """
    return UNITS[choose("unit", name, UNITS)]


__all__ = [
    "UNITS",
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
    "Unit",
    "unit_class",
]
