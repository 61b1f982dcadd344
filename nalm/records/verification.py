"""Verification: published rows are drawn at random, trained again from what is stored, and compared."""

from __future__ import annotations

import json
import math
import random
import secrets
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nalm.records.bar import TrainingBar
from nalm.records.code import OLDER, freshness_of
from nalm.records.comparison import (
    FROM_CONFIGURATION,
    RESULTS,
    Tolerances,
    differences,
    is_further_result,
    twins,
)
from nalm.records.folders import LOCAL, PUBLISHED
from nalm.records.provenance import is_gpu
from nalm.records.row import whole_row_of
from nalm.records.store import Store
from nalm.records.workers import device_of, train_ensembles
from nalm.training import Run
from nalm.training.compiler import obstacle
from nalm.units import checks
from nalm.units.checks import choose

__all__ = [
    "RECEIPTS",
    "CheckedRow",
    "Verification",
    "can_be_written",
    "experiments",
    "rebuilt",
    "results_of",
    "verify_rows",
]

RECEIPTS = LOCAL.parent / "receipts"
"""The folder of receipts, where no other path is given."""


@dataclass(frozen=True)
class CheckedRow:
    """One row that was trained again.

    Args:
        experiment, key: where the row is.
        name: what it is: model, range and seed.
        freshness: as in :func:`nalm.records.freshness`.
        differences: one phrase for each difference beyond the tolerances; empty if there is none.
        recorded, retrained: the compared values; ``retrained`` is empty if no run could be made of what is
            stored.
        twins: the values of runs that differ from it by a rounding error only, by which differences are
            judged.
        ensemble: which of the verification's ensembles it was trained in.
        beyond: the differences there would be if its twins did not count. A run that is chaotic, as many
            failed ones are, is confirmed as one of this kind only, not in its digits; its batch's digest
            guards these.
    """

    experiment: str
    key: str
    name: str
    freshness: str
    differences: tuple[str, ...]
    recorded: dict[str, Any]
    retrained: dict[str, Any]
    twins: tuple[dict[str, Any], ...] = ()
    ensemble: int | None = None
    beyond: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.differences

    @property
    def identical(self) -> bool:
        """Whether all compared values are the same to the last digit."""
        return self.passed and self.recorded == self.retrained

    @property
    def within_spread(self) -> bool:
        """Whether it passed only because its twins are as far apart."""
        return self.passed and bool(self.beyond)

    @property
    def _how(self) -> str:
        if self.identical:
            return "to the last digit"
        return "within the spread of its twins" if self.within_spread else "up to rounding"

    def __str__(self) -> str:
        about = f"{self.experiment}: {self.name} ({self.key})"
        if self.passed:
            return f"PASS {about}, {self._how}"
        return f"FAIL {about}" + "".join(f"\n     {difference}" for difference in self.differences)


@dataclass(frozen=True)
class Verification:
    """The outcome of :func:`verify_rows`; ``print`` shows it, :meth:`write` writes its receipt."""

    rows: tuple[CheckedRow, ...]
    candidates: int
    seed: int
    experiments: tuple[str, ...]
    tolerances: Tolerances
    ensembles: tuple[dict[str, Any], ...]
    seconds: float
    damaged: dict[str, list[str]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(row.passed for row in self.rows) and not self.damaged

    def __str__(self) -> str:
        good = sum(row.passed for row in self.rows)
        lines = [f"Sample {self.seed}: {len(self.rows)} of {self.candidates} rows", *map(str, self.rows)]
        lines += [
            f"FAIL {name}: rows of the batch {batch} are not as they were recorded"
            for name, batches in self.damaged.items()
            for batch in batches
        ]
        verdict = "PASS" if self.passed else "FAIL"
        if not self.rows:
            return "\n".join([*lines[1:], f"{verdict}: the digests of {self.candidates} rows were compared."])
        return "\n".join([*lines, f"{verdict}: {good} of {len(self.rows)} rows are confirmed."])

    def receipt(self) -> dict[str, Any]:
        """Everything that was done and found, as it is written to JSON."""
        return _without_nan(
            {
                "verdict": "PASS" if self.passed else "FAIL",
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "sample": {
                    "seed": self.seed,
                    "rows": len(self.rows),
                    "of": self.candidates,
                    "experiments": list(self.experiments),
                },
                "tolerances": asdict(self.tolerances),
                "seconds": round(self.seconds, 2),
                "ensembles": list(self.ensembles),
                "damaged": self.damaged,
                "rows": [
                    {"verdict": "PASS" if row.passed else "FAIL", "identical": row.identical} | asdict(row)
                    for row in self.rows
                ],
            }
        )

    def write(self, path: str | Path = "") -> Path:
        """Write the receipt and return its path; with an empty path a new one in :data:`RECEIPTS`."""
        name = f"{datetime.now(UTC).strftime('%Y-%m-%d-%H%M%S')}-{self.seed}.json"
        path = Path(path).expanduser() if str(path) else RECEIPTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.receipt(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def can_be_written(path: str | Path = "", what: str = "receipt") -> None:
    """Make sure that a receipt, or another file, can be written there, before anything trains.

    Args:
        path: as :meth:`Verification.write` takes it.
        what: is to be written there.

    Raises:
        OSError: one sentence, if it cannot.
    """
    if str(path) and Path(path).expanduser().is_dir():
        raise OSError(f"The {what} cannot be written to {path}, which is a folder; name a file in it.")
    folder = Path(path).expanduser().parent if str(path) else RECEIPTS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"The {what} cannot be written to {folder} ({error.strerror}); name another place."
        ) from None


def experiments(folder: str | Path = PUBLISHED) -> list[str]:
    """The names of the experiments that have rows in a folder of results."""
    return sorted(
        file.relative_to(folder).with_suffix("").as_posix() for file in Path(folder).glob("*/*.csv")
    )


def verify_rows(
    rows: int = 5,
    experiment: str | Sequence[str] = (),
    seed: int | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    stale_first: bool = False,
    device: str = "cpu",
    folder: str | Path = PUBLISHED,
    tolerances: Tolerances = Tolerances(),
    progress: bool = True,
    key: str | Collection[str] = "",
) -> Verification:
    """Draw rows at random, train them again from their stored configuration and seed, and compare.
    The digests of all rows of these experiments are compared as well.

    Rows from a GPU are not drawn for a CPU, where large models take twenty times as long; with their key they
    are trained there as well.

    Args:
        rows: how many; all there are if fewer. 0 trains nothing.
        experiment: one name, or some, to draw from; all if empty.
        seed: of the sample; a fresh one if not given.
        iterations: draw only from the rows that were trained for at most so many updates.
        seconds: draw only from the rows whose ensemble took at most so many seconds.
        stale_first: draw rows that are older than the code they depend on before all others.
        device: where they are trained.
        folder: the folder of results; the published ones if not given.
        tolerances: what may differ.
        progress: show a progress bar.
        key: draw only from rows with this key, or with one of these, of which an experiment has one row each;
            from all if empty.

    Raises:
        ValueError: an experiment or a key that is not there, a negative number of rows, a device that is not
            there, or no rows to draw from.
        TypeError: a number of rows that is no integer, or a limit that is no number.
    """
    rows = checks.integer("rows", rows, low=0)
    for what, most in {"iterations": iterations, "seconds": seconds}.items():
        if most is not None:
            checks.number(what, most)
    device = device_of(device)
    known = experiments(folder)
    if not known:
        raise ValueError(f"There are no rows to verify: {folder} holds no results.")
    asked = [experiment] if isinstance(experiment, str) and experiment else list(experiment)
    chosen = sorted({choose("experiment", name, known) for name in asked}) or known
    stores = {name: Store(folder, name) for name in chosen}
    # before the sidecars, which then know all of these rows
    rows_of = {name: store.read(checked=False) for name, store in stores.items()}
    sidecars = {name: store.sidecar() for name, store in stores.items()}
    rows_of = {name: _with_numbers(of) for name, of in rows_of.items() if not of.empty}
    candidates = [one for name, of in rows_of.items() for one in _candidates(name, of, sidecars[name])]
    if key:
        keys = {key} if isinstance(key, str) else set(key)
        candidates = [row for row in candidates if row.key in keys]
        if not candidates:
            named = ", ".join(map(repr, sorted(keys)[:3])) + (", ..." if len(keys) > 3 else "")
            raise ValueError(f"There is no row of the key {named} to verify in {', '.join(chosen)}.")
    elif device == "cpu" and candidates:
        candidates = [row for row in candidates if not row.gpu]
        if not candidates:
            raise ValueError(
                f"All rows of {', '.join(chosen)} come from a GPU: name one by its key, or use device='cuda'."
            )
    candidates = [row for row in candidates if iterations is None or row.iterations <= iterations]
    candidates = [row for row in candidates if seconds is None or row.ensemble_seconds <= seconds]
    if not candidates:
        limits = [] if iterations is None else [f"{iterations} iterations"]
        limits += [] if seconds is None else [f"{seconds:g} seconds"]
        limit = f" of at most {' and '.join(limits)}" if limits else ""
        raise ValueError(f"There are no rows{limit} to verify in {', '.join(chosen)}.")
    seed = secrets.randbelow(2**32) if seed is None else seed
    states = _freshness(candidates if stale_first else (), rows_of, sidecars)
    drawn = _draw(candidates, rows, seed, {one for one, state in states.items() if state == OLDER})
    states = _freshness(drawn, rows_of, sidecars)
    sample = [_whole(one, rows_of[one.experiment], sidecars[one.experiment], states[one]) for one in drawn]
    checked, ensembles, seconds = _check(sample, sidecars, device, tolerances, progress)
    return Verification(
        tuple(checked),
        len(candidates),
        seed,
        tuple(chosen),
        tolerances,
        tuple(ensembles),
        seconds,
        {name: batches for name, store in stores.items() if (batches := store.damaged())},
    )


class _Candidate(NamedTuple):
    """A row that may be drawn, and where it stands in its results file."""

    experiment: str
    key: str
    position: int
    iterations: Any
    ensemble_seconds: float
    gpu: bool


def _candidates(experiment: str, rows: pd.DataFrame, sidecar: dict[str, Any]) -> Iterable[_Candidate]:
    seconds = pd.to_numeric(rows["seconds"], errors="coerce").groupby(rows["batch"]).transform("sum")
    on_gpu = {batch for batch, origin in sidecar["batches"].items() if is_gpu(str(origin.get("device")))}
    columns = rows["key"], range(len(rows)), rows["iterations"], seconds, rows["batch"].isin(on_gpu)
    return (_Candidate(experiment, *one) for one in zip(*columns, strict=True))


def _freshness(
    candidates: Iterable[_Candidate], rows: dict[str, pd.DataFrame], sidecars: dict[str, dict[str, Any]]
) -> dict[_Candidate, str]:
    of_files: dict[str, list[_Candidate]] = defaultdict(list)
    for one in candidates:
        of_files[one.experiment].append(one)
    found: dict[_Candidate, str] = {}
    for name, of in of_files.items():
        states = freshness_of(rows[name].iloc[[one.position for one in of]], sidecars[name])
        found |= dict(zip(of, states, strict=True))
    return found


def _whole(one: _Candidate, rows: pd.DataFrame, sidecar: dict[str, Any], freshness: str) -> dict[str, Any]:
    """A row with its freshness, and the model and range that its configuration is called."""
    configuration = one.key.rpartition("-")[0]
    alike = rows[rows["key"].str.rpartition("-")[0] == configuration]
    named = sidecar.get("names", {}).get(configuration, {})
    usual = {
        f"usual {column}": named[column] if column in named else alike[column].mode().get(0)
        for column in ("model", "range")
    }
    (row,) = rows.iloc[[one.position]].to_dict("records")
    return row | {"freshness": freshness} | usual


def _with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of which one cell that is no number does not make text of all others of its column."""
    numbers = {
        name: rows[name].map(_number)
        for name in rows
        if (name in RESULTS or name in FROM_CONFIGURATION or is_further_result(name))
        and name != "weights"
        and not pd.api.types.is_numeric_dtype(rows[name])
    }
    return rows.assign(**numbers)


def _number(cell: Any) -> Any:
    """What the cell of a results file says, whatever stands in the others."""
    if not isinstance(cell, str):
        return cell
    if cell in ("True", "False"):
        return cell == "True"
    try:
        return float(cell)
    except ValueError:
        return cell


def _draw(
    candidates: list[_Candidate], number: int, seed: int, first: Collection[_Candidate]
) -> list[_Candidate]:
    """A sample without replacement, some before all others; it depends on the rows and the seed, not on the
    order in which rows were recorded.
    """
    order = sorted(candidates, key=lambda one: (one.experiment, one.key))
    random.Random(seed).shuffle(order)
    return sorted(order, key=lambda one: one not in first)[:number]


@dataclass(frozen=True)
class _Retrained:
    run: Run
    row: dict[str, Any]
    twins: list[dict[str, Any]]
    ensemble: int


def _check(
    sample: list[dict], sidecars: dict[str, dict], device: str, tolerances: Tolerances, progress: bool
) -> tuple[list, list, float]:
    runs: dict[int, Run] = {}
    problems: dict[int, str] = {}
    for index, row in enumerate(sample):
        try:
            runs[index] = rebuilt(row, sidecars[row["experiment"]])
        except ValueError as error:
            problems[index] = str(error)
    retrained, ensembles, seconds = _retrain(runs, sample, device, progress)
    checked = [_compared(row, problems.get(i), retrained.get(i), tolerances) for i, row in enumerate(sample)]
    # Where a weight is saturated, eager and compiled code may round its gradient to 0 or not, and no twin
    # shows that: what differs is trained again as it was recorded.
    eager = {
        index: runs[index]
        for index, one in retrained.items()
        if not checked[index].passed
        and not ensembles[one.ensemble]["compiled"]
        and sidecars[sample[index]["experiment"]]["batches"].get(sample[index]["batch"], {}).get("compiled")
    }
    if eager and device == "cpu" and not obstacle(device):
        again, more, further = _retrain(eager, sample, device, progress, compiled=True)
        for index, one in again.items():
            one = replace(one, ensemble=one.ensemble + len(ensembles))
            checked[index] = _compared(sample[index], None, one, tolerances)
        ensembles, seconds = [*ensembles, *more], seconds + further
    return checked, ensembles, seconds


def rebuilt(row: dict[str, Any], sidecar: dict[str, Any]) -> Run:
    """The run of a row, from the stored configuration and the seed in its key; a ``ValueError`` if that is
    not the run with this key.
    """
    configuration_key, _, seed = row["key"].rpartition("-")
    configuration = sidecar["configurations"].get(configuration_key)
    if configuration is None:
        raise ValueError("its configuration is not stored")
    try:
        run = Run.from_json(json.dumps(configuration | {"seed": int(seed)}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"its stored configuration is not that of a run: {error}") from None
    if run.key != row["key"]:
        raise ValueError(f"its stored configuration is that of another run, {run.key}")
    return run


def _retrain(
    runs: dict[int, Run], sample: list[dict], device: str, progress: bool, compiled: bool | None = None
) -> tuple[dict[int, _Retrained], list[dict], float]:
    """Index of a sampled row -> what became of its run; the provenance of the ensembles; their seconds."""
    groups: dict[tuple, list[int]] = {}
    for index, run in runs.items():
        groups.setdefault(run.structure(), []).append(index)
    asked = []
    for group in groups.values():
        family = [member for index in group for member in (runs[index], *twins(runs[index]))]
        # Several experiments may have published the same run; in an ensemble it comes once.
        asked.append(list({run.key: run for run in family}.values()))
    found: dict[int, Any] = {}
    ensembles: list[dict[str, Any]] = []
    seconds = 0.0
    with (
        tempfile.TemporaryDirectory() as scratch,
        TrainingBar((run for ensemble in asked for run in ensemble), progress) as bar,
    ):
        for trained, (log, origin) in train_ensembles(
            asked, device, Path(scratch), bar.update, compiled=compiled, compiling=bar.compiling
        ):
            columns = {run.key: column for column, run in enumerate(trained)}
            for index in groups[trained[0].structure()]:
                run, experiment = runs[index], sample[index]["experiment"]
                own, *others = (
                    whole_row_of(member, columns[member.key], log, experiment, "")
                    for member in (run, *twins(run))
                )
                found[index] = _Retrained(run, own, others, len(ensembles))
            ensembles.append(origin)
            seconds += log.seconds
    return found, ensembles, seconds


def _compared(
    row: dict[str, Any], problem: str | None, retrained: _Retrained | None, tolerances: Tolerances
) -> CheckedRow:
    found, beyond = [problem or ""], []
    if retrained is not None:
        try:
            alone = replace(tolerances, spread=0.0)
            found, beyond = (
                differences(row, retrained.row, retrained.twins, retrained.run, how)
                for how in (tolerances, alone)
            )
        except Exception as error:  # whatever stands in a row, the others are compared
            found = [f"it cannot be compared: {error}"]
    return CheckedRow(
        experiment=row["experiment"],
        key=row["key"],
        name=f"{row['model']} on {row['range']}, seed {row['seed']}",
        freshness=row["freshness"],
        differences=tuple(found),
        recorded=results_of(row, retrained.row if retrained else row),
        retrained=results_of(retrained.row, retrained.row) if retrained else {},
        twins=tuple(results_of(twin, twin) for twin in retrained.twins) if retrained else (),
        ensemble=retrained.ensemble if retrained else None,
        beyond=tuple(beyond),
    )


def results_of(row: dict[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """What was found by training, of a recorded or a new row, in those of the columns that hold results;
    comparable, and fit for JSON.
    """
    return _without_nan(
        {name: row.get(name) for name in columns if name in RESULTS or is_further_result(name)}
    )


def _without_nan(value: Any) -> Any:
    """The value with what JSON has no number for replaced: NaN by null, infinities by their names."""
    if isinstance(value, dict):
        return {name: _without_nan(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
