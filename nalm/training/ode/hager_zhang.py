"""L-BFGS with the line search of Hager and Zhang, for many runs at once.

A run's minimiser is a generator: it yields the parameters whose loss it asks for, and is sent loss and
gradient. So the questions of all runs are answered together.

Hager and Zhang, *A new conjugate gradient method with guaranteed descent and an efficient line search* (SIAM
J. Optim. 16, 2005), section 4; *Algorithm 851* (ACM TOMS 32, 2006). The letters and numbers in brackets are
the steps of their algorithm. What it leaves open, and when the minimiser ends, is as in Julia's packages
Optim 0.21 and LineSearches 7.0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from nalm.training.ode.answers import Losses
from nalm.training.ode.ensemble import NODEEnsemble
from nalm.training.optimisers import HagerZhangLBFGS

__all__ = ["HagerZhangEnsemble", "LineSearch", "Trial", "minimise_by_line_searches"]

DECREASE, CURVATURE = 0.1, 0.9
"""δ and σ of the Wolfe conditions."""
TOLERATED = 1e-6
"""ε: a loss may exceed the first one by this share of it."""
EXPANSION, SHRINKAGE = 5.0, 0.66
"""ρ, by which a bracket grows, and γ, by which a double secant step has to shrink it."""
BACK = 0.1
"""Factor on a first step that leads to no finite loss."""
SEARCHES, BACKTRACKS = 50, 52
"""Rounds of a line search, and steps back from where the loss is not finite."""

Answered = TypeVar("Answered")
Asking = Generator[np.ndarray, tuple[float, np.ndarray], Answered]
"""Asks for loss and gradient at parameters, and returns something in the end."""


@dataclass(frozen=True)
class Trial:
    """A step along the line: the loss there, its slope along the line and its gradient."""

    step: float
    loss: float
    slope: float
    gradient: np.ndarray

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.loss) and np.isfinite(self.slope))


class NotFound(Exception):
    """No step fulfils the conditions; the best one known is taken, and the minimisation ends."""

    def __init__(self, step: float) -> None:
        super().__init__(f"The line search ended at the step {step:g}.")
        self.step = step


class Inconsistent(Exception):
    """Losses and slopes contradict each other, or are not finite within a bracket."""


class LineSearch:
    """A step along a line that fulfils the Wolfe conditions, or the approximate ones.

    With the loss φ(α) at the step α: φ(α) ≤ φ(0) + δ α φ'(0) or, approximately, (2δ − 1) φ'(0) ≥ φ'(α) and
    φ(α) ≤ φ(0) + ε |φ(0)|; and φ'(α) ≥ σ φ'(0). Only steps that a secant gives are asked for that, so the
    first one never ends the search.

    Args:
        origin, direction: (parameters,) of the line.
        loss, gradient: at the origin.
        check_flatness: end, without the conditions, at the lower end of a bracket if the loss at its upper
            end is no higher, before and after a round. In later versions of LineSearches it is off.
    """

    def __init__(
        self,
        origin: np.ndarray,
        direction: np.ndarray,
        loss: float,
        gradient: np.ndarray,
        check_flatness: bool = True,
    ) -> None:
        self.origin, self.direction, self.check_flatness = origin, direction, check_flatness
        self.start = Trial(0.0, loss, float(gradient @ direction), gradient)
        self.limit = loss + TOLERATED * abs(loss)

    def search(self, step: float = 1.0) -> Asking[Trial]:
        """The step found, from a first guess [L0–L3].

        Raises:
            NotFound: the direction does not descend, or the rounds are over.
            Inconsistent: see there.
        """
        if not self.start.finite or self.start.slope >= np.spacing(1.0) * abs(self.start.loss):
            raise NotFound(0.0)
        if self.start.slope >= 0:
            return self.start
        first = yield from self._trial(step)
        for _ in range(BACKTRACKS - 1):
            if first.finite:
                break
            first = yield from self._trial(BACK * first.step)
        if not first.finite:
            return self.start
        low, high, rounds = yield from self._bracketed(first)
        if high is None:
            return low
        for _ in range(rounds):
            self._require(low.step < high.step)
            if high.step - low.step <= np.spacing(high.step):
                return low
            found, lower, higher = yield from self._double_secant(low, high)
            if found is not None:
                return found
            self._require(lower.step < higher.step)
            if higher.step - lower.step < SHRINKAGE * (high.step - low.step):
                if self.check_flatness and _flat(low, high) and _flat(lower, higher):
                    return lower
                low, high = lower, higher
            else:
                middle = yield from self._finite_trial((lower.step + higher.step) / 2)
                low, high = yield from self._updated(lower, higher, middle)
        raise NotFound(low.step)

    def fulfilled(self, at: Trial) -> bool:
        """Whether the Wolfe conditions, or the approximate ones, hold at a step."""
        first = self.start.slope
        decreased = at.loss <= self.start.loss + DECREASE * first * at.step
        nearly = (2 * DECREASE - 1) * first >= at.slope and at.loss <= self.limit
        return at.slope >= CURVATURE * first and (decreased or nearly)

    def _trial(self, step: float) -> Asking[Trial]:
        loss, gradient = yield self.origin + step * self.direction
        return Trial(step, float(loss), float(gradient @ self.direction), gradient)

    def _finite_trial(self, step: float) -> Asking[Trial]:
        self._require(np.isfinite(step))
        found = yield from self._trial(step)
        self._require(found.finite)
        return found

    def _require(self, holds: bool | np.bool_) -> None:
        if not holds:
            raise Inconsistent

    def _bracketed(self, at: Trial) -> Asking[tuple[Trial, Trial | None, int]]:
        """A bracket around a minimum [B0–B3] and the rounds left for it; or a step to take, and ``None``."""
        before, largest = [self.start], np.inf
        for left in range(SEARCHES - 1, 0, -1):
            if at.slope >= 0:
                low = next(one for one in reversed(before) if one.loss <= self.limit)
                return low, at, left - 1
            if at.loss > self.limit:
                low, high = yield from self._bisected(self.start, at)
                return low, high, left - 1
            before.append(at)
            if np.nextafter(at.step, np.inf) >= largest:
                return at, None, 0
            following = yield from self._trial(min(EXPANSION * at.step, largest))
            for _ in range(BACKTRACKS - 1):
                if following.finite or following.step <= np.nextafter(at.step, np.inf):
                    break
                largest = following.step
                following = yield from self._trial((at.step + following.step) / 2)
            if not following.finite:
                return at, None, 0
            at = following
        raise NotFound(0.0)

    def _bisected(self, low: Trial, high: Trial) -> Asking[tuple[Trial, Trial]]:
        """A bracket within one whose upper end is higher, though the slope there is negative [U3]."""
        self._require(low.slope < 0 and low.loss <= self.limit)
        self._require(high.slope < 0 and high.loss > self.limit and high.step > low.step)
        while high.step - low.step > np.spacing(high.step):
            middle = yield from self._finite_trial((low.step + high.step) / 2)
            if middle.slope >= 0:
                return low, middle
            low, high = (middle, high) if middle.loss <= self.limit else (low, middle)
        return low, high

    def _updated(self, low: Trial, high: Trial, at: Trial) -> Asking[tuple[Trial, Trial]]:
        """The bracket, narrowed by a step that may lie in it [U0–U3]."""
        self._require(low.slope < 0 and low.loss <= self.limit)
        self._require(high.slope >= 0 and high.step > low.step)
        if not low.step <= at.step <= high.step:
            return low, high
        if at.slope >= 0:
            return low, at
        if at.loss <= self.limit:
            return at, high
        return (yield from self._bisected(low, at))

    def _double_secant(self, low: Trial, high: Trial) -> Asking[tuple[Trial | None, Trial, Trial]]:
        """A step that fulfils the conditions, if there is one, and the bracket narrowed by up to two secants
        [S1–S4].
        """
        self._require(low.slope < 0 <= high.slope)
        at = yield from self._finite_trial(_secant(low, high))
        if self.fulfilled(at):
            return at, at, at
        lower, higher = yield from self._updated(low, high, at)
        second = _secant(high, higher) if higher is at else _secant(low, lower) if lower is at else np.nan
        if lower.step <= second <= higher.step:
            at = yield from self._finite_trial(second)
            if self.fulfilled(at):
                return at, at, at
            lower, higher = yield from self._updated(lower, higher, at)
        return None, lower, higher


def _secant(a: Trial, b: Trial) -> float:
    """Where the slope would be zero if it were linear."""
    change = b.slope - a.slope
    return (a.step * b.slope - b.step * a.slope) / change if change else np.nan


def _flat(low: Trial, high: Trial) -> bool:
    return bool(np.nextafter(low.loss, np.inf) >= high.loss)


def minimise_by_line_searches(
    losses: Losses, starts: np.ndarray, settings: HagerZhangLBFGS
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the loss of every run over its own parameters.

    A run ends when no entry of its gradient is larger than the tolerance, when a step changes no parameter,
    when two steps in a row do not change the loss, or with a line search that finds no step.

    Args:
        losses: from the parameters of all runs (runs, parameters) to their losses (runs,) and gradients
            (runs, parameters).
        starts: (runs, parameters) float64.
        settings: iterations, memory, tolerance.

    Returns:
        The last parameters (runs, parameters), and the iterations (runs,) that were done. A run whose losses
        and slopes contradict each other is back at its start, after no iterations.

    >>> def bowls(x):
    ...     return ((x - 3.0) ** 2).sum(1), 2 * (x - 3.0)
    >>> found, iterations = minimise_by_line_searches(bowls, np.zeros((2, 4)), HagerZhangLBFGS())
    >>> found.round(6).tolist(), iterations.tolist()
    ([[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]], [1, 1])
    """
    runs = [_minimised(start, settings) for start in starts]
    at, found, iterations = starts.copy(), starts.copy(), np.zeros(len(starts), dtype=int)
    answers: dict[int, tuple[float, np.ndarray] | None] = dict.fromkeys(range(len(runs)))
    while answers:
        asking = []
        for number, answer in answers.items():
            try:
                at[number] = runs[number].send(answer)  # type: ignore[arg-type]
                asking.append(number)
            except StopIteration as end:
                found[number], iterations[number] = end.value
        if asking:
            values, gradients = losses(at)
        answers = {number: (float(values[number]), gradients[number]) for number in asking}
    return found, iterations


def _minimised(start: np.ndarray, settings: HagerZhangLBFGS) -> Asking[tuple[np.ndarray, int]]:
    """One run's minimiser; returns its last parameters and the number of its iterations."""
    x, unchanged = start, 0
    pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=settings.memory)
    loss, gradient = yield x
    for iteration in range(settings.iterations):
        if np.abs(gradient).max() <= settings.gradient_tolerance:
            return x, iteration
        direction = -_times_inverse_hessian(gradient, pairs)
        if gradient @ direction >= 0:
            pairs.clear()
            direction = -gradient
        try:
            taken = yield from LineSearch(x, direction, loss, gradient).search()
        except NotFound as error:
            return (x + error.step * direction if error.step else x), iteration + 1
        except Inconsistent:
            return start, 0
        step, change = taken.step * direction, taken.gradient - gradient
        unchanged = unchanged + 1 if taken.loss == loss else 0
        before, x, loss, gradient = x, x + step, taken.loss, taken.gradient
        if unchanged > 1 or np.array_equal(x, before):
            return x, iteration + 1
        curvature = step @ change
        if curvature == 0 or np.isinf(1 / curvature):
            pairs.clear()
        else:
            pairs.append((step, change, 1 / curvature))
    return x, settings.iterations


def _times_inverse_hessian(
    gradient: np.ndarray, pairs: Iterable[tuple[np.ndarray, np.ndarray, float]]
) -> np.ndarray:
    """The two-loop recursion (Nocedal and Wright, Algorithm 7.4), from the last pairs of steps and changes of
    the gradient, the latest last.
    """
    q, pairs, weights = gradient.copy(), list(pairs), []
    for step, change, inverse in reversed(pairs):
        weights.append(inverse * (step @ q))
        q -= weights[-1] * change
    if pairs:
        step, change, _ = pairs[-1]
        q *= (step @ change) / (change @ change)
    for (step, change, inverse), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - inverse * (change @ q)) * step
    return q


class HagerZhangEnsemble(NODEEnsemble):
    """As :class:`~nalm.training.ode.ensemble.NODEEnsemble`, for recipes that end with
    :class:`~nalm.training.HagerZhangLBFGS`.

    An interrupted second stage is done again from its beginning, to the same bits.
    """

    def _finish(self, keep: Callable[[int], None]) -> int:
        iterations, finish = self.recipe.iterations, self.recipe.finish
        if not isinstance(finish, HagerZhangLBFGS):
            return super()._finish(keep)
        with np.errstate(all="ignore"):  # numbers that are not finite end a line search
            found, done = minimise_by_line_searches(self._answer, self._flat(self.parameters), finish)
        self.parameters, self.finished_after = self._stacked(found), torch.from_numpy(done).double()
        return iterations + finish.iterations
