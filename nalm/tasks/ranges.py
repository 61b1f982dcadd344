"""Ranges of inputs: the distributions that tasks draw from, in NumPy (validation, test) and, for training,
from uniform numbers in torch.

For training a range offers two things: ``numbers(inputs)``, tensors that may differ between the runs of an
ensemble, and the pure function ``transform(u, numbers)``, which takes uniform numbers (inputs, batch) in (0,
1) to inputs of the same shape.

NumPy's ``RandomState(seed).uniform(low, high)`` is ``low + (high - low) * random_sample()``, so the fixed
validation and test inputs of the papers are reproduced to the last bit from their published seeds. Two kinds
of range need more: of :class:`UniformUnion` the code of both papers tosses the coin the other way round
(``coin=1``), and :class:`Benford` draws other numbers of the same distribution.

``batches(generator, count, shape)`` are successive draws: what ``count`` calls of
``sample(generator, shape)`` give.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor

from nalm.values import OrOwn, Value

__all__ = ["Benford", "Halves", "Range", "TrainingRange", "TruncatedNormal", "Uniform", "UniformUnion"]

Tensors = dict[str, Tensor]

FIRST_DIGITS = np.array([0.301, 0.176, 0.125, 0.097, 0.079, 0.067, 0.058, 0.051, 0.046])
"""Benford's law, the probabilities of the digits 1 to 9, with the three digits of the division paper's code.
"""


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
        if max(-self.low, self.high, self.high - self.low) > torch.finfo(torch.float32).max:
            raise ValueError(
                f"A range is of numbers of 32 bits, up to 3.4e38, but got [{self.low:g}, {self.high:g})."
            )
        return self

    def __str__(self) -> str:
        return f"U[{self.low:g},{self.high:g})"

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        return generator.uniform(self.low, self.high, shape)

    def batches(self, generator: np.random.RandomState, count: int, shape: tuple[int, ...]) -> np.ndarray:
        return self.sample(generator, (count, *shape))

    def numbers(self, inputs: int) -> Tensors:
        return {"low": torch.tensor(self.low), "width": torch.tensor(self.high - self.low)}

    @staticmethod
    def transform(u: Tensor, numbers: Tensors) -> Tensor:
        return numbers["low"] + numbers["width"] * u


class UniformUnion(Value):
    """The union of two ranges; every element picks one of them with probability 1/2.

    Args:
        first, second: the ranges.
        coin: what the coin, 0 or 1, shows where an element comes from the first range. It is 1 in the papers'
            code.

    >>> print(UniformUnion(first=Uniform(low=-6.0, high=-2.0), second=Uniform(low=2.0, high=6.0)))
    U[-6,-2)|U[2,6)
    """

    first: Uniform
    second: Uniform
    coin: Literal[0, 1] = 0

    def __str__(self) -> str:
        return f"{self.first}|{self.second}"

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        first, second = self.first.sample(generator, shape), self.second.sample(generator, shape)
        return np.where(generator.randint(0, 2, shape) == self.coin, first, second)


class Halves(Value):
    """The first half of the inputs (rounded down) from one range, the others from another: operands of known
    signs.

    Source: division paper, Table 6; its code for any number of inputs.

    >>> halves = Halves(first_half=Uniform(low=-2.0, high=-1.0), second_half=Uniform(low=1.0, high=2.0))
    >>> print(halves, np.sign(halves.sample(np.random.RandomState(0), (1, 5))))
    U[-2,-1) then U[1,2) [[-1. -1.  1.  1.  1.]]
    """

    first_half: Uniform
    second_half: Uniform

    def __str__(self) -> str:
        return f"{self.first_half} then {self.second_half}"

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        first, second = self.first_half.sample(generator, shape), self.second_half.sample(generator, shape)
        return np.where(np.arange(shape[-1]) < shape[-1] // 2, first, second)

    def batches(self, generator: np.random.RandomState, count: int, shape: tuple[int, ...]) -> np.ndarray:
        return np.stack([self.sample(generator, shape) for _ in range(count)])

    def numbers(self, inputs: int) -> Tensors:
        ranges = [self.first_half] * (inputs // 2) + [self.second_half] * (inputs - inputs // 2)
        low, width = [[r.low] for r in ranges], [[r.high - r.low] for r in ranges]
        return {"low": torch.tensor(low), "width": torch.tensor(width)}  # (inputs, 1)

    transform = staticmethod(Uniform.transform)  # type: ignore[pydantic-field]


class TruncatedNormal(Value):
    """The normal distribution with this mean and standard deviation, given that the value lies in [low,
    high). Of the normal distribution, at least one value in a billion must.

    Source: division paper, Table 2.

    >>> print(TruncatedNormal(mean=-1.0, deviation=3.0, low=-5.0, high=10.0))
    TN(-1,3)[-5,10)
    """

    mean: float
    deviation: PositiveFloat
    low: float
    high: float

    @model_validator(mode="after")
    def _not_empty(self) -> TruncatedNormal:
        if not self.low < self.high:
            raise ValueError(
                f"A truncated normal distribution needs low < high, but got [{self.low:g}, {self.high:g})."
            )
        # of less, its quantiles in float64 are a few numbers or one
        if not self.numbers(1)["share"] > 1e-9:
            raise ValueError(
                f"Too little of the normal distribution with mean {self.mean:g} and deviation "
                f"{self.deviation:g} lies in [{self.low:g}, {self.high:g}) to draw from it there; bring the "
                "mean nearer to the range."
            )
        return self

    def __str__(self) -> str:
        return f"TN({self.mean:g},{self.deviation:g})[{self.low:g},{self.high:g})"

    def _bounds(self) -> tuple[float, float]:
        return (self.low - self.mean) / self.deviation, (self.high - self.mean) / self.deviation

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        from scipy import stats

        return stats.truncnorm.rvs(
            *self._bounds(), loc=self.mean, scale=self.deviation, size=shape, random_state=generator
        )

    def batches(self, generator: np.random.RandomState, count: int, shape: tuple[int, ...]) -> np.ndarray:
        return self.sample(generator, (count, *shape))

    def numbers(self, inputs: int) -> Tensors:
        from scipy import stats

        below, until = stats.norm.cdf(self._bounds())
        values = {
            "mean": self.mean,
            "deviation": self.deviation,
            "low": self.low,
            "high": self.high,
            "below": below,
            "share": until - below,
        }
        return {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}

    @staticmethod
    def transform(u: Tensor, numbers: Tensors) -> Tensor:
        # in float32 a mean that is not 0 makes some numbers exactly 0, by which no unit can divide
        n, u64 = numbers, u.to(torch.float64)
        # sqrt(2) erfinv(2 p - 1) is the quantile function of p; torch has it as ndtri as well, four times
        # slower.
        x = n["mean"] + n["deviation"] * 2**0.5 * torch.erfinv(2 * (n["below"] + n["share"] * u64) - 1)
        return torch.minimum(torch.maximum(x, n["low"]), n["high"]).to(u.dtype)  # rounding in the tails


class Benford(Value):
    """Whole numbers of this many digits whose first digit follows Benford's law, while the others are uniform
    and none of them a leading zero.

    The numbers 10, 20, ... are left out: the trailing digits make a number without leading zeros, 1 to 9 or
    10 to 99. So it is in the authors' code; the paper speaks of real numbers. Source: division paper,
    Table 2.

    >>> numbers, probabilities = Benford(digits=2).values()
    >>> print(Benford(digits=2), numbers.astype(int)[:3], round(probabilities[:9].sum(), 3))
    B[10,100) [11 12 13] 0.301
    """

    digits: int = Field(ge=2, le=3)

    def __str__(self) -> str:
        return f"B[{10 ** (self.digits - 1)},{10**self.digits})"

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers that occur and their probabilities."""
        tens = 10 ** (self.digits - 1)
        rest = np.arange(tens // 10, tens)
        values = np.arange(1, 10)[:, None] * tens + rest
        return values.ravel().astype(float), np.repeat(FIRST_DIGITS / len(rest), len(rest))

    def sample(self, generator: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
        values, probabilities = self.values()
        return generator.choice(values, shape, p=probabilities)

    def batches(self, generator: np.random.RandomState, count: int, shape: tuple[int, ...]) -> np.ndarray:
        return self.sample(generator, (count, *shape))

    def numbers(self, inputs: int) -> Tensors:
        tens = 10 ** (self.digits - 1)
        until = FIRST_DIGITS.cumsum()
        numbers = {
            "from": until - FIRST_DIGITS,
            "per": 0.9 * tens / FIRST_DIGITS,
            "count": 0.9 * tens,
            "tens": tens,
        }
        return {name: torch.tensor(value, dtype=torch.float32) for name, value in numbers.items()}

    @staticmethod
    def transform(u: Tensor, numbers: Tensors) -> Tensor:
        n = numbers
        digit = sum((u >= n["from"][d]).to(torch.int64) for d in range(1, 9))  # less one
        rest = ((u - n["from"][digit]) * n["per"][digit]).floor()
        # rounding at the ends
        rest = torch.minimum(torch.maximum(rest, torch.zeros_like(rest)), n["count"] - 1)
        return (digit + 1) * n["tens"] + n["tens"] / 10 + rest


TrainingRange = Annotated[Uniform | Halves | TruncatedNormal | Benford, OrOwn(Value)]
Range = Annotated[Uniform | UniformUnion | Halves | TruncatedNormal | Benford, OrOwn(Value)]
