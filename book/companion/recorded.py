"""The recorded rows of an experiment, each with its freshness and where it was trained."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
from nalm.records import PUBLISHED, Store
from nalm.records.code import freshness_of

__all__ = ["read", "reader"]


def reader(folder: Path):
    """A function from the name of an experiment to its rows in that folder; each is read once."""
    return cache(lambda experiment: _read(folder, experiment))


def read(experiment: str, folder: Path | None = None) -> pd.DataFrame:
    """The published rows of an experiment, or those of another folder, without their freshness; empty if
    there are none.
    """
    folder = folder or PUBLISHED
    return _once(folder, experiment, _state(Store(folder, experiment))).copy(deep=False)


def _state(store: Store) -> tuple[tuple[int, int], ...]:
    """Differs when a file has changed."""
    files = [file.stat() for file in (store.rows_file, store.sidecar_file) if file.exists()]
    return tuple((file.st_mtime_ns, file.st_size) for file in files)


@cache
def _once(folder: Path, experiment: str, state: tuple[tuple[int, int], ...]) -> pd.DataFrame:
    return Store(folder, experiment).read()


def _read(folder: Path, experiment: str) -> pd.DataFrame:
    store = Store(folder, experiment)
    rows = store.read()
    if rows.empty:
        return rows
    sidecar = store.sidecar()
    devices = {name: batch["device"] for name, batch in sidecar["batches"].items()}
    return rows.assign(freshness=freshness_of(rows, sidecar), device=rows["batch"].map(devices))
