"""Lines over iterations, times and other numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, StrMethodFormatter

from companion.figures.styles import (
    LINES,
    WIDTH,
    Figure,
    axis_name,
    legend,
    legend_entry,
    require,
    style,
    styles_of,
    tick,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["courses", "curves", "functions"]


def curves(
    logs: pd.DataFrame,
    x: str = "iteration",
    y: str = "test_mse",
    hue: str = "model",
    run: str = "seed",
    threshold: float | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    xscale: Literal["linear", "log"] = "linear",
) -> Figure:
    """Learning curves: a thin line per run, a thick one for each model's median, on a logarithmic axis."""
    for name in (x, y, hue, run):
        require(name, logs.columns, "column of the logs")
    styles = styles_of([str(model) for model in dict.fromkeys(logs[hue])])
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axis = figure.subplots()
        for model, part in logs.groupby(hue, sort=False):
            look = styles[str(model)]
            for _, single in part.groupby(run, sort=False):
                axis.plot(single[x], single[y], color=look.colour, linewidth=0.7, alpha=0.35)
            middle = part.groupby(x)[y].median()
            every = max(1, len(middle) // 8)
            line = {"linestyle": look.line, "linewidth": 2}
            axis.plot(middle.index, middle, **look.mark, **line, markevery=every, markersize=5)
        axis.set_yscale("log")
        if threshold is not None:
            axis.axhline(threshold, color="#1A1A1A", linestyle="--", linewidth=1)
            axis.annotate(
                "threshold",
                (1, threshold),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                fontsize=9,
            )
        axis.set_xscale(xscale)
        if xscale == "linear":
            axis.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set(xlabel=xlabel or axis_name(x), ylabel=ylabel or axis_name(y))
        handles = [legend_entry(model, line=True, styled=styled) for model, styled in styles.items()]
        legend(figure, handles)
    return figure


def functions(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    marks: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    xlabel: str = "x",
    ylabel: str = "y",
    **axes: Any,
) -> Figure:
    """Functions of one number: a panel each for some, a line each for its cases.

    `panels` maps a title to lines, and these map a name to x and y; a name has the same look in all panels.
    `marks` has points by panel, which are drawn as black dots. `axes` sets what `Axes.set` knows, for all.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    with style():
        colours = [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]]
        looks = {
            name: {"color": colours[at % len(colours)], "linestyle": LINES[at % len(LINES)]}
            for at, name in enumerate(names)
        }
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        drawn = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        for axis, (title, lines) in zip(drawn, panels.items(), strict=True):
            for name, (x, y) in lines.items():
                axis.plot(x, y, **looks[name], gid=name)
            for x, y in (marks or {}).get(title, ()):
                axis.plot(x, y, "o", color="#1A1A1A", markersize=5)
            axis.set(title=title, xlabel=xlabel, **axes)
        drawn[0].set_ylabel(ylabel)
        if len(names) > 1:
            legend(figure, [Line2D([], [], **look, label=name) for name, look in looks.items()])
    return figure


def courses(
    lines: Mapping[str, tuple[Sequence[float], np.ndarray]],
    names: Sequence[str],
    points: tuple[Sequence[float], np.ndarray] | None = None,
    xlabel: str = "t",
) -> Figure:
    """Solutions of differential equations over time: a panel per entry of the state, a line per solution, the
    data as points.

    `lines` maps a name to times and states (times, entries); `names` are those of the entries; `points` are
    times and states too.
    """
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots(1, len(names), sharex=True, squeeze=False)[0]
        colours = [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]]
        for entry, (axis, name) in enumerate(zip(axes, names, strict=True)):
            if points is not None:
                axis.plot(points[0], points[1][:, entry], "o", color="#4C4C4C", markersize=3)
            for number, (times, states) in enumerate(lines.values()):
                axis.plot(
                    times,
                    states[:, entry],
                    LINES[number % 4],
                    color=colours[number % len(colours)],
                    linewidth=1.6,
                )
            axis.set(title=name, xlabel=xlabel)
            axis.xaxis.set_major_formatter(FuncFormatter(tick))
        handles = [
            Line2D(
                [],
                [],
                linestyle=LINES[number % 4],
                color=colours[number % len(colours)],
                linewidth=1.6,
                label=name,
            )
            for number, name in enumerate(lines)
        ]
        if points is not None:
            handles.append(
                Line2D([], [], linestyle="none", marker="o", color="#4C4C4C", markersize=3, label="data")
            )
        legend(figure, handles)
    return figure
