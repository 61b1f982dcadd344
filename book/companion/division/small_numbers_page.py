"""What the chapter on small numbers says beside its statements: tables, and numbers of its text."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion.division import small_numbers
from companion.division.compared import QUESTIONS
from companion.division.golden import PATHS, errors_by_path
from companion.division.small_numbers import EASY, HARD, MEDIUM
from companion.experiment.rows import Rows
from companion.experiment.statements import Statements
from companion.experiment.tables import Table

Numbers = dict[str, object]


def golden_errors() -> tuple[Table, Numbers]:
    """How far the errors of golden weights are from the recorded ones, at most.

    The Real NPU without epsilon has a line for each code path.
    """
    golden = small_numbers.golden().dropna(subset="recorded")
    lines = {model: part for model, part in golden.groupby("model", sort=False)}
    without = lines.pop(small_numbers.NO_EPSILON).drop(columns="here")
    for path, part in errors_by_path().groupby("path", sort=False):
        there = part.rename(columns={"error": "here"})
        lines[f"{small_numbers.NO_EPSILON}, {PATHS[path]}"] = without.merge(there, on=["task", "range"])
    shown = [
        {"model": name}
        | {task: f"within {_within(_off(one).max())}" for task, one in part.groupby("task", sort=False)}
        for name, part in lines.items()
    ]
    numbers = {"points_n": len(golden), "recorded_worst": _within(_off(golden).max())}
    return Table(shown, "Largest difference to the recorded error, over nine ranges"), numbers


def _off(errors: pd.DataFrame) -> pd.Series:
    return (errors["here"] / errors["recorded"] - 1).abs()


def _within(off: float) -> str:
    return next(f"{limit:g}%" for limit in (0.01, 1, 10, 20, 50, math.inf) if 100 * off < limit)


def rates(rows: Rows, p: SimpleNamespace) -> Table:
    """The success rates of all units, by task and range."""
    lines = [
        {"task": question, "unit": model}
        | {place: rows.rate(question=question, model=model, range=place) for place in p.ranges}
        for question in QUESTIONS
        for model in p.models
    ]
    folded = "The success rates of all units, by task and range"
    return Table(lines, "Share of solved runs, with 95% intervals", folded=folded)


def witnesses(rows: Rows) -> tuple[Table, Numbers]:
    """How many solved runs have golden weights, and how many the margin in the thresholds decides.

    ``rows``: with what :func:`companion.division.small_numbers.with_witnesses` adds.
    """
    won, golden, strict = rows.success, rows.frame["distance"] == 0, rows.frame["strict"]
    kinds = {
        "solved": won,
        "of them with other weights": won & (rows.frame["distance"] > 1e-3),
        "unsolved with golden weights": golden & ~won,
        "solved without margin": strict,
        "golden, not solved without margin": golden & ~strict,
    }
    margin = won != strict
    groups = rows.frame[["question", "model"]].rename(columns={"question": "task", "model": "unit"})
    counts = groups.assign(**kinds).groupby(["task", "unit"], sort=False).sum().reset_index()
    folded = "How many solved runs have golden weights, and how many the margin decides"
    table = Table(counts, "Solved runs, weights, and the margin in the thresholds", folded=folded)
    return table, {"margin_matters": rows.share(margin), "margin_golden": int((golden & margin).sum())}


def counts(rows: Rows, judged: Statements) -> Numbers:
    """How many statements hold, and what the text says of the NMRU and the NRU."""
    times = rows.of(question=MEDIUM, model="NMRU").solved
    return {
        "claims_hold": judged.count,
        "nmru_late": times.of(range="U[0,1e-2)").middle("solved_at", statistic=pd.Series.mean),
        "nmru_early": times.of(range="U[0,1)").middle("solved_at", statistic=pd.Series.mean),
        "nmru_medium": rows.count(question=MEDIUM, model="NMRU"),
        "nru_hard": rows.count(question=HARD, model="NRU"),
        "nmru_hard": rows.count(question=HARD, model="NMRU"),
    }


def powers(rows: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """Solved runs of the NRU with the library's and with the authors' power."""
    lines = [
        {"task": question, "NRU with": name}
        | {place: rows.count(question=question, model=model, range=place) for place in p.ranges}
        for question in QUESTIONS
        for model, name in (("NRU", "exp(W ln x)"), ("NRU, pow", "power"))
    ]
    numbers = {
        "nru_easy": rows.count(question=EASY, model="NRU"),
        "pow_easy": rows.count(question=EASY, model="NRU, pow"),
        "pow_tiny": rows.count(question=EASY, model="NRU, pow", range="U[0,1e-4)"),
    }
    return Table(lines, "Solved runs of the NRU with either power"), numbers


def lost_by_nru(rows: Rows) -> tuple[Table, Numbers]:
    """What validation selected in failed runs of the NRU, and how many have only their initial weights."""
    lost = rows.of(model="NRU", question=EASY).failed
    rest = rows.of(model="NRU", question=[MEDIUM, HARD]).failed
    numbers = {
        "nru_failed": len(lost),
        "nru_start": int((lost.frame["selected_at"] == 0).sum()),
        "nru_start_rest": rest.share(rest.frame["selected_at"] == 0),
    }
    ends = lost.frame.assign(W=lost.weights("0.weight").reshape(-1))
    few = ends[["range", "seed", "W", "selected_at", "valid_mse", "test_mse"]].iloc[::6]
    caption = "Some failed runs of the NRU on 1/a from a: what validation selected"
    folded = "The selected weights and the errors of some failed runs of the NRU"
    return Table(few, caption, folded=folded), numbers


def paths(rows: Rows, p: SimpleNamespace) -> Table:
    """On which of its two solutions of 1/a from a, b each NMRU ends, and how many are solved there."""
    straight_weights, around_weights = (0, 0, 1, 0), (0, 1, 1, 1)
    lines = []
    for model, rounding in (("NMRU", "sequential"), ("NMRU, exact", "exact")):
        for place in p.ranges:
            part = rows.of(model=model, question=MEDIUM, range=place)
            ends = np.round(part.weights("0.weight").reshape(-1, 4), 2)
            straight, around = ((ends == path).all(1) for path in (straight_weights, around_weights))
            line = {
                str(straight_weights): int(straight.sum()),
                "solved": int(part.success[straight].sum()),
                str(around_weights): int(around.sum()),
                "solved ": int(part.success[around].sum()),
                "neither": int((~straight & ~around).sum()),
            }
            lines += [{"rounding": rounding, "range": place} | line] if len(part) else []
    return Table(lines, "NMRU on 1/a from a, b: where its runs end")
