"""The arm called replay: what the authors of the nau-nmu and the division paper trained, seed by seed.

Their code differs from a run of this library's defaults in what is not said in the papers. It initialises
twice and keeps the second weights; it draws its batches with NumPy from a generator of each seed's own, and
computes targets in float64; where a test range is a union of two, its coin falls the other way round; its NRU
computes powers, not exponentials of logarithms; and the factors of its NMU and NMRU are rounded from left to
right. Each is a named value of a field, so a replayed run is a run like any other.

``make replay EXPERIMENT=division/no-redundancy`` trains the replays of all recorded runs of an experiment and
records them in ``division/replay``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, get_args

import pandas as pd
from nalm.commands import exit_with
from nalm.models import Layer, Stack
from nalm.records import PUBLISHED, Store, experiments, recorded_runs, run_all
from nalm.records.keys import keys_of
from nalm.records.verification import rebuilt
from nalm.tasks import UniformUnion
from nalm.tasks.arithmetic import OperandTask
from nalm.training import Run
from nalm.units.checks import choose

__all__ = ["Stream", "all_replayed", "in_place", "replayed", "replays"]

Stream = Literal["numpy", "common"]

DRAWS = 2
"""Once in the constructor of the model, once in the script."""

ARITHMETIC = {"NMU": {"rounding": "sequential"}, "NMRU": {"rounding": "sequential"}, "NRU": {"power": "pow"}}
"""Options with which a unit computes as in the authors' code; without them it is exact or faster."""


def replayed(run: Run, stream: Stream = "numpy") -> Run:
    """The run as the authors' code trains it.

    Args:
        run: a run of one of the two papers, whose model is a stack of units and whose task has two operands.
        stream: ``"numpy"``, the batches of the authors' code, or ``"common"``, one batch for all runs where
            inputs are so wide that drawing with NumPy takes longer than training.

    Raises:
        ValueError: a run whose authors' code cannot be replayed.

    >>> from companion.nau_nmu.settings import subset_runs
    >>> run = replayed(subset_runs(["NMU"], ["mul"], seeds=1)[0])
    >>> run.model.draws, run.recipe.stream, run.task.targets
    (2, 'numpy', 'float64')
    """
    if not isinstance(run.task, OperandTask) or not isinstance(run.model, Stack):
        raise ValueError(
            f"Only stacks of units on two operands are replayed, not {run.model.kind} on {run.task.kind}."
        )
    extrapolation = run.task.extrapolation
    if isinstance(extrapolation, UniformUnion):
        extrapolation = extrapolation.but(coin=1)
    return run.but(
        task=run.task.but(targets="float64", extrapolation=extrapolation),
        model=run.model.but(draws=DRAWS, layers=tuple(map(_computed_alike, run.model.layers))),
        recipe=run.recipe.but(stream=stream),
    )


def all_replayed(runs: Sequence[Run], stream: Stream) -> list[Run]:
    """As :func:`replayed`, which is asked once for all seeds of an arm.

    >>> from companion.nau_nmu.settings import subset_runs
    >>> [(run.model.draws, run.seed) for run in all_replayed(subset_runs(["NMU"], ["mul"], 2), "common")]
    [(2, 0), (2, 1)]
    """
    arms: dict[tuple, Run] = {}
    found = []
    for run in runs:
        arm = (run.task, id(run.model), id(run.recipe))
        if arm not in arms:
            arms[arm] = replayed(run, stream)
        again = arms[arm]
        found.append(run.but(task=again.task, model=again.model, recipe=again.recipe))
    return found


def _computed_alike(layer: Layer) -> Layer:
    return layer.but(options=layer.options | ARITHMETIC.get(layer.unit, {}))


def replays(
    experiment: str, stream: Stream = "numpy", models: tuple[str, ...] = (), seeds: int | None = None
) -> list[Run]:
    """The replays of the recorded runs of an experiment, each once; labelled with their model and range, the
    experiment (``of``) and its row (``replays``).

    Args:
        experiment: e.g. ``"division/no-redundancy"``.
        stream: as in :func:`replayed`.
        models: only of these; of all if none are named.
        seeds: only seeds 0 to ``seeds`` - 1.

    Raises:
        ValueError: an experiment or a model that is not recorded, or runs that cannot be replayed.

    >>> runs = replays("nau-nmu/ten-parameter", models=("NALU",), seeds=10)
    >>> len(runs), runs[3].seed, runs[3].labels["of"]
    (10, 3, 'nau-nmu/ten-parameter')
    """
    recorded = recorded_runs(
        choose("experiment", experiment, experiments()), labels=("model", "range", "key")
    )
    for model in models:
        choose("model", model, dict.fromkeys(run.labels["model"] for run in recorded))
    asked = [
        run
        for run in recorded
        if (seeds is None or run.seed < seeds) and (not models or run.labels["model"] in models)
    ]
    again = all_replayed(asked, stream)
    found: dict[str, Run] = {}
    for key, run in zip(keys_of(again), again, strict=True):
        labels = {
            "model": run.labels["model"],
            "range": run.labels["range"],
            "of": experiment,
            "replays": run.labels["key"],
        }
        found.setdefault(key, run.but(labels=labels))  # arms that differ by what a replay changes have one
    return list(found.values())


LABELS = (
    *("key", "experiment", "paper", "model", "task", "range", "operation", "seed", "of", "replays"),
    *("factor", "hidden", "inputs", "overlap", "subset"),
)
"""Columns that say which run it is; what else a replay has takes the place of what its run has."""


def in_place(rows: pd.DataFrame, read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The rows, each with the outcome of its replay; none unless all of them are replayed.

    Args:
        rows: of recorded runs of one paper.
        read: recorded rows by experiment.

    >>> from companion.recorded import read
    >>> own = read("division/redundancy").query("model == 'NMRU'")
    >>> int(own["success"].sum()), int(in_place(own, read)["success"].sum())
    (198, 206)
    """
    if rows.empty or "experiment" not in rows:
        return rows.iloc[:0]
    again = read(f"{rows['experiment'].iloc[0].partition('/')[0]}/replay")
    if again.empty:
        return rows.iloc[:0]
    again = again.set_index("key")
    direct = again["replays"].dropna() if "replays" in again else pd.Series(dtype=object)
    of = rows["key"].map(dict(zip(direct, direct.index, strict=True)))
    for place, run in rows.loc[of.isna(), ["experiment", "key"]].iterrows():
        configuration, _, seed = run["key"].rpartition("-")
        keys = [f"{one}-{seed}" for one in _replays_of(run["experiment"], configuration)]
        found = next((key for key in keys if key in again.index), None)
        if found is None:
            return rows.iloc[:0]
        of[place] = found
    outcome = again.drop(columns=[name for name in LABELS if name in again]).loc[of]
    return rows.assign(**{name: outcome[name].to_numpy() for name in outcome})


@cache
def _replays_of(experiment: str, configuration: str) -> tuple[str, ...]:
    """The configurations of a recorded run's replays, on either stream; none if it cannot be replayed."""
    try:
        run = rebuilt({"key": f"{configuration}-0"}, _sidecar(experiment))
        return tuple(replayed(run, stream).configuration_key for stream in get_args(Stream))
    except ValueError:
        return ()


@cache
def _sidecar(experiment: str) -> dict[str, Any]:
    return Store(PUBLISHED, experiment).sidecar()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.replay",
        description="Train the replays of the recorded runs of an experiment.",
    )
    parser.add_argument("experiment", help="e.g. division/no-redundancy")
    parser.add_argument("--model", action="append", default=[], help="only this model; may be repeated")
    parser.add_argument("--seeds", type=int, help="only seeds 0 to SEEDS - 1")
    parser.add_argument(
        "--stream",
        choices=get_args(Stream),
        default="numpy",
        help="the authors' batches, or one batch for all runs (numpy)",
    )
    parser.add_argument(
        "--results", default="", help="where new rows go: your own store if not given, publish, or a folder"
    )
    options = parser.parse_args(arguments)
    try:
        runs = replays(options.experiment, options.stream, tuple(options.model), options.seeds)
        rows = run_all(runs, f"{options.experiment.partition('/')[0]}/replay", options.results)
    except (ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(rows.groupby(["model", "range"], sort=False)["success"].agg(solved="sum", runs="count").to_string())
    return 0


if __name__ == "__main__":
    exit_with(main)
