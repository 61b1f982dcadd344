"""Products over ranges, and sums over shifted ones without a penalty: Figure 3 of *Neural Arithmetic
Units*.

Its lower half has interpolation ranges; :mod:`companion.nau_nmu.hidden_sizes` has the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import starmap
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import SubsetArithmeticTask, Uniform
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.parameters import one_of, some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Explanation, Item, Later, Read, Statement, exactly
from companion.experiment.tables import Table, text
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import beside_drawn, measured, values
from companion.nau_nmu.hidden_sizes import figure_3_sizes, with_sizes
from companion.nau_nmu.merged_order import LAYOUTS, Layout, means_in_either_order
from companion.recorded import read
from companion.thresholds import nearly_perfect_mse

PACE = "nau-nmu/pace"
"""Where runs without a penalty are recorded, which are not in the paper."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those of the figure, and without a penalty sums on shifted ranges and products on the narrow one."""
    narrow = nau_nmu.range_runs(["NMU"], ["U[1.1,1.2)"], p.seeds, p.iterations, p.stream)
    sums = shifted_runs("add", p.lows, p.seeds, min(p.iterations, 300_000), p.stream)
    free = [run.but(recipe=run.recipe.but(penalties=())) for run in narrow]
    return {
        "nau-nmu/ranges": nau_nmu.range_runs(p.models, p.ranges, p.seeds, p.iterations, p.stream),
        PACE: sums + free,
    }


def shifted_runs(
    operation: str, lows: Sequence[float], seeds: int, iterations: int, stream: str = "own"
) -> list[Run]:
    """One run for each range U[low, low + 1) and seed, without a penalty; labelled ``range`` as well.

    Not in the paper, whose default is U[1, 2). The extrapolation range is U[low + 1, low + 5), the
    threshold simulated for it.

    Args:
        operation: name in :data:`companion.nau_nmu.settings.PENALTY_SWEEPS`, which says of which model.
        lows: lower ends of ranges.
        seeds, iterations, stream: as of :func:`companion.nau_nmu.settings.subset_runs`.

    >>> (run,) = shifted_runs("add", [1.0], seeds=1, iterations=10)
    >>> str(run.task.extrapolation), run.threshold, run.recipe.penalties
    ('U[2,6)', 1.6e-05, ())
    """
    usual = nau_nmu.subset_runs([nau_nmu.PENALTY_SWEEPS[operation]], [operation], seeds, iterations, stream)
    plain = [run.but(recipe=run.recipe.but(penalties=())) for run in usual]
    return [_shifted(run, float(low)) for low in lows for run in plain]


def _shifted(run: Run, low: float) -> Run:
    task = run.task.but(
        interpolation=Uniform(low=low, high=low + 1), extrapolation=Uniform(low=low + 1, high=low + 5)
    )
    return run.but(
        task=task, threshold=_simulated(task), labels=run.labels | {"range": str(task.interpolation)}
    )


@cache
def _simulated(task: SubsetArithmeticTask) -> float:
    return nearly_perfect_mse(task, samples=100_000)


def figure_3_ranges(rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """What the lower half draws and what section 4.1 says of it, as far as rows hold what is compared.

    Args:
        rows: with the columns ``range``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
    """
    parts = dict(iter(rows.groupby(["range", "model"])))
    parts = {
        (name, model): parts[name, model]
        for name in nau_nmu.RANGES
        for model in nau_nmu.MULTIPLIERS
        if (name, model) in parts
    }
    rates = {line: measured(part, ["success"])["success"] for line, part in parts.items()}
    yield lambda: beside_drawn("Fig3-bottom", "on", parts)
    for name in ("U[-2,-1)", "U[-2,2)"):
        if (name, "NMU") in rates:
            yield Claim(
                f"the NMU can handle {name}: it solves most runs",
                rates[name, "NMU"].low > 0.5,
                text(rates[name, "NMU"], 2),
            )
    narrow = {model: found for (name, model), found in rates.items() if name == "U[1.1,1.2)"}
    if set(narrow) == set(nau_nmu.MULTIPLIERS):
        best = max(narrow.values(), key=lambda one: one.estimate)
        yield Claim("no model can learn U[1.1,1.2)", best.estimate == 0, text(best, 2))


def figure_3(rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """Both halves; the default, two hidden units on U[1,2), belongs to either.

    Args:
        rows: with the columns of both.
    """
    yield from figure_3_sizes(rows[rows["range"] == "U[1,2)"])
    yield from figure_3_ranges(rows[rows["hidden"] == "2"])


def _of_figure_3(rows: pd.DataFrame) -> pd.DataFrame:
    rows = rows[rows["experiment"] != PACE]
    rows = with_sizes(nau_nmu.usual(rows, but=["hidden", "range"]))
    return rows[(rows["operation"] == "mul") & rows["model"].isin(nau_nmu.MULTIPLIERS) & (rows["seed"] < 50)]


def with_upper_half(rows: Rows) -> Rows:
    """Rows of this page, and the recorded ones of the upper half."""
    return Rows(pd.concat([rows.frame, read("nau-nmu/hidden")], ignore_index=True), rows.results)


def replays(read: Read) -> Rows:
    """The runs of the lower half from the authors' initial weights, at full length and as far as they are
    recorded, in the order of its ranges.

    Args:
        read: recorded rows by experiment.
    """
    rows = _replayed(read, hidden="2")
    places = {name: place for place, name in enumerate(nau_nmu.RANGES)}
    return Rows(rows.sort_values("range", key=lambda names: names.map(places), kind="stable"))


def replays_of_sizes(read: Read) -> Rows:
    """Those of the upper half.

    Args:
        read: recorded rows by experiment.
    """
    return Rows(_replayed(read, range="U[1,2)"))


def _replayed(read: Read, **line: str) -> pd.DataFrame:
    rows = Rows(_of_figure_3(read(nau_nmu.REPLAY)))
    return rows.of(iterations=5_000_000, **line).frame


IN_ORDER, WHOLE = "in order", "whole logs"


def read_late(read: Read) -> dict[tuple[str, str], dict[str, Interval]]:
    """Model and range -> the mean of *solved at* of our replays, :data:`IN_ORDER`, and the means that the
    authors' analysis would find with its order of rows.

    These depend on how many rows the logs have. All logs are taken to be whole, or all but those of NALUs,
    which then end where ours become NaN. The seeds that are trained stand for the others, in turn.

    Args:
        read: recorded rows by experiment.
    """
    rows, layout = replays(read), LAYOUTS["Figure 3"]
    times = {}
    for line, part in rows.frame.groupby(["model", "range"], sort=False):
        seeds = part.drop_duplicates("seed").sort_values("seed")
        won = seeds["solved_at"].where(seeds["success"].astype(bool))
        if won.count() > 1:
            times[line] = np.resize(won, layout.runs)
    found: dict[tuple[str, str], dict[str, Interval]] = {line: {} for line in times}
    logs = {WHOLE: layout, "shorter logs of NALUs": _as_short_as_ours(rows.of(model="NALU"), layout)}
    for name, one in logs.items():
        for line, solved_at in times.items():
            found[line][IN_ORDER], found[line][name] = means_in_either_order(line, solved_at, one)
    return found


def _as_short_as_ours(nalus: Rows, layout: Layout) -> Layout:
    ours = nalus.frame.drop_duplicates(["range", "seed"]).sort_values("seed")
    ends = {name: part["nan_at"] // layout.every for name, part in ours.groupby("range")}
    lengths = [np.full(layout.runs, layout.logs) for _ in layout.lines()]
    for place, (model, name) in enumerate(layout.lines()):
        if model == "NALU" and name in ends:
            lengths[place] = np.resize(ends[name].fillna(layout.logs), layout.runs)[layout.seeds()]
    return replace(layout, lengths=tuple(int(rows) for rows in np.concatenate(lengths)))


def late_on(read: Read, name: str) -> Table:
    """What :func:`read_late` finds on a range, beside the published means.

    Args:
        read: recorded rows by experiment.
        name: in :data:`companion.nau_nmu.settings.RANGES`.
    """
    theirs = values("Fig3-bottom")
    lines = [
        {"model": model, "published": theirs[name, model, "solved_at_mean"].estimate}
        | {column: mean.estimate for column, mean in means.items()}
        for (model, on), means in read_late(read).items()
        if on == name
    ]
    return Table(
        lines, f"Mean of solved at of our replays on {name}, in order and in the authors' order of rows"
    )


_OFTEN_SOLVED = [
    (model, name)
    for name in nau_nmu.RANGES
    for model in nau_nmu.MULTIPLIERS
    if values("Fig3-bottom")[name, model, "success"].estimate > 0.2
]


def _mean_on(model: str, name: str) -> str:
    return f"{model} on {name}, solved at, mean"


def _late(read: Read) -> Iterator[tuple[tuple[str, str], Interval, list[float]]]:
    """Model and range, the mean in order, and the smallest and largest that is read late."""
    for line, means in read_late(read).items():
        late = [mean.estimate for name, mean in means.items() if name != IN_ORDER]
        yield line, means[IN_ORDER], [min(late), max(late)]


def _out_of_order(read: Read) -> str:
    means = [
        f"{text(late[0])} to {text(late[1])} instead of {text(soon.estimate)} ({model} on {name})"
        for (model, name), soon, late in _late(read)
        if late[1] > 1.25 * soon.estimate
    ]
    ends = replays(read).of(model="NALU").frame["nan_at"]
    return (
        "The authors read the rows of some logs out of order, as the chapter on late runs shows. How many "
        "rows the logs of this figure have is not published. If all of them are whole, or those of NALUs end "
        f"where ours become NaN, as {ends.count()} of {len(ends)} do, our replays, read so, have means of "
        f"{', '.join(means) or NOT_RUN}."
    )


def _later(read: Read) -> dict[str, Interval]:
    """By how much it moves means if all logs are whole; other lengths are a guess, and no size."""
    return {_mean_on(*line): exactly(0.0) for line in _OFTEN_SOLVED} | {
        _mean_on(*line): exactly(means[IN_ORDER].estimate - means[WHOLE].estimate)
        for line, means in read_late(read).items()
    }


def lower_half(one: Statement) -> bool:
    """Whether a statement is one on ranges."""
    return "hidden size" not in one.what


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/ranges.ipynb",
    rules={
        "models": some_of(nau_nmu.MULTIPLIERS),
        "ranges": some_of(nau_nmu.RANGES),
        "stream": one_of(["common", "own"]),
    },
    runs=_runs,
    also=("nau-nmu/arithmetic",),
    items=(
        Item(
            "nau-nmu",
            "Figure 3",
            "Multiplication over hidden sizes and over input ranges",
            "experiment",
            figure_3,
            headline="success rate of the NMU at hidden size 10",
            published="24 of 38",
            seeds=50,
            from_seeds=10,
            iterations=5_000_000,
            runs=3750,
            experiment=("nau-nmu/arithmetic", "nau-nmu/ranges", "nau-nmu/hidden"),
            replays=nau_nmu.REPLAY,
            rows=_of_figure_3,
            by=("hidden", "range", "model"),
            explanations=(Explanation(tuple(starmap(_mean_on, _OFTEN_SOLVED)), _out_of_order, _later),),
        ),
    ),
)
