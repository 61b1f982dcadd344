"""Table 6 of *Neural Arithmetic Units*, as its runs are trained from the authors' initial weights."""

from __future__ import annotations

import pandas as pd
from scipy.stats import fisher_exact

from companion.experiment.rows import NOT_RUN
from companion.experiment.statements import Read
from companion.experiment.tables import Table, text
from companion.nau_nmu.settings import SIGNS, arms
from companion.nau_nmu.subset_arithmetic import EXPERIMENT as TABLES
from companion.nau_nmu.subset_arithmetic import TABLE_6, published_cell

__all__ = ["so_far"]

GATED = "Gated NAU/NMU"
"""Both layers have a gate; its published success rates are 0."""


def so_far(read: Read) -> tuple[Table, dict[str, str]]:
    """Solved replays of each line, and the published success rate beside them.

    And how many lines have replays, ``replayed_lines``; how many of their success rates agree,
    ``replayed_rates``, and of all their numbers, ``replayed_numbers``; how many of these are of too few
    solved runs to say, ``replayed_few``, and which differ, ``replayed_apart``; how many replays of the gated
    unit are solved, ``gated_add`` for sums, how many on all operations are lost to a NaN, ``gated_lost``,
    and how likely its success on sums and differences is if it is that of the 100 published runs,
    ``gated_chance_add`` and ``gated_chance_sub``.

    Args:
        read: recorded rows by experiment.
    """
    item = TABLES.item("Table 6")
    replays = read(item.replays)
    full = item.rows(replays[(replays["iterations"] >= item.iterations) & (replays["stream"] == "common")])
    parts = dict(iter(full.groupby(["operation", "model"]))) if len(full) else {}

    def solved(operation: str, model: str) -> str:
        rows = parts.get((operation, model))
        return NOT_RUN if rows is None else f"{rows['success'].sum()} of {len(rows)}"

    lines = [
        {"model": model}
        | {
            SIGNS[operation]: f"{solved(operation, model)} ({_published(operation, model):.2f})"
            for operation in TABLE_6
        }
        for model in arms()
    ]
    compared = item.compared_with(full) if parts else []
    rates = [one for one in compared if one.what.endswith(", success rate")]
    gated = [rows for (_, model), rows in parts.items() if model == GATED]
    numbers = {
        "replayed_lines": f"{len(parts)} of {sum(map(len, TABLE_6.values()))}",
        "replayed_rates": f"{sum(one.agrees for one in rates)} of {len(rates)}" if rates else NOT_RUN,
        "replayed_numbers": f"{sum(one.agrees for one in compared)} of {len(compared)}",
        "replayed_few": f"{sum(one.undecided for one in compared)}",
        "replayed_apart": "; ".join(one.what for one in compared if not (one.agrees or one.undecided))
        or "none",
        "gated_lost": f"{sum(one['nan_at'].count() for one in gated)} of {sum(map(len, gated))}",
    }
    numbers |= {f"gated_{operation}": solved(operation, GATED) for operation in TABLE_6}
    numbers |= {
        f"gated_chance_{operation}": _chance(parts.get((operation, GATED))) for operation in ("add", "sub")
    }
    caption = "Table 6: solved replays, and in brackets the published success rate of 100 seeds"
    return Table(lines, caption), numbers


def _chance(rows: pd.DataFrame | None) -> str:
    """By Fisher's exact test of so many successes beside none of 100."""
    if rows is None:
        return NOT_RUN
    solved = int(rows["success"].sum())
    return text(fisher_exact([[solved, len(rows) - solved], [0, 100]]).pvalue, 1)


def _published(operation: str, model: str) -> float:
    return published_cell(operation, model)["success"].estimate
