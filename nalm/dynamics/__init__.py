"""Neural ordinary differential equations: the network, and the ensemble that trains many of them at once."""

from nalm.dynamics.network import ODENetwork

__all__ = ["ODENetwork"]
