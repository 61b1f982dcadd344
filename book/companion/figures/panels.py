"""The papers' figure: success rate, solved at and sparsity error over ranges, sizes or operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from companion.figures.styles import (
    WIDTH,
    Figure,
    axis_name,
    legend_columns,
    legend_entry,
    require,
    style,
    styles_of,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["by_range"]

# panel: (column of the estimate, ends of its interval, axis label, logarithmic)
PANELS = {
    "success": ("success", "success_low", "success_high", "success rate", False),
    "solved_at": ("solved_at_mean", "solved_at_low", "solved_at_high", "solved at iteration", True),
    "sparsity_error": ("sparsity_error", "sparsity_error_low", "sparsity_error_high", "sparsity error", True),
}
_FLOOR = 1e-12  # lowest point of a bar on a logarithmic axis


def by_range(
    summary: pd.DataFrame,
    x: str = "range",
    hue: str = "model",
    panels: Sequence[str] = ("success", "solved_at", "sparsity_error"),
    published: pd.DataFrame | None = None,
    xlabel: str | None = None,
) -> Figure:
    """The papers' three-panel figure: success rate, solved at and sparsity error, each with its 95 %
    interval.

    `summary` comes from companion.measures.summarise; `published` has the same columns as far as values are
    published (success, solved_at_mean, sparsity_error; no intervals needed) and is drawn as hollow rings.
    """
    panels = [panels] if isinstance(panels, str) else list(panels)
    for panel in panels:
        require(panel, PANELS, "panel")
    for name in [x, hue] + [column for panel in panels for column in PANELS[panel][:3]]:
        require(name, summary.columns, "column of the summary")
    places, models = list(dict.fromkeys(summary[x])), list(dict.fromkeys(summary[hue]))
    step = min(0.16, 0.72 / max(len(models), 1))
    shift = {model: (number - (len(models) - 1) / 2) * step for number, model in enumerate(models)}
    styles = styles_of([str(model) for model in models])

    with style():
        figure = Figure(figsize=(WIDTH, 1.1 + 1.95 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            column, low, high, label, logarithmic = PANELS[panel]
            for model in models:
                colour, marker = styles[str(model)]
                part = summary[summary[hue] == model]
                at = np.array([places.index(place) for place in part[x]], dtype=float) + shift[model]
                bottom, top = part[low].to_numpy(float), part[high].to_numpy(float)
                if logarithmic:
                    bottom = np.maximum(bottom, _FLOOR)
                top = np.where(np.isinf(top), part[column].to_numpy(float), top)
                axis.vlines(at, bottom, top, color=colour, linewidth=1.4)
                axis.plot(at, part[column], marker, color=colour, markersize=5, linestyle="none")
            if published is not None and column in published.columns:
                known = published[published[x].isin(places) & published[hue].isin(models)]
                for _, row in known[known[column].notna()].iterrows():
                    at = places.index(row[x]) + shift[row[hue]]
                    ring = styles[str(row[hue])][0]
                    axis.plot(
                        at, row[column], "o", markersize=10, markerfacecolor="none", markeredgecolor=ring
                    )
            _finish_panel(axis, summary[column], label, logarithmic, len(places))
        rotation = 35 if max(len(str(place)) for place in places) > 6 and len(places) > 5 else 0
        alignment = {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"} if rotation else {}
        axes[-1].set_xticks(range(len(places)), [str(place) for place in places], **alignment)
        axes[-1].set_xlabel(axis_name(x) if xlabel is None else xlabel)
        handles = [legend_entry(str(model), styled=styles[str(model)]) for model in models]
        if published is not None:
            ring = dict(marker="o", markersize=10, markerfacecolor="none", markeredgecolor="#4C4C4C")
            handles.append(Line2D([], [], linestyle="none", label="published", **ring))
        figure.legend(handles=handles, loc="outside upper center", ncols=legend_columns(handles))
    return figure


def _finish_panel(axis, values: pd.Series, label: str, logarithmic: bool, places: int) -> None:
    axis.set_ylabel(label)
    axis.grid(axis="x", visible=False)
    axis.set_xlim(-0.6, places - 0.4)
    for edge in range(1, places):
        axis.axvline(edge - 0.5, color="#EEEEEE", linewidth=0.8, zorder=0)
    if not logarithmic:
        axis.set_ylim(-0.06, 1.06)
    elif (values > 0).any():
        axis.set_yscale("log")
        if values.max() >= 1000:
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        for drawn in [*axis.lines, *axis.collections]:  # zeros have no place on a logarithmic axis
            drawn.remove()
        axis.set_yticks([])
        said = "no run was solved" if values.isna().all() else "0 in all solved runs"
        axis.text(0.5, 0.5, said, transform=axis.transAxes, ha="center", va="center")
