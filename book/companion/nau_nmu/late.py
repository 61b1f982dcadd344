"""Late runs: how many would make a published mean of *solved at*, and how reading a log out of order makes
them.

The order is that of :mod:`companion.nau_nmu.merged_order`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
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
    "LateRuns",
    "by_seed",
    "elsewhere",
    "fewest_late_runs",
    "followed",
    "late_runs",
    "thousands",
]


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
