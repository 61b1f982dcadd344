"""From a trained network to the equations it hides: refit without imaginary weights, then remove and merge
what is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from companion.discovery.system import PowerSystem

__all__ = ["Discovery", "discover", "refit"]

IMAGINARY_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
RIDGE = 1e-3
"""Keeps the numbers of an overparametrised system from wandering off."""
DIVERGED = 1e3
COARSE, FINE = 1e-7, 1e-9
"""Added to the error where systems are compared. While numbers are removed, differences below a share of 3e-4
of a standard deviation do not count; in the end the accuracy of the solver is the limit.
"""
LARGE = 22
"""Of systems with more free numbers the first removal that lowers the criterion is taken; of smaller ones all
removals and mergers are compared.
"""
LARGEST_RISE = 0.01
"""The search ends where the error has risen by so much over the best."""


@dataclass(frozen=True)
class Discovery:
    """A system, its error and what the search went through.

    Args:
        system: the chosen one.
        error: its mean squared error on the data, each variable in units of its standard deviation.
        path: (free numbers, error) of each system on the way.
    """

    system: PowerSystem
    error: float
    path: list[tuple[int, float]]


@dataclass(frozen=True)
class _Fit:
    system: PowerSystem
    error: float
    slopes: np.ndarray  # of the residuals, (residuals, free numbers)

    def information(self, floor: float) -> float:
        """The Bayesian information criterion; less is better."""
        count = len(self.slopes)
        return count * np.log(self.error + floor) + self.system.size * np.log(count)


def discover(
    start: PowerSystem,
    times: np.ndarray,
    states: np.ndarray,
    tell: Callable[[int, float], None] = lambda size, error: None,
) -> Discovery:
    """The system with the lowest Bayesian information criterion that a greedy search finds.

    1. Fit all numbers under a penalty on the imaginary ones that grows until they are 0, first to one
       interval ahead, then to the whole course.
    2. Take away, one after another, what is missed least: a number (the one with the smallest saliency, as in
       optimal brain surgery), or a unit, whose coefficients go to another unit. Refit after each. Go on where
       the error rises: only the exact form may fit with so few numbers.
    3. Of all systems on the way choose by the criterion.

    Every fit is SciPy's ``least_squares`` on all points in time, each variable in units of its standard
    deviation.

    Args:
        start: where to begin.
        times: (times,), increasing.
        states: (times, entries); the first is exact.
        tell: is called with free numbers and error after each step.
    """
    scale = states.std(0)
    zero = np.zeros_like(start.numbers)
    weak, strong = zero + RIDGE, zero.copy()
    strong[:, start.entries : 2 * start.entries] = 1.0
    system = start
    for restart in (True, False):
        for penalty in IMAGINARY_PENALTIES if restart else IMAGINARY_PENALTIES[-1:]:
            system = _fit(system, times, states, scale, weak + penalty * strong, 40, restart).system
    now = _fit(system.but(free=system.free & (strong == 0)), times, states, scale, weak, 100)
    now = _fit(now.system, times, states, scale, zero, 200)
    path = [now]
    while now.system.size > 2 * start.entries and now.error < min(fit.error for fit in path) + LARGEST_RISE:
        now = _smaller(now, times, states, scale)
        path.append(now)
        tell(now.system.size, now.error)
    best = min(path, key=lambda fit: fit.information(FINE))
    return Discovery(best.system, best.error, [(fit.system.size, fit.error) for fit in path])


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


def _fit(
    system: PowerSystem,
    times: np.ndarray,
    states: np.ndarray,
    scale: np.ndarray,
    penalty: np.ndarray,
    evaluations: int,
    restart: bool = False,
    steps: str = "fine",
) -> _Fit:
    """Least squares from a system on; ``penalty`` is the factor of each number's square."""
    factors = np.sqrt(penalty[system.free])
    known: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

    def at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if (key := x.tobytes()) not in known:
            known.clear()
            numbers = np.zeros_like(system.numbers)
            numbers[system.free] = x
            solution = PowerSystem(numbers, system.free).solve(times, states, restart, steps)
            if solution is None:
                residuals, slopes = np.full(states[1:].size, DIVERGED), np.zeros((states[1:].size, len(x)))
            else:
                residuals = ((solution[0] - states) / scale)[1:].ravel()
                slopes = (solution[1] / scale[:, None])[1:].reshape(-1, len(x))
            known[key] = residuals, slopes
        return known[key]

    found = least_squares(
        lambda x: np.concatenate([at(x)[0], factors * x]),
        system.numbers[system.free],
        jac=lambda x: np.concatenate([at(x)[1], np.diag(factors)]),
        max_nfev=evaluations,
        ftol=1e-6,
        xtol=1e-10,
        gtol=1e-12,
    )
    residuals, slopes = at(found.x)
    numbers = np.zeros_like(system.numbers)
    numbers[system.free] = found.x
    return _Fit(system.but(numbers), float(np.mean(residuals**2)), slopes)


def _smaller(now: _Fit, times: np.ndarray, states: np.ndarray, scale: np.ndarray) -> _Fit:
    """The best fit found with fewer free numbers."""
    none = np.zeros_like(now.system.numbers)
    for system in _removals(now, 6 if now.system.size > LARGE else 0):
        fit = _fit(system, times, states, scale, none, 40)
        if fit.information(COARSE) < now.information(COARSE):
            return fit
    tried = [
        _fit(system, times, states, scale, none, 10, steps="rough")
        for system in (*_removals(now, 8), *_merged(now.system, states))
    ]
    best = sorted(tried, key=lambda fit: fit.information(COARSE))[:2]
    return min(
        (_fit(fit.system, times, states, scale, none, 150) for fit in best),
        key=lambda fit: fit.information(COARSE),
    )


def _removals(now: _Fit, count: int) -> Iterator[PowerSystem]:
    """Without one number, those first that are missed least; the others moved to make up for it (Hassibi &
    Stork, 1992), or left.
    """
    system, places = now.system, np.argwhere(now.system.free)
    curvature = now.slopes.T @ now.slopes
    inverse = np.linalg.pinv(curvature + 1e-9 * np.trace(curvature) / len(curvature) * np.eye(len(curvature)))
    values = system.numbers[system.free]
    for number in np.argsort(values**2 / np.diag(inverse))[:count]:
        free = system.free.copy()
        free[tuple(places[number])] = False
        moved = system.numbers.copy()
        moved[system.free] = values - inverse[:, number] * values[number] / inverse[number, number]
        yield system.but(moved, free)
        yield system.but(free=free)


def _merged(system: PowerSystem, states: np.ndarray) -> Iterator[PowerSystem]:
    """Without one unit, its coefficients given to another one, scaled so that both have the same size over
    the data.
    """
    exponents, _, _ = system.parts()
    first = 2 * system.entries
    sizes = np.exp(np.log(np.maximum(states[1:], 1e-9)) @ exponents.T)
    used = np.flatnonzero(system.free[:, first:].any(1))
    for keeper in used:
        for other in used[used != keeper]:
            ratio = sizes[:, keeper] @ sizes[:, other] / (sizes[:, keeper] @ sizes[:, keeper])
            numbers, free = system.numbers.copy(), system.free.copy()
            numbers[keeper, first:] += ratio * numbers[other, first:]
            free[keeper, first:] |= free[other, first:]
            free[other] = False
            yield system.but(numbers, free)
