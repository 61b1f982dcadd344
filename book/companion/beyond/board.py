"""The leaderboard as a table: ``python -m companion.beyond.board``, or ``make leaderboard``, writes it as
book/results/leaderboard.csv and its head into the README.

With a unit of one's own, ``make leaderboard UNIT=square.py:SquareUnit``, it writes nothing: it trains that
unit on the nine ranges and prints the table with it.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from nalm.commands import exit_with
from nalm.models import Stack
from nalm.records import run_all
from nalm.records.folders import PUBLISHED
from nalm.records.keys import keys_of
from nalm.study import check_seeds
from nalm.tasks import UNIFORM_RANGES
from nalm.training import Adam, Discretisation, Recipe, Run
from nalm.units.checks import choose

from companion import measures, sealed, thresholds
from companion.beyond import leaderboard, tuned
from companion.beyond.leaderboard import ARMS, OPERATIONS, UNITS, benchmark_threshold, expresses, tasks
from companion.derived import stale, with_block, write
from companion.recorded import read

__all__ = [
    "CANNOT",
    "COLUMNS",
    "NOT_RUN",
    "RUN",
    "best",
    "board",
    "head",
    "load",
    "ranks",
    "recorded",
    "shown",
]

RUN, PARTLY, NOT_RUN, CANNOT = "run", "partly run", "not run", "cannot express"
COLUMNS = [
    "arm", "operation", "inputs", "unit", "state", "rank", "rank_low", "rank_high", "runs", "solved", "rate",
    "low", "high", "benchmark_solved", "benchmark_rate", "benchmark_low", "benchmark_high", "solved_at",
    "sparsity_error", "iterations", "hours", "recipe", "setting", "tried", "budget", "search_hours",
]  # fmt: skip
"""Of the table. ``rate`` and ``low`` to ``high``, its interval by seeds, are those of a test error below 1e-5
as in the division paper, ``benchmark_`` those at the benchmark's threshold. ``rank_low`` to ``rank_high`` is
the interval of the rank. ``solved_at`` and ``sparsity_error`` are medians over solved runs. ``hours`` is
what the runs of the line took on one core. Of a unit that is tuned, ``setting`` is what the search chose,
``tried`` among how many, ``budget`` what it took in run-iterations and ``search_hours`` on one core; it is
one search for all numbers of inputs.
"""
FILE = PUBLISHED / "leaderboard.csv"
SAMPLES = 2000
START, END = "<!-- leaderboard -->", "<!-- /leaderboard -->"
README = PUBLISHED.parents[1] / "README.md"


def recorded() -> pd.DataFrame:
    """The recorded rows of both arms; the search of the second is not among them."""
    asked = [
        run
        for inputs in (2, 10)
        for operation in OPERATIONS
        for run in leaderboard.runs_of(operation, inputs)
    ]
    known = pd.concat([read(name) for name in (*leaderboard.ALSO, leaderboard.RESULTS)], ignore_index=True)
    rows = known.drop_duplicates("key", keep="last").set_index("key", drop=False)
    found = [(key, run) for key, run in zip(keys_of(asked), asked, strict=True) if key in rows.index]
    labels = pd.DataFrame([run.labels for _, run in found], columns=["model", "operation", "inputs", "arm"])
    first = rows.loc[[key for key, _ in found]].reset_index(drop=True).assign(**labels)
    second, _ = tuned.recorded()
    return pd.concat([first, second], ignore_index=True) if len(second) else first


def board(
    rows: pd.DataFrame,
    seeds: int = 25,
    ranges: Sequence[str] = tuple(UNIFORM_RANGES),
    search: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """A line for each arm, operation, number of inputs and unit, best first; see :data:`COLUMNS`.

    Units of which not all runs are there have no rank.

    Args:
        rows: of :func:`recorded`, or some of them, and of units of one's own.
        seeds, ranges: how many seeds, and which ranges, a unit has when it is run.
        search: the rows of the search that chose the settings, the second of
            :func:`companion.beyond.tuned.recorded`.
    """
    rows = rows.assign(inputs=rows["inputs"].astype(int), success=rows["success"].astype(bool))
    groups = dict(list(rows.groupby(["arm", "operation", "inputs"], sort=False)))
    lines = []
    for arm in ARMS:
        for operation in OPERATIONS:
            for inputs in (2, 10):
                part = groups.get((arm, operation, inputs), rows.iloc[:0])
                places = [name for name in tasks(operation, inputs) if name in ranges]
                lines += _lines(arm, operation, inputs, part, seeds, len(places))
    table = pd.DataFrame(lines, columns=COLUMNS)
    if search is None or search.empty:
        return table
    of = search.groupby(["operation", "model"])
    costs = pd.DataFrame({"tried": of["setting"].nunique(), "search_hours": of["seconds"].sum() / 3600})
    found = costs.reindex(pd.MultiIndex.from_frame(table[["operation", "unit"]])).set_axis(table.index)
    return table.assign(**found.where(table["setting"].notna()))


def _lines(
    arm: str, operation: str, inputs: int, rows: pd.DataFrame, seeds: int, ranges: int
) -> list[dict[str, object]]:
    named = {name: part for name, part in rows.groupby("model", sort=False)}
    first = np.sort(rows["seed"].unique())[:seeds]
    ranked = rows[rows["seed"].isin(first)]  # a unit of one's own may have more
    counted = ranked["model"].value_counts()
    whole = [name for name in named if counted.get(name) == seeds * ranges]
    places = ranks(ranked[ranked["model"].isin(whole)])
    lines = []
    for unit in dict.fromkeys([*UNITS, *named]):
        part = named.get(unit)
        start = {"arm": arm, "operation": operation, "inputs": inputs, "unit": unit}
        start |= {"recipe": leaderboard.RECIPES.get(unit, "of one's own") if arm == ARMS[0] else "tuned"}
        if part is None:
            able = unit not in UNITS or expresses(unit, operation, inputs)
            lines.append(start | {"state": NOT_RUN if able else CANNOT})
            continue
        place = places.loc[unit].to_dict() if unit in places.index else {}
        state = RUN if unit in whole else PARTLY
        lines.append(start | {"state": state} | place | _found(operation, inputs, part))
    return sorted(lines, key=lambda line: (line.get("rank", np.inf), -line.get("rate", -1.0)))


def _found(operation: str, inputs: int, rows: pd.DataFrame) -> dict[str, object]:
    every = {name: benchmark_threshold(task) for name, task in tasks(operation, inputs).items()}
    benchmark = rows["test_mse"] < rows["range"].map(every)
    found: dict[str, object] = {"runs": len(rows), "iterations": int(rows["iterations"].max())}
    for name, success in (("", rows["success"]), ("benchmark_", benchmark)):
        rate = measures.success_rate(success, seeds=rows["seed"])
        found |= {f"{name}solved": int(success.sum()), f"{name}rate": rate.estimate}
        found |= {f"{name}low": rate.low, f"{name}high": rate.high}
    solved = rows[rows["success"]]
    found |= {"solved_at": solved["solved_at"].median(), "sparsity_error": solved["sparsity_error"].median()}
    found |= {"hours": rows["seconds"].sum() / 3600}
    if "setting" in rows and rows["setting"].notna().all():
        found |= {"setting": rows["setting"].iloc[0], "budget": tuned.budget(operation)}
    return found


def ranks(rows: pd.DataFrame, samples: int = SAMPLES) -> pd.DataFrame:
    """The rank of each unit by its success rate, 1 for the best, with its 95% interval.

    Seeds are drawn again, each with its runs of all units and ranges: those of a range share their batches,
    those of a unit their initial weights. Units that are equal share the mean of their ranks.

    Args:
        rows: of units that all have the same ranges and seeds.
        samples: how often seeds are drawn.

    >>> runs = [{"model": m, "range": "a", "seed": s, "success": s < k} for m, k in (("x", 9), ("y", 2))
    ...         for s in range(10)]
    >>> ranks(pd.DataFrame(runs))["rank"].to_dict()
    {'x': 1.0, 'y': 2.0}
    """
    from scipy.stats import rankdata

    if rows.empty:
        return pd.DataFrame(columns=["rank", "rank_low", "rank_high"], dtype=float)
    solved = rows.assign(success=rows["success"].astype(int)).pivot_table(
        values="success", index="model", columns="seed", aggfunc="sum", sort=False
    )
    counts, seeds = solved.to_numpy(), solved.shape[1]  # whole numbers: what is equal stays equal
    again = np.random.default_rng(0).integers(seeds, size=(samples, seeds))
    drawn = rankdata(-counts[:, again].sum(2), axis=0)
    found = {"rank": rankdata(-counts.sum(axis=1))}
    found |= {f"rank_{end}": np.quantile(drawn, q, axis=1) for end, q in (("low", 0.025), ("high", 0.975))}
    return pd.DataFrame(found, index=solved.index)


def best(rows: pd.DataFrame) -> pd.DataFrame:
    """For each task the unit that solves most of its runs, hardest tasks first.

    Args:
        rows: of :func:`recorded`. Tasks of which a unit that can express them has no row are left out.

    Returns:
        The columns ``arm``, ``operation``, ``inputs`` and ``range``; ``unit``, how many of its ``runs`` are
        ``solved``, and ``units``, how many solve any; and the least ``test_mse`` of all runs, with
        ``nearest``, the unit that has it.
    """
    by = ["arm", "operation", "inputs", "range"]
    rows = rows.assign(inputs=rows["inputs"].astype(int), success=rows["success"].astype(bool))
    rows, lines = rows.reset_index(drop=True), []
    for names, part in rows.groupby(by, sort=False):
        if {unit for unit in UNITS if expresses(unit, *names[1:3])} - set(part["model"]):
            continue
        solved = part.groupby("model", sort=False)["success"].agg(["sum", "size"])
        first, errors = solved["sum"].idxmax(), part["test_mse"].fillna(np.inf)
        found = {"unit": first, "solved": solved.loc[first, "sum"], "runs": solved.loc[first, "size"]}
        found |= {"units": int((solved["sum"] > 0).sum())}
        found |= {"test_mse": errors.min(), "nearest": part.loc[errors.idxmin(), "model"]}
        lines.append(dict(zip(by, names, strict=True)) | found)
    columns = [*by, "unit", "solved", "runs", "units", "test_mse", "nearest"]
    return pd.DataFrame(lines, columns=columns).sort_values("solved", kind="stable", ignore_index=True)


def load(path: str | Path = FILE) -> pd.DataFrame:
    """The table as it was last written.

    Raises:
        ValueError: it is not what was written.
        OSError: there is none.
    """
    return pd.read_csv(io.StringIO(sealed.read_text(path)))


def head(table: pd.DataFrame, first: int = 3) -> str:
    """What the README shows: the first units of each operation, with two inputs as published."""
    lines = ["| operation | solved runs of the first units |", "|---|---|"]
    part = table[(table["arm"] == ARMS[0]) & (table["inputs"] == 2) & table["rank"].notna()]
    for operation, sign in OPERATIONS.items():
        ranked = part[part["operation"] == operation]
        said = [f"{one.unit} {one.solved:.0f} of {one.runs:.0f}" for one in ranked.head(first).itertuples()]
        able = sum(expresses(unit, operation, 2) for unit in UNITS)
        so_far = f"; {len(ranked)} of {able} units are run" if 0 < len(ranked) < able else ""
        lines.append(f"| {sign} | {', '.join(said) or NOT_RUN}{so_far} |")
    return "\n".join([START, *lines, END])


def own_runs(
    unit: str, operation: str, inputs: int, seeds: int, lr: float, penalty: float, iterations: int | None
) -> list[Run]:
    """The runs of a unit of one's own on all ranges, trained as the benchmark does.

    Args:
        unit: ``"folder/square.py:SquareUnit"``, or what else :class:`nalm.models.Layer` takes.
        operation, inputs: of the task.
        seeds: seeds 0 to ``seeds`` - 1.
        lr: of Adam.
        penalty: weight of the unit's own penalty, which grows from 40 to 70% of the iterations.
        iterations: updates; the benchmark's if ``None``.
    """
    iterations = leaderboard.ITERATIONS[inputs] if iterations is None else iterations
    ramp = {"start": round(0.4 * iterations), "end": max(1, round(0.7 * iterations))}
    recipe = Recipe(
        iterations=iterations,
        optimiser=Adam(lr=lr),
        penalties=(Discretisation(weight=penalty, **ramp),) if penalty else (),
    )
    model = Stack.of(unit, 1)
    name = model.layers[0].unit.rpartition(":")[2]
    labels = {"model": f"{name} (yours)" if name in leaderboard.UNITS else name, "operation": operation}
    labels |= {"inputs": str(inputs), "arm": ARMS[0]}
    return [
        Run(task=task, model=model, recipe=recipe, seed=seed, threshold=thresholds.FIXED, labels=labels)
        for task in tasks(operation, inputs).values()
        for seed in range(check_seeds(seeds))
    ]


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is read: what can be expressed, and rates with their intervals."""
    part = table[table["state"] != CANNOT]
    lines = []
    for one in part.itertuples():
        if not one.runs > 0:
            lines.append({"unit": one.unit, "rank": one.state})
            continue
        ends = "" if np.isnan(one.rank) else f"{one.rank:g} [{one.rank_low:g}, {one.rank_high:g}]"
        lines.append(
            {
                "unit": one.unit,
                "rank": ends or one.state,
                "solved": f"{one.solved:.0f} of {one.runs:.0f}",
                "rate": f"{one.rate:.2f} [{one.low:.2f}, {one.high:.2f}]",
                "at the benchmark's threshold": (
                    f"{one.benchmark_rate:.2f} [{one.benchmark_low:.2f}, {one.benchmark_high:.2f}]"
                ),
                "solved at": "–" if np.isnan(one.solved_at) else f"{one.solved_at:,.0f}",
                "sparsity error": "–" if np.isnan(one.sparsity_error) else f"{one.sparsity_error:.1g}",
            }
        )
    return pd.DataFrame(lines).fillna("")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.beyond.board",
        description="Write the leaderboard, or print it with a unit of your own.",
    )
    parser.add_argument("unit", nargs="?", help="FILE:CLASS or MODULE:CLASS of your own; nothing is written")
    parser.add_argument("--operation", default="mul", help=f"one of {', '.join(OPERATIONS)} (mul)")
    parser.add_argument("--inputs", type=int, default=2, choices=(2, 10), help="2 or 10 (2)")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate of Adam (0.001)")
    parser.add_argument("--penalty", type=float, default=0.0, help="weight of the unit's own penalty (0)")
    parser.add_argument("--iterations", type=int, help="updates of a run (the benchmark's)")
    parser.add_argument("--seeds", type=int, default=25, help="runs on each range (25)")
    parser.add_argument("--results", default="", help="folder of results; your own data folder if not given")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the table is stale")
    options = parser.parse_args(arguments)
    if options.unit and options.check:
        parser.error("--check asks about the leaderboard as it is: leave the unit out")
    try:
        if options.unit:
            print(_beside(options).to_string(index=False))
            return 0
        table = board(recorded(), search=tuned.recorded()[1])
        fresh = {FILE: table.to_csv(index=False, lineterminator="\n", float_format="%.6g")}
        fresh[README] = with_block(README, START, END, head(table))
        for path in (old := stale(fresh)):
            if options.check:
                print(f"{path.name} is stale: run `make leaderboard`.", file=sys.stderr)
            else:
                write(path, fresh[path])
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if options.check and old else 0


def _beside(options: argparse.Namespace) -> pd.DataFrame:
    """The table of one operation with the reader's unit in it."""
    operation = choose("operation", options.operation, OPERATIONS)
    runs = own_runs(
        options.unit,
        operation,
        options.inputs,
        options.seeds,
        options.lr,
        options.penalty,
        options.iterations,
    )
    own = run_all(runs, "own/leaderboard", options.results, retrain=True)
    others = recorded()
    others = others[(others["operation"] == operation) & (others["inputs"].astype(int) == options.inputs)]
    table = board(pd.concat([others, own], ignore_index=True))
    here = (table["operation"] == operation) & (table["inputs"] == options.inputs)
    return shown(table[here & (table["arm"] == ARMS[0])])


if __name__ == "__main__":
    exit_with(main)
