"""Whether rows bear the names of what they are: their experiment says what each run is called.

A row's key is that of its configuration, so a name can be compared with the definition of the run that has
this key. A replay is called as the row that it replays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import papermill
from nalm.records.folders import PUBLISHED
from nalm.records.keys import keys_of
from nalm.records.store import Store
from nalm.training import Run

from companion.experiment import Experiment

__all__ = ["misnamed"]

BOOK = Path(__file__).parents[3]


def misnamed(
    experiments: list[Experiment], folder: str | Path = PUBLISHED, names: Collection[str] = ()
) -> list[str]:
    """A sentence for each row whose model, range or other label is not that of its run.

    Args:
        experiments: whose runs are looked up, with the parameters that their chapters have.
        folder: the folder of results.
        names: results files; all of the folder, if none are named.

    Raises:
        ValueError: a results file that is damaged.
    """
    files = {file.relative_to(folder).with_suffix("").as_posix() for file in Path(folder).glob("*/*.csv")}
    asked = sorted(files & set(names) if names else files)
    defined: dict[str, dict[str, Run]] = {}
    for one in (one for one in experiments if one.chapter):
        p = _parameters(one.chapter)
        few = SimpleNamespace(**vars(p) | {"seeds": 1})
        if not set(asked) & one.runs(few).keys():
            continue
        for name, runs in one.runs(p).items():
            defined.setdefault(name, {}).update(zip(keys_of(runs), runs, strict=True))

    @cache
    def rows_of(name: str) -> dict[str, dict[str, Any]]:
        if name not in files:
            return {}
        rows = Store(folder, name).read(checked=False)
        return dict(zip(rows["key"], rows.to_dict("records"), strict=True))

    found = []
    for name in asked:
        runs = defined.get(name, {})
        for key, row in rows_of(name).items():
            said = _names(runs[key]) if key in runs else _replayed(row, rows_of)
            found += [
                f"{name}: {key} is called {row[column]!r} in the column {column}, but is {value!r}"
                for column, value in said.items()
                if column in row and not _same(value, row[column])
            ]
    return found


def _parameters(chapter: str) -> SimpleNamespace:
    found = papermill.inspect_notebook(BOOK / chapter)
    return SimpleNamespace(**{name: ast.literal_eval(one["default"]) for name, one in found.items()})


def _names(run: Run) -> dict[str, Any]:
    return {"range": run.task.label(), "seed": run.seed} | run.labels


def _replayed(row: dict[str, Any], rows_of: Callable[[str], dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The names of the row that a replay replays; none of a row that is no replay."""
    original = rows_of(str(row.get("of"))).get(str(row.get("replays")))
    return {column: original[column] for column in ("model", "range", "seed")} if original else {}


def _same(said: Any, recorded: Any) -> bool:
    """A page may put words before a name: range "1" of division/mixed-signs is "data set 1" there."""
    if pd.isna(recorded):
        return pd.isna(said)
    said, recorded = str(said), str(recorded)
    try:
        return float(said) == float(recorded)
    except ValueError:
        return recorded in (said, said.rpartition(" ")[2])
