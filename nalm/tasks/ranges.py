"""Ranges of inputs. A range draws its inputs from uniform numbers in (0, 1), in torch (training) as well as in NumPy (validation, test).

NumPy's ``RandomState(seed).uniform(low, high)`` is ``low + (high - low) * random_sample()``, so the fixed validation and test inputs of the
papers are reproduced to the last bit from their published seeds.
"""

from __future__ import annotations

import numpy as np
from pydantic import model_validator

from nalm.values import Value

__all__ = ["Uniform", "UniformUnion", "Range"]


class Uniform(Value):
    """U[low, high).

    >>> print(Uniform(low=-2.0, high=2.0))
    U[-2,2)
    """

    low: float
    high: float

    @model_validator(mode="after")
    def _not_empty(self) -> Uniform:
        if not self.low < self.high:
            raise ValueError(f"A range needs low < high, but got [{self.low:g}, {self.high:g}).")
        return self

    def __str__(self) -> str:
        return f"U[{self.low:g},{self.high:g})"

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        return generator.uniform(self.low, self.high, shape)


class UniformUnion(Value):
    """The union of two ranges; every element picks one of them with probability 1/2.

    >>> print(UniformUnion(first=Uniform(low=-6.0, high=-2.0), second=Uniform(low=2.0, high=6.0)))
    U[-6,-2)|U[2,6)
    """

    first: Uniform
    second: Uniform

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        first, second = self.first.sample(generator, shape), self.second.sample(generator, shape)
        return np.where(generator.randint(0, 2, shape) == 0, first, second)


Range = Uniform | UniformUnion
