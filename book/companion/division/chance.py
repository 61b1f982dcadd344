"""How often other seeds would show what *Neural Division Modules* says and our seeds do not.

A statement about 25 seeds may hold for these and not for the next. Each is written here as a function of
samples of seeds, so that it can be asked of ten thousand of them; it is the one that the scoreboard
judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.records import recorded_runs
from nalm.tasks import UNIFORM_RANGES
from nalm.training import Run

from companion import published
from companion.division.compared import MODIFIED, NEGATIVE, SMALL, UNITS
from companion.experiment import Experiment, parameters
from companion.experiment.rows import NOT_RUN
from companion.experiment.statements import Read
from companion.experiment.tables import text
from companion.replay import in_place

LIMIT = 0.05
"""The share of samples from which on a statement is one that other seeds show.

It was set before the runs were trained.
"""

UNIFORM = tuple(UNIFORM_RANGES)
LARGE = ("U[-100,100)", "U[-50,50)")
TICK = 0.75
"""Success rate above which Table 3 has a tick."""


class Sample:
    """Samples of seeds, of which each configuration has one run.

    Args:
        rows: with the columns ``model``, ``range``, ``seed``, ``success`` and ``solved_at``; all seeds of
            each configuration.
        drawn: (samples, seeds) positions of seeds; ``None``: one sample, of each seed once.
    """

    def __init__(self, rows: pd.DataFrame, drawn: np.ndarray | None = None) -> None:
        table = rows.pivot(index=["model", "range"], columns="seed", values=["success", "solved_at"]).astype(
            float
        )
        if table["success"].isna().any(axis=None):
            raise ValueError("A configuration lacks some of the seeds that others have.")
        self._success, self._solved_at = table["success"], table["solved_at"].where(table["success"] == 1)
        self.drawn = np.arange(self._success.shape[1])[None] if drawn is None else drawn

    def rate(self, model: str, *ranges: str) -> np.ndarray:
        """(samples,) success rates, over all of these ranges."""
        return np.mean(
            [self._success.loc[(model, one)].to_numpy()[self.drawn].mean(1) for one in ranges], axis=0
        )

    def solved_at(self, model: str, place: str) -> np.ndarray:
        """(samples,) means over the solved runs, NaN where there is none."""
        values = np.ma.masked_invalid(self._solved_at.loc[(model, place)].to_numpy()[self.drawn])
        return values.mean(1).filled(np.nan)


def _discretising_loses_once(sample: Sample) -> np.ndarray:
    lost = [sample.rate("discretise both", place) < sample.rate("clip both", place) for place in UNIFORM]
    return (np.array(lost) == np.array([[place == "U[10,20)"] for place in UNIFORM])).all(0)


def _smaller_is_later(sample: Sample) -> np.ndarray:
    """Of the units that solve two ranges or more, most take longer on the smallest than on the largest."""
    later, judged = 0, 0
    for unit in UNITS:
        means = np.array([sample.solved_at(unit, place) for place in SMALL])
        known = ~np.isnan(means)
        first, last = known.argmax(0), len(SMALL) - 1 - known[::-1].argmax(0)
        each = np.arange(means.shape[1])
        several = known.sum(0) > 1
        later = later + (several & (means[first, each] > means[last, each]))
        judged = judged + several
    return 2 * later > judged


def _first_is_hardest(sample: Sample) -> np.ndarray:
    rates = {place: sample.rate("NMRU", place) for place in UNIFORM}
    first = rates.pop("U[-20,-10)")
    return np.all([first < other for other in rates.values()], axis=0)


def _tick(model: str, setting: str, ranges: Sequence[str]) -> Callable[[Sample], np.ndarray]:
    table = published.load("division_values").query(
        "item == 'Table 3' and model == @model and setting == @setting"
    )
    printed = float(table["value"].item()) == 1
    return lambda sample: (sample.rate(model, *ranges) > TICK) == printed


@dataclass(frozen=True)
class Statement:
    """What the paper says of 25 seeds.

    Args:
        item: the figure or table.
        what: the statement, as on the scoreboard.
        runs: experiment -> models whose runs it is about: divisions on these ``ranges`` with so many
            ``inputs``.
        holds: for which samples.
    """

    item: str
    what: str
    runs: dict[str, tuple[str, ...]]
    ranges: tuple[str, ...]
    inputs: int
    holds: Callable[[Sample], np.ndarray]


STATEMENTS = [
    Statement(
        "Figure 2",
        "discretising loses on U[10,20) and nowhere else",
        {"division/robust-real-npu": ("clip both", "discretise both")},
        UNIFORM,
        2,
        _discretising_loses_once,
    ),
    Statement(
        "Figure 13",
        "smaller ranges are solved later",
        {"division/small-numbers": tuple(UNITS)},
        tuple(SMALL),
        2,
        _smaller_is_later,
    ),
    Statement(
        "Figure 23",
        "U[-20,-10) is the hardest range with MSE",
        {"division/redundancy": ("NMRU",)},
        UNIFORM,
        10,
        _first_is_hardest,
    ),
    Statement(
        "Table 3",
        "NMRU: Negative, Uniform, redundancy yes",
        {"division/redundancy": ("NMRU",)},
        tuple(NEGATIVE),
        10,
        _tick("NMRU", "redundancy=yes; Negative; Uniform", NEGATIVE),
    ),
    Statement(
        "Table 3",
        "Real NPU (modified): Large magnitude, Uniform, redundancy no",
        {"division/distributions": (MODIFIED,)},
        LARGE,
        2,
        _tick(MODIFIED, "redundancy=no; Large magnitude; Uniform", LARGE),
    ),
]
"""Five of the paper's statements that our 25 seeds, from the first draw of their weights, do not show."""


def further_runs(seeds: int, first: int = 25, statements: Sequence[Statement] = STATEMENTS) -> list[Run]:
    """The runs that the statements are about, with ``seeds`` further seeds from ``first`` on.

    They are labelled ``model`` and ``range``.

    >>> statement = STATEMENTS[2]
    >>> runs = further_runs(seeds=2, statements=[statement])
    >>> statement.what, len(runs), {run.seed for run in runs}
    ('U[-20,-10) is the hardest range with MSE', 18, {25, 26})
    """
    found = {}
    for one in statements:
        for experiment, models in one.runs.items():
            for run in recorded_runs(experiment, labels=("model", "range"), seed=0):
                task, labels = run.task, run.labels
                asked = labels["model"] in models and labels["range"] in one.ranges
                if asked and (task.operation, task.inputs) == ("div", one.inputs):
                    found |= {
                        again.key: again
                        for again in (run.but(seed=seed) for seed in range(first, first + seeds))
                    }
    return list(found.values())


def shares(
    rows: pd.DataFrame, size: int = 25, samples: int = 10_000, statements: Sequence[Statement] = STATEMENTS
) -> pd.DataFrame:
    """Whether each statement ``holds`` for all seeds of the rows together, and for what ``share`` of
    samples.

    Samples of ``size`` seeds are drawn with replacement, the same for all configurations, as the runs of a
    seed have the same batches.
    """
    every = Sample(rows)
    drawn = np.random.default_rng(0).integers(every.drawn.shape[1], size=(samples, size))
    lines = [
        (one.item, one.what, bool(one.holds(every)[0]), float(one.holds(Sample(rows, drawn)).mean()))
        for one in statements
    ]
    return pd.DataFrame(lines, columns=["item", "what", "holds", "share"])


def replayed(statement: Statement, read: Read) -> str:
    """Whether it holds in the replays of seeds 0 to 24: the authors' initial weights, on their batches.

    Args:
        statement: about 25 seeds.
        read: recorded rows by experiment.
    """
    wanted = {run.key for run in further_runs(seeds=25, first=0, statements=[statement])}
    rows = pd.concat([read(experiment) for experiment in statement.runs], ignore_index=True)
    again = in_place(rows[rows["key"].isin(wanted)].drop_duplicates("key"), read)
    return NOT_RUN if again.empty else text(bool(statement.holds(Sample(again))[0]))


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    runs = further_runs(p.seeds, statements=[one for one in STATEMENTS if one.item in p.items])
    shorter = (
        run.but(recipe=run.recipe.but(iterations=min(p.iterations, run.recipe.iterations))) for run in runs
    )
    return {"division/further-seeds": list(shorter)}


EXPERIMENT = Experiment(
    chapter="book/division/chance.ipynb",
    rules={
        "items": parameters.some_of(dict.fromkeys(one.item for one in STATEMENTS)),
        "samples": parameters.between(1, 100_000),
        "size": parameters.between(1, 1000),
    },
    runs=_runs,
)
