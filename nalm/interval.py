"""The interval of a success rate."""

from __future__ import annotations

from math import sqrt

__all__ = ["wilson"]


def wilson(rate: float, runs: float, confidence: float = 0.95) -> tuple[float, float]:
    """The ends of the score interval of a rate of any number of runs, whole or not (Wilson, 1927).

    >>> wilson(0.64, 25)
    (0.4451..., 0.7975...)
    """
    from scipy.special import ndtri

    z = ndtri((1 + confidence) / 2)
    centre, half = rate + z**2 / (2 * runs), z * sqrt(rate * (1 - rate) / runs + z**2 / (4 * runs**2))
    return float((centre - half) / (1 + z**2 / runs)), float((centre + half) / (1 + z**2 / runs))
