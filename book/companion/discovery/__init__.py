"""From trained neural differential equations to the equations that they hide."""

from companion.discovery.recorded import discover_all
from companion.discovery.search import Discovery, discover, refit
from companion.discovery.system import PowerSystem

__all__ = ["Discovery", "PowerSystem", "discover", "discover_all", "refit"]
