"""Replays beside the authors' own runs, seed by seed.

Those are the runs of the nau-nmu paper's Table 6, whose file of single runs is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
from matplotlib.figure import Figure
from nalm.records import run_all
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.training import Run

from companion import published
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Comparison, Item, Read
from companion.experiment.tables import Table, text
from companion.figures import scatter
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.seed_by_seed import EVERY, FULL
from companion.recorded import read
from companion.replay import in_place, replayed

__all__ = [
    "ARMS",
    "EXPERIMENT",
    "agreement",
    "beside_published",
    "either_draw",
    "full",
    "recorded",
    "short_logs",
    "sums",
    "times",
    "trained",
    "with_first",
]

EXPERIMENT = nau_nmu.REPLAY
ARMS = {"replay": EXPERIMENT, "first weights": "nau-nmu/arithmetic"}
"""Where the runs of Table 2 are recorded, from either draw of the weights."""
UNTIL_SOLVED = {"sub": 8_000, "add": 25_000}
"""Iterations within which the authors' NAUs are solved, but for those whose logs were read out of order.
"""


def short_logs(points: int) -> list[Run]:
    """Replays of the authors' runs whose logs end early, after at most so many rows, as far as they go.

    They are labelled as the published table names them.

    >>> [run] = short_logs(5)
    >>> run.labels["model"], run.labels["operation"], run.seed, run.recipe.iterations
    ('NALU', 'mul', 41, 4000)
    """
    logs = published.load("nau_nmu_runs").query("logged_points <= @points")
    return [
        _run(log.model, log.operation, log.seed, (log.logged_points - 1) * EVERY) for log in logs.itertuples()
    ]


def sums(operation: str, seeds: int) -> list[Run]:
    """Replays of the authors' NAUs on sums or differences, until they are solved.

    When that is does not depend on what follows.

    Args:
        operation: in :data:`UNTIL_SOLVED`.
        seeds: seeds 0 to ``seeds`` - 1.

    >>> sums("sub", 3)[-1].recipe.stream
    'numpy'
    """
    return [_run("NAU", operation, seed, UNTIL_SOLVED[operation]) for seed in range(seeds)]


def _run(model: str, operation: str, seed: int, iterations: int) -> Run:
    return replayed(nau_nmu.subset_runs([model], [operation], seed + 1, iterations)[-1])


def beside_published(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per replayed run of Tables 1, 2 and 6, with what the authors' file says of this seed.

    Their columns are empty where it has no such run.

    Args:
        rows: of :data:`EXPERIMENT`. Table 1, the function with ten parameters, counts as a product; of it no
            single runs are published. The replays of figures are left out.
    """
    rows = nau_nmu.usual(rows)
    rows = rows.reindex(columns=list(dict.fromkeys([*rows.columns, "operation"])))  # Table 1 has none
    theirs = published.load("nau_nmu_runs").drop(columns="threshold")
    theirs["selected_at"] = (theirs.pop("selected_log_point") - 1) * EVERY
    values = ["success", "solved_at", "sparsity_error", "valid_mse", "test_mse", "selected_at"]
    theirs = theirs.rename(columns={name: f"published_{name}" for name in (*values, "logged_points")}).assign(
        table="Table 6"
    )
    table = rows["task"].map({"TenParameterTask": "Table 1", "SubsetArithmeticTask": "Table 6"})
    ours = rows.assign(table=table, operation=rows["operation"].where(table == "Table 6", "mul")).dropna(
        subset="table"
    )
    keys, paired = (
        ["model", "operation", "seed"],
        [name for value in values for name in (f"published_{value}", value)],
    )
    found = ours.merge(theirs, "left", [*keys, "table"])[
        [*keys, *paired, "published_logged_points", "stream", "iterations", "table"]
    ]
    return found.sort_values(["table", *keys, "iterations"], ignore_index=True)


def full(model: str, operation: str, arm: str) -> pd.DataFrame:
    """:func:`beside_published` of a line of Table 2: runs as long as the authors', one of :data:`ARMS`."""
    seeds = published.load("nau_nmu_runs")["seed"].unique()
    rows = Rows(read(ARMS[arm])).of(model=model, operation=operation, iterations=FULL, seed=seeds)
    return beside_published(rows.frame)


def recorded(folder: Path = PUBLISHED) -> pd.DataFrame:
    """:func:`beside_published` of all recorded replays, one line per model, operation and seed.

    Of several it is the one on the authors' batches, if that is solved, else the longest.
    """
    found = beside_published(Store(folder, EXPERIMENT).read())
    solved = (found["stream"] == "numpy") & found["success"].eq(True)
    found = found.assign(solved=solved).sort_values(["solved", "iterations"], kind="stable")
    found = found.drop(columns="solved").drop_duplicates(["table", "model", "operation", "seed"], keep="last")
    return found.sort_values(["table", "model", "operation", "seed"], ignore_index=True)


def trained(runs: Sequence[Run], p: SimpleNamespace, longest: int | None = None) -> Rows:
    """The rows of replays, for at most ``longest`` updates, with the parameters of a chapter."""
    if longest:
        lengths = [min(run.recipe.iterations, longest) for run in runs]
        runs = [
            run.but(recipe=run.recipe.but(iterations=length))
            for run, length in zip(runs, lengths, strict=True)
        ]
    how = {"scheduler": p.scheduler, "fresh": p.fresh}
    return Rows(run_all(runs, EXPERIMENT, p.results, p.device, **how), p.results)


def with_first(rows: pd.DataFrame) -> pd.DataFrame:
    """Replays with the outcome of the runs that they replay, from the first weights: ``first``."""
    known = pd.concat([read(name).set_index("key")["success"] for name in rows["of"].unique()])
    known = known[~known.index.duplicated()].astype(bool)
    return rows.assign(success=rows["success"].astype(bool), first=rows["replays"].map(known))


def agreement(pairs: pd.DataFrame) -> dict[str, float]:
    """How many runs are solved in the same row of the log, or nearly, where both times are known."""
    known = pairs.dropna(subset=["published_solved_at", "solved_at"])
    apart = (known["solved_at"] - known["published_solved_at"]).abs()
    return {
        "runs": len(known),
        "same row": int((apart == 0).sum()),
        "at most one row apart": int((apart <= EVERY).sum()),
        "rank correlation": known["solved_at"].corr(known["published_solved_at"], method="spearman"),
    }


def either_draw(
    item: Item, rows: pd.DataFrame, read: Read, by: str = "operation"
) -> tuple[Table, dict[str, str]]:
    """The published numbers of those lines of a figure or table whose runs are all replayed, beside ours from
    either draw of the weights. And how many agree, ``lines_first`` and ``lines_replay``, and how many success
    rates are equal, ``rates_first`` and ``rates_replay``.

    Args:
        item: a figure or table whose lines are those of a model on an operation or range.
        rows: from the first draw.
        read: recorded rows by experiment.
        by: the column with the operation or range.
    """
    first = item.select(rows)
    second, whole = _with_replays(first, by, read)
    ours, again = (
        {one.what: one for one in item.judge_so_far(arm, read=read).statements} for arm in (first, second)
    )
    pairs = {
        what: (one, again[what])
        for what, one in ours.items()
        if isinstance(one, Comparison) and what.startswith(whole) and what in again
    }
    lines = [
        (what, text(one.published), text(one.ours), one.agrees, text(other.ours), other.agrees)
        for what, (one, other) in pairs.items()
    ]
    columns = ["statement", "published", "first weights", "agrees", "replay", "it agrees"]
    caption, folded = f"{item.name}, the lines that are replayed", "The numbers from either draw"
    table = Table(lines, caption, columns=columns, folded=folded)
    rates = [pair for what, pair in pairs.items() if what.endswith("success rate")]
    numbers = {}
    for place, arm in enumerate(("first", "replay")):
        agreeing = sum(pair[place].agrees for pair in pairs.values())
        # closer than half a run of 100: published rates are rounded or read from a figure
        equal = sum(abs(pair[place].ours.estimate - pair[place].published.estimate) < 0.005 for pair in rates)
        numbers[f"lines_{arm}"] = f"{agreeing} of {len(pairs)}" if pairs else NOT_RUN
        numbers[f"rates_{arm}"] = f"{equal} of {len(rates)}" if rates else NOT_RUN
    return table, numbers


def _with_replays(rows: pd.DataFrame, by: str, read: Read) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The rows, each line with its replays where all of them are recorded; and how statements on those lines
    begin.
    """
    kept, begin = [rows.iloc[:0]], []
    for (place, model), part in rows.groupby([by, "model"], sort=False) if len(rows) else ():
        again = in_place(part, read)
        kept.append(part if again.empty else again)
        begin += [] if again.empty else [f"{model} on {nau_nmu.SIGNS.get(place, place)}, "]
    return pd.concat(kept), tuple(begin)


def times(both: Mapping[tuple[str, str], pd.DataFrame]) -> Figure | None:
    """When runs are solved over when the authors' of the same seeds are, a panel for each line and arm.

    Args:
        both: line, arm -> :func:`beside_published`.

    Returns:
        The figure; None where no run of them is solved.
    """
    drawn = pd.concat([pairs.assign(on=line, arm=arm) for (line, arm), pairs in both.items()])
    drawn = drawn.dropna(subset=["published_solved_at", "solved_at"])
    if drawn.empty:
        return None
    ends = drawn.groupby("on")["solved_at"].agg(["min", "max"])
    return scatter(
        drawn,
        x="published_solved_at",
        y="solved_at",
        hue="arm",
        row="on",
        column="arm",
        limits={line: (0.8 * low, 1.2 * high) for line, low, high in ends.itertuples()},
        square=True,
        xlabel="solved at, the authors' run",
        ylabel="solved at",
    )
