"""The recorded rows of an experiment, each with its freshness and where it was trained."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from nalm.records import PUBLISHED, Store
from nalm.records.code import freshness_of
from nalm.records.provenance import is_gpu

__all__ = ["Spent", "devices", "read", "reader", "spent"]


class Spent(NamedTuple):
    """The seconds that rows took: of one core, and of a GPU."""

    core: float
    gpu: float

    @classmethod
    def on(cls, seconds: pd.Series, devices: pd.Series) -> Spent:
        """The seconds of rows, each trained on its device."""
        gpu = devices.fillna("").map(is_gpu).astype(bool)
        return cls(float(seconds[~gpu].sum()), float(seconds[gpu].sum()))


def spent(experiment: str, folder: Path | None = None) -> Spent:
    """What the recorded rows of an experiment took, the published ones or those of another folder."""
    folder = folder or PUBLISHED
    return _spent(folder, experiment, _state(Store(folder, experiment)))


def devices(rows: pd.DataFrame, experiment: str, folder: Path | None = None) -> pd.Series:
    """Where each of an experiment's rows was trained."""
    batches = Store(folder or PUBLISHED, experiment).sidecar()["batches"]
    return rows["batch"].map({name: batch["device"] for name, batch in batches.items()}).astype(object)


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


@cache
def _spent(folder: Path, experiment: str, state: tuple[tuple[int, int], ...]) -> Spent:
    rows = pd.read_csv(Store(folder, experiment).rows_file, usecols=["seconds", "batch"])
    return Spent.on(rows["seconds"], devices(rows, experiment, folder))


def _read(folder: Path, experiment: str) -> pd.DataFrame:
    store = Store(folder, experiment)
    rows = store.read()
    if rows.empty:
        return rows
    return rows.assign(
        freshness=freshness_of(rows, store.sidecar()), device=devices(rows, experiment, folder)
    )
