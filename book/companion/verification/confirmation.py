"""Confirmation: rows that are older than their code are as good as new if some of them, trained again, are
the same to the last digit.
"""

from __future__ import annotations

import random
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from nalm.records.bar import TrainingBar
from nalm.records.code import OLDER, code_on_disk, codes, freshness_of, with_torch
from nalm.records.folders import PUBLISHED
from nalm.records.provenance import surroundings
from nalm.records.row import whole_row_of
from nalm.records.store import Store
from nalm.records.verification import rebuilt, results_of
from nalm.records.workers import train_ensembles
from nalm.training import Run

__all__ = ["Confirmation", "confirm"]

POPULATION = ["recorded", "current", "way"]


@dataclass(frozen=True)
class Confirmation:
    """What became of the rows of one experiment that were recorded with one code, depend on another now and
    take the same way through it.

    Args:
        experiment: where the rows are.
        recorded, current: the two codes.
        way: the way of their runs through the library, see ``nalm.records.code.way``.
        of: number of these rows.
        ensembles: how many of their ensembles were trained again.
        rows: keys of the rows of these ensembles.
        different: keys of those among them that did not come out the same to the last digit.
    """

    experiment: str
    recorded: str
    current: str
    way: str
    of: int
    ensembles: int
    rows: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether all rows are the same to the last digit."""
        return not self.different

    def __str__(self) -> str:
        verdict = "CONFIRMED" if self.passed else "NOT CONFIRMED"
        text = (
            f"{verdict} {self.experiment}, {self.of} rows recorded with {self.recorded} ({self.way}): "
            f"{len(self.rows) - len(self.different)} of {len(self.rows)} in {self.ensembles} ensembles "
            "are the same to the last digit"
        )
        return "\n".join([text, *(f"     {key} is not" for key in self.different)])


def confirm(
    experiment: str,
    ensembles: int = 2,
    seed: int | None = None,
    folder: str | Path = PUBLISHED,
    progress: bool = True,
) -> list[Confirmation]:
    """Train some of the rows that are older than their code again, and note in the sidecar where all of them
    come out the same to the last digit.

    The rows that were recorded with one code, depend on the same code now and take the same way through it
    are one population. Of each, whole ensembles are drawn at random and trained as they were, because some
    units round differently beside another number of runs. Other processors round differently as well, so this
    is for the machine that recorded the rows. What a change of code does to some numbers or options only, a
    sample may miss.

    Args:
        experiment: ``"<paper>/<name>"``.
        ensembles: how many are drawn from each population.
        seed: of the sample; a fresh one if not given.
        folder: the folder of results; the published ones if not given.
        progress: show a progress bar.

    Returns:
        One confirmation per population; none if no row of known code is older than it.

    Raises:
        ValueError: fewer than one ensemble, a row whose stored configuration is not that of its run, or files
            of the library that changed since this process started.
    """
    if ensembles < 1:
        raise ValueError(f"The number of ensembles to train again is {ensembles}, but must be at least 1.")
    store, seed = Store(folder, experiment), secrets.randbelow(2**32) if seed is None else seed
    sidecar, rows = store.sidecar(), store.read(checked=False)
    rows = rows.drop(columns=POPULATION, errors="ignore")  # labels may be called so
    rows = rows.join(codes(rows, sidecar)).assign(freshness=freshness_of(rows, sidecar))
    older = rows[rows["freshness"] == OLDER].dropna(subset=["recorded", "current", "way"])
    drawn = {
        name: population[population["batch"].isin(_drawn(population, ensembles, seed))]
        for name, population in older.groupby(POPULATION)
    }
    batches = sorted({batch for sample in drawn.values() for batch in sample["batch"]})
    same = _retrained(
        [rows[rows["batch"] == batch].to_dict("records") for batch in batches],
        sidecar,
        store.experiment,
        progress,
    )
    found, sizes = [], older.groupby(POPULATION).size()
    for name, sample in drawn.items():
        different = tuple(key for key in sample["key"] if not same[key])
        found.append(
            Confirmation(
                experiment,
                *name,
                int(sizes[name]),
                sample["batch"].nunique(),
                tuple(sample["key"]),
                different,
            )
        )
    for one in found:
        if one.passed:
            noted = {
                "recorded": one.recorded,
                "current": [one.current],
                "way": one.way,
                "of": one.of,
                "rows": list(one.rows),
                "sample": seed,
            }
            store.note("confirmations", noted | surroundings())
    return found


def _drawn(population: pd.DataFrame, ensembles: int, seed: int) -> list[str]:
    """The batches of some ensembles; the choice does not depend on the order in which they were recorded."""
    names = sorted(population["batch"].unique())
    return random.Random(seed).sample(names, min(ensembles, len(names)))


def _retrained(
    samples: list[list[dict[str, Any]]], sidecar: dict[str, Any], experiment: str, progress: bool
) -> dict[str, bool]:
    """Key of each row -> whether its run, trained again beside the others of its ensemble, has the same
    results.
    """
    rows, same = {row["key"]: row for sample in samples for row in sample}, {}
    asked = [[rebuilt(row, sidecar) for row in sample] for sample in samples]
    were_compiled = [sidecar["batches"][sample[0]["batch"]].get("compiled") for sample in samples]
    with (
        tempfile.TemporaryDirectory() as scratch,
        TrainingBar((run for runs in asked for run in runs), progress) as bar,
    ):
        # what was not compiled is not compiled now, as that rounds differently
        for compiled in (None, False):
            part = [
                runs
                for runs, were in zip(asked, were_compiled, strict=True)
                if (were is False) == (compiled is False)
            ]
            for runs, (log, _) in train_ensembles(
                part, "cpu", Path(scratch), bar.update, compiled=compiled, compiling=bar.compiling
            ):
                for column, run in enumerate(runs):
                    new = whole_row_of(run, column, log, experiment, "")
                    same[run.key] = results_of(rows[run.key], new) == results_of(new, new)
    if any(
        row["current"] != now
        for runs, sample in zip(asked, samples, strict=True)
        for row, now in zip(sample, _now(runs), strict=True)
    ):
        raise ValueError(
            "Files of the library changed while rows were trained again; nothing was confirmed. Start again."
        )
    return same


def _now(runs: list[Run]) -> list[str | None]:
    """The code of each run, if the files are still those that this process started with."""
    found = code_on_disk(runs)
    return [
        with_torch(found.get(run.configuration_key) if isinstance(found, dict) else found, torch.__version__)
        for run in runs
    ]
