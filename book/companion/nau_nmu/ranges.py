"""What *Neural Arithmetic Units* says of interpolation ranges, beside recorded rows; the verdict on its Figure 3, of which that is the lower half."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import beside_drawn, measured
from companion.nau_nmu.hidden_sizes import figure_3_sizes, with_sizes
from companion.statements import Claim, Comparison, Judge
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES", "figure_3", "figure_3_ranges"]


def figure_3_ranges(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """What the lower half of the figure draws and what section 4.1 says of it, as far as rows hold what is compared.

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
    rows = with_sizes(rows)
    return rows[(rows["operation"] == "mul") & rows["model"].isin(nau_nmu.MULTIPLIERS) & (rows["seed"] < 50)]


JUDGES = {("nau-nmu", "Figure 3"): Judge(_of_figure_3, ("hidden", "range", "model"), figure_3)}
