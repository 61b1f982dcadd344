"""Whether rows bear the names of what they are: their experiment says what each run is called.

A row's key is that of its configuration and seed, so its names can be compared with those of the runs that
have this configuration. Chapters and :data:`companion.missing.QUEUE` define runs. Replays are defined by what
they replay, and runs with further seeds or of another length by the chapters' runs that are else the same.
Where a run is defined several times, a row bears the names of one definition.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pandas as pd
import papermill
from nalm.records.folders import PUBLISHED
from nalm.records.keys import keys_of
from nalm.records.store import Store
from nalm.records.verification import rebuilt
from nalm.training import Run

from companion.experiment import Experiment
from companion.missing import QUEUE, Job
from companion.replay import Stream, replayed

__all__ = ["misnamed"]

BOOK = Path(__file__).parents[3]

Row = dict[str, Any]
Names = dict[str, Any]
"""Column -> what it says for all seeds of a configuration."""


def misnamed(
    experiments: list[Experiment], folder: str | Path = PUBLISHED, names: Collection[str] = ()
) -> list[str]:
    """A sentence for each row whose model, range or other label is not that of its run.

    Published rows without a definition have one as well. Rows of another folder may be without: a reader
    trains with other parameters too.

    Args:
        experiments: whose runs are looked up, with the parameters that their chapters have.
        folder: the folder of results.
        names: results files; all of the folder, if none are named.

    Raises:
        ValueError: a results file that is damaged.
    """
    files = {file.relative_to(folder).with_suffix("").as_posix() for file in Path(folder).glob("*/*.csv")}
    whole = Path(folder).resolve() == PUBLISHED.resolve()
    definitions = _Definitions(experiments, Path(folder))
    found = []
    for name in sorted(files & set(names) if names else files):
        for row, known in definitions.mismatches(name):
            found += [
                f"{name}: {row['key']} is called {row[column]!r} in the column {column}, but is {value!r}"
                for column, value in min(_differences(row, known), key=len, default={}).items()
            ]
            if whole and not known:
                found.append(f"{name}: {row['key']} has no definition, so its names cannot be compared")
    return found


class _Definitions:
    """What the runs of each results file are called.

    Args:
        experiments: whose chapters define runs.
        folder: the folder of results.
    """

    def __init__(self, experiments: list[Experiment], folder: Path) -> None:
        self._experiments, self._folder = experiments, folder
        self._read: dict[str, pd.DataFrame] = {}

    def mismatches(self, name: str) -> Iterator[tuple[Row, list[Names]]]:
        """The rows that bear the names of no definition, each with the names that its run has."""
        known: dict[str, list[Names]] = defaultdict(list)
        rows = self._rows(name).to_dict("records")
        for source in (self._of_chapters, self._of_replays, self._of_queue):
            if rows:
                defined = list(source(name))
                for key, (_, names) in zip(keys_of([run for run, _ in defined]), defined, strict=True):
                    if names not in (here := known[key.rpartition("-")[0]]):
                        here.append(names)
                rows = _unlike(rows, known)
        if unknown := [row for row in rows if not known[_configuration(row)]]:
            known |= self._alike(name, unknown)
            rows = _unlike(rows, known)
        return ((row, known[_configuration(row)]) for row in rows)

    def _rows(self, name: str) -> pd.DataFrame:
        if name not in self._read:
            self._read = {name: Store(self._folder, name).read(checked=False)}  # one file after another
        return self._read[name]

    @cached_property
    def _chapters(self) -> dict[str, list[Run]]:
        """Results file -> the runs of chapters, with one seed."""
        found: dict[str, list[Run]] = defaultdict(list)
        for one in (one for one in self._experiments if one.chapter):
            for name, runs in _with_one_seed(one.chapter, one.runs).items():
                found[name] += runs
        return found

    def _of_paper(self, name: str) -> Iterator[tuple[str, Run]]:
        """The runs of all chapters on the paper of a results file, with its file; of none that replays."""
        paper = name.partition("/")[0]
        for file, runs in self._chapters.items():
            if file.partition("/")[0] == paper and not file.endswith("/replay"):
                yield from ((file, run) for run in runs)

    def _of_chapters(self, name: str) -> Iterator[tuple[Run, Names]]:
        return ((run, _names(run)) for run in self._chapters.get(name, ()))

    def _of_replays(self, name: str) -> Iterator[tuple[Run, Names]]:
        """The replays of the paper's runs, called as these or as by :func:`companion.replay.replays`."""
        for file, run in self._of_paper(name) if name.endswith("/replay") else ():
            names = _names(run)
            short = {column: names[column] for column in ("model", "range")}
            short |= {"of": file, "replays": run.configuration_key}
            with suppress(ValueError):  # not every run can be replayed
                for again in (replayed(run, stream) for stream in get_args(Stream)):
                    yield from ((again, names), (again, short))

    def _of_queue(self, name: str) -> Iterator[tuple[Run, Names]]:
        for job in (job for job in QUEUE if job.results == name):
            yield from _once(job.runs(self._rows(name))) if job.staged else _of_job(job)

    def _alike(self, name: str, rows: Sequence[Row]) -> dict[str, list[Names]]:
        """Configuration of a row -> the names of the paper's runs that differ in seed and length only."""
        known: dict[str, list[Names]] = defaultdict(list)
        originals = ((run, _names(run)) for _, run in self._of_paper(name))
        for run, names in self._of_replays(name) if name.endswith("/replay") else originals:
            known[_of_any_length(run)].append(names)
        sidecar = Store(self._folder, name).sidecar()
        found = {}
        for configuration, row in {_configuration(row): row for row in rows}.items():
            with suppress(ValueError):  # what is stored is no configuration, or another one
                found[configuration] = known[_of_any_length(rebuilt(row, sidecar))]
        return found


@cache
def _with_one_seed(
    chapter: str, runs: Callable[[SimpleNamespace], Mapping[str, Sequence[Run]]]
) -> Mapping[str, Sequence[Run]]:
    return runs(SimpleNamespace(**vars(_parameters(chapter)) | {"seeds": 1}))


@cache
def _of_job(job: Job) -> list[tuple[Run, Names]]:
    return _once(job.runs())


def _once(runs: Sequence[Run]) -> list[tuple[Run, Names]]:
    """One of the runs that differ in their seeds only, with its names."""
    keys = keys_of(runs)
    found = {
        (key.rpartition("-")[0], *names.items()): (run, names)
        for key, run, names in zip(keys, runs, map(_names, runs), strict=True)
    }
    return list(found.values())


def _parameters(chapter: str) -> SimpleNamespace:
    found = papermill.inspect_notebook(BOOK / chapter)
    return SimpleNamespace(**{name: ast.literal_eval(one["default"]) for name, one in found.items()})


def _configuration(row: Row) -> str:
    return row["key"].rpartition("-")[0]


def _of_any_length(run: Run) -> str:
    return run.but(recipe=run.recipe.but(iterations=1)).configuration_key


def _names(run: Run) -> Names:
    """The names of a run. That of what it replays is without the seed."""
    names = {"range": run.task.label(), "of": None, "replays": None} | run.labels
    return names | {"replays": names["replays"] and names["replays"].rpartition("-")[0]}


def _unlike(rows: Sequence[Row], known: dict[str, list[Names]]) -> list[Row]:
    return [row for row in rows if all(_differences(row, known[_configuration(row)]))]


def _differences(row: Row, known: Sequence[Names]) -> Iterator[Names]:
    """For each definition what it says of the columns in which the row says something else.

    A row that bears its names has no label of another definition.
    """
    seed = row["key"].rpartition("-")[2]
    labels = dict.fromkeys(column for names in known for column in names)
    for names in known:
        said = labels | names | {"seed": seed}
        if said["replays"]:
            said["replays"] += f"-{seed}"
        yield {
            column: value for column, value in said.items() if column in row and not _same(value, row[column])
        }


def _same(said: Any, recorded: Any) -> bool:
    if said == recorded or pd.isna(recorded):
        return said == recorded or pd.isna(said)
    try:
        return float(said) == float(recorded)
    except (TypeError, ValueError):
        return str(said) == str(recorded)
