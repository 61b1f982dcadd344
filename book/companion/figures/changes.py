"""Success rates of the same units under two ways of training them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from companion.figures.styles import WIDTH, Figure, legend, require, style, unit_style

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["changes"]

RING = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "linestyle": "none"}
DOT = {"marker": "o", "markersize": 5, "linestyle": "none"}


def changes(
    lines: pd.DataFrame, first: str, second: str, row: str = "operation", column: str = "inputs"
) -> Figure:
    """A panel per operation and number of inputs with a line per unit: a ring at its success rate in the
    first arm, a dot with the 95% interval at that in the second.

    Args:
        lines: the columns ``arm``, ``unit``, ``rate``, ``low`` and ``high``, and those that tell panels
            apart.
        first, second: two of the arms.
        row, column: the columns of the panels.

    >>> import pandas as pd
    >>> lines = pd.DataFrame({"arm": ["a", "b"], "unit": "NMU", "operation": "×", "inputs": 2,
    ...                       "rate": [0.5, 0.9], "low": [0.4, 0.8], "high": [0.6, 1.0]})
    >>> marks = changes(lines, "a", "b").axes[0].get_lines()
    >>> [float(mark.get_xdata()[0]) for mark in marks if mark.get_gid()]
    [0.5, 0.9]
    """
    for name in ("arm", "unit", "rate", "low", "high", row, column):
        require(name, lines.columns, "column of the table")
    rows, columns = (list(dict.fromkeys(lines[name])) for name in (row, column))
    units = {place: list(dict.fromkeys(lines.loc[lines[row] == place, "unit"])) for place in rows}
    heights = [len(units[place]) + 0.8 for place in rows]
    with style():
        figure = Figure(figsize=(WIDTH, 1.1 + 0.2 * sum(heights)), layout="constrained")
        axes = figure.subplots(
            len(rows), len(columns), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        for line, place in enumerate(rows):
            for number, side in enumerate(columns):
                axis = axes[line, number]
                here = lines[(lines[row] == place) & (lines[column] == side)]
                for at, unit in enumerate(units[place]):
                    _unit(axis, at, unit, here[here["unit"] == unit].set_index("arm"), (first, second))
                axis.set(xlim=(-0.04, 1.04), ylim=(len(units[place]) - 0.4, -0.6))
                axis.set_yticks(
                    range(len(units[place])), units[place] if number == 0 else [""] * len(units[place])
                )
                axis.tick_params(axis="y", length=0)
                if number == 0:
                    axis.set_ylabel(place, rotation=0, ha="right", va="center", fontsize=12)
                if line == 0:
                    axis.set_title(f"{side} {column}")
                if line == len(rows) - 1:
                    axis.set_xlabel("success rate")
        figure.align_ylabels(axes[:, 0])
        grey = {"color": "#4C4C4C"}
        handles = [Line2D([], [], label=first, **RING, **grey), Line2D([], [], label=second, **DOT, **grey)]
        legend(figure, handles)
    return figure


def _unit(axis, at: int, unit: str, arms: pd.DataFrame, names: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    colour, _ = unit_style(unit)
    known = arms["rate"].reindex(names)
    axis.plot(known, [at, at], color=colour, linewidth=1, alpha=0.6)
    for name, how in zip(names, (RING, DOT), strict=True):
        if not np.isnan(known[name]):
            axis.plot(known[name], at, **how, color=colour, gid=f"{unit}, {name}")
    if not np.isnan(known[names[1]]):
        axis.hlines(at, arms.loc[names[1], "low"], arms.loc[names[1], "high"], color=colour, linewidth=2)
