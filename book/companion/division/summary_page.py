"""What the chapter on what each unit can divide says beside its statements: tables, and numbers of its text.

``ten`` and ``two`` are the rows with so many inputs, attempts included; ``near`` are the attempts on numbers
next to zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from companion.division import settings, summary
from companion.division.compared import MODIFIED, NEGATIVE, SMALL
from companion.division.summary import LARGE, SCALINGS, TRUNCATED
from companion.experiment.rows import Rows
from companion.experiment.statements import Statements
from companion.experiment.tables import Table, text
from companion.measures import operands_first

Numbers = dict[str, object]


def table_3(paper: Rows, judged: Statements) -> tuple[Table, Numbers]:
    """Table 3 with our rates in its cells, and how many of those that differ are at the border of a tick."""
    cells = summary.table_3(paper.frame)
    lines = [(cell.redundancy, cell.kind, cell.unit, str(cell)) for cell in cells]
    found = pd.DataFrame(lines, columns=["redundant inputs", "kind", "unit", "rate"])
    table = found.pivot_table("rate", ["redundant inputs", "kind"], "unit", aggfunc="first", sort=False)
    differing = [cell for cell in cells if not cell.agrees]
    numbers = {
        "summary_ticks": judged.count,
        "summary_border": f"{sum(cell.at_border for cell in differing)} of {len(differing)}",
    }
    caption = f"{judged.caption}; success rates with 95% intervals, ✓ above 0.75"
    return Table(table.rename_axis(columns=None).reset_index(), caption, wrap=True), numbers


def failures(paper: Rows) -> tuple[Table, Numbers]:
    """The weights of failed runs, and how many have found an operand: of NRUs among redundant negative
    numbers, and of Real NPUs among redundant ones.
    """
    lost = paper.of(inputs=10, model="NRU", range=NEGATIVE).failed
    W = operands_first(lost.frame)[:, 0]
    real = paper.of(inputs=10, model=MODIFIED).failed
    powers = operands_first(real.frame)[:, 0] * operands_first(real.frame, "0.gate")[:, 0].clip(0, 1)
    found = (np.round(powers[:, :2]) == [1, -1]).sum(1)
    caption = "Weights of failed runs (weight times gate for the Real NPU)"
    folded = "The weights of a failed run, by unit and kind of numbers"
    table = Table(summary.failures(paper), caption, folded=folded)
    return table, {
        "summary_found": lost.share((W[:, 0] > 0.99) & (W[:, 1] < -0.99)),
        "summary_npu_both": real.share(found == 2),
        "summary_npu_one": f"{(found == 1).sum()}",
        "summary_npu_neither": f"{(found == 0).sum()}",
    }


def scaled(tried: Rows, units: Sequence[str]) -> Table:
    """The success rates of units on ten inputs whose numbers are divided by a constant."""
    lines = [
        {"numbers": name, "divided by": by, "become": task.label()}
        | {unit: summary.rate(tried, model=f"{unit}, scaled", range=task.label()) for unit in units}
        for name, by, task in SCALINGS
    ]
    return Table(lines, "Ten inputs, scaled: success rates with 95% intervals", digits=2)


def attempts(ten: Rows, units: Sequence[str]) -> Numbers:
    """How many runs with ten inputs the attempts solve, and how many are solved without them."""
    normal = [task.label() for name, _, task in SCALINGS if name in TRUNCATED]
    mape = ten.of(model="NRU, MAPE", range=TRUNCATED)
    right = np.round(operands_first(mape.frame)[:, 0]) == [1, -1, *8 * [0]]
    return {
        "summary_scaled_large": ten.count(model="NMRU, scaled", range="U[-2,2)"),
        "summary_large_before": ten.count(model="NMRU", range=LARGE),
        "summary_scaled_small": ten.count(model="NMRU, scaled", range="U[-1,1)"),
        "summary_scaled_normal": ten.count(model="NMRU, scaled", range=normal),
        "summary_normal_before": ten.count(model="NMRU", range=TRUNCATED),
        "summary_mape_real": ten.count(model=f"{MODIFIED}, MAPE", range=TRUNCATED),
        "summary_mape_nru": mape.count(),
        "summary_mape_right": mape.share(right.all(1)),
        "summary_mape_nmru": ten.count(model="NMRU, MAPE", range=TRUNCATED),
        "summary_mape_large": ten.count(model=f"{MODIFIED}, MAPE", range=LARGE),
        "summary_pcc": ten.count(model=[f"{unit}, MSE + PCC" for unit in units]),
        "summary_gate_normal": ten.count(model="NMRU, gate to 1", range=TRUNCATED),
        "summary_gate_large": ten.count(model="NMRU, gate to 1", range=LARGE),
        "summary_slow_negative": ten.count(model="NRU, lr 1e-4", range=NEGATIVE),
    }


def near_scaled(two: Rows, units: Sequence[str]) -> Table:
    """The success rates on numbers next to zero that are multiplied by a constant."""
    grown = ((1, "", "U[0,1)"), (2, ", scaled", "U[0,2)"), (10, ", scaled", "U[0,10)"))
    lines = [
        {"largest number after scaling": largest}
        | {unit: summary.rate(two, model=unit + ending, range=place) for unit in units}
        for largest, ending, place in grown
    ]
    caption = "a / b of small numbers, scaled: success rates with 95% intervals, for all five ranges"
    return Table(lines, caption, digits=2, wrap=True)


def near_zero(two: Rows, near: Rows, units: Sequence[str]) -> Numbers:
    """How many runs the attempts on numbers next to zero solve, and how far from golden weights runs end."""
    numbers: Numbers = {}
    for name, unit in {"real": MODIFIED, "nru": "NRU", "nmru": "NMRU"}.items():
        numbers[f"near_{name}_ten"] = near.count(model=f"{unit}, scaled", range="U[0,10)")
        numbers[f"near_{name}_before"] = two.count(model=unit, range=SMALL)
    with_mape = near.of(model=[f"{unit}, MAPE" for unit in units])
    doubled = near.of(model=f"{MODIFIED}, scaled", range="U[0,2)")
    both = near.of(model="NRU, MAPE and lr 1e-2")
    off = summary.distances(two.of(model=units, range=SMALL[:-1]).failed)
    return numbers | {
        "near_all_ten": near.count(range="U[0,10)"),
        "near_mape_upper": with_mape.count(range=SMALL[3:]),
        "near_mape_lower": with_mape.count(range=SMALL[:3]),
        "near_real_two": doubled.count(),
        "near_real_close": doubled.failed.share(summary.distances(doubled.failed, True) < 1e-3),
        "near_slow": near.count(model="NRU, lr 1e-2"),
        "near_both": both.count(),
        "near_both_at": both.of(range=SMALL[0]).middle("solved_at"),
        "near_off": text(min(off, default=np.nan), 2),
    }


def tables_4_and_5() -> Table:
    """Iterations, penalties and optimiser of each unit, with 2 and with 10 inputs."""
    lines = []
    for inputs in (2, 10):
        for name, arm in settings.arms(inputs).items():
            recipe = arm.recipe
            found = {penalty.kind: penalty for penalty in recipe.penalties}
            line = {"inputs": inputs, "unit": name, "iterations": recipe.iterations}
            line |= {"batch": recipe.batch_size, "λ̂": "", "β": ""}
            line["optimiser"] = f"{recipe.optimiser.kind}, {recipe.optimiser.lr:g}"
            if pull := found.get("Discretisation"):
                line["λ̂"] = f"{pull.weight:g} over {pull.start:,} to {pull.end:,}"
            if l1 := found.get("L1"):
                line["β"] = f"{l1.start:g} to {l1.end:g}, × {l1.growth:g} every {l1.every:,}"
            lines.append(line)
    folded = "Iterations, penalties and optimiser of each unit, with 2 and with 10 inputs"
    return Table(lines, "Tables 4 and 5: the settings of all runs", folded=folded)


def costs() -> tuple[Table, Numbers]:
    """What all experiments of the paper cost, and their hours."""
    experiments = ["no-redundancy", "robust-real-npu", "mixed-signs", "small-numbers", "redundancy"]
    experiments += ["inside-the-nmru", "distributions", "losses", "attempts"]
    spent = summary.costs(experiments)
    folded = "Runs, iterations and core minutes of each experiment"
    hours = text(float(spent["core minutes"].iloc[-1]) / 60, 2)
    return Table(spent, "What the experiments cost", folded=folded), {"summary_hours": hours}
