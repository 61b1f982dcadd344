"""A sum of power products as a differential equation, with the derivatives of its solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = ["PowerSystem"]

SMALLEST = np.finfo(np.float64).eps
"""Entries of a state below it count as this, as in the power units."""
LARGEST = 1e6
STEPS = {"fine": (4, 20), "rough": (2, 8)}
"""Runge-Kutta steps between two times, and in the first interval, where the root of a small number has a
large slope. Under the fine ones the true fractional SIR equations have a mean squared error of 2e-7, under
the rough ones of 4e-5.
"""


@dataclass(frozen=True)
class PowerSystem:
    r"""What an NPU with open gates and an NAU compute where the state is positive, and which of its numbers
    are free.

    .. math::

        \dot x_k = \sum_j A_{kj} \prod_i x_i^{W_{ji}} \cos\Bigl(\sum_i V_{ji} \log x_i\Bigr)

    NPU paper, Eqs. 10 and 19.

    Args:
        numbers: (units, 3 entries): the rows of W, of V and of the transposed A side by side.
        free: of the same shape; a number that is not free is 0.

    >>> weights = {"field.0.weight": [[0.5]], "field.0.gate": [1.0], "field.1.weight": [[-2.0]]}
    >>> system = PowerSystem.of(weights)  # x' = -2 sqrt(x), so x = (2 - t)^2
    >>> states, slopes = system.solve(np.array([0.0, 0.5]), np.array([[4.0]]))
    >>> states.round(6).tolist(), slopes.shape
    ([[4.0], [2.25]], (2, 1, 2))
    """

    numbers: np.ndarray
    free: np.ndarray

    @classmethod
    def of(cls, weights: Mapping[str, Any]) -> PowerSystem:
        """From the weights of a row. Gates are opened: (g x + 1 - g)^w becomes g^w x^w; an input whose gate
        is nearly shut is left out.
        """
        exponents, coefficients = (
            np.array(weights["field.0.weight"], dtype=float),
            np.array(weights["field.1.weight"], dtype=float),
        )
        imaginary = np.array(weights.get("field.0.weight_im", np.zeros_like(exponents)), dtype=float)
        gates = np.clip(np.array(weights["field.0.gate"], dtype=float), 0.0, 1.0)
        seen = gates > 0.02
        factors = np.prod(np.where(seen, gates, 1.0) ** exponents, 1)
        numbers = np.concatenate([exponents * seen, imaginary * seen, coefficients.T * factors[:, None]], 1)
        return cls(numbers, numbers != 0)

    @property
    def entries(self) -> int:
        """Of the state."""
        return self.numbers.shape[1] // 3

    @property
    def size(self) -> int:
        """How many numbers are free."""
        return int(self.free.sum())

    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W (units, entries), V (units, entries) and A (entries, units)."""
        exponents, imaginary, coefficients = np.split(self.numbers, 3, axis=1)
        return exponents, imaginary, coefficients.T

    def weights(self) -> dict[str, list]:
        """As a row has them."""
        exponents, imaginary, coefficients = self.parts()
        named = {
            "field.0.weight": exponents,
            "field.0.gate": np.ones(self.entries),
            "field.1.weight": coefficients,
        }
        return {
            name: values.tolist()
            for name, values in (
                named | ({"field.0.weight_im": imaginary} if imaginary.any() else {})
            ).items()
        }

    def but(self, numbers: np.ndarray | None = None, free: np.ndarray | None = None) -> PowerSystem:
        """The same with other numbers or free ones. Units without a coefficient lose their exponents."""
        free = (self.free if free is None else free).copy()
        free[~free[:, 2 * self.entries :].any(1)] = False
        return PowerSystem(np.where(free, self.numbers if numbers is None else numbers, 0.0), free)

    @np.errstate(all="ignore")  # what overflows ends the course
    def solve(
        self,
        times: np.ndarray,
        states: np.ndarray,
        restart: bool = False,
        steps: Literal["fine", "rough"] = "fine",
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The states (times, entries) from ``states[0]`` on, and their derivatives with respect to the free
        numbers, (times, entries, size).

        Classical Runge-Kutta steps, and in parallel the sensitivity equations. ``None`` if a state is no
        finite number below 1e6.

        Args:
            times: increasing.
            states: (times, entries) if ``restart``, else only the first is used.
            steps: ``"fine"`` or ``"rough"``.
            restart: start at each time from the state given there: predictions of one interval ahead, which
                hardly ever diverge.
        """
        slope = self._slope()
        state, derivatives = states[0], np.zeros((self.entries, self.size))
        found = [(state, derivatives)]
        for number, (begin, end) in enumerate(zip(times[:-1], times[1:], strict=True)):
            if restart:
                state, derivatives = states[number], np.zeros_like(derivatives)
            count = STEPS[steps][number == 0]
            h = (end - begin) / count
            for _ in range(count):
                k1, s1 = slope(state, derivatives)
                k2, s2 = slope(state + h / 2 * k1, derivatives + h / 2 * s1)
                k3, s3 = slope(state + h / 2 * k2, derivatives + h / 2 * s2)
                k4, s4 = slope(state + h * k3, derivatives + h * s3)
                state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                derivatives = derivatives + h / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
            if not (
                np.isfinite(state).all() and np.abs(state).max() < LARGEST and np.isfinite(derivatives).all()
            ):
                return None
            found.append((state, derivatives))
        return np.stack([state for state, _ in found]), np.stack([derivatives for _, derivatives in found])

    def _slope(self):
        w, v, a = self.parts()
        units, entries = w.shape
        places = np.flatnonzero(self.free)
        with_cosine = v.any()
        # derivative of the right-hand side by all numbers
        by_number = np.zeros((entries, units, 3 * entries))
        each = np.arange(entries)

        def slope(state: np.ndarray, derivatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            seen = np.maximum(state, SMALLEST)
            logs = np.log(seen)
            powers = np.exp(w @ logs)
            if with_cosine:
                angles = v @ logs
                products, turned = powers * np.cos(angles), powers * np.sin(angles)
                by_log = products[:, None] * w - turned[:, None] * v
            else:
                products, turned = powers, np.zeros_like(powers)
                by_log = products[:, None] * w
            by_state = (a @ by_log) * ((state > SMALLEST) / seen)
            by_number[:, :, :entries] = (a * products)[:, :, None] * logs
            by_number[:, :, entries : 2 * entries] = -(a * turned)[:, :, None] * logs
            by_number[each, :, 2 * entries + each] = products
            return a @ products, by_state @ derivatives + by_number.reshape(entries, -1)[:, places]

        return slope
