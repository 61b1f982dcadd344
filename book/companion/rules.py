"""What a verdict is made of: comparisons of numbers, and claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from companion import measures
from companion.measures import Interval
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Check", "Claim", "Comparison", "Judge", "exactly", "rate", "rounded", "solved", "student"]


@dataclass(frozen=True)
class Comparison:
    """A number measured here beside the published one, each with its interval (of no width if there is none).

    Numbers that are apart by no more than ``factor`` agree as well.
    """

    what: str
    ours: Interval
    published: Interval
    factor: float = 1.0

    @property
    def agrees(self) -> bool:
        ours, published = self.ours.estimate, self.published.estimate
        return self.ours.overlaps(self.published) or published / self.factor < ours < published * self.factor

    def __str__(self) -> str:
        return text(self.ours)


@dataclass(frozen=True)
class Claim:
    """A comparison between models that the paper's text makes, with the number to show for it."""

    what: str
    agrees: bool
    shown: str = ""

    def __str__(self) -> str:
        return self.shown


@dataclass(frozen=True)
class Judge:
    """How an item is judged by recorded rows.

    Args:
        rows: which rows belong to it.
        by: the columns that make a configuration, each of which needs the paper's seeds.
        compare: what is compared, the headline first.
    """

    rows: Callable[[pd.DataFrame], pd.DataFrame]
    by: tuple[str, ...]
    compare: Callable[[pd.DataFrame], Iterable[Comparison | Claim]]


Check = Callable[[], Iterable[Comparison | Claim]]
"""How an item is judged that needs no rows: tables of settings and analytic figures."""


def exactly(number: float) -> Interval:
    """A number without uncertainty."""
    return Interval(number, number, number, 0)


def rounded(number: float, digits: int) -> Interval:
    """A published number that was rounded to so many digits.

    >>> rounded(1.5e6, digits=2)
    Interval(estimate=1500000.0, low=1450000.0, high=1550000.0, n=0)
    """
    half = 10.0 ** (math.floor(math.log10(abs(number))) + 1 - digits) / 2
    return Interval(number, number - half, number + half, 0)


def rate(number: float, runs: int) -> Interval:
    """A published success rate of this many runs."""
    solved = round(number * runs)
    return measures.success_rate([True] * solved + [False] * (runs - solved))


def student(number: float, standard_error: float, runs: int) -> Interval:
    """A published mean with its standard error."""
    from scipy.stats import t

    half = t.ppf(0.975, runs - 1) * standard_error
    return Interval(number, number - half, number + half, runs)


def solved(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of solved runs."""
    return rows[rows["success"].fillna(False).astype(bool)]
