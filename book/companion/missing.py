"""What the papers' experiments still lack, in order of value: ``make train-missing`` trains it.

A **job** is one or several lines of a figure or table. Rows go to a store of their own, from which
``make take-rows`` takes them up. Interrupted at any moment, the same command goes on: what is trained is
recorded after each ensemble, and a long training goes on from its last checkpoint. Sequences of digits are
trained for 110 of their 1,001 epochs first; the longer runs go on from there. The fractional SIR model is
trained with its authors' gradient and line search. All else is the arm *replay*, which starts from the
authors' second draw of the initial weights.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from nalm.commands import exit_with
from nalm.records import run_all
from nalm.records.folders import PUBLISHED, results_folder
from nalm.records.keys import keys_of
from nalm.records.provenance import is_gpu
from nalm.training import Run, check_device

from companion.beyond import leaderboard, tuned
from companion.nau_nmu import digit_runs, hidden_sizes, settings, subset_shapes
from companion.npu import fractional_sir
from companion.recorded import devices, read
from companion.replay import all_replayed, replays

__all__ = ["QUEUE", "Job", "left", "listed", "table", "train"]

ARITHMETIC, RANGES, HIDDEN = "nau-nmu/arithmetic", "nau-nmu/ranges", "nau-nmu/hidden"
"""Results files of likewise runs."""


@dataclass(frozen=True)
class Job:
    """Runs that are trained one after another.

    Args:
        what: the lines, as the paper names them.
        results: the results file of their rows.
        runs: makes them; of a ``staged`` job from the rows that are recorded in the results file.
        like: the results file whose rows say how long an update takes, while none of these is recorded; their
            own file if not given.
        also: other results files, whose recorded rows count as well.
        staged: whether its runs follow from recorded rows. There are none while these are missing.
    """

    what: str
    results: str
    runs: Callable[..., list[Run]]
    like: str = ""
    also: tuple[str, ...] = ()
    staged: bool = False


def _division(name: str) -> Job:
    return Job(f"division/{name}, replayed", "division/replay", lambda: replays(f"division/{name}", "numpy"))


def _sums_and_products(what: str, runs: Callable[[], Sequence[Run]], like: str = ARITHMETIC) -> Job:
    """On a common stream: NumPy draws a batch of 100 inputs in more time than an update takes."""
    return Job(f"nau-nmu {what}", settings.REPLAY, lambda: all_replayed(runs(), "common"), like)


def _leaderboard(operation: str, inputs: int) -> Job:
    return Job(
        f"leaderboard as published, {leaderboard.OPERATIONS[operation]}, {inputs} inputs",
        leaderboard.RESULTS,
        lambda: leaderboard.runs_of(operation, inputs),
        "division/no-redundancy" if inputs == 2 else "division/redundancy",
        leaderboard.ALSO,
    )


def _tuned(what: str, stage: int | None, inputs: int = 2) -> Job:
    return Job(
        f"leaderboard tuned alike, {what}",
        tuned.RESULTS,
        lambda rows: tuned.all_runs(stage, inputs, rows),
        "division/no-redundancy" if inputs == 2 else "division/redundancy",
        staged=True,
    )


def _digits(figures: str, operation: str, seeds: int, epochs: int) -> Job:
    """By seed, so that what is there of all models can be compared early."""

    def runs() -> list[Run]:
        asked = digit_runs.digit_runs(operation, digit_runs.MODELS[operation], seeds, epochs)
        return sorted(asked, key=lambda run: run.seed)

    results = "nau-nmu/sequential-mnist" if operation == "product" else "nau-nmu/sequential-sums"
    return Job(f"nau-nmu {figures}, {epochs:,} epochs, {seeds} seeds", results, runs)


def _digit_jobs(seeds: int, epochs: int) -> list[Job]:
    return [
        _digits("Figures 4 and 15", "product", seeds, epochs),
        _digits("Figures 13 and 14", "sum", seeds, epochs),
    ]


SIZES = [size for size in hidden_sizes.HIDDEN if size > 2]
"""Of Figure 3: two is the default, which other lines have."""

SEEDED: Mapping[str, tuple[str, Callable[[int], Sequence[Run]]]] = {
    "Table 6, ×": (ARITHMETIC, lambda seeds: settings.subset_runs(list(settings.arms()), ["mul"], seeds)),
    "Table 6, + and −": (
        ARITHMETIC,
        lambda seeds: settings.subset_runs(list(settings.arms()), ["add", "sub"], seeds),
    ),
    "Table 6, ÷, √ and a²": (
        ARITHMETIC,
        lambda seeds: settings.subset_runs(list(settings.arms()), ["div", "root", "squared"], seeds),
    ),
    "Figure 7": (
        HIDDEN,
        lambda seeds: hidden_sizes.hidden_runs(list(hidden_sizes.ABLATED), hidden_sizes.HIDDEN, seeds),
    ),
    "Figure 3, ranges": (
        RANGES,
        lambda seeds: settings.range_runs(list(settings.MULTIPLIERS), list(settings.RANGES), seeds),
    ),
    "Figure 3, hidden sizes": (
        HIDDEN,
        lambda seeds: hidden_sizes.hidden_runs(list(settings.MULTIPLIERS), SIZES, seeds),
    ),
    "Figure 8": (
        ARITHMETIC,
        lambda seeds: subset_shapes.shape_runs(subset_shapes.MODELS, subset_shapes.SHAPES, seeds),
    ),
}
"""What is trained with a few seeds first and with the paper's later: the file of likewise runs, and what
makes them.
"""


def _seeded(what: str, seeds: int) -> Job:
    like, make = SEEDED[what]
    return _sums_and_products(f"{what}, {seeds} seeds", lambda: make(seeds), like)


QUEUE: tuple[Job, ...] = (
    *map(_division, ("mixed-signs", "distributions", "inside-the-nmru")),
    Job("npu Figure 4, the authors' gradient", "npu/fractional-sir", fractional_sir.authors_runs),
    *(_leaderboard(operation, inputs) for inputs in (2, 10) for operation in leaderboard.OPERATIONS),
    *(_tuned(f"rung {rung + 1} of {len(tuned.RUNGS)}", rung) for rung in range(len(tuned.RUNGS))),
    *(_tuned(f"chosen settings, {inputs} inputs", None, inputs) for inputs in (2, 10)),
    *_digit_jobs(5, digit_runs.HORIZON),
    _sums_and_products(
        "Figure 3, NMU, ranges", lambda: settings.range_runs(["NMU"], list(settings.RANGES), 50), RANGES
    ),
    _sums_and_products("Table 2, NMU", lambda: settings.subset_runs(["NMU"], ["mul"], 100)),
    _sums_and_products("Table 2, NAU", lambda: settings.subset_runs(["NAU"], ["add", "sub"], 100)),
    _sums_and_products("Table 2, NAC+", lambda: settings.subset_runs(["NAC+"], ["add", "sub"], 100)),
    _sums_and_products(
        "Figure 12", lambda: settings.penalty_runs(["mul"], settings.PENALTY_FACTORS, 50), "nau-nmu/penalty"
    ),
    _sums_and_products(
        "Figure 7, NMU", lambda: hidden_sizes.hidden_runs(["NMU"], hidden_sizes.HIDDEN, 50), HIDDEN
    ),
    *(_seeded(what, 10) for what in SEEDED),
    _seeded("Figure 7", hidden_sizes.JUDGED_FROM),
    # by then the NAU of Figure 14 is solved on a thousand digits in print, on average
    _digits("Figures 13 and 14", "sum", 5, 200),
    # in steps, as those of a step are recorded together when the last ends
    *(_seeded(what, 25) for what in SEEDED if what.startswith("Table")),
    *(_seeded(what, 100 if what.startswith("Table") else 50) for what in SEEDED),
    *_digit_jobs(10, digit_runs.HORIZON),
    *(job for seeds in (5, 10) for job in _digit_jobs(seeds, digit_runs.EPOCHS)),
)
"""The first is trained first."""


def left(job: Job, results: Path, published: Path = PUBLISHED) -> tuple[dict[str, Run], dict[str, Run]]:
    """The runs of a job by their keys, and those that are recorded neither in the book nor in ``results``."""
    places = [(name, folder) for name in (job.results, *job.also) for folder in (published, results)]
    rows = [read(*place) for place in places]
    if job.staged:
        # both may be the book's
        asked = job.runs(pd.concat(rows[:2], ignore_index=True).drop_duplicates("key"))
    else:
        asked = job.runs()
    runs = dict(zip(keys_of(asked), asked, strict=True))
    known = {key for one in rows for key in one["key"].tolist()}
    return runs, {key: run for key, run in runs.items() if key not in known}


def table(
    results: Path = PUBLISHED, queue: Sequence[Job] = QUEUE, published: Path = PUBLISHED
) -> pd.DataFrame:
    """A line per job: its runs, those that are recorded, what is left, and the hours that it takes.

    A run of several jobs is left in the first of them only. Hours are those of one core, at the seconds per
    update that recorded runs took; NaN where there are none. A run that goes on from a shorter one, of an
    earlier job, is counted from where that ends.

    Args:
        results: a folder of results whose rows count beside the published ones.
        queue: the jobs.
        published: the book's results.
    """
    seen: set[str] = set()
    ends: dict[str, set[int]] = defaultdict(set)
    lines = []

    def begins(run: Run) -> int:
        return max((end for end in ends[_of_any_length(run)] if end < run.recipe.iterations), default=0)

    for job in queue:
        runs, missing = left(job, results, published)
        new = {key: run for key, run in missing.items() if key not in seen}
        updates = sum(run.recipe.iterations - begins(run) for run in new.values())
        lines.append(
            {
                "job": job.what,
                "runs": len(runs),
                "recorded": len(runs) - len(missing),
                "left": len(new),
                "updates left": updates,
                "hours": updates * _pace(job, runs, {results, published}) / 3600 if new else 0.0,
            }
        )
        seen |= new.keys()
        for run in runs.values():
            if run.model.one_by_one:
                ends[_of_any_length(run)].add(run.recipe.iterations)
    return pd.DataFrame(lines)


def _of_any_length(run: Run) -> str:
    """What is the same for a run and those that go on from it."""
    return run.but(recipe=run.recipe.but(iterations=1)).key if run.model.one_by_one else ""


def _pace(job: Job, keys: Collection[str], folders: Iterable[Path]) -> float:
    """Seconds of a core per update of a run: of the job's own runs, as far as they are recorded from cores,
    else of all in the file of likewise ones. Runs that became NaN do not count: they may have taken no time.
    """
    own, alike = (
        pd.concat([_of_cores(name, folder) for folder in folders])
        for name in (job.results, job.like or job.results)
    )
    own = own[own["key"].isin(keys) & own["nan_at"].isna()]
    rows = alike[alike["nan_at"].isna()] if own.empty else own
    return float(rows["seconds"].sum() / rows["iterations"].sum()) if len(rows) else float("nan")


def _of_cores(name: str, folder: Path) -> pd.DataFrame:
    """The rows of a results file that were not trained on a GPU."""
    rows = read(name, folder)
    return rows if rows.empty else rows[~devices(rows, name, folder).map(is_gpu).astype(bool)]


def listed(lines: pd.DataFrame) -> str:
    """The table as text, with a line for all jobs."""
    total = lines[["left", "updates left", "hours"]].sum()
    every = pd.concat([lines, pd.DataFrame([{"job": "all, hours of one core"} | total.to_dict()])])
    return every.to_string(
        index=False,
        na_rep="",
        formatters={
            "hours": "{:,.1f}".format,
            **dict.fromkeys(["runs", "recorded", "left", "updates left"], _whole),
        },
    )


def _whole(number: float) -> str:
    return "" if pd.isna(number) else f"{number:,.0f}"


def train(results: Path, queue: Sequence[Job] = QUEUE, device: str = "cpu") -> Iterator[str]:
    """Trains what is left of each job, in order; a sentence after each.

    The hours are those of this call.
    """
    for job in queue:
        runs, missing = left(job, results)
        start = time.monotonic()
        if missing:  # all of them are asked for, so that an interrupted training finds its ensembles again
            run_all(list(runs.values()), job.results, str(results), device, also=job.also, keep_states=True)
        hours = (time.monotonic() - start) / 3600
        yield f"{job.what}: {len(missing)} runs trained in {hours:.2f} hours, all {len(runs)} are recorded"


def yield_to_others() -> None:
    """Lowest priority: whoever else needs the cores gets them."""
    os.nice(19)
    with suppress(OSError):  # Linux shares the cores among sessions first, and has a priority of each
        Path("/proc/self/autogroup").write_text("19")


def call_from_cpp() -> None:
    """Have compiled code called from C++ instead of Python: no bit of a result is another, and an update of
    ten runs takes a fifth less time. Processes that train read it when they load the compiler.
    """
    os.environ.setdefault("TORCHINDUCTOR_CPP_WRAPPER", "1")
    quiet = "ignore:CUTLASS backend"  # a warning about GPUs, for each matrix product
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), quiet]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.missing", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("results", type=Path, help="the folder of results to which rows go")
    parser.add_argument("--list", action="store_true", help="say what is left, and train nothing")
    parser.add_argument("--device", default="cpu", help='where: "cpu", or "cuda"')
    parser.add_argument("--only", default="", help="only jobs with these words in their name")
    options = parser.parse_args(arguments)
    words = re.compile(rf"(?<!\w){re.escape(options.only)}(?!\w)")  # 'Figure 7, 10' is not of 100 seeds
    queue = [job for job in QUEUE if words.search(job.what)]
    try:
        if not queue:
            raise ValueError(f"No job has {options.only!r} in its name; --list says what there is.")
        check_device(options.device)
        results_folder(options.results)
        if options.list:
            print(listed(table(options.results, queue)))
            return 0
        yield_to_others()
        if options.device == "cpu":
            call_from_cpp()
        for said in train(options.results, queue, options.device):
            print(said, flush=True)
    except (ValueError, OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    exit_with(main)
