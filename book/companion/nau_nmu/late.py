"""Late runs: how many would make a published mean of *solved at*, and how reading a log out of order makes
them.

The authors' analysis takes the first row of a run's log whose test error is below the threshold. Before
that it joins all rows with their thresholds by R's ``merge``. Where the key of that join is not in order
already, ``merge`` sorts by Shell's method, which leaves rows of the same key in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from types import SimpleNamespace

import numpy as np
from nalm.records import run_all
from nalm.training import Run

from companion import measures, published
from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import one_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Read
from companion.experiment.tables import text
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import values
from companion.nau_nmu.gates import published_line
from companion.nau_nmu.subset_arithmetic import TABLE_2

__all__ = [
    "EXPERIMENT",
    "LAYOUTS",
    "LateRuns",
    "Layout",
    "by_seed",
    "elsewhere",
    "fewest_late_runs",
    "first_read",
    "followed",
    "late_runs",
    "read_in_merged_order",
    "shell_sorted",
    "table_6",
    "thousands",
]


@dataclass(frozen=True)
class Layout:
    """In which order a file of the authors holds the logs of runs.

    They lie by model, by what thresholds are joined on, by the seed's name (0, 1, 10, 11, ...).

    Args:
        models: in the order of their names there.
        keys: operations or ranges, likewise.
        runs: seeds of each.
        logs: rows per run.
        every: iterations from one row to the next.
        lengths: rows of each run in the order of the file, where they are known.
    """

    models: tuple[str, ...]
    keys: tuple[str, ...]
    runs: int
    logs: int = 5001
    every: int = 1000
    lengths: tuple[int, ...] = ()

    def seeds(self) -> list[int]:
        """In the order of their names."""
        return sorted(range(self.runs), key=str)

    def lines(self) -> list[tuple[str, str]]:
        """Model and key of each line of runs."""
        return list(product(self.models, self.keys))

    def rows(self) -> np.ndarray:
        """Rows of each run."""
        return np.array(self.lengths or [self.logs] * (len(self.lines()) * self.runs))


LAYOUTS = {
    "Table 5": Layout(("NALU (separate)", "NALU (shared)", "Gated NAU/NMU"), ("add", "mul"), 100),
    "Figure 3": Layout(
        ("NAC•", "NALU", "NAC•,σ", "NMU", "Gated NAU/NMU", "NAC•,NMU"),
        ("U[-2,-1)", "U[-2,2)", "U[0,1)", "U[0.1,0.2)", "U[1,2)", "U[1.1,1.2)", "U[10,20)"),
        50,
    ),
}
"""Item -> how its logs lie in the authors' file."""


def table_6() -> Layout:
    """How the logs of Table 6, and so of Table 2, lie in the authors' file.

    All have 5,001 rows but 27 of NALUs.

    >>> table_6().rows().sum()
    np.int64(29876191)
    """
    models = ("Linear", "NAC+", "NAC•", "NALU", "NAC•,σ", "ReLU", "ReLU6", "NAU", "NMU", "NAC•,NMU")
    layout = Layout(models, ("add", "div", "mul", "root", "squared", "sub"), runs=100)
    rows = published.load("nau_nmu_logged_points").set_index(["model", "operation", "seed"])["logged_points"]
    return replace(
        layout, lengths=tuple(int(rows[*line, seed]) for line in layout.lines() for seed in layout.seeds())
    )


@dataclass(frozen=True)
class LateRuns:
    """Late runs of a line, all first solved at one iteration, and the fit to all runs of the line.

    Args:
        count: of runs.
        at: first solved iteration of each.
        printed: the likeliest mean of a gamma distribution with the variance of the sample, see
            :func:`companion.measures.solved_at`.
    """

    count: int
    at: float
    printed: Interval


def late_runs(soon: Sequence[float], runs: int, average: float, printed: float) -> LateRuns | None:
    """The number of late runs with which the mean of all runs is ``average`` and their fit comes nearest
    to ``printed``.

    All other runs are taken to be solved when those in ``soon`` are. The mean then tells when the late
    ones are: k of them at (runs · average − (runs − k) · mean of ``soon``) / k.

    Args:
        soon: first solved iterations of runs of which none is late.
        runs: number of solved runs of the line.
        average: their mean.
        printed: the fit.

    Returns:
        ``None`` if ``average`` is not above the mean of ``soon``.

    Raises:
        ValueError: ``soon`` is empty, or fewer than two runs.

    >>> found = late_runs([1000.0, 2000.0], runs=100, average=3455.0, printed=9268.0)
    >>> found.count, round(found.at)
    (2, 99250)
    """
    _check(soon, runs)
    if average <= np.mean(soon):
        return None
    ats = {count: (runs * average - _others(soon, runs - count).sum()) / count for count in range(1, runs)}
    found = [_with(soon, runs, count, at) for count, at in ats.items()]
    return min(found, key=lambda one: abs(math.log(one.printed.estimate / printed)))


def fewest_late_runs(soon: Sequence[float], runs: int, printed: float, iterations: int) -> LateRuns | None:
    """The smallest number of late runs with which the fit to all runs is ``printed``.

    The late runs are solved at one iteration up to ``iterations``.

    Args:
        soon, runs, printed: as of :func:`late_runs`.
        iterations: after which no run can be solved.

    Returns:
        ``None`` if there is no such number below that of all runs.

    Raises:
        ValueError: as of :func:`late_runs`.

    >>> found = fewest_late_runs([1000.0, 2000.0], runs=40, printed=9000.0, iterations=100_000)
    >>> found.count, round(found.printed.estimate)
    (1, 9000)
    """
    from scipy.optimize import brentq

    _check(soon, runs)
    soonest = float(np.max(soon))

    def excess(count: int, at: float) -> float:
        return _with(soon, runs, count, at).printed.estimate - printed

    for count in range(1, runs):
        if excess(count, soonest) < 0 <= excess(count, iterations):
            return _with(soon, runs, count, brentq(partial(excess, count), soonest, iterations, rtol=1e-6))
    return None


def shell_sorted(keys: Sequence[int]) -> np.ndarray:
    """The order in which Shell's sort leaves values, with the gaps 1, 4, 13, 40, ... as in R's ``merge``.

    The positions before the sort are returned, one per value.

    A pass sorts the values that are a gap apart by insertion, which keeps the order of equal ones; passes
    together do not.

    Args:
        keys: small whole numbers from 0 to 254.

    >>> shell_sorted([0, 0, 0, 0, 1, 0, 0, 0, 0]).tolist()
    [0, 1, 2, 3, 8, 5, 6, 7, 4]
    """
    values, gap = np.asarray(keys, dtype=np.uint8), 1
    order = np.arange(len(values), dtype=np.int32)
    while gap <= len(values) // 9:
        gap = 3 * gap + 1
    while gap:
        missing = -len(values) % gap
        table = np.append(values, np.full(missing, 255, dtype=np.uint8)).reshape(-1, gap)
        places = np.append(order, np.zeros(missing, dtype=order.dtype)).reshape(-1, gap)
        _sort_columns(table, places)
        values, order = table.ravel()[: len(values)], places.ravel()[: len(order)]
        gap //= 3
    return order


def _sort_columns(values: np.ndarray, places: np.ndarray) -> None:
    """Sort each column of ``values`` in place, and move ``places`` with it; equal values stay in order.

    Values come in long runs, so most columns of a wide table are as the one before, and most rows of a
    tall one are where they belong.
    """
    height, width = values.shape
    if width > height:
        changes = np.flatnonzero((values[:, 1:] != values[:, :-1]).any(0)) + 1
        for first, last in zip([0, *changes], [*changes, width], strict=True):
            order = np.argsort(values[:, first], kind="stable")
            for table in (values, places):
                table[:, first:last] = table[order, first:last]
        return
    largest_so_far = np.maximum.accumulate(values.max(1))
    smallest_from_here = np.minimum.accumulate(values.min(1)[::-1])[::-1]
    unsorted = np.concatenate([[False], largest_so_far[:-1] > smallest_from_here[1:], [False]])
    for first, last in np.flatnonzero(np.diff(unsorted)).reshape(-1, 2):
        rows = slice(first, last + 1)
        order = np.argsort(values[rows], axis=0, kind="stable")
        for table in (values, places):
            table[rows] = np.take_along_axis(table[rows], order, 0)


def read_in_merged_order(
    solved_at: Mapping[tuple[str, str], Sequence[float]], layout: Layout
) -> dict[tuple[str, str], np.ndarray]:
    """What is found for *solved at* if the first row below the threshold is taken after R's ``merge``.

    A run is taken to stay below the threshold from its first solved iteration on.

    Args:
        solved_at: model and key -> first solved iterations of all runs, NaN for those that are not solved.
            Lines of the layout that are left out have rows all the same.
        layout: of the file.

    Raises:
        ValueError: a line that the layout does not have, or another number of runs.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> read_in_merged_order({("NMU", "add"): [3000.0, 3000.0, 3000.0]}, layout)["NMU", "add"].tolist()
    [3000.0, 21000.0, 3000.0]
    """
    for line, times in solved_at.items():
        if line[0] not in layout.models or line[1] not in layout.keys or len(times) != layout.runs:
            raise ValueError(
                f"{len(times)} runs of {line} are given; the file has {layout.runs} of each of "
                f"{layout.models} and {layout.keys}."
            )
    log, row = _merged(layout)
    seeds = np.array(layout.seeds())
    found = {}
    for line, times in solved_at.items():
        start = layout.lines().index(line) * layout.runs
        inside = (log >= start) & (log < start + layout.runs)
        seed, at = seeds[log[inside] - start], row[inside] * float(layout.every)
        below = at >= np.asarray(times, dtype=float)[seed]  # never where it is NaN
        solved, first = np.unique(seed[below], return_index=True)
        found[line] = np.full(layout.runs, np.nan)
        found[line][solved] = at[below][first]
    return found


def first_read(layout: Layout) -> dict[tuple[str, str], np.ndarray]:
    """For each line, the iteration of the row of each seed's log that comes first after that sort.

    It is 0 where that is the log's own first row.

    A run that is solved before it is read as solved just there.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> first_read(layout)["NMU", "add"].tolist()
    [0.0, 21000.0, 0.0]
    """
    log, row = _merged(layout)
    _, places = np.unique(log, return_index=True)
    by_line = (row[places] * float(layout.every)).reshape(-1, layout.runs)[:, np.argsort(layout.seeds())]
    return dict(zip(layout.lines(), by_line, strict=True))


@lru_cache(maxsize=1)
def _merged(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Of each row, in the order after the sort, which log it is of and the how manieth of that log."""
    rows = layout.rows()
    keys = np.tile(np.repeat(np.arange(len(layout.keys), dtype=np.uint8), layout.runs), len(layout.models))
    order = shell_sorted(np.repeat(keys, rows))
    begins = np.cumsum(rows) - rows
    log = np.repeat(np.arange(len(rows), dtype=np.int32), rows)[order]
    return log, (order - begins[log]).astype(np.int32)


def _check(soon: Sequence[float], runs: int) -> None:
    if len(soon) == 0 or runs < 2:
        raise ValueError(
            f"{len(soon)} soon runs and {runs} runs in all are given; at least one and two are needed."
        )


def _others(soon: Sequence[float], runs: int) -> np.ndarray:
    """So many values that are spread as those of ``soon`` are."""
    return np.quantile(soon, (np.arange(runs) + 0.5) / runs)


def _with(soon: Sequence[float], runs: int, count: int, at: float) -> LateRuns:
    values = np.append(_others(soon, runs - count), np.full(count, at))
    return LateRuns(count, float(at), measures.solved_at(values, variance="sample"))


_MEANS = ("U[-2,2)", "U[0,1)", "U[0.1,0.2)")
"""The ranges of Figure 3 on which means of the NMU are looked at."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those of other chapters, and ten times as many seeds of the NAU until nearly all are solved."""
    length = (p.iterations, p.stream)
    return {
        "nau-nmu/arithmetic": [
            run
            for operation, models in TABLE_2.items()
            for run in nau_nmu.subset_runs(models, [operation], p.seeds, *length)
        ],
        "nau-nmu/late": _screen(p, min(p.iterations, 50_000)),
        "nau-nmu/gates": nau_nmu.gate_runs(["Gated NAU/NMU"], ["add"], p.seeds, *length),
        "nau-nmu/ranges": nau_nmu.range_runs(["NMU"], _MEANS, max(1, p.seeds // 2), *length),
    }


def _screen(p: SimpleNamespace, iterations: int) -> list[Run]:
    return nau_nmu.subset_runs(["NAU"], ["add", "sub"], 10 * p.seeds, iterations, p.stream)


def followed(screened: Rows, p: SimpleNamespace) -> Rows:
    """The seeds of the NAU that are not solved soon, trained to the end."""
    lost = set(zip(screened.failed.frame["operation"], screened.failed.frame["seed"], strict=True))
    rest = [run for run in _screen(p, p.iterations) if (run.labels["operation"], run.seed) in lost]
    if not rest:
        return Rows(screened.frame.iloc[:0])
    how = {"scheduler": p.scheduler, "train": p.train or p.fresh, "fresh": p.fresh}
    return Rows(run_all(rest, "nau-nmu/late", p.results, p.device, **how), p.results)


def by_seed(rows: Rows, runs: int) -> np.ndarray:
    """First solved iterations of seeds 0 to ``runs`` - 1, NaN where a run is not solved."""
    return rows.solved.frame.set_index("seed")["solved_at"].reindex(range(runs)).to_numpy(float)


def elsewhere(rows: Rows) -> dict[tuple[str, str, str], tuple[Rows, int, Interval]]:
    """Lines of which the fit is published and the mean is not: item, model and key -> our rows, how many
    runs of the authors are solved, and their fit.
    """
    line = published_line("add", "Gated NAU/NMU")
    solved = round(100 * line["success_rate"].estimate)
    gated = rows.of(experiment="nau-nmu/gates")
    found = {("Table 5", "Gated NAU/NMU", "add"): (gated, solved, line["solved_at_step_mean"])}
    drawn = values("Fig3-bottom")
    for name in _MEANS:
        rate, mean = (drawn[name, "NMU", measure] for measure in ("success", "solved_at_mean"))
        part = rows.of(experiment="nau-nmu/ranges", range=name)
        found["Figure 3", "NMU", name] = (part, round(rate.estimate * rate.n), mean)
    return found


def thousands(*times: Interval | float) -> list[str]:
    """Iterations in thousands.

    >>> thousands(1500.0, Interval(2000.0, 1000.0, 4000.0, 10))
    ['1.5', '2 [1, 4]']
    """
    scaled = [
        Interval(one.estimate / 1000, one.low / 1000, one.high / 1000, one.n)
        if isinstance(one, Interval)
        else float(one) / 1000
        for one in times
    ]
    return [text(one) for one in scaled]


def _printed_sub_linear() -> tuple[float, float, int]:
    """Mean and median of *solved at* of the linear model on differences, as printed, and its solved runs."""
    table = published.load("nau_nmu_table2").query("op == 'sub' and model == 'Linear'")
    values = table.set_index("metric")["value"]
    solved = round(100 * values["success_rate"])
    return values["solved_at_step_mean"], values["solved_at_step_median"], solved


def _not_likeliest(read: Read) -> str:
    mean, median, runs = _printed_sub_linear()
    least = (runs + 1) // 2 / runs * median // 10_000 * 10_000  # rounded down, as a bound is
    return (
        "The likeliest mean is the sample mean. The authors' search leaves the variance where it starts, at "
        f"that of the sample, and moves the mean alone. {runs} linear models on differences with a median "
        f"of {text(median)} have a mean of at least {text(least, 2)}; printed is {text(mean)}."
    )


def _out_of_order(read: Read) -> str:
    runs = published.load("nau_nmu_runs").query("operation == 'add' and model == 'NAU'")["solved_at"].dropna()
    late = runs > 10 * runs.median()
    return (
        "It is the first row below the threshold in a log whose rows R's `merge` has left out of order. Of "
        f"{len(runs)} published NAUs on sums {late.sum()} are late for that, the last at iteration "
        f"{text(runs.max())}. The mean of all {len(runs)} is {text(runs.mean())}, that of the other "
        f"{len(runs) - late.sum()} is {text(runs[~late].mean())}."
    )


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/late.ipynb",
    rules={"stream": one_of(["common", "own"])},
    runs=_runs,
    errata=(
        Erratum(
            "Table 2, mean of *solved at*",
            "evaluation",
            "The first iteration at which a run is solved.",
            _out_of_order,
            (
                "The sort of R's `merge`, run on the published lengths of the authors' 6,000 logs, "
                "names the late runs by seed and to the iteration."
            ),
            (
                "Some printed means of Tables 2, 5 and 6 and of Figure 3 are several times the mean "
                "of the runs; medians are right."
            ),
        ),
        Erratum(
            "Section 4.1.1, gamma distribution",
            "evaluation",
            "The mean of *solved at* is the one of largest likelihood.",
            _not_likeliest,
            (
                "The fit with its variance held departs from the mean of our runs as the printed "
                "one does from the mean of theirs."
            ),
            ("Printed means move away from the mean of the runs, and their intervals are too narrow."),
        ),
    ),
)
