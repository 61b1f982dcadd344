"""Take up the rows of another checkout or machine: ``python -m companion.verification.take FOLDER``, or
``make take-rows FROM=FOLDER``.

Everything is checked before anything is written, and nothing is committed. The exit code is 0 if the rows are
here now, 2 if they were refused.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from nalm.commands import exit_with
from nalm.records.code import OLDER, code, freshness_of, sources_in
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.records.verification import experiments, rebuilt, results_of
from nalm.training import Run

from companion.verification.sidebyside import library_at

__all__ = ["Taken", "take_rows"]


@dataclass(frozen=True)
class Taken:
    """What became of the rows of one experiment.

    Args:
        experiment: its name.
        new: how many rows were added.
        known: how many were here already.
        replaced: how many took the place of one here that is older than its code.
        older: how many are older than the present code themselves.
    """

    experiment: str
    new: int
    known: int
    replaced: int
    older: int

    def __str__(self) -> str:
        return (
            f"{self.experiment}: {self.new} new rows, {self.known} known, {self.replaced} in place of older "
            f"ones; {self.older} older than the code"
        )


def take_rows(
    source: str | Path, names: Sequence[str] = (), folder: str | Path = PUBLISHED, replace_older: bool = False
) -> list[Taken]:
    """Merge the rows of a folder of results into another.

    Args:
        source: the folder that they are in.
        names: experiments; all if empty.
        folder: where they go, the published results if not given.
        replace_older: a row here that is older than its code gives way to one that is not.

    Raises:
        ValueError: one sentence that names the first row or batch that is damaged, is not the run that its
            key says, was trained with code that is not known here, or has other results than a row here with
            its key. Then nothing was written.

    >>> import tempfile
    >>> take_rows(tempfile.mkdtemp(), folder=tempfile.mkdtemp())
    []
    """
    plans = [
        _plan(name, Store(source, name), Store(folder, name), replace_older)
        for name in names or experiments(source)
    ]
    for _, target, batches, configurations, instead_of in plans:
        rows = [row for of_batch, _ in batches.values() for row in of_batch]
        if rows:
            target.add_batches(rows, configurations, {b: of for b, (_, of) in batches.items()}, instead_of)
    return [plan[0] for plan in plans]


def _plan(name: str, source: Store, target: Store, replace_older: bool) -> tuple:
    rows, sidecar = source.read(checked=False), source.sidecar()
    if rows.empty:
        raise ValueError(f"{source.rows_file} holds no rows.")
    if damaged := source.damaged():
        raise ValueError(f"{name}: the rows of batch {damaged[0]} are not those that were recorded.")
    records = rows.astype(object).where(rows.notna(), None).to_dict("records")
    runs = {row["key"]: _run(name, row, sidecar) for row in records}
    sidecar = sidecar | {
        "batches": {
            b: _known_code(name, b, of, rows[rows["batch"] == b], runs)
            for b, of in sidecar["batches"].items()
        }
    }
    older = dict(zip(rows["key"], freshness_of(rows, sidecar) == OLDER, strict=True))
    here = target.read()
    here = (
        here.assign(older=freshness_of(here, target.sidecar()) == OLDER)
        if len(here)
        else here.assign(older=False)
    )
    known, instead_of = {row["key"]: row for row in here.to_dict("records")}, set()
    for row in records:
        mine = known.get(row["key"])
        if mine is None or results_of(mine, row) == results_of(row, row):
            continue
        if not (replace_older and mine["older"] and not older[row["key"]]):
            raise ValueError(
                f"{name}: {row['key']} has other results here (test_mse {_number(mine['test_mse'])}) than in "
                f"{source.rows_file} ({_number(row['test_mse'])})."
            )
        instead_of.add(row["key"])
    added = [row for row in records if row["key"] not in known or row["key"] in instead_of]
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in added:
        rows_of.setdefault(row["batch"], []).append(row)
    batches = {batch: (of_batch, sidecar["batches"][batch]) for batch, of_batch in rows_of.items()}
    used = {row["key"].rpartition("-")[0] for row in added}
    configurations = {key: of for key, of in sidecar["configurations"].items() if key in used}
    taken = Taken(
        name,
        len(added) - len(instead_of),
        len(records) - len(added),
        len(instead_of),
        sum(older[row["key"]] for row in added),
    )
    return taken, target, batches, configurations, instead_of


def _run(name: str, row: dict[str, Any], sidecar: dict[str, Any]) -> Run:
    try:
        return rebuilt(row, sidecar)
    except ValueError as error:
        raise ValueError(f"{name}: the row {row['key']} cannot be taken: {str(error).rstrip('.')}.") from None


def _known_code(
    name: str, batch: str, provenance: dict[str, Any], rows: pd.DataFrame, runs: dict[str, Run]
) -> dict[str, Any]:
    """The provenance with codes as they are made today; those made in another way are worked out from the
    commit that the rows were trained at.
    """
    found = provenance.get("code")
    if all(
        re.fullmatch("[0-9a-f]{16}", one or "")
        for one in (found.values() if isinstance(found, dict) else [found])
    ):
        return provenance
    commit = provenance.get("commit") or ""
    if not re.fullmatch("[0-9a-f]+", commit):
        raise ValueError(
            f"{name}: batch {batch} was trained with code that is in no commit ({commit or 'unknown'}), "
            "so it cannot be told what its rows depend on."
        )
    each = {key.rpartition("-")[0]: code(runs[key].but(seed=0), _sources_at(commit)) for key in rows["key"]}
    return provenance | {"code": each if len(set(each.values())) > 1 else next(iter(each.values()), None)}


@cache
def _sources_at(commit: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        return sources_in(library_at(commit, Path(scratch)) / "nalm")


def _number(value: Any) -> str:
    return "NaN" if pd.isna(value) else f"{value:g}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.verification.take",
        description="Take up the rows of another folder of results.",
    )
    parser.add_argument("source", type=Path, help="the folder that they are in")
    parser.add_argument(
        "--experiment",
        action="append",
        default=[],
        help="only this experiment, e.g. division/no-redundancy; may be repeated",
    )
    parser.add_argument(
        "--folder", type=Path, default=PUBLISHED, help="where they go; the published results if not given"
    )
    parser.add_argument(
        "--replace-older", action="store_true", help="rows here that are older than their code give way"
    )
    options = parser.parse_args(arguments)
    try:
        if not options.source.is_dir():
            raise ValueError(f"{options.source} is not a folder.")
        found = take_rows(options.source, options.experiment, options.folder, options.replace_older)
    except (ValueError, OSError) as error:
        print(f"{error} Nothing was taken.", file=sys.stderr)
        return 2
    print("\n".join(map(str, found)) or f"{options.source} holds no rows.")
    return 0


if __name__ == "__main__":
    exit_with(main)
