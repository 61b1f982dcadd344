"""A store: one CSV with a row per run, and beside it a JSON file with the configurations and the provenance
of the rows.

Both files are replaced as a whole (write, flush to disk, rename) under a lock, so a reader, a crash or a full
disk never leaves half a file.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout

from nalm.records.digest import digests

__all__ = ["COLUMNS", "Store"]

COLUMNS = [
    "key", "experiment", "paper", "model", "task", "range", "seed", "stream", "iterations", "threshold",
    "success", "solved_at", "sparsity_error", "valid_mse", "test_mse", "selected_at", "nan_at", "seconds",
    "batch", "weights",
]  # fmt: skip
"""The columns that every results file has; an experiment's own columns come after them."""
NAMES = ("model", "range")
"""What a configuration is called; the sidecar has it as well."""
NOTES: dict[str, dict[str, type]] = {
    "confirmations": {"recorded": str, "current": list, "rows": list},
    "comparisons": {"codes": dict},
}
"""The parts of the sidecar's notes that are read."""
PATIENCE = 10.0
"""Seconds after which a process that waits for a lock says so."""
BYTES_PER_ROW = 2000
"""Room that a row and its part of the sidecar may need."""
EXACTLY: dict[str, Any] = (
    {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
)
"""Reads numbers to the last digit; pandas 3.1 and later always do, and warn of the argument."""


class Store:
    """The rows of one experiment in one folder.

    Args:
        folder: a results folder.
        experiment: ``"<paper>/<name>"``, e.g. ``"division/no-redundancy"``.

    Raises:
        ValueError: an experiment name of another form.

    >>> import tempfile
    >>> Store(tempfile.mkdtemp(), "division/no-redundancy").read().empty
    True
    """

    def __init__(self, folder: str | Path, experiment: str) -> None:
        if not re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+", str(experiment)):
            raise ValueError(
                "An experiment is named '<paper>/<name>' in small letters, digits and hyphens, "
                f"not {experiment!r}."
            )
        self.experiment = experiment
        self.rows_file = Path(folder) / f"{experiment}.csv"
        self.sidecar_file = self.rows_file.with_suffix(".json")

    def read(self, checked: bool = True) -> pd.DataFrame:
        """All rows.

        Args:
            checked: whether rows that are not as they were recorded are refused.

        Raises:
            ValueError: a file that is not a results file of this experiment, or is damaged; it is left as it
                is.
        """
        return self._rows(self.sidecar(), checked)  # before the rows, which another process may be adding to

    def _rows(self, sidecar: dict[str, Any], checked: bool) -> pd.DataFrame:
        recorded = sidecar.get("rows", 0)
        if not self.rows_file.exists():
            if recorded:
                raise ValueError(
                    f"{self.rows_file} is lost, of which {self.sidecar_file} counts {recorded} rows; "
                    "restore it, nothing was written."
                )
            return pd.DataFrame(columns=COLUMNS)
        try:
            rows = _read(self.rows_file)
        except (OSError, ValueError, UnicodeDecodeError, pd.errors.ParserError) as error:
            raise ValueError(
                f"{self.rows_file} is not a readable results file ({error}); repair or move it, "
                "nothing was written."
            ) from None
        self._check(rows)
        self._check_nothing_lost(rows, recorded)
        if checked and (damaged := _damaged(rows, sidecar)):
            if self.sidecar() != sidecar:  # another process has added to the batch meanwhile
                return self.read()
            raise ValueError(
                f"{self.rows_file} holds rows that are not as they were recorded, of the batch {damaged[0]}; "
                "restore it, nothing was written."
            )
        return rows

    def sidecar(self) -> dict[str, Any]:
        """``{"configurations": {key: …}, "batches": {id: provenance}, "names": {key: …}, "rows": number}``,
        and ``"confirmations"`` and ``"comparisons"`` where there are some.

        While rows are written, and if the process is killed then, ``"coming"`` has the digests of the batches
        that will be there: ``{id: digest}``, ``None`` of one that goes.
        """
        if not self.sidecar_file.exists():
            return {"configurations": {}, "batches": {}, "rows": 0}
        try:
            content = json.loads(self.sidecar_file.read_text(encoding="utf-8"))
            for name, kind in {"configurations": dict, "batches": dict}.items():
                if not isinstance(content[name], kind):
                    raise TypeError(f"{name} is no {kind.__name__}")
            if not all(isinstance(batch, dict) for batch in content["batches"].values()):
                raise TypeError("a batch is no dict")
            if not all(isinstance(one.get("versions", {}), dict) for one in content["batches"].values()):
                raise TypeError("the versions of a batch are no dict")
            if type(content.get("rows", 0)) is not int:
                raise TypeError("rows is no number")
            names = content.get("names", {})
            if not isinstance(names, dict) or not all(isinstance(one, dict) for one in names.values()):
                raise TypeError("names is no dict of dicts")
            if not isinstance(content.get("coming", {}), dict):
                raise TypeError("coming is no dict")
            for name, parts in NOTES.items():
                for note in content.get(name, []):
                    if not all(isinstance(note[part], kind) for part, kind in parts.items()):
                        raise TypeError(f"{name} has a wrong note")
        except (OSError, ValueError, KeyError, TypeError, RecursionError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{self.sidecar_file} is not a readable sidecar file ({error!r}); repair or move it, "
                "nothing was written."
            ) from None
        return content

    def add(
        self,
        rows: Iterable[dict[str, Any]],
        configurations: dict[str, Any],
        batch: str,
        provenance: dict[str, Any],
        instead_of: Collection[str] = (),
    ) -> None:
        """Add rows; a row whose key is there already is left out, so repeated and concurrent additions double
        nothing. Without rows nothing is done. Where rows of the same configuration are there, model and range
        are called as they are in these.

        Args:
            rows: of one batch.
            configurations: configuration key -> configuration, of these rows at least.
            batch: the name of the batch, which the rows have too.
            provenance: where they come from.
            instead_of: keys of rows that are given up for those added.

        Raises:
            ValueError: a row of another batch, or two rows that have one key and differ in more than batch
                and seconds.
        """
        self.add_batches(rows, configurations, {batch: provenance}, instead_of)

    def add_batches(
        self,
        rows: Iterable[dict[str, Any]],
        configurations: dict[str, Any],
        batches: Mapping[str, dict[str, Any]],
        instead_of: Collection[str] = (),
    ) -> None:
        """As :meth:`add`, for rows of several batches: the files are written once for all of them.

        Args:
            rows: of these batches.
            configurations: configuration key -> configuration, of these rows at least.
            batches: name of a batch -> where its rows come from.
            instead_of: keys of rows that are given up for those added.

        Raises:
            ValueError: a row of another batch, or two rows that have one key and differ in more than batch
                and seconds.
        """
        rows, added = list(rows), dict(batches)
        if not rows:
            return
        if wrong := next((row["key"] for row in rows if row["batch"] not in added), None):
            raise ValueError(
                f"The row {wrong} is not of the batch {', '.join(map(repr, added))} that it is added with; "
                "nothing was written."
            )
        with self._locked():
            known, sidecar = self.read(), self.sidecar()
            # Their rows were just found to be those that were recorded. What is added may change how a column
            # is read, and with it their digests.
            sealed = {name for name, of in sidecar["batches"].items() if "digest" in of}
            sealed |= sidecar.pop("coming", {}).keys() & set(known["batch"])
            unsealed = set(known["batch"]) - sealed  # recorded before there were digests
            known = known[~known["key"].isin(instead_of)]
            # a configuration is called as its rows are that are there
            there_already = set(known["key"].str.rpartition("-")[0]) if len(known) else set()
            names = {key: one for key, one in sidecar.get("names", {}).items() if key in there_already}
            rows = [row | names.get(row["key"].rpartition("-")[0], {}) for row in rows]
            new = pd.DataFrame(rows)
            new = _once(new[~new["key"].isin(known["key"])])
            if new.empty:
                return
            every = (
                new
                if known.empty
                else pd.concat([known.astype(object), new.astype(object)], ignore_index=True)
            )
            others = [column for column in every.columns if column not in COLUMNS]
            text = every[COLUMNS + others].to_csv(index=False, lineterminator="\n")
            # Of what will be read, in which a number may have become another kind of number.
            found = digests(_read(io.StringIO(text)))
            sidecar["configurations"].update(configurations)
            named = {row["key"].rpartition("-")[0]: {name: row[name] for name in NAMES} for row in rows}
            sidecar["names"] = sidecar.get("names", {}) | named
            added = {name: of for name, of in added.items() if name in set(new["batch"])}
            there: dict[str, dict[str, Any]] = sidecar["batches"]
            for name, of in added.items():  # with the digest of the rows that are there, not of those to come
                digest = {key: value for key, value in there.get(name, {}).items() if key == "digest"}
                there[name] = {key: value for key, value in of.items() if key != "digest"} | digest
            # No row, old or new, without its provenance and its digest, and no number of rows that are not
            # there yet.
            coming = {name: found.get(name) for name in (added.keys() | sealed) - unsealed}
            counted = min(len(every), sidecar.get("rows", 0))
            self._replace_sidecar(sidecar | {"coming": coming, "rows": counted})
            _replace(self.rows_file, text)
            if instead_of:  # batches without rows go only now, when no old row needs them
                there = {name: of for name, of in there.items() if name in found}
            touched = there.keys() if instead_of else added.keys() | sealed
            there |= {name: there[name] | {"digest": found[name]} for name in touched & found.keys()}
            self._replace_sidecar(sidecar | {"batches": there, "rows": len(every)})

    def damaged(self) -> list[str]:
        """The batches whose rows are not those that were recorded: one was changed, removed, or added by
        hand.
        """
        sidecar = self.sidecar()
        found = _damaged(self._rows(sidecar, checked=False), sidecar)
        # another process may have written meanwhile
        return self.damaged() if found and self.sidecar() != sidecar else found

    def note(self, kind: str, note: dict[str, Any]) -> None:
        """Add to the sidecar's ``"confirmations"`` or ``"comparisons"``, as freshness reads them."""
        with self._locked():
            self.read(
                checked=False
            )  # a sidecar that was lost is not to be replaced by one that lacks what it said
            sidecar = self.sidecar()
            self._replace_sidecar(sidecar | {kind: [*sidecar.get(kind, []), note]})

    def make_room(self, rows: int) -> None:
        """Make sure that this many rows can be added; to be asked before they are trained.

        Raises:
            OSError: one sentence, if the folder cannot be written to or the disk is too full.
        """
        with self._locked():
            size = sum(file.stat().st_size for file in (self.rows_file, self.sidecar_file) if file.exists())
            with _written(self.rows_file, b"\0" * (size + rows * BYTES_PER_ROW)):
                pass

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else writes meanwhile; what the operating system refuses is said in a sentence."""
        try:
            self.rows_file.parent.mkdir(parents=True, exist_ok=True)
            with _waiting(self.rows_file.with_suffix(".lock")):
                yield
        except OSError as error:
            raise OSError(
                f"{self.rows_file} cannot be written ({error.strerror or error}): what it holds is unharmed, "
                "new rows were not added; make room or name "
                "another folder in results, and run the same command again."
            ) from None

    def _replace_sidecar(self, content: dict[str, Any]) -> None:
        _replace(self.sidecar_file, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n")

    def _check(self, rows: pd.DataFrame) -> None:
        missing = [column for column in COLUMNS if column not in rows.columns]
        if missing:
            problem = f"it lacks the columns {', '.join(missing)}"
        elif rows["key"].isna().any() or rows["key"].duplicated().any():
            problem = "its keys are not unique"
        elif not (rows["experiment"] == self.experiment).all():
            problem = f"it holds rows of another experiment than {self.experiment}"
        elif len(rows) and any(
            not pd.api.types.is_numeric_dtype(rows[column])
            for column in ("seed", "iterations", "valid_mse", "test_mse")
        ):
            problem = "its numbers cannot be read"
        else:
            return
        raise ValueError(
            f"{self.rows_file} is not a results file of {self.experiment}: {problem}; repair or move it, "
            "nothing was written."
        )

    def _check_nothing_lost(self, rows: pd.DataFrame, recorded: int) -> None:
        # A process that was killed while it wrote may leave more rows than the sidecar counts, but never rows
        # without a sidecar.
        if len(rows) and not self.sidecar_file.exists():
            raise ValueError(
                f"{self.sidecar_file} is lost, which says where the rows beside it come from; restore it, "
                "nothing was written."
            )
        if len(rows) < recorded or not self.rows_file.read_bytes().endswith(b"\n"):
            raise ValueError(
                f"{self.rows_file} has lost rows (it is cut off or was edited); restore it, "
                "nothing was written."
            )


@contextmanager
def _waiting(file: Path) -> Iterator[None]:
    """The lock of a file; whoever waits for it long is told for whom."""
    lock = FileLock(file)
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout:
        holder = file.read_text() or "another process"
        print(f"{file} is held by {holder}; waiting for it.", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        file.write_text(f"process {os.getpid()} on {platform.node()}")
        yield
    finally:
        lock.release()


def _once(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, each key once: the first is kept. Its batch and its seconds may differ from the others'.

    Raises:
        ValueError: rows with one key that differ in anything else.
    """
    again = rows["key"].duplicated()
    if not again.any():
        return rows
    written = rows.drop(columns=["batch", "seconds"]).to_csv(index=False)
    different = again & ~_read(io.StringIO(written)).duplicated().to_numpy()
    if different.any():
        raise ValueError(
            f"The row {rows['key'][different].iloc[0]} is added twice with different values; "
            "nothing was written."
        )
    return rows[~again]


def _read(text: Path | io.StringIO) -> pd.DataFrame:
    return pd.read_csv(text, dtype={"key": str, "batch": str, "weights": str}, **EXACTLY)


def _damaged(rows: pd.DataFrame, sidecar: dict[str, Any]) -> list[str]:
    found = digests(rows)
    allowed = {name: [batch["digest"]] for name, batch in sidecar["batches"].items() if "digest" in batch}
    for name, digest in sidecar.get("coming", {}).items():  # the rows are those before or after
        allowed[name] = [*allowed.get(name, [None]), digest]
    of_batches = {name: found.get(name) for name in allowed}
    unknown = set(rows["batch"].fillna("none").unique()) - {*sidecar["batches"], *allowed}
    return sorted({*unknown, *(name for name, digest in of_batches.items() if digest not in allowed[name])})


def _replace(file: Path, text: str) -> None:
    with _written(file, text.encode()) as temporary:
        os.replace(temporary, file)


@contextmanager
def _written(file: Path, content: bytes) -> Iterator[Path]:
    """A temporary file beside ``file`` with this content, safe on the disk; gone afterwards."""
    temporary = file.with_name(f".{file.name}.new")
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
