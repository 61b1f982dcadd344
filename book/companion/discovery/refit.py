"""The best numbers of a given form."""

from __future__ import annotations

import numpy as np

from companion.discovery.search import Discovery, _fit
from companion.discovery.system import PowerSystem

__all__ = ["refit"]


def refit(system: PowerSystem, times: np.ndarray, states: np.ndarray) -> Discovery:
    """The free numbers of a system fitted to data, nothing removed; the error is in units of the variables'
    variances.

    >>> weights = {"field.0.weight": [[0.4]], "field.0.gate": [1.0], "field.1.weight": [[-1.8]]}
    >>> system = PowerSystem.of(weights)
    >>> times = np.linspace(0.0, 1.0, 6)
    >>> found = refit(system, times, ((2 - times) ** 2)[:, None])  # x' = -2 sqrt(x)
    >>> found.system.numbers[found.system.free].round(3).tolist()
    [0.5, -2.0]
    """
    fit = _fit(system, times, states, states.std(0), np.zeros_like(system.numbers), 200)
    return Discovery(fit.system, fit.error, [(fit.system.size, fit.error)])
