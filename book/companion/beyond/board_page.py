"""Tables and numbers of the page of the leaderboard."""

from __future__ import annotations

import json

import pandas as pd

from companion.beyond import tuned
from companion.beyond.board import CANNOT, NOT_RUN, RUN, shown
from companion.beyond.leaderboard import ARMS, ITERATIONS, OPERATIONS, RECIPES, UNITS, tasks
from companion.division.compared import NEGATIVE
from companion.experiment.tables import Table

__all__ = ["chosen", "hard", "numbers", "of_operation", "overview", "recipes", "unsolved"]


def overview(table: pd.DataFrame, arm: str, inputs: int) -> Table:
    """How many runs of each unit are solved, a column for each operation; a point where it cannot express it.

    Args:
        table: of :func:`board`.
        arm, inputs: which part of it.
    """

    def cell(line: pd.Series) -> str:
        if line["state"] in (NOT_RUN, CANNOT):
            return "·" if line["state"] == CANNOT else NOT_RUN
        return f"{line['solved']:.0f} of {line['runs']:.0f}"

    part = table[(table["arm"] == arm) & (table["inputs"] == inputs)]
    part = part.assign(cell=part.apply(cell, axis=1), sign=part["operation"].map(OPERATIONS))
    wide = part.pivot(index="unit", columns="sign", values="cell")
    known = [unit for unit in UNITS if unit in wide.index]
    wide = wide.loc[known, list(OPERATIONS.values())].rename_axis(columns=None).reset_index()
    return Table(wide, f"Solved runs {arm}, {inputs} inputs")


def of_operation(table: pd.DataFrame, arm: str, operation: str) -> Table:
    """The lines of an operation as a table of the page, those with 2 inputs first."""
    part = table[(table["arm"] == arm) & (table["operation"] == operation)]
    lines = [shown(part[part["inputs"] == inputs]).assign(inputs=inputs) for inputs in (2, 10)]
    frame = pd.concat(lines).fillna("")
    first = ["inputs", "unit"]
    return Table(
        frame[first + [name for name in frame if name not in first]],
        f"{OPERATIONS[operation]}, {arm}",
        folded=f"{OPERATIONS[operation]}, {arm}: ranks, success rates and times of all units",
    )


def recipes() -> Table:
    """What each unit can express, and how it is trained as published."""
    lines = [
        {"unit": unit, "can express": " ".join(OPERATIONS[one] for one in able), "recipe": RECIPES[unit]}
        for unit, able in UNITS.items()
    ]
    return Table(lines, "Units, operations that they can express, and recipes", wrap=True)


def chosen(table: pd.DataFrame) -> Table:
    """The settings that the search chose, with what it took."""
    tried = table[(table["arm"] == ARMS[1]) & table["setting"].notna()]
    tried = tried.assign(operation=tried["operation"].map(OPERATIONS))
    columns = ["operation", "inputs", "unit", "setting", "solved", "runs", "budget", "hours"]
    return Table(tried[columns].to_dict("records"), "Chosen settings")


def unsolved(judged: pd.DataFrame) -> Table:
    """The tasks of :func:`companion.beyond.board.best` that no run of any unit solves."""
    lines = [
        {
            "operation": OPERATIONS[one.operation],
            "inputs": one.inputs,
            "range": one.range,
            "least error": one.test_mse,
            "by the": one.nearest,
        }
        for one in judged[judged["solved"] == 0].itertuples()
    ]
    return _or_none(lines, judged, "Tasks that no run solves")


def hard(judged: pd.DataFrame) -> Table:
    """Those of which the best unit solves something, but less than half of its runs."""
    lines = [
        {
            "operation": OPERATIONS[one.operation],
            "inputs": one.inputs,
            "range": one.range,
            "best unit": one.unit,
            "solved": f"{one.solved} of {one.runs}",
            "units that solve any": one.units,
        }
        for one in judged[_is_hard(judged)].itertuples()
    ]
    return _or_none(lines, judged, "Tasks on which the best unit solves less than half of its runs")


def _is_hard(judged: pd.DataFrame) -> pd.Series:
    return (judged["solved"] > 0) & (2 * judged["solved"] < judged["runs"])


def _or_none(lines: list[dict[str, object]], judged: pd.DataFrame, caption: str) -> Table:
    """A table. If none of the tasks that are judged is such a one, it says so."""
    if not lines and len(judged):
        return Table([["none"]], caption, columns=[""])
    return Table(lines, caption)


def _unsolved(judged: pd.DataFrame) -> str:
    """A sentence on the tasks that no unit solves."""
    if judged.empty:
        return "What no unit solves is not known yet: no task has been tried by all units"
    none, few = int((judged["solved"] == 0).sum()), int(_is_hard(judged).sum())
    return (
        f"No unit solves {none} of the {len(judged)} tasks that all units have tried; on {few} more the best "
        "unit solves less than half of its runs"
    )


def _below_the_wall(rows: pd.DataFrame) -> str:
    """How many runs on squares of two negative inputs end with a weight of a below 3/2."""
    asked = (rows["operation"] == "squared") & (rows["inputs"].astype(int) == 2)
    runs = rows[asked & rows["range"].isin(NEGATIVE)]
    weights = [json.loads(row)["0.weight"][0][0] for row in runs["weights"]]
    return f"{sum(one < 1.5 for one in weights)} of {len(weights)}" if weights else NOT_RUN


def numbers(table: pd.DataFrame, judged: pd.DataFrame, rows: pd.DataFrame, asked: int) -> dict[str, object]:
    """What the text of the page says.

    Args:
        table, judged: of :func:`board` and :func:`best`.
        rows: as published.
        asked: how many of them are asked for.
    """
    first = table[(table["arm"] == ARMS[0]) & (table["state"] != CANNOT)]
    groups = [part for _, part in first.groupby(["operation", "inputs"])]
    complete = [part for part in groups if part["state"].eq(RUN).all()]
    safe = sum((part["solved"] == part["runs"]).any() for part in complete)
    second = table[(table["arm"] == ARMS[1]) & (table["state"] != CANNOT)]
    done = int((second["state"] == RUN).sum())
    tried = f"is recorded for {done} of {len(second)} lines" if done else "is not run yet"
    return {
        "recorded": len(rows),
        "asked": asked,
        "hours": f"{rows['seconds'].sum() / 3600:.1f}",
        "combinations": len(groups),
        "complete": len(complete),
        "safe": int(safe),
        "unsolved": _unsolved(judged),
        "judged": len(judged),
        "tasks": sum(len(tasks(operation, inputs)) for operation in OPERATIONS for inputs in ITERATIONS),
        "tuned": tried,
        "wall": _below_the_wall(rows),
        "first": tuned.RUNGS[0].settings,
        "short": tuned.RUNGS[0].iterations,
        "second": tuned.RUNGS[1].settings,
        "long": tuned.RUNGS[1].iterations,
        "budget": f"{tuned.budget('mul'):,}",
        "budget-root": f"{tuned.budget('root'):,}",
    }
