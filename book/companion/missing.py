"""What the papers' experiments still lack, in order of value: ``make train-missing`` trains it.

A **job** is one or several lines of a figure or table. Rows go to a store of their own, from which
``make take-rows`` takes them up. Interrupted at any moment, the same command goes on: what is trained is
recorded after each ensemble, and a long training goes on from its last checkpoint. All of it is the arm
*replay*, which starts from the authors' second draw of the initial weights.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from nalm.records import run_all
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.training import Run

from companion.nau_nmu import hidden_sizes, settings, subset_shapes
from companion.replay import replayed, replays

__all__ = ["QUEUE", "Job", "left", "table", "train"]


@dataclass(frozen=True)
class Job:
    """Runs that are trained one after another.

    Args:
        what: the lines, as the paper names them.
        results: the results file of their rows.
        runs: makes them.
    """

    what: str
    results: str
    runs: Callable[[], list[Run]]


def _division(name: str) -> Job:
    return Job(f"division/{name}, replayed", "division/replay", lambda: replays(f"division/{name}", "numpy"))


def _sums_and_products(what: str, runs: Callable[[], Sequence[Run]]) -> Job:
    """On a common stream: NumPy draws a batch of 100 inputs in more time than an update takes."""
    return Job(f"nau-nmu {what}", "nau-nmu/replay", lambda: [replayed(run, "common") for run in runs()])


def _figure_8(seeds: int) -> list[Run]:
    return subset_shapes.shape_runs(subset_shapes.MODELS, subset_shapes.SHAPES, seeds)


SIZES = [size for size in hidden_sizes.HIDDEN if size > 2]
"""Two is the default, which other lines have."""

QUEUE: tuple[Job, ...] = (
    *map(_division, ("mixed-signs", "distributions", "inside-the-nmru")),
    _sums_and_products(
        "Figure 3, NMU, ranges", lambda: settings.range_runs(["NMU"], list(settings.RANGES), 50)
    ),
    _sums_and_products("Table 2, NMU", lambda: settings.subset_runs(["NMU"], ["mul"], 100)),
    _sums_and_products("Table 2, NAU", lambda: settings.subset_runs(["NAU"], ["add", "sub"], 100)),
    _sums_and_products("Table 2, NAC+", lambda: settings.subset_runs(["NAC+"], ["add", "sub"], 100)),
    _sums_and_products("Figure 12", lambda: settings.penalty_runs(["mul"], settings.PENALTY_FACTORS, 50)),
    *(
        _sums_and_products(f"{what}, {seeds} seeds", lambda make=make, seeds=seeds: make(seeds))
        for seeds in (10, 100)
        for what, make in {
            "Table 6, ×": lambda seeds: settings.subset_runs(list(settings.arms()), ["mul"], seeds),
            "Table 6, + and −": lambda seeds: settings.subset_runs(
                list(settings.arms()), ["add", "sub"], seeds
            ),
            "Table 6, ÷, √ and z²": lambda seeds: settings.subset_runs(
                list(settings.arms()), ["div", "root", "squared"], seeds
            ),
        }.items()
    ),
    *(
        _sums_and_products(f"{what}, {seeds} seeds", lambda make=make, seeds=seeds: make(seeds))
        for seeds in (10, 50)
        for what, make in {
            "Figure 7": lambda seeds: hidden_sizes.hidden_runs(list(hidden_sizes.ABLATED), SIZES, seeds),
            "Figure 3, ranges": lambda seeds: settings.range_runs(
                list(settings.MULTIPLIERS), list(settings.RANGES), seeds
            ),
            "Figure 3, hidden sizes": lambda seeds: hidden_sizes.hidden_runs(
                list(settings.MULTIPLIERS), SIZES, seeds
            ),
        }.items()
    ),
    *(
        _sums_and_products(f"Figure 8, {seeds} seeds", lambda seeds=seeds: _figure_8(seeds))
        for seeds in (10, 50)
    ),
)
"""The first is trained first. Digit sequences are not in it yet."""


def left(job: Job, results: Path, published: Path = PUBLISHED) -> tuple[list[Run], list[Run]]:
    """The runs of a job, each once, and those that are recorded neither in the book nor in ``results``."""
    runs = list({run.key: run for run in job.runs()}.values())
    known = {key for folder in (published, results) for key in Store(folder, job.results).read()["key"]}
    return runs, [run for run in runs if run.key not in known]


def table(results: Path, queue: Sequence[Job] = QUEUE) -> pd.DataFrame:
    """A line per job: its runs, those that are recorded, and the updates that are left."""
    lines = []
    for job in queue:
        runs, missing = left(job, results)
        updates = sum(run.recipe.iterations for run in missing)
        lines.append(
            {
                "job": job.what,
                "runs": len(runs),
                "recorded": len(runs) - len(missing),
                "updates left": updates,
            }
        )
    return pd.DataFrame(lines)


def train(results: Path, queue: Sequence[Job] = QUEUE) -> Iterator[str]:
    """Trains what is left of each job, in order; a sentence after each.

    The hours are those of this call.
    """
    for job in queue:
        runs, missing = left(job, results)
        start = time.monotonic()
        if missing:  # all of them are asked for, so that an interrupted training finds its ensembles again
            run_all(runs, job.results, str(results))
        hours = (time.monotonic() - start) / 3600
        yield f"{job.what}: {len(missing)} runs trained in {hours:.2f} hours, all {len(runs)} are recorded"


def yield_to_others() -> None:
    """Lowest priority: whoever else needs the cores gets them."""
    os.nice(19)
    with suppress(OSError):  # Linux shares the cores among sessions first, and has a priority of each
        Path("/proc/self/autogroup").write_text("19")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.missing", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("results", type=Path, help="the folder of results to which rows go")
    parser.add_argument("--list", action="store_true", help="say what is left, and train nothing")
    options = parser.parse_args(arguments)
    try:
        if options.list:
            print(table(options.results).to_string(index=False))
            return 0
        yield_to_others()
        for said in train(options.results):
            print(said, flush=True)
    except (ValueError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
