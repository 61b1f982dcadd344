"""The rows of a chapter: select, count, and say "not run" once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from nalm.records import cost

from companion import figures, measures
from companion.experiment.tables import NOT_RUN, Table, text

__all__ = ["NOT_RUN", "Rows", "counted", "say", "with_numbers"]


class Rows:
    """Rows of runs, one per run.

    Args:
        frame: the rows.
        results: as it was given to :func:`nalm.records.run_all`; for their cost.

    Conditions are columns with the value, or the values, that they may have.

    >>> runs = {"model": ["NAU", "NMU", "NMU"], "seed": [0, 0, 1], "success": [True, True, False]}
    >>> rows = Rows(pd.DataFrame(runs))
    >>> rows.count(model="NMU"), rows.count(model="NRU"), rows.of(model=["NAU", "NMU"]).rate()
    ('1 of 2', 'not run', '0.667 [0.159, 0.955]')
    """

    def __init__(self, frame: pd.DataFrame, results: str = "") -> None:
        self.frame, self.results = frame, results

    def __len__(self) -> int:
        return len(self.frame)

    def of(self, **where: Any) -> Rows:
        """The rows that fulfil the conditions."""
        fits = np.ones(len(self.frame), dtype=bool)
        for column, value in where.items():
            values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
            fits &= self.frame[column].isin(values).to_numpy()
        return Rows(self.frame[fits], self.results)

    @property
    def success(self) -> pd.Series:
        """Whether each run is solved; one without an answer is not."""
        return self.frame["success"].eq(True)

    @property
    def solved(self) -> Rows:
        """The rows of solved runs."""
        return Rows(self.frame[self.success], self.results)

    @property
    def failed(self) -> Rows:
        """The rows of the other runs."""
        return Rows(self.frame[~self.success], self.results)

    def count(self, **where: Any) -> str:
        """How many runs are solved, ``"16 of 25"``."""
        part = self.of(**where)
        return f"{int(part.success.sum()):,} of {len(part):,}" if len(part) else NOT_RUN

    def rate(self, **where: Any) -> str:
        """The success rate with Wilson's interval."""
        part = self.of(**where)
        return text(measures.success_rate(part.success, seeds=part.frame["seed"])) if len(part) else NOT_RUN

    def share(self, which: pd.Series | np.ndarray) -> str:
        """How many of the rows a condition holds for, ``"3 of 9"``."""
        return f"{int(np.sum(which)):,} of {len(self):,}" if len(self) else NOT_RUN

    def middle(
        self, column: str, digits: int = 3, statistic: Callable[[pd.Series], float] = pd.Series.median
    ) -> str:
        """The median, or another statistic, of a column."""
        values = self.frame[column].dropna()
        return text(float(statistic(values)), digits) if len(values) else NOT_RUN

    def whole(self, column: str, statistic: Callable[[pd.Series], float] = pd.Series.mean) -> str:
        """The mean, or another statistic, of a column of iterations: ``"1,004,000"``."""
        values = self.frame[column].dropna()
        return f"{statistic(values):,.0f}" if len(values) else NOT_RUN

    def weights(self, name: str) -> np.ndarray:
        """A parameter of each run as it was selected, ``(runs, *shape)``; ``name`` as in the module,
        ``"0.weight"``.
        """
        return np.array([json.loads(row)[name] for row in self.frame["weights"]])

    def counts(
        self, index: Iterable[str], columns: Iterable[str], caption: str = "Solved runs", by: str = "range"
    ) -> Table:
        """Solved runs of each model in each range, or another column."""
        return self._each(Rows.count, index, columns, caption, by)

    def rates(
        self,
        index: Iterable[str],
        columns: Iterable[str],
        caption: str = "Share of solved runs, with 95% intervals",
        by: str = "range",
    ) -> Table:
        """As :meth:`counts`, but success rates."""
        return self._each(Rows.rate, index, columns, caption, by)

    def _each(
        self, what: Callable[..., str], index: Iterable[str], columns: Iterable[str], caption: str, by: str
    ) -> Table:
        columns = list(columns)
        lines = [
            {by: place} | {model: what(self, **{by: place, "model": model}) for model in columns}
            for place in index
        ]
        return Table(lines, caption)

    def by_range(
        self,
        models: Iterable[str] = (),
        xlabel: str | None = None,
        x: str = "range",
        panels: Sequence[str] = ("success", "solved_at", "sparsity_error"),
        published: pd.DataFrame | None = None,
        among: Sequence[str] = (),
    ) -> figures.Figure | str:
        """The papers' figure of some models, :func:`companion.figures.by_range`; of all that ran, where none
        of these did.
        """
        part = self.of(model=list(models))
        part = part if len(part) else self
        if not len(part):
            return NOT_RUN
        summary = measures.summarise(part.frame, [x, "model"])
        return figures.by_range(summary, x=x, panels=panels, published=published, xlabel=xlabel, among=among)

    @property
    def cost(self) -> str:
        """What the runs took, as a phrase."""
        return str(cost(self.frame, self.results)) if len(self) else NOT_RUN


def say(numbers: Mapping[str, object] | None = None, /, **more: object) -> None:
    """Numbers for the text of a page, by the name that ``{glue:text}`` calls: as those of ``dict``."""
    from myst_nb import glue

    for name, number in dict(numbers or {}, **more).items():
        glue(name, number if isinstance(number, str) else text(number), display=False)


def counted(name: str, judged: Any) -> Any:
    """Statements to be shown, after the number of those that agree is said, see :func:`say`."""
    return with_numbers(judged, {name: judged.count})


def with_numbers(shown: Any, numbers: Mapping[str, object]) -> Any:
    """What is to be shown, after its numbers are said, see :func:`say`."""
    say(numbers)
    return shown
