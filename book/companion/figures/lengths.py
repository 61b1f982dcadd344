"""Success rate, solved at and sparsity error over the lengths of test sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from companion.figures.panels import PANELS
from companion.figures.styles import (
    WIDTH,
    Figure,
    Look,
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

__all__ = ["over_lengths"]

_STEP = 0.05  # how far success rates that would cover one another are moved apart, sideways


def over_lengths(
    summary: pd.DataFrame | None = None,
    published: pd.DataFrame | None = None,
    x: str = "length",
    hue: str = "model",
    panels: Sequence[str] = ("success", "solved_at"),
    height: float = 2.2,
) -> Figure:
    """A line per model over lengths at equal steps, with its 95% interval as a band; success rates are moved
    sideways a little.

    `summary` comes from companion.measures.summarise; `published` has the same columns as far as values are
    published, no intervals needed, and is drawn thin with hollow rings. Either may be left out. `height` is
    that of a panel, in inches.

    Raises:
        ValueError: neither of the two, or an unknown panel or column.
    """
    tables = [table for table in (summary, published) if table is not None]
    if not tables:
        raise ValueError("There is nothing to draw: give a summary, published values or both.")
    for panel in panels:
        require(panel, PANELS, "panel")
    for name in [x, hue, *(PANELS[panel][0] for panel in panels)]:
        for table in tables:
            require(name, table.columns, "column of the table")
    lengths = sorted({int(length) for table in tables for length in table[x]})
    models = list(dict.fromkeys(str(model) for table in tables for model in table[hue]))
    styles = styles_of(models)
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + height * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels, strict=True):
            column, low, high, label, logarithmic = PANELS[panel]
            for number, model in enumerate(models):
                look = styles[model]
                aside = 0.0 if logarithmic else (number - (len(models) - 1) / 2) * _STEP
                for table, ours in ((published, False), (summary, True)):
                    if table is None:
                        continue
                    part = (
                        table[table[hue].astype(str) == model]
                        .assign(**{x: lambda one: one[x].astype(int)})
                        .set_index(x)
                    )
                    part = part.reindex(lengths)
                    places = np.arange(len(lengths)) + aside
                    if ours:
                        axis.fill_between(
                            places, part[low], part[high], color=look.colour, alpha=0.08, linewidth=0
                        )
                        line = {"linestyle": look.line, "linewidth": 2, "markersize": 5}
                        axis.plot(places, part[column], **look.mark, **line, gid=model)
                    else:
                        axis.plot(places, part[column], **_thin(look), gid=f"{model}, published")
            axis.set_ylabel(label)
            if panel == "success":
                axis.set_ylim(-0.08, 1.08)
            if panel == "solved_at":
                axis.set_ylim(bottom=0)
                axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes[-1].set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths])
        axes[-1].set_xlabel(axis_name(x))
        if summary is None:
            handles = [Line2D([], [], label=model, **_thin(styles[model])) for model in models]
        else:
            handles = [legend_entry(model, line=True, styled=styles[model]) for model in models]
            if published is not None:
                handles.append(Line2D([], [], label="published", **_thin(Look("#4C4C4C", "o"))))
        legend(figure, handles)
    return figure


def _thin(look: Look) -> dict:
    return hollow(look.colour, size=6) | {"color": look.colour, "linestyle": look.line, "linewidth": 1}
