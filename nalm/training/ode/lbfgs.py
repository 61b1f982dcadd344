"""L-BFGS for many runs at once: each run has a SciPy minimiser of its own, and all their questions are
answered together.
"""

from __future__ import annotations

import queue
import threading

import numpy as np

from nalm.training.ode.answers import Losses
from nalm.training.optimisers import LBFGS

__all__ = ["minimise_together"]

TOO_LARGE = 1e30
"""Stands for a loss that is no finite number: the line search turns back from it."""


def minimise_together(losses: Losses, starts: np.ndarray, settings: LBFGS) -> tuple[np.ndarray, np.ndarray]:
    """Minimise the loss of every run over its own parameters, with SciPy's L-BFGS-B without bounds
    (strong-Wolfe line search by Moré and Thuente).

    A run whose line search finds no lower point, as happens where the loss has a kink, starts anew from where
    it is until that brings nothing either.

    Args:
        losses: from the parameters of all runs (runs, parameters) to their losses (runs,) and gradients
            (runs, parameters).
        starts: (runs, parameters) float64; a run that starts where its loss is not finite stays there.
        settings: iterations, memory, tolerance.

    Returns:
        The parameters (runs, parameters) with the lowest loss that was seen, and the iterations (runs,) that
        were done.

    >>> def bowls(x):
    ...     return ((x - 3.0) ** 2).sum(1), 2 * (x - 3.0)
    >>> found, iterations = minimise_together(bowls, np.zeros((2, 4)), LBFGS(iterations=20))
    >>> found.round(6).tolist()
    [[3.0, 3.0, 3.0, 3.0], [3.0, 3.0, 3.0, 3.0]]
    """
    asked: queue.Queue = queue.Queue()
    runs = [_Run(number, start, settings, asked) for number, start in enumerate(starts)]
    threads = [threading.Thread(target=run.minimise, daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    at, busy = starts.copy(), len(runs)
    waiting: list[int] = []
    while busy:
        number, x = asked.get()
        if x is None:
            busy -= 1
        else:
            waiting.append(number)
            at[number] = x
        if waiting and len(waiting) == busy:
            try:
                values, gradients = losses(at)
            except BaseException:  # Ctrl-C, too: no thread may be left waiting
                for run in runs:
                    run.answer.put(None)
                raise
            for number in waiting:
                runs[number].answer.put((values[number], gradients[number]))
            waiting = []
    for thread in threads:
        thread.join()
    if failed := [run.error for run in runs if run.error]:
        raise failed[0]
    return np.stack([run.best for run in runs]), np.array([run.iterations for run in runs])


class _Run:
    """One run's minimiser, in a thread that mostly waits for answers."""

    def __init__(self, number: int, start: np.ndarray, settings: LBFGS, asked: queue.Queue) -> None:
        self.number, self.best, self.settings, self.asked = number, start, settings, asked
        self.answer: queue.Queue = queue.Queue()
        self.lowest, self.iterations, self.error = np.inf, 0, None  # type: float, int, Exception | None

    def minimise(self) -> None:
        try:
            self._minimise()
        except Exception as error:  # is raised again where the runs are waited for
            self.error = error
        finally:
            self.asked.put((self.number, None))

    def _minimise(self) -> None:
        from scipy.optimize import minimize

        left = self.settings.iterations
        while left > 0:
            before = self.lowest
            options = {
                "maxcor": self.settings.memory,
                "maxiter": left,
                "maxfun": 100 * left,
                "ftol": 0.0,
                "gtol": self.settings.gradient_tolerance,
            }
            result = minimize(self._loss, self.best, jac=True, method="L-BFGS-B", options=options)
            self.iterations += result.nit
            left -= result.nit
            stuck = result.status == 2  # the line search ended without a lower point
            if not (
                stuck
                and np.isfinite(self.lowest)
                and self.lowest < before - 1e-9 * abs(before if np.isfinite(before) else self.lowest)
            ):
                return

    def _loss(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.asked.put((self.number, x.copy()))
        if (answer := self.answer.get()) is None:
            raise RuntimeError("The minimiser of the other runs has ended.")
        value, gradient = answer
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return TOO_LARGE, np.zeros_like(x)
        if value < self.lowest:
            self.lowest, self.best = float(value), x.copy()
        return float(value), gradient
