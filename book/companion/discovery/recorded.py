"""Discoveries from many initial weights, one process per core, recorded like rows."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from filelock import FileLock
from nalm.records.definitions import Definitions, Place
from nalm.records.folders import PUBLISHED, results_folder
from nalm.records.processes import own_processes
from nalm.records.provenance import processor, surroundings
from nalm.records.workers import cores
from nalm.training import Run
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from companion import sealed
from companion.discovery.search import discover
from companion.discovery.system import PowerSystem

__all__ = ["NAME", "discover_all"]

NAME = Path("beyond") / "equations.json"
"""Where discoveries lie in a folder of results."""


def discover_all(runs: Sequence[Run], results: str = "", progress: bool = True) -> pd.DataFrame:
    """What :func:`discover` finds from the initial weights of each run; what is recorded is read.

    Args:
        runs: of a neural differential equation with a power unit and an NAU; their recipe is not used.
        results: where new discoveries go, as in :func:`nalm.records.run_all`.
        progress: show a bar.

    Returns:
        One line per run: ``numbers`` that are free, ``error`` on the data in units of the variables'
        variances, ``mse`` on the data and ``test_mse`` on the evaluation set ``test``, both as in rows,
        ``weights`` (JSON, as in rows), ``path`` ([[numbers, error], ...]), ``seconds``, ``fresh`` (whether
        the code of the search is still the same), and the labels of the run.
    """
    own = results_folder(results) / NAME
    known = {key: found for file in (PUBLISHED / NAME, own) for key, found in _read(file).items()}
    missing = [run for run in runs if run.key not in known]
    if missing:
        with own_processes(min(cores(), len(missing))) as processes:
            pending = {processes.submit(_discover_one, run): run for run in missing}
            for done in tqdm(
                as_completed(pending), total=len(pending), unit=" discoveries", disable=not progress
            ):
                known[pending[done].key] = done.result()
                _add(own, pending[done].key, done.result())
    lines = [
        known[run.key] | {"fresh": known[run.key]["code"] == _code()} | run.labels | {"seed": run.seed}
        for run in runs
    ]
    return pd.DataFrame(lines).drop(columns=["code", "surroundings"])


def _discover_one(run: Run) -> dict[str, Any]:
    start, data = time.perf_counter(), run.task.evaluation(run.seed)
    torch.manual_seed(run.seed)
    weights = {
        name: p.detach().numpy() for name, p in run.model.build(run.task.in_features).named_parameters()
    }
    times, states = (tensor.numpy() for tensor in (data["valid"].inputs[:, 0], data["valid"].targets))
    with threadpool_limits(1):
        found = discover(PowerSystem.of(weights), times, states)
    later = data["test"].inputs[:, 0].numpy()
    course = found.system.solve(np.union1d(times, later), states)
    at_later = np.isin(np.union1d(times, later), later)
    return {
        "numbers": found.system.size,
        "error": _digits(found.error),
        "mse": _digits(np.mean((course[0][: len(times)] - states) ** 2)) if course else None,
        "test_mse": _digits(np.mean((course[0][at_later] - data["test"].targets.numpy()) ** 2))
        if course
        else None,
        "weights": json.dumps(
            {name: np.vectorize(_digits)(values).tolist() for name, values in found.system.weights().items()}
        ),
        "path": [[size, _digits(error)] for size, error in found.path],
        "seconds": round(time.perf_counter() - start, 1),
        "code": _code(),
        "surroundings": surroundings() | {"processor": processor()},
    }


def _digits(value: float) -> float:
    return float(f"{value:.9g}")


@cache
def _code() -> str:
    """Changes with what the code of the search does; layout, docstrings and names of modules do not count."""
    sources = {
        f"companion.discovery.{name}": (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        for name in ("search", "system")
    }
    entered = [
        Place("companion.discovery.search", "discover"),
        Place("companion.discovery.system", "PowerSystem"),
    ]
    return Definitions(sources).hash(entered, words=("of", "size", "solve", "weights"))


def _read(file: Path) -> dict[str, Any]:
    return sealed.read_json(file) if file.exists() else {}


def _add(file: Path, key: str, found: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        sealed.write_json(file, dict(sorted((_read(file) | {key: found}).items())))
