"""What the lower half of Figure 3 of *Neural Arithmetic Units* says of interpolation ranges, beside recorded rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nalm import measures, published
from nalm.papers import nau_nmu
from nalm.scoreboard.rules import Claim, Comparison, rate
from nalm.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["figure_3", "published_ranges"]


def published_ranges() -> pd.DataFrame:
    """The drawn values: the columns ``range``, ``model``, ``success`` and ``solved_at_mean``, and of how many ``runs``."""
    table = published.load("nau_nmu_figures")
    table = table[table["item"] == "Fig3-bottom"].assign(range=lambda drawn: drawn["x"].str.replace("]", ")"))
    values = table.pivot_table(index=["range", "model"], columns="metric", values="value")
    runs = table.groupby(["range", "model"])["n_runs"].max()
    found = values.rename(columns={"success_rate": "success", "solved_at_step_mean": "solved_at_mean"})[["success", "solved_at_mean"]]
    return found.assign(runs=runs).reset_index().rename_axis(columns=None)


def figure_3(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """Success rates, for the ranges and models that rows hold, and what section 4.1 says of the ranges.

    The drawn means of *solved at* are not compared: they come from the fit that had not converged for many lines of Table 2.

    Args:
        rows: with the columns ``range``, ``model`` and ``success``.
    """
    rates = {names: measures.success_rate(part["success"]) for names, part in rows.groupby(["range", "model"])}
    drawn = published_ranges().set_index(["range", "model"])
    for names in ((name, model) for name in nau_nmu.RANGES for model in nau_nmu.MULTIPLIERS):
        if names in rates:
            theirs = drawn.loc[names]
            yield Comparison(f"{names[1]} on {names[0]}, success rate", rates[names], rate(theirs["success"], int(theirs["runs"])))
    for name in ("U[-2,-1)", "U[-2,2)"):
        if (name, "NMU") in rates:
            yield Claim(f"the NMU can handle {name}: it solves most runs", rates[name, "NMU"].low > 0.5, text(rates[name, "NMU"], 2))
    narrow = {model: found for (name, model), found in rates.items() if name == "U[1.1,1.2)"}
    if set(narrow) == set(nau_nmu.MULTIPLIERS):
        best = max(narrow.values(), key=lambda one: one.estimate)
        yield Claim("no model can learn U[1.1,1.2)", best.estimate == 0, text(best, 2))
