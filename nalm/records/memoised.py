"""Memoised training: ask for runs, get rows. What is recorded is read; what is missing is trained and recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
from tqdm import tqdm

from nalm.records.code import code_on_disk
from nalm.records.folders import PUBLISHED, results_folder
from nalm.records.provenance import provenance
from nalm.records.row import row_of
from nalm.records.store import Store
from nalm.records.workers import checkpoint_of, cores, train_ensembles
from nalm.training import Log, Run, check_device

__all__ = ["run_all"]

LARGEST_ENSEMBLE = 256
"""Rows are recorded after each ensemble; more runs at once are hardly faster on a CPU."""


def run_all(runs: Sequence[Run], experiment: str, results: str = "", device: str = "cpu", progress: bool = True) -> pd.DataFrame:
    """The rows of runs, in their order; trains and records those that are not recorded yet.

    Args:
        runs: what is asked for.
        experiment: ``"<paper>/<name>"``, the name of the results file.
        results: where new rows go: ``""`` the reader's own store, ``"publish"`` the book's, or a folder. Published rows are read in any case.
        device: where missing runs are trained.
        progress: show a progress bar while training.

    Returns:
        A row per run with the columns :data:`nalm.records.store.COLUMNS`, the runs' labels and one column per further evaluation set.

    Raises:
        ValueError: an empty selection, equal runs, a device that is not there, or a damaged results file. Nothing is trained then.

    >>> import tempfile
    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.models import Stack
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=20, optimiser=Adam(lr=1e-2), log_interval=10)
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul")
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed, threshold=1e-5) for seed in range(2)]
    >>> run_all(runs, "demo/nmu", results=tempfile.mkdtemp(), progress=False)[["model", "range", "seed", "success"]]
      model   range  seed  success
    0   NMU  U[1,2)     0    False
    1   NMU  U[1,2)     1    False
    """
    runs = list(runs)
    _check(runs)
    check_device(device)
    store = Store(results_folder(results), experiment)
    sources = [store] if store.rows_file.parent.parent == PUBLISHED else [Store(PUBLISHED, experiment), store]
    known = _known(sources)
    # Grouped before the recorded runs are taken out, so that an interrupted sweep finds its ensembles and their checkpoints again.
    missing = [[run for run in ensemble if run.key not in known] for ensemble in _ensembles(runs)]
    missing, folder = [ensemble for ensemble in missing if ensemble], store.rows_file.parent
    with _bar([run for ensemble in missing for run in ensemble], len(runs), progress) as bar:
        for trained, log in train_ensembles(missing, device, folder, bar.update):
            _record(trained, log, store)
            checkpoint_of(trained, folder).remove()
            bar.runs += len(trained)
            bar.set_description(f"{bar.runs} of {bar.asked} runs")
    known = _known(sources)
    return pd.DataFrame([known[run.key] | run.labels for run in runs]).infer_objects()


def _check(runs: list[Run]) -> None:
    if not runs:
        raise ValueError("No runs were asked for: the selection of models, ranges or seeds is empty.")
    keys = [run.key for run in runs]
    if len(set(keys)) < len(keys):
        twice = next(run for run in runs if keys.count(run.key) > 1)
        raise ValueError(f"The same run was asked for twice: seed {twice.seed} of {twice.labels or twice.task.label()}.")


def _known(sources: list[Store]) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for source in sources for row in source.read().to_dict("records")}


def _ensembles(runs: list[Run]) -> list[list[Run]]:
    """Runs of equal structure together; where that leaves cores without work, in smaller ensembles; large models each by themselves."""
    groups: dict[tuple, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.structure(), []).append(run)
    size = LARGEST_ENSEMBLE if len(groups) >= cores() else min(LARGEST_ENSEMBLE, -(-len(runs) // cores()))
    sizes = {structure: 1 if group[0].model.one_by_one else size for structure, group in groups.items()}
    return [group[i : i + sizes[s]] for s, group in groups.items() for i in range(0, len(group), sizes[s])]


def _bar(missing: list[Run], asked: int, progress: bool) -> tqdm:
    total = sum(run.recipe.iterations for run in missing)
    bar = tqdm(total=total, unit=" run-iterations", unit_scale=True, disable=not (progress and missing), mininterval=1.0)
    bar.runs, bar.asked = asked - len(missing), asked
    bar.set_description(f"{bar.runs} of {bar.asked} runs")
    return bar


def _record(runs: list[Run], log: Log, store: Store) -> None:
    origin = provenance(log) | {"code": code_on_disk(runs[0]), "runs": len(runs), "seconds": round(log.seconds, 2)}
    batch = hashlib.sha256((json.dumps(origin) + "".join(run.key for run in runs)).encode()).hexdigest()[:8]
    rows = [row_of(run, column, log, store.experiment, batch) for column, run in enumerate(runs)]
    store.add(rows, {run.configuration_key: run.full_configuration for run in runs}, batch, origin)
