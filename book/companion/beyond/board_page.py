"""Tables and numbers of the page of the leaderboard."""

from __future__ import annotations

import json

import pandas as pd

from companion.beyond import tuned
from companion.beyond.board import CANNOT, NOT_RUN, RUN, shown
from companion.beyond.leaderboard import ARMS, ITERATIONS, OPERATIONS, RECIPES, UNITS, tasks
from companion.division.compared import NEGATIVE
from companion.experiment.statements import Comparison
from companion.experiment.tables import Table
from companion.measures import Interval

__all__ = ["both_arms", "chosen", "hard", "numbers", "of_operation", "overview", "recipes", "unsolved"]


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


def both_arms(table: pd.DataFrame) -> pd.DataFrame:
    """The lines of units that are run in both arms, with the signs of operations; for a figure.

    Args:
        table: of :func:`board`.
    """
    run = table[table["state"] == RUN]
    both = run.groupby(["operation", "inputs", "unit"])["arm"].transform("nunique") == len(ARMS)
    places = {name: place for place, name in enumerate([*OPERATIONS, *UNITS])}
    order = ["operation", "unit", "inputs"]
    lines = run[both].sort_values(order, key=lambda column: column.map(lambda one: places.get(one, one)))
    return lines.assign(operation=lines["operation"].map(OPERATIONS))


def chosen(table: pd.DataFrame) -> Table:
    """The settings that the search chose, with what it took."""
    tuned_ = table[(table["arm"] == ARMS[1]) & table["setting"].notna()]
    lines = [
        {
            "operation": OPERATIONS[operation],
            "unit": unit,
            "setting": part["setting"].iloc[0],
            "settings tried": f"{part['tried'].iloc[0]:.0f}",
            "run-iterations": f"{part['budget'].iloc[0]:,.0f}",
            "hours of the search": part["search_hours"].iloc[0],
            "hours after it": part["hours"].sum(),
        }
        for (operation, unit), part in tuned_.groupby(["operation", "unit"], sort=False)
    ]
    caption = "Chosen settings; a growing L1 is said by its end"
    return Table(lines, caption, digits=2, folded="The chosen setting of every unit and what the search took")


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


def _tuning(table: pd.DataFrame) -> dict[str, object]:
    """What the second arm changes: a line is a unit on an operation with a number of inputs.

    A line changes if its two success rates are further apart than those of one of so many lines are by
    chance, and the leader of an operation is a unit that solves most.
    """
    second = table[(table["arm"] == ARMS[1]) & (table["state"] != CANNOT)]
    lines = both_arms(table)
    done = len(lines) // len(ARMS)
    found: dict[str, object] = {"tuned": f"{done} of {len(second)} lines" if done else NOT_RUN}
    names = (
        "more",
        "less",
        "less-10",
        "gain",
        "loss",
        "kept-lead",
        "pairs-tuned",
        "safe-tuned",
        "search-hours",
    )
    if not done:
        return found | dict.fromkeys(names, NOT_RUN)
    rates: dict[tuple, dict[str, Interval]] = {}
    for one in lines.itertuples():
        place = one.operation, one.unit, one.inputs
        rates.setdefault(place, {})[one.arm] = Interval(one.rate, one.low, one.high, int(one.runs))
    pairs = [
        Comparison(f"the {unit} on {sign} with {inputs} inputs", arms[ARMS[1]], arms[ARMS[0]], family=done)
        for (sign, unit, inputs), arms in rates.items()
    ]
    gains = {one: one.ours.estimate - one.published.estimate for one in pairs}
    apart = [one for one in pairs if not one.agrees]
    leaders = [
        {
            arm: set(part.loc[part["rate"] == part["rate"].max(), "unit"])
            for arm, part in pair.groupby("arm", sort=False)
        }
        for _, pair in lines.groupby(["operation", "inputs"])
    ]
    safe = [pair for _, pair in lines[lines["arm"] == ARMS[1]].groupby(["operation", "inputs"])]
    return found | {
        "more": sum(gains[one] > 0 for one in apart),
        "less": sum(gains[one] < 0 for one in apart),
        "less-10": sum(gains[one] < 0 and one.what.endswith("10 inputs") for one in apart),
        "gain": _change(max(pairs, key=gains.get)),
        "loss": _change(min(pairs, key=gains.get)),
        "kept-lead": sum(bool(one[ARMS[0]] & one[ARMS[1]]) for one in leaders),
        "pairs-tuned": len(leaders),
        "safe-tuned": sum((part["solved"] == part["runs"]).any() for part in safe),
        "search-hours": f"{lines.groupby(['operation', 'unit'])['search_hours'].first().sum():.1f}",
    }


def _change(one: Comparison) -> str:
    return f"{one.what}, from {one.published.estimate:.2f} to {one.ours.estimate:.2f}"


def _below_the_wall(rows: pd.DataFrame) -> str:
    """How many runs on squares of two negative inputs end with a weight of a below 3/2."""
    asked = (rows["operation"] == "squared") & (rows["inputs"].astype(int) == 2)
    runs = rows[asked & rows["range"].isin(NEGATIVE)]
    weights = [json.loads(row)["0.weight"][0][0] for row in runs["weights"]]
    return f"{sum(one < 1.5 for one in weights)} of {len(weights)}" if weights else NOT_RUN


def numbers(
    table: pd.DataFrame, judged: pd.DataFrame, tuned_: pd.DataFrame, rows: pd.DataFrame, asked: int
) -> dict[str, object]:
    """What the text of the page says.

    Args:
        table: of :func:`board`.
        judged, tuned_: of :func:`best`, of the rows as published and of those that are tuned alike.
        rows: as published.
        asked: how many of them are asked for.
    """
    first = table[(table["arm"] == ARMS[0]) & (table["state"] != CANNOT)]
    groups = [part for _, part in first.groupby(["operation", "inputs"])]
    complete = [part for part in groups if part["state"].eq(RUN).all()]
    safe = sum((part["solved"] == part["runs"]).any() for part in complete)
    none, none_tuned = (
        set(one.loc[one["solved"] == 0, ["operation", "inputs", "range"]].itertuples(index=False, name=None))
        for one in (judged, tuned_)
    )
    return _tuning(table) | {
        "unsolved-tuned": len(none_tuned) if len(tuned_) else NOT_RUN,
        "unsolved-both": len(none & none_tuned) if len(tuned_) else NOT_RUN,
        "recorded": len(rows),
        "asked": asked,
        "hours": f"{rows['seconds'].sum() / 3600:.1f}",
        "combinations": len(groups),
        "complete": len(complete),
        "safe": int(safe),
        "unsolved": _unsolved(judged),
        "judged": len(judged),
        "tasks": sum(len(tasks(operation, inputs)) for operation in OPERATIONS for inputs in ITERATIONS),
        "wall": _below_the_wall(rows),
        "first": tuned.RUNGS[0].settings,
        "short": tuned.RUNGS[0].iterations,
        "second": tuned.RUNGS[1].settings,
        "long": tuned.RUNGS[1].iterations,
        "budget": f"{tuned.budget('mul'):,}",
        "budget-root": f"{tuned.budget('root'):,}",
    }
