"""Products over ranges, and sums over shifted ones without a penalty: Figure 3 of *Neural Arithmetic
Units*.

Its lower half has interpolation ranges; :mod:`companion.nau_nmu.hidden_sizes` has the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import SimpleNamespace

import pandas as pd
from nalm.tasks import SubsetArithmeticTask, Uniform
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.parameters import one_of, some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import (
    Claim,
    Comparison,
    Explanation,
    Item,
    Read,
    Statement,
    exactly,
    solved,
)
from companion.experiment.tables import text
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import beside_drawn, measured
from companion.nau_nmu.hidden_sizes import figure_3_sizes, with_sizes
from companion.nau_nmu.merged_order import LAYOUTS, means_in_either_order
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


def figure_3_ranges(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
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
    rates = {line: measured(part)["success"] for line, part in parts.items()}
    yield from beside_drawn("Fig3-bottom", "on", parts)
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


def figure_3(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """Both halves; the default, two hidden units on U[1,2), belongs to either.

    Args:
        rows: with the columns of both.
    """
    yield from sorted(
        figure_3_sizes(rows[rows["range"] == "U[1,2)"]),
        key=lambda one: one.what != "NMU at hidden size 10, success rate",
    )
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


def _read_late(read: Read) -> dict[str, tuple[Interval, Interval]]:
    """Range -> the mean of *solved at* of the NMU's replays, and the one that the authors' analysis would
    find with its order of rows; of ranges with all replays that are drawn.
    """
    found, layout = {}, LAYOUTS["Figure 3"]
    for name, part in replays(read).of(model="NMU").frame.groupby("range", sort=False):
        times = (
            solved(part.drop_duplicates("seed")).set_index("seed")["solved_at"].reindex(range(layout.runs))
        )
        if times.count() > 1 and part["seed"].nunique() == layout.runs:
            found[name] = means_in_either_order(("NMU", name), times.to_numpy(), layout)
    return found


_SOLVED = [name for name in nau_nmu.RANGES if name != "U[1.1,1.2)"]
"""Ranges that an NMU solves."""


def _mean_on(name: str) -> str:
    return f"NMU on {name}, solved at, mean"


def _out_of_order(read: Read) -> str:
    moved = {name: pair for name, pair in _read_late(read).items() if pair[0].estimate != pair[1].estimate}
    means = [
        f"{text(late.estimate)} instead of {text(soon.estimate)} ({name})"
        for name, (soon, late) in moved.items()
    ]
    return (
        "The authors read the rows of some logs out of order, as the chapter on late runs shows. How many "
        "rows the logs of this figure have is not published. If all of them are whole, our replays of the "
        f"NMU, read so, have means of {', '.join(means) or NOT_RUN}."
    )


def _later(read: Read) -> dict[str, Interval]:
    """By how much it moves means."""
    pairs = _read_late(read)
    return {_mean_on(name): exactly(0.0) for name in _SOLVED} | {
        _mean_on(name): exactly(soon.estimate - late.estimate) for name, (soon, late) in pairs.items()
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
            explanations=(Explanation(tuple(map(_mean_on, _SOLVED)), _out_of_order, _later),),
        ),
    ),
)
