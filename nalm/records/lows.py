"""When an error first fell below a threshold that is set later: of all that was logged, its record lows are enough to tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["first_below", "record_lows"]


def record_lows(iterations: np.ndarray, errors: np.ndarray) -> list[tuple[int, float]]:
    """The iterations at which the error was lower than ever before, each with the error to nine digits, which restore float32 exactly.

    Args:
        iterations: (evaluations,).
        errors: (evaluations,); what is not finite is no low.

    >>> record_lows(np.array([0, 10, 20, 30]), np.array([4.0, 2.0, 3.0, 1.0]))
    [(0, 4.0), (10, 2.0), (30, 1.0)]
    """
    finite = np.where(np.isfinite(errors), errors, np.inf)
    before = np.minimum.accumulate(np.concatenate([[np.inf], finite[:-1]]))
    return [(int(iterations[place]), float(f"{finite[place]:.9g}")) for place in np.flatnonzero(finite < before)]


def first_below(lows: Sequence[tuple[int, float]], threshold: float) -> float:
    """The first iteration with an error below the threshold, NaN where there is none.

    >>> first_below([(0, 4.0), (10, 2.0), (30, 1.0)], threshold=2.0)
    30.0
    """
    return next((float(iteration) for iteration, error in lows if error < threshold), np.nan)
