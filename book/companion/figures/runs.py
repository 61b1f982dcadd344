"""One mark per run: how errors are distributed, how two numbers of a run go together, where gates end."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

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
    tick,
    unit_style,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["distribution", "gate_histograms", "scatter"]


def distribution(
    rows: pd.DataFrame,
    value: str = "test_mse",
    hue: str = "model",
    threshold: float | None = None,
    published: Mapping[str, float] | None = None,
    xlabel: str | None = None,
) -> Figure:
    """Share of each model's runs whose error is at most x: where a curve meets the threshold is the success
    rate.

    Runs without a finite error count, but never rise. `published` has a success rate per model, drawn as a
    hollow ring on the threshold.
    """
    for name in (value, hue):
        require(name, rows.columns, "column of the rows")
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axis = figure.subplots()
        models = list(dict.fromkeys(rows[hue]))
        styles = styles_of([str(model) for model in models])
        errors = {model: rows.loc[rows[hue] == model, value].to_numpy(float) for model in models}
        known = np.concatenate([[1.0 if threshold is None else threshold], *errors.values()])
        known = known[np.isfinite(known) & (known > 0)]
        low, high = known.min() / 10, known.max() * 10
        for model, values in errors.items():
            finite = np.sort(np.maximum(values[np.isfinite(values)], low))
            share = np.arange(finite.size + 1) / values.size
            look = styles[str(model)]
            line = {"color": look.colour, "linestyle": look.line, "linewidth": 2}
            axis.step([low, *finite, high], [*share, share[-1]], where="post", **line)
            axis.plot(
                finite,
                share[1:],
                **look.mark,
                linestyle="none",
                markersize=5,
                markevery=max(1, finite.size // 8),
                gid=str(model),
            )
        axis.set_xscale("log")
        axis.set(
            xlim=(low, high), ylim=(-0.03, 1.03), xlabel=xlabel or axis_name(value), ylabel="share of runs"
        )
        if threshold is not None:
            axis.axvline(threshold, color="#1A1A1A", linestyle="--", linewidth=1)
            axis.annotate(
                "threshold",
                (threshold, 0),
                xycoords=("data", "axes fraction"),
                xytext=(4, 4),
                textcoords="offset points",
                fontsize=9,
            )
        handles = [legend_entry(name, line=True, styled=look) for name, look in styles.items()]
        rings = {
            model: rate
            for model, rate in (published or {}).items()
            if model in models and threshold is not None
        }
        for model, rate in rings.items():
            ring = hollow(styles[str(model)].colour)
            axis.plot(threshold, rate, **ring, markeredgewidth=1.8, zorder=3, gid=f"{model}, published")
        if rings:
            handles.append(Line2D([], [], label="published success rate", **hollow()))
        legend(figure, handles)
    return figure


def scatter(
    points: pd.DataFrame,
    x: str,
    y: str = "test_mse",
    hue: str = "model",
    row: str = "task",
    column: str | None = None,
    published: pd.DataFrame | None = None,
    levels: Mapping[str, float] | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    level_name: str = "",
    square: bool = False,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """A point per run, both axes logarithmic: a row of panels per value of `row`, side by side the values of
    `column`.

    `published` has the same columns, its points are rings. `levels` has a dashed line for each row of panels,
    all with one meaning, `level_name`; `limits` the ends of its vertical axis: points beyond them, infinite
    ones as well, are drawn on the frame, missing ones not at all. A `square` panel has these limits on both
    axes, and the line on which both numbers are equal.
    """
    columns = [x, y, hue, row] + ([column] if column else [])
    for frame in [points] if published is None else [points, published]:
        for name in columns:
            require(name, frame.columns, "column of the points")
    rows = list(dict.fromkeys(points[row]))
    sides = list(dict.fromkeys(points[column])) if column else [None]
    styles = styles_of([str(name) for name in dict.fromkeys(points[hue])])

    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 2.1 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), len(sides), sharex=not square, sharey="row", squeeze=False)
        for line, place in enumerate(rows):
            for number, side in enumerate(sides):
                axis = axes[line, number]
                axis.set(xscale="log", yscale="log")
                bounds = (limits or {}).get(place)
                if bounds is not None:
                    axis.set_ylim(*bounds)
                    if square:
                        axis.set_xlim(*bounds)
                        axis.plot(bounds, bounds, color="#1A1A1A", linestyle="--", linewidth=1)
                if levels is not None and place in levels:
                    axis.axhline(levels[place], color="#1A1A1A", linestyle="--", linewidth=1)
                for frame, theirs in ((published, True), (points, False)):
                    if frame is None:
                        continue
                    here = frame[
                        (frame[row] == place)
                        & ((frame[column] == side) if column else True)
                        & frame[y].notna()
                    ]
                    for name, look in styles.items():
                        part = here[here[hue].astype(str) == name]
                        if part.empty:
                            continue
                        values = part[y] if bounds is None else part[y].clip(*bounds)
                        ours = look.mark | {"markersize": 5, "linestyle": "none"}
                        how = hollow(look.colour, size=9) | {"alpha": 0.55} if theirs else ours
                        axis.plot(
                            part[x].clip(*bounds) if square and bounds else part[x],
                            values,
                            **how,
                            clip_on=False,
                            gid=f"{name}, published" if theirs else name,
                        )
                axis.tick_params(labelleft=number == 0)
                if line == 0 and column:
                    axis.set_title(str(side))
                for ticks, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
                    if high < 100 * low:  # few powers of ten for ticks, many labels between them
                        ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
                        ticks.set_major_formatter(FuncFormatter(tick))
                        ticks.set_minor_formatter(NullFormatter())
                if line == len(rows) - 1:
                    axis.set_xlabel(xlabel or axis_name(x))
            axes[line, 0].set_ylabel(f"{place}: {ylabel or axis_name(y)}")
        handles = [legend_entry(name, styled=styled) for name, styled in styles.items()]
        if published is not None:
            handles.append(Line2D([], [], **hollow(size=9), label="published"))
        if levels:
            handles.append(
                Line2D([], [], color="#1A1A1A", linestyle="--", linewidth=1, label=level_name or "level")
            )
        legend(figure, handles)
    return figure


def gate_histograms(
    rows: pd.DataFrame, published: pd.DataFrame | None = None, row: str = "operation", column: str = "model"
) -> Figure:
    """How many runs end with which mean gate, in a panel per operation and model: solved runs filled, others
    hollow.

    The 25 bins are 1/24 wide and centred on 0, 1/24, ..., 1. `rows` has the columns gate and success;
    `published` has gate, success and count, and is drawn as rings.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"model": "NALU", "gate": [0.0, 1.0], "success": [True, False]})
    >>> rows["operation"] = "mul"
    >>> [axis.get_title() for axis in gate_histograms(rows).axes]
    ['NALU']
    """
    for name in (row, column, "gate", "success"):
        require(name, rows.columns, "column of the rows")
    lines, models = list(dict.fromkeys(rows[row])), list(dict.fromkeys(rows[column]))
    width = 1 / 24
    centres = np.arange(25) * width
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 1.8 * len(lines)), layout="constrained")
        axes = figure.subplots(len(lines), len(models), sharex=True, sharey=True, squeeze=False)
        for axis, (line, model) in zip(axes.flat, itertools.product(lines, models), strict=True):
            colour = unit_style(str(model))[0]
            for success, shift, face in ((True, -width / 4, colour), (False, width / 4, "none")):
                part = rows[
                    (rows[row] == line) & (rows[column] == model) & (rows["success"].astype(bool) == success)
                ]
                counts = np.bincount(np.rint(part["gate"].dropna() / width).astype(int), minlength=25)
                drawn = counts > 0
                axis.bar(centres[drawn] + shift, counts[drawn], width / 2, facecolor=face, edgecolor=colour)
                if published is not None:
                    theirs = published[
                        (published[row] == line)
                        & (published[column] == model)
                        & (published["success"].astype(bool) == success)
                    ]
                    which = f"{'solved' if success else 'not solved'}, published"
                    axis.plot(theirs["gate"] + shift, theirs["count"], **hollow(size=8), gid=which)
            axis.grid(axis="x", visible=False)
            axis.set(xlim=(-0.09, 1.09), xticks=[0, 0.5, 1])
        for axis, model in zip(axes[0], models, strict=True):
            axis.set_title(str(model))
        for axis, line in zip(axes[:, 0], lines, strict=True):
            axis.set_ylabel(f"{line}\nruns")
        for axis in axes[-1]:
            axis.set_xlabel("mean gate")
        square = dict(linestyle="none", marker="s", markersize=8, markeredgecolor="#4C4C4C")
        faces = {"solved": "#4C4C4C", "not solved": "none"}
        handles = [
            Line2D([], [], label=label, markerfacecolor=face, **square) for label, face in faces.items()
        ]
        if published is not None:
            handles.append(Line2D([], [], label="published", **hollow(size=8)))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure
