"""The papers' figure: success rate, solved at and sparsity error over ranges, sizes or operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from companion.figures.styles import (
    WIDTH,
    Figure,
    axis_name,
    hollow,
    legend,
    legend_entry,
    require,
    style,
    styles_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["by_range"]

# panel: (column of the estimate, ends of its interval, axis label, logarithmic)
PANELS = {
    "success": ("success", "success_low", "success_high", "success rate", False),
    "solved_at": ("solved_at_mean", "solved_at_low", "solved_at_high", "solved at iteration", True),
    "sparsity_error": ("sparsity_error", "sparsity_error_low", "sparsity_error_high", "sparsity error", True),
}


NOTHING = {"marker": "|", "color": "#4C4C4C", "markersize": 7, "markeredgewidth": 1.6, "linestyle": "none"}
"""How a place is marked at which no run was solved."""


def by_range(
    summary: pd.DataFrame,
    x: str = "range",
    hue: str = "model",
    panels: Sequence[str] = ("success", "solved_at", "sparsity_error"),
    published: pd.DataFrame | None = None,
    xlabel: str | None = None,
    among: Sequence[str] = (),
) -> Figure:
    """The papers' three-panel figure: success rate, solved at and sparsity error, each with its 95%
    interval.

    Models that other figures of a chapter show as well look alike in all of them if each gets all names,
    `among`.

    `summary` comes from companion.measures.summarise; `published` has the same columns as far as values are
    published (success, solved_at_mean, sparsity_error; no intervals needed) and is drawn as hollow rings,
    also where `summary` has no runs.

    Logarithmic axes show zeros in a band of their own; where no run was solved, there is a grey tick.
    """
    panels = [panels] if isinstance(panels, str) else list(panels)
    for panel in panels:
        require(panel, PANELS, "panel")
    for name in [x, hue, "success"] + [column for panel in panels for column in PANELS[panel][:3]]:
        require(name, summary.columns, "column of the summary")
    places, models = (_all_of(column, summary, published) for column in (x, hue))
    step = min(0.16, 0.72 / max(len(models), 1))
    shift = {model: (number - (len(models) - 1) / 2) * step for number, model in enumerate(models)}
    styles = styles_of(list(dict.fromkeys([*among, *map(str, models)])))

    with style():
        figure = Figure(figsize=(WIDTH, 1.1 + 1.95 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        unsolved = False
        for axis, panel in zip(axes, panels, strict=True):
            column, low, high, label, logarithmic = PANELS[panel]
            zero = _place_of_zero(summary[column]) if logarithmic else 0.0
            for model in models:
                look = styles[str(model)]
                part = summary[summary[hue] == model]
                at = np.array([places.index(place) for place in part[x]], dtype=float) + shift[model]
                middle, top = part[column].to_numpy(float), part[high].to_numpy(float)
                middle = np.where(middle == 0, zero, middle)
                bottom = np.maximum(part[low].to_numpy(float), zero)
                top = np.maximum(np.where(np.isinf(top), middle, top), bottom)
                axis.vlines(at, bottom, top, color=look.colour, linewidth=1.4)
                axis.plot(at, middle, **look.mark, markersize=5, linestyle="none", gid=str(model))
                none = at[np.isnan(middle) & (part["success"] == 0)]
                if none.size:
                    unsolved = True
                    axis.plot(none, np.full(none.size, 0.03), transform=axis.get_xaxis_transform(), **NOTHING)
            if published is not None and column in published.columns:
                for model, part in published[published[column].notna()].groupby(hue, sort=False):
                    at = [places.index(place) + shift[model] for place in part[x]]
                    ring = hollow(styles[str(model)].colour)
                    axis.plot(at, part[column].replace(0, zero), **ring, gid=f"{model}, published")
            _finish_panel(axis, summary[column], label, logarithmic, zero, len(places))
        rotation = 35 if max(len(str(place)) for place in places) > 6 and len(places) > 5 else 0
        alignment = {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"} if rotation else {}
        axes[-1].set_xticks(range(len(places)), [str(place) for place in places], **alignment)
        axes[-1].set_xlabel(axis_name(x) if xlabel is None else xlabel)
        handles = [legend_entry(str(model), styled=styles[str(model)]) for model in models]
        if published is not None:
            handles.append(Line2D([], [], label="published", **hollow()))
        if unsolved:
            handles.append(Line2D([], [], label="no run solved", **NOTHING))
        legend(figure, handles)
    return figure


def _all_of(column: str, *tables: pd.DataFrame | None) -> list:
    """What a column holds in one of the tables; numbers by size."""
    found = list(dict.fromkeys(one for table in tables if table is not None for one in table[column]))
    numbers = all(str(one).replace(".", "", 1).isdigit() for one in found)
    return sorted(found, key=float) if numbers else found


def _place_of_zero(values: pd.Series) -> float:
    """Where a logarithmic axis shows 0: a decade below the least value above it."""
    positive = values[values > 0]
    return 10.0 ** (np.floor(np.log10(positive.min())) - 1) if len(positive) else 1.0


def _finish_panel(
    axis: Axes, values: pd.Series, label: str, logarithmic: bool, zero: float, places: int
) -> None:
    axis.set_ylabel(label)
    axis.grid(axis="x", visible=False)
    axis.set_xlim(-0.6, places - 0.4)
    for edge in range(1, places):
        axis.axvline(edge - 0.5, color="#EEEEEE", linewidth=0.8, zorder=0)
    if not logarithmic:
        axis.set_ylim(-0.06, 1.06)
    elif values.isna().all():
        axis.set_yticks([])
        axis.text(0.5, 0.5, "no run was solved", transform=axis.transAxes, ha="center", va="center")
    else:
        axis.set_yscale("log")
        if (values == 0).any():
            _show_zero(axis, zero, above=bool((values > 0).any()))
        elif values.max() >= 1000:
            low, high = axis.get_ylim()
            axis.yaxis.set_major_locator(
                LogLocator(subs=(1, 2, 5)) if high > 5 * low else MaxNLocator(4, steps=[1, 2, 5, 10])
            )
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.yaxis.set_minor_formatter(NullFormatter())


def _show_zero(axis: Axes, zero: float, above: bool) -> None:
    """A band at the lower end of a logarithmic axis that is labelled 0; ``above`` it, powers of ten."""
    bottom, top = zero / 4, max(axis.get_ylim()[1], 4 * zero)
    axis.axhspan(bottom, 2 * zero, color="#F4F4F4", zorder=0)
    axis.set_ylim(bottom, top)
    powers = np.arange(np.log10(zero) + 1, np.log10(top) if above else 0).round().astype(int)
    powers = powers[:: max(1, len(powers) // 5)]
    axis.set_yticks([zero, *10.0**powers], ["0", *(f"$10^{{{power}}}$" for power in powers)])
    axis.yaxis.set_minor_locator(NullLocator())
