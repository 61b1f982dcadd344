"""What recorded runs have cost."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from nalm.records.folders import PUBLISHED, results_folder
from nalm.records.store import Store

__all__ = ["Cost", "cost"]


@dataclass(frozen=True)
class Cost:
    """The cost of some runs; ``str`` of it is a phrase for captions.

    Args:
        runs: number of runs.
        run_iterations: updates, summed over the runs.
        seconds: wall seconds, compilation and evaluation included; runs of one ensemble share its seconds.
        devices: names of the devices.

    >>> print(Cost(900, 45_000_000, 180.0, ("AMD EPYC",)))
    900 runs, 45 million run-iterations, 180 s of one process on AMD EPYC
    >>> print(Cost(600, 3_000_000_000, 10_046.0, ("AMD EPYC",)))
    600 runs, 3,000 million run-iterations, 10,046 s of one process on AMD EPYC
    """

    runs: int
    run_iterations: int
    seconds: float
    devices: tuple[str, ...]

    def __str__(self) -> str:
        millions = self.run_iterations / 1e6
        return (
            f"{self.runs:,} runs, "
            f"{f'{millions:,.0f}' if millions >= 1000 else f'{millions:.3g}'} million run-iterations, "
            f"{self.seconds:,.0f} s of one process on {' and '.join(self.devices)}"
        )


def cost(rows: pd.DataFrame, results: str = "") -> Cost:
    """The cost of rows that :func:`nalm.records.run_all` returned; ``results`` as it was given there.

    Raises:
        ValueError: rows that are recorded somewhere else.
    """
    folders = {PUBLISHED, results_folder(results)}
    batches = {
        batch: origin
        for experiment in rows["experiment"].unique()
        for folder in folders
        for batch, origin in Store(folder, experiment).sidecar()["batches"].items()
    }
    if unknown := set(rows["batch"]) - batches.keys():
        raise ValueError(
            f"Rows of {len(unknown)} batches are recorded neither in the book nor with results={results!r}: "
            "give the folder that run_all was given."
        )
    devices = {batches[batch]["device"] for batch in rows["batch"].unique()}
    return Cost(
        len(rows), int(rows["iterations"].sum()), float(rows["seconds"].sum()), tuple(sorted(devices))
    )
