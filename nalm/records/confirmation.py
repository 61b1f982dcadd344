"""Confirmation: rows that are older than their code are as good as new if a sample of them, trained again, is the same to the last digit."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from nalm.records.code import OLDER, code_on_disk
from nalm.records.comparison import Tolerances
from nalm.records.folders import PUBLISHED
from nalm.records.provenance import surroundings
from nalm.records.store import Store
from nalm.records.verification import CheckedRow, candidates_of, check, rebuilt

__all__ = ["Confirmation", "confirm"]


@dataclass(frozen=True)
class Confirmation:
    """What became of the rows of one experiment that were recorded with one code and depend on another now.

    Args:
        experiment: where the rows are.
        recorded, current: the two codes.
        of: number of these rows.
        rows: those that were trained again.
    """

    experiment: str
    recorded: str
    current: str
    of: int
    rows: tuple[CheckedRow, ...]

    @property
    def passed(self) -> bool:
        """Whether all rows are the same to the last digit."""
        return all(row.identical for row in self.rows)

    def __str__(self) -> str:
        same = sum(row.identical for row in self.rows)
        verdict = "CONFIRMED" if self.passed else "NOT CONFIRMED"
        sample = f"{same} of {len(self.rows)} are the same to the last digit"
        text = f"{verdict} {self.experiment}, {self.of} rows recorded with {self.recorded}: {sample}"
        return "\n".join([text, *(f"     {row.name} ({row.key}) is not" for row in self.rows if not row.identical)])


def confirm(experiment: str, rows: int = 5, seed: int | None = None, folder: str | Path = PUBLISHED, progress: bool = True) -> list[Confirmation]:
    """Train a sample of the rows that are older than their code again, and note in the sidecar where all of them come out the same to the last digit.

    The rows that were recorded with one code and depend on the same code now are one population, of which rows are drawn at random. If ``n`` of ``n``
    are the same, then with 95 % confidence fewer than ``3 / n`` of the population are not; and a change that rounds differently changes digits
    of nearly every run. Other processors round differently, so this is for the machine that recorded the rows.

    Args:
        experiment: ``"<paper>/<name>"``.
        rows: how many are drawn from each population.
        seed: of the sample; a fresh one if not given.
        folder: the folder of results; the published ones if not given.
        progress: show a progress bar.

    Returns:
        One confirmation per population; none if no row of known code is older than it.

    Raises:
        ValueError: fewer than one row, or files of the library that changed since this process started.
    """
    if rows < 1:
        raise ValueError(f"The number of rows to train again is {rows}, but must be at least 1.")
    store, seed = Store(folder, experiment), secrets.randbelow(2**32) if seed is None else seed
    sidecar = store.sidecar()
    populations = _populations(candidates_of(store.read(), sidecar))
    samples = {codes: random.Random(seed).sample(members, min(rows, len(members))) for codes, members in populations.items()}
    drawn = [row for sample in samples.values() for row in sample]
    checked, _, _ = check(drawn, {experiment: sidecar}, "cpu", Tolerances(), progress, companions=lambda run: [])
    if any(code_on_disk(rebuilt(row, sidecar)) != row["current"] for row in drawn):
        raise ValueError("Files of the library changed while rows were trained again; nothing was confirmed. Start again.")
    by_key = {row.key: row for row in checked}
    found = [
        Confirmation(experiment, *codes, len(populations[codes]), tuple(by_key[row["key"]] for row in sample)) for codes, sample in samples.items()
    ]
    for confirmation in found:
        if confirmation.passed:
            store.confirm(_noted(confirmation, seed))
    return found


def _populations(candidates: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """(recorded, current code) -> the rows that are older, in an order that does not depend on when they were recorded."""

    def codes(row: dict[str, Any]) -> tuple[str, str]:
        return row["recorded"], row["current"]

    older = [row for row in candidates if row["freshness"] == OLDER and all(isinstance(code, str) for code in codes(row))]
    return {pair: list(members) for pair, members in groupby(sorted(older, key=lambda row: (codes(row), row["key"])), codes)}


def _noted(confirmation: Confirmation, seed: int) -> dict[str, Any]:
    keys = [row.key for row in confirmation.rows]
    codes = {"recorded": confirmation.recorded, "current": confirmation.current}
    return codes | {"of": confirmation.of, "rows": keys, "sample": seed} | surroundings()
