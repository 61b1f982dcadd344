"""When a line of runs is *replayed*: its runs end as the authors' of the same seeds, beyond what chance and
another draw of the weights would give.

The rule, the same for all lines of which single runs are published:

* Cohen's kappa of the outcomes is at least 0.8 where both outcomes are published. Elsewhere at least 80% of
  the runs are solved within one row of the log of the authors'.
* A replay is nearer to the authors' run of its seed than replays of other seeds are, by a permutation test.
* It is nearer than the run of its seed from the first draw of the weights is, by a sign test.

Nearer of two runs is the one with the same outcome, and of two solved ones the one that is solved at about
the same iteration. Both tests are at the level :data:`companion.experiment.statements.FALSE_ALARM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from companion import published
from companion.experiment.rows import NOT_RUN
from companion.experiment.statements import FALSE_ALARM, Read
from companion.experiment.tables import Table
from companion.nau_nmu.settings import REPLAY, usual

__all__ = ["AT_LEAST", "EVERY", "FULL", "Line", "kappa", "line", "lines", "table"]

AT_LEAST = 0.8
"""Kappa, or the share of runs solved within one row."""
EVERY = 1000
"""Iterations from one row of a log to the next."""
FULL = 5_000_000
"""Updates of the authors' runs."""


@dataclass(frozen=True)
class Line:
    """A line of a table, its replays beside the authors' runs.

    Args:
        operation, model: which line.
        runs: seeds of which all three runs are known; 0 if it is not replayed in full.
        outcomes: how many of them end alike, solved or not.
        kappa: of the outcomes; NaN where all published ones are the same.
        near: how many are solved within one row of the authors', or fail as they do.
        chance, first: the probabilities of the two tests.
    """

    operation: str
    model: str
    runs: int = 0
    outcomes: int = 0
    kappa: float = np.nan
    near: int = 0
    chance: float = np.nan
    first: float = np.nan

    @property
    def verdict(self) -> str:
        """``"replayed"``, ``"not replayed"`` or ``"not run"``."""
        if not self.runs:
            return NOT_RUN
        agreement = self.near / self.runs if np.isnan(self.kappa) else self.kappa
        beyond = max(self.chance, self.first) < FALSE_ALARM
        return "replayed" if agreement >= AT_LEAST and beyond else "not replayed"


def kappa(one: np.ndarray, other: np.ndarray) -> float:
    """Cohen's kappa of two sequences of yes and no: 1 if they agree, 0 if they do as often as by chance.

    NaN if the first has one outcome only.

    >>> kappa(np.array([True, True, False, False]), np.array([True, True, False, True]))
    0.5
    """
    if one.all() or not one.any():
        return float("nan")
    expected = one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean())
    return float(((one == other).mean() - expected) / (1 - expected))


def line(operation: str, model: str, theirs: np.ndarray, ours: np.ndarray, first: np.ndarray) -> Line:
    """A line by the iterations at which runs are solved, one per seed, NaN for those that are not.

    Args:
        operation, model: which line.
        theirs: the authors'.
        ours: replays of the same seeds.
        first: our runs of these seeds from the first draw.

    >>> theirs = np.arange(50) * 1e4
    >>> line("sub", "NAU", theirs, ours=theirs + 1000, first=theirs[::-1]).verdict
    'replayed'
    >>> line("sub", "NAU", theirs, ours=theirs[::-1], first=theirs[::-1]).verdict
    'not replayed'
    """
    apart = _apart(theirs[:, None], ours)
    own, further = np.diag(apart), _apart(theirs, first)
    return Line(
        operation,
        model,
        len(theirs),
        int((np.isnan(theirs) == np.isnan(ours)).sum()),
        kappa(~np.isnan(theirs), ~np.isnan(ours)),
        int((own <= EVERY).sum()),
        _permuted(apart),
        _signs(own, further),
    )


def _apart(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Iterations between two solved runs; 0 between two failed ones, infinite between one of each."""
    failed = np.isnan(one).astype(int) + np.isnan(other)
    return np.select(
        [failed == 2, failed == 1], [0.0, np.inf], np.abs(np.nan_to_num(one) - np.nan_to_num(other))
    )


def _permuted(apart: np.ndarray, samples: int = 2000) -> float:
    """How often replays of shuffled seeds are as near.

    Args:
        apart: (seeds, seeds) from the authors' run of one seed to the replay of another.
    """
    own = apart[:, :, None]
    others = apart[:, None, :]
    further = (own < others).mean(-1) + (own == others).mean(-1) / 2  # how many are further away, of all
    generator, seeds = np.random.default_rng(0), np.arange(len(apart))
    shuffled = [further[seeds, generator.permutation(seeds)].mean() for _ in range(samples)]
    return float((1 + np.sum(shuffled >= np.diag(further).mean())) / (1 + samples))


def _signs(own: np.ndarray, further: np.ndarray) -> float:
    from scipy.stats import binomtest

    nearer, other = int((own < further).sum()), int((own > further).sum())
    return float(binomtest(nearer, nearer + other, alternative="greater").pvalue) if nearer + other else 1.0


def lines(table: Mapping[str, tuple[str, ...]], read: Read) -> list[Line]:
    """All lines of a table, operation -> models.

    Those of which not all published seeds are replayed are *not run*. Those of which no published run is
    solved, or none is published, tell no seed from another, and are left out.
    """
    theirs = published.load("nau_nmu_runs")
    again, first = _known(read(REPLAY)), _known(read("nau-nmu/arithmetic"))
    found = []
    for operation, model in [(one, model) for one, models in table.items() for model in models]:
        part = theirs.query("operation == @operation and model == @model").set_index("seed")
        times = part["solved_at"].where(part["success"].astype(bool))
        streams = [again.get((operation, model, stream)) for stream in ("common", "numpy")]
        ours = [one for one in streams if one is not None and set(times.index) <= set(one.index)]
        known = [one for (*which, _), one in first.items() if tuple(which) == (operation, model)]
        if times.isna().all():
            continue
        if not ours or not known:
            found.append(Line(operation, model))
            continue
        parts = (one.reindex(times.index).to_numpy(float) for one in (times, ours[0], known[0]))
        found.append(line(operation, model, *parts))
    return found


def _known(rows: pd.DataFrame) -> dict[tuple[str, str, str], pd.Series]:
    """Operation, model and stream -> when each seed is solved, NaN if not.

    Seeds whose training ended before they were solved and before the authors' did are left out.
    """
    if "operation" not in rows:
        return {}
    rows = usual(rows[(rows["task"] == "SubsetArithmeticTask") & rows["operation"].notna()])
    rows = rows[rows["success"].eq(True) | (rows["iterations"] >= FULL)]
    rows = rows.sort_values("iterations").drop_duplicates(
        ["operation", "model", "stream", "seed"], keep="last"
    )
    times = rows["solved_at"].where(rows["success"].astype(bool))
    parts = rows.assign(solved_at=times).groupby(["operation", "model", "stream"])
    return {which: part.set_index("seed")["solved_at"] for which, part in parts}


def table(found: list[Line]) -> Table:
    """Lines as a table of a chapter."""
    columns = ["operation", "model", "runs", "same outcome", "κ", "within a row", "chance", "first draw"]
    frame = pd.DataFrame(
        [
            (one.operation, one.model, one.runs, one.outcomes, one.kappa, one.near, one.chance, one.first)
            for one in found
        ],
        columns=columns,
    ).assign(verdict=[one.verdict for one in found])
    run = frame["runs"] > 0
    frame[columns[2:]] = frame[columns[2:]].astype(object).where(run, "")
    frame["runs"] = frame["runs"].where(run, NOT_RUN)
    caption = (
        "Lines of Table 2, replays beside the authors' runs, seed by seed; the probabilities of two tests"
    )
    return Table(frame.fillna("–"), caption=caption, digits=2)
