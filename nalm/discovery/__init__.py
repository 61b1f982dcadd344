"""From trained neural differential equations to the equations that they hide."""

from nalm.discovery.recorded import discover_all
from nalm.discovery.refit import refit
from nalm.discovery.search import Discovery, discover
from nalm.discovery.system import PowerSystem

__all__ = ["Discovery", "PowerSystem", "discover", "discover_all", "refit"]
