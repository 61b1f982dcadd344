"""Drawing for the book: one visual language for every chapter.

A unit has one colour and one marker wherever it appears; variants of a unit are shades of its colour. What was measured
here is drawn solid, what a paper printed is drawn as a hollow ring. Figures have a white ground, so that they read the
same on light and dark pages, are seven inches (700 pixels) wide and are written at twice that resolution.

No function touches pyplot or global state; each returns a Figure that notebooks show by itself.
"""

from __future__ import annotations

import base64
import io
import itertools
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, to_hex, to_rgb
from matplotlib.figure import Figure as _Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from nalm.tables import values_beside_published
from nalm.values import nearest

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["UNIT_STYLES", "Figure", "bars", "by_range", "cost_curves", "courses", "curves", "distribution", "error_maps",
           "gate_histograms", "scatter", "style", "styles_of", "unit_style", "use_style", "values_beside_published"]  # fmt: skip

WIDTH = 7.0  # inches
PIXELS_PER_INCH = 100  # on the page; pictures hold twice as many

# colours keep a contrast of at least 3 to 1 to white, and units that meet in a figure stay apart for colour-blind eyes
UNIT_STYLES: dict[str, tuple[str, str]] = {
    "NAC+": ("#3B8EC2", "v"),
    "NAC+,Rz": ("#1F5F8A", "<"),
    "NAC•": ("#3B8EC2", "v"),
    "NAC•,σ": ("#CC6677", "P"),
    "NAC•,NMU": ("#117733", "X"),
    "NALU": ("#BB7700", "^"),
    "NALU (shared)": ("#BB7700", "^"),
    "NALU (separate)": ("#7A4E00", ">"),
    "iNALU": ("#6E4400", "<"),
    "NAU": ("#00808A", "h"),
    "NMU": ("#332288", "s"),
    "Gated NAU/NMU": ("#882255", "*"),
    "NaiveNPU": ("#B266E0", "p"),
    "NPU": ("#AA3377", "D"),
    "NPU (no constraints)": ("#AA3377", "D"),
    "NPU (clip & reg)": ("#B266E0", "d"),
    "Real NPU": ("#009E73", "o"),
    "Real NPU (baseline)": ("#009E73", "o"),
    "Real NPU (modified)": ("#00473A", "X"),
    "NRU": ("#D55E00", "^"),
    "NMRU": ("#0072B2", "s"),
    "Linear": ("#333333", "P"),
    "ReLU": ("#999933", "d"),
    "ReLU6": ("#5C5C1F", "D"),
    "Dense": ("#333333", "P"),
    "LSTM": ("#000000", "*"),
}
_SPELLINGS = {
    "RealNPU": "Real NPU",
    "INALU": "iNALU",
    "NAC": "NAC+",
    "NACMul": "NAC•",
    "GatedNAUNMU": "Gated NAU/NMU",
    "NAC•σ": "NAC•,σ",
    "NAC•NMU": "NAC•,NMU",
}
_SPARE = ["#4C4C4C", "#8A4F9E", "#A65628", "#2F6F4F"]
_MARKERS = "os^DvPX<>*hpd"

_STYLE = {
    "figure.dpi": 200,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "axes.facecolor": "white",
    "axes.edgecolor": "#4C4C4C",
    "axes.labelcolor": "#1A1A1A",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "text.color": "#1A1A1A",
    "xtick.color": "#1A1A1A",
    "ytick.color": "#1A1A1A",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "nalm",
    "axes.prop_cycle": matplotlib.cycler(color=["#0072B2", "#D55E00", "#009E73", "#332288", "#BB7700", "#AA3377"]),
}

# panel: (column of the estimate, ends of its interval, axis label, logarithmic)
_PANELS = {
    "success": ("success", "success_low", "success_high", "success rate", False),
    "solved_at": ("solved_at_mean", "solved_at_low", "solved_at_high", "solved at iteration", True),
    "sparsity_error": (
        "sparsity_error",
        "sparsity_error_low",
        "sparsity_error_high",
        "sparsity error",
        True,
    ),
}
_FLOOR = 1e-12  # lowest point of a bar on a logarithmic axis


class Figure(_Figure):
    """A matplotlib figure that a notebook shows as a PNG of twice its nominal width, independent of any backend."""

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH, metadata={"Software": None})
        picture = base64.b64encode(buffer.getvalue()).decode("ascii")
        width = round(self.get_figwidth() * PIXELS_PER_INCH)
        return {"image/png": picture, "text/plain": repr(self)}, {"image/png": {"width": width}}


def style() -> AbstractContextManager[None]:
    """The book's matplotlib settings, for a with block."""
    return matplotlib.rc_context(_STYLE)


def use_style() -> None:
    """Apply the book's matplotlib settings to everything drawn from now on."""
    matplotlib.rcParams.update(_STYLE)


def unit_style(name: str) -> tuple[str, str]:
    """Colour and marker of a unit or of a variant of one; a name that is not listed gets a fixed spare colour.

    >>> unit_style("RealNPU") == unit_style("Real NPU (baseline)")
    True
    """
    name = _SPELLINGS.get(name, name)
    if name in UNIT_STYLES:
        return UNIT_STYLES[name]
    stem = name.split(" (")[0].split(", ")[0]
    stem = _SPELLINGS.get(stem, stem)
    if stem in UNIT_STYLES:
        return UNIT_STYLES[stem]
    return _SPARE[sum(name.encode()) % len(_SPARE)], "o"


def styles_of(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of names that meet in a figure: as unit_style, and told apart where they would share a style.

    Variants of a unit get shades of its colour, dark to light, and names that belong to no unit a sequence of colours,
    both in the order of the names and each with a marker of its own.

    >>> styles_of(["NRU", "NMRU"]) == {name: unit_style(name) for name in ("NRU", "NMRU")}
    True
    >>> len(set(styles_of(["NRU", "NRU, lr 1e-1", "no L1", "L1"]).values()))
    4
    """
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        stem = _SPELLINGS.get(name, name).split(" (")[0].split(", ")[0]
        groups.setdefault("/".join(unit_style(name)) if _SPELLINGS.get(stem, stem) in UNIT_STYLES else "", []).append(name)
    styles = {}
    for shared, group in groups.items():
        if shared and len(group) == 1:
            styles[group[0]] = unit_style(group[0])
            continue
        places = np.linspace(0, 1, len(group))
        if shared:  # from the colour mixed with black to the colour itself, or from a dark colour to the colour mixed with white
            full = np.array(to_rgb(unit_style(group[0])[0]))
            dark = full @ (0.2126, 0.7152, 0.0722) < 0.19
            colours = [to_hex(full + (1 - full) * 0.45 * place if dark else full * (0.35 + 0.65 * place)) for place in places]
        else:
            colours = [to_hex(colormaps["viridis"](0.58 * place)) for place in places]
        styles |= {name: (colour, _MARKERS[n % len(_MARKERS)]) for n, (name, colour) in enumerate(zip(group, colours))}
    return {name: styles[name] for name in dict.fromkeys(names)}


def by_range(
    summary: pd.DataFrame,
    x: str = "range",
    hue: str = "model",
    panels: Sequence[str] = ("success", "solved_at", "sparsity_error"),
    published: pd.DataFrame | None = None,
    xlabel: str | None = None,
) -> Figure:
    """The papers' three-panel figure: success rate, solved at and sparsity error, each with its 95 % interval.

    `summary` comes from nalm.measures.summarise; `published` has the same columns as far as values are published
    (success, solved_at_mean, sparsity_error; no intervals needed) and is drawn as hollow rings.
    """
    panels = [panels] if isinstance(panels, str) else list(panels)
    for panel in panels:
        _known(panel, _PANELS, "panel")
    for name in [x, hue] + [column for panel in panels for column in _PANELS[panel][:3]]:
        _known(name, summary.columns, "column of the summary")
    places, models = list(dict.fromkeys(summary[x])), list(dict.fromkeys(summary[hue]))
    step = min(0.16, 0.72 / max(len(models), 1))
    shift = {model: (number - (len(models) - 1) / 2) * step for number, model in enumerate(models)}
    styles = styles_of([str(model) for model in models])

    with style():
        figure = Figure(figsize=(WIDTH, 1.1 + 1.95 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, panel in zip(axes, panels):
            column, low, high, label, logarithmic = _PANELS[panel]
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
                    axis.plot(at, row[column], "o", markersize=10, markerfacecolor="none", markeredgecolor=ring)
            _finish_panel(axis, summary[column], label, logarithmic, len(places))
        rotation = 35 if max(len(str(place)) for place in places) > 6 and len(places) > 5 else 0
        alignment = {"rotation": rotation, "ha": "right", "rotation_mode": "anchor"} if rotation else {}
        axes[-1].set_xticks(range(len(places)), [str(place) for place in places], **alignment)
        axes[-1].set_xlabel(_axis_name(x) if xlabel is None else xlabel)
        handles = [_legend_entry(str(model), styled=styles[str(model)]) for model in models]
        if published is not None:
            ring = dict(marker="o", markersize=10, markerfacecolor="none", markeredgecolor="#4C4C4C")
            handles.append(Line2D([], [], linestyle="none", label="published", **ring))
        figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles))
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


def error_maps(
    errors: Mapping[str, Mapping[str, np.ndarray]],
    grids: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    limits: tuple[float, float] = (-4.0, 2.0),
    xlabel: str = "x",
    ylabel: str = "y",
) -> Figure:
    """Heat maps of the absolute error on a logarithmic colour scale: a row per task, a column per model.

    `errors[task][model]` has shape (len(y), len(x)) for the coordinates `grids[task] = (x, y)`; light is accurate.
    Errors beyond the limits (powers of ten) take the colour of the limit, missing ones are grey.
    """
    if not errors:
        raise ValueError("There are no error maps to draw.")
    tasks = list(errors)
    models = list(dict.fromkeys(model for maps in errors.values() for model in maps))
    for task in tasks:
        _known(task, grids, "task with a grid")
        shape = (len(grids[task][1]), len(grids[task][0]))
        for model, values in errors[task].items():
            if np.shape(values) != shape:
                raise ValueError(
                    f"The map of {model} on {task} has shape {np.shape(values)}; its grid asks for {shape}."
                )
    colours = colormaps["inferno_r"].with_extremes(bad="#BDBDBD")
    norm = BoundaryNorm(np.linspace(*limits, 13), colours.N, clip=True)
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 1.12 * len(tasks)), layout="constrained")
        axes = figure.subplots(len(tasks), len(models), squeeze=False)
        for row, task in enumerate(tasks):
            for column, model in enumerate(models):
                axis = axes[row, column]
                axis.grid(False)
                axis.set(xticks=[], yticks=[])
                if row == 0:
                    axis.set_title(model)
                if column == 0:
                    axis.set_ylabel(task)
                    _name_ends(axis, grids[task], bottom=row == len(tasks) - 1 or _differs(grids, tasks, row))
                if model in errors[task]:
                    with np.errstate(divide="ignore", invalid="ignore"):
                        logs = np.log10(np.abs(np.asarray(errors[task][model], dtype=float)))
                    logs = np.ma.masked_invalid(np.clip(logs, *limits))
                    axis.pcolormesh(*map(np.asarray, grids[task]), logs, cmap=colours, norm=norm,
                                    shading="nearest", rasterized=True)  # fmt: skip
        scale = ScalarMappable(norm, colours)
        bar = figure.colorbar(scale, ax=axes, shrink=0.7, aspect=30, ticks=np.arange(limits[0], limits[1] + 1))
        bar.ax.set_yticklabels([f"$10^{{{int(power)}}}$" for power in np.arange(limits[0], limits[1] + 1)])
        bar.set_label("absolute error")
        figure.supxlabel(xlabel, fontsize=10)
        figure.supylabel(ylabel, fontsize=10)
    return figure


def _differs(grids: Mapping, tasks: Sequence[str], row: int) -> bool:
    return any(not np.array_equal(grids[tasks[row]][0], grids[task][0]) for task in tasks[row + 1 : row + 2])


def _name_ends(axis, grid: tuple, bottom: bool) -> None:
    for values, place, draw in ((grid[1], axis.set_yticks, True), (grid[0], axis.set_xticks, bottom)):
        ends = [float(np.min(values)), float(np.max(values))]
        if draw:
            place(ends, [f"{end:.2g}" for end in ends])


def curves(
    logs: pd.DataFrame,
    x: str = "iteration",
    y: str = "test_mse",
    hue: str = "model",
    run: str = "seed",
    threshold: float | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """Learning curves: a thin line per run, a thick one for the median of each model, on a logarithmic axis."""
    for name in (x, y, hue, run):
        _known(name, logs.columns, "column of the logs")
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axis = figure.subplots()
        for model, part in logs.groupby(hue, sort=False):
            colour, marker = unit_style(str(model))
            for _, single in part.groupby(run, sort=False):
                axis.plot(single[x], single[y], color=colour, linewidth=0.7, alpha=0.35)
            middle = part.groupby(x)[y].median()
            every = max(1, len(middle) // 8)
            axis.plot(middle.index, middle, color=colour, marker=marker, markevery=every, markersize=5, linewidth=2)
        axis.set_yscale("log")
        if threshold is not None:
            axis.axhline(threshold, color="#1A1A1A", linestyle="--", linewidth=1)
            axis.annotate("threshold", (1, threshold), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                          fontsize=9)  # fmt: skip
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set(xlabel=xlabel or _axis_name(x), ylabel=ylabel or _axis_name(y))
        handles = [_legend_entry(str(model), line=True) for model in dict.fromkeys(logs[hue])]
        figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles))
    return figure


def distribution(
    rows: pd.DataFrame,
    value: str = "test_mse",
    hue: str = "model",
    threshold: float | None = None,
    published: Mapping[str, float] | None = None,
    xlabel: str | None = None,
) -> Figure:
    """Share of each model's runs whose error is at most x: where a curve meets the threshold is the success rate.

    Runs without a finite error count, but never rise. `published` has a success rate per model, drawn as a hollow ring
    on the threshold.
    """
    for name in (value, hue):
        _known(name, rows.columns, "column of the rows")
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axis = figure.subplots()
        models = list(dict.fromkeys(rows[hue]))
        errors = {model: rows.loc[rows[hue] == model, value].to_numpy(float) for model in models}
        known = np.concatenate([[1.0 if threshold is None else threshold], *errors.values()])
        known = known[np.isfinite(known) & (known > 0)]
        low, high = known.min() / 10, known.max() * 10
        for model, values in errors.items():
            finite = np.sort(np.maximum(values[np.isfinite(values)], low))
            share = np.arange(finite.size + 1) / values.size
            colour, marker = unit_style(str(model))
            axis.step([low, *finite, high], [*share, share[-1]], where="post", color=colour, linewidth=2)
            axis.plot(finite, share[1:], marker, color=colour, markersize=5, markevery=max(1, finite.size // 8))
        axis.set_xscale("log")
        axis.set(xlim=(low, high), ylim=(-0.03, 1.03), xlabel=xlabel or _axis_name(value), ylabel="share of runs")
        if threshold is not None:
            axis.axvline(threshold, color="#1A1A1A", linestyle="--", linewidth=1)
            axis.annotate("threshold", (threshold, 0), xycoords=("data", "axes fraction"), xytext=(4, 4),
                          textcoords="offset points", fontsize=9)  # fmt: skip
        handles = [_legend_entry(str(model), line=True) for model in models]
        rings = {model: rate for model, rate in (published or {}).items() if model in models and threshold is not None}
        for model, rate in rings.items():
            axis.plot(threshold, rate, "o", markersize=10, markerfacecolor="none", markeredgewidth=1.8,
                      markeredgecolor=unit_style(str(model))[0], zorder=3)  # fmt: skip
        if rings:
            ring = dict(marker="o", markersize=10, markerfacecolor="none", markeredgecolor="#4C4C4C")
            handles.append(Line2D([], [], linestyle="none", label="published success rate", **ring))
        figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles))
    return figure


def courses(
    lines: Mapping[str, tuple[Sequence[float], np.ndarray]],
    names: Sequence[str],
    points: tuple[Sequence[float], np.ndarray] | None = None,
    xlabel: str = "t",
) -> Figure:
    """Solutions of differential equations over time: a panel per entry of the state, a line per solution, the data as points.

    `lines` maps a name to times and states (times, entries); `names` are those of the entries; `points` are times and states too.
    """
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots(1, len(names), sharex=True, squeeze=False)[0]
        dashes = ["-", "--", ":", "-."]
        colours = [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]]
        for entry, (axis, name) in enumerate(zip(axes, names, strict=True)):
            if points is not None:
                axis.plot(points[0], points[1][:, entry], "o", color="#4C4C4C", markersize=3)
            for number, (times, states) in enumerate(lines.values()):
                axis.plot(times, states[:, entry], dashes[number % 4], color=colours[number % len(colours)], linewidth=1.6)
            axis.set(title=name, xlabel=xlabel)
        handles = [
            Line2D([], [], linestyle=dashes[number % 4], color=colours[number % len(colours)], linewidth=1.6, label=name)
            for number, name in enumerate(lines)
        ]
        if points is not None:
            handles.append(Line2D([], [], linestyle="none", marker="o", color="#4C4C4C", markersize=3, label="data"))
        figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles))
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
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Figure:
    """A point per run, both axes logarithmic: a row of panels per value of `row`, side by side the values of `column`.

    `published` has the same columns, its points are rings. `levels` has a dashed line for each row of panels, all with
    one meaning, `level_name`; `limits` the ends of its vertical axis: points beyond them, infinite ones as well, are
    drawn on the frame, missing ones not at all.
    """
    columns = [x, y, hue, row] + ([column] if column else [])
    for frame in [points] if published is None else [points, published]:
        for name in columns:
            _known(name, frame.columns, "column of the points")
    rows = list(dict.fromkeys(points[row]))
    sides = list(dict.fromkeys(points[column])) if column else [None]
    styles = styles_of([str(name) for name in dict.fromkeys(points[hue])])
    ring = dict(marker="o", markersize=9, markerfacecolor="none", linestyle="none")

    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 2.1 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), len(sides), sharex=True, sharey="row", squeeze=False)
        for line, place in enumerate(rows):
            for number, side in enumerate(sides):
                axis = axes[line, number]
                axis.set(xscale="log", yscale="log")
                bounds = (limits or {}).get(place)
                if bounds is not None:
                    axis.set_ylim(*bounds)
                if levels is not None and place in levels:
                    axis.axhline(levels[place], color="#1A1A1A", linestyle="--", linewidth=1)
                for frame, hollow in ((published, True), (points, False)):
                    if frame is None:
                        continue
                    here = frame[(frame[row] == place) & ((frame[column] == side) if column else True) & frame[y].notna()]
                    for name, (colour, marker) in styles.items():
                        part = here[here[hue].astype(str) == name]
                        if part.empty:
                            continue
                        values = part[y] if bounds is None else part[y].clip(*bounds)
                        solid = dict(marker=marker, color=colour, markersize=5, linestyle="none")
                        how = ring | {"markeredgecolor": colour, "alpha": 0.55} if hollow else solid
                        axis.plot(part[x], values, **how, clip_on=False)
                axis.tick_params(labelleft=number == 0)
                if line == 0 and column:
                    axis.set_title(str(side))
                if line == len(rows) - 1:
                    axis.set_xlabel(xlabel or _axis_name(x))
            axes[line, 0].set_ylabel(f"{place}: {ylabel or _axis_name(y)}")
        handles = [_legend_entry(name, styled=styled) for name, styled in styles.items()]
        if published is not None:
            handles.append(Line2D([], [], **ring, markeredgecolor="#4C4C4C", label="published"))
        if levels:
            handles.append(Line2D([], [], color="#1A1A1A", linestyle="--", linewidth=1, label=level_name or "level"))
        figure.legend(handles=handles, loc="outside upper center", ncols=_legend_columns(handles))
    return figure


def bars(values: Mapping[str, float], xlabel: str, limits: Sequence[str] = ()) -> Figure:
    """Horizontal bars on a logarithmic axis, each with its value; those named in `limits` are hollow: what could be, not what is.

    >>> bars({"measured": 10.0, "possible": 40.0}, "rate", limits=["possible"]).axes[0].get_xlabel()
    'rate'
    """
    if not values or not all(np.isfinite(value) and value > 0 for value in values.values()):
        raise ValueError(f"Bars on a logarithmic axis need positive numbers, but the values are {dict(values)}.")
    for name in limits:
        _known(name, values, "bar")
    with style():
        figure = Figure(figsize=(WIDTH, 0.8 + 0.36 * len(values)), layout="constrained")
        axis = figure.subplots()
        for place, (name, value) in enumerate(values.items()):
            hollow = {"facecolor": "none", "edgecolor": "#4C4C4C", "linestyle": "--"}
            axis.barh(place, value, height=0.66, **(hollow if name in limits else {"color": "#0072B2"}))
            axis.annotate(f"{value:,.0f}", (value, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
        axis.set_xscale("log")
        low, high = min(values.values()), max(values.values())
        axis.set(xlim=(10 ** np.floor(np.log10(low) - 0.3), high * (high / low) ** 0.2 * 1.2), xlabel=xlabel)
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.grid(axis="y", visible=False)
        axis.set_yticks(range(len(values)), list(values))
        axis.tick_params(axis="y", length=0)
        axis.invert_yaxis()
    return figure


def gate_histograms(rows: pd.DataFrame, published: pd.DataFrame | None = None, row: str = "operation", column: str = "model") -> Figure:
    """How many runs end with which mean gate, in a panel per operation and model: solved runs filled, others hollow.

    The 25 bins are 1/24 wide and centred on 0, 1/24, ..., 1. `rows` has the columns gate and success; `published` has gate, success and count,
    and is drawn as rings.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"operation": "mul", "model": "NALU", "gate": [0.0, 1.0], "success": [True, False]})
    >>> [axis.get_title() for axis in gate_histograms(rows).axes]
    ['NALU']
    """
    for name in (row, column, "gate", "success"):
        _known(name, rows.columns, "column of the rows")
    lines, models = list(dict.fromkeys(rows[row])), list(dict.fromkeys(rows[column]))
    width = 1 / 24
    centres = np.arange(25) * width
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 1.8 * len(lines)), layout="constrained")
        axes = figure.subplots(len(lines), len(models), sharex=True, sharey=True, squeeze=False)
        for axis, (line, model) in zip(axes.flat, itertools.product(lines, models)):
            colour = unit_style(str(model))[0]
            for success, shift, face in ((True, -width / 4, colour), (False, width / 4, "none")):
                part = rows[(rows[row] == line) & (rows[column] == model) & (rows["success"].astype(bool) == success)]
                counts = np.bincount(np.rint(part["gate"].dropna() / width).astype(int), minlength=25)
                drawn = counts > 0
                axis.bar(centres[drawn] + shift, counts[drawn], width / 2, facecolor=face, edgecolor=colour)
                if published is not None:
                    theirs = published[(published[row] == line) & (published[column] == model) & (published["success"].astype(bool) == success)]
                    axis.plot(theirs["gate"] + shift, theirs["count"], "o", markersize=8, markerfacecolor="none", markeredgecolor="#4C4C4C")
            axis.grid(axis="x", visible=False)
            axis.set(xlim=(-0.09, 1.09), xticks=[0, 0.5, 1])
        for axis, model in zip(axes[0], models):
            axis.set_title(str(model))
        for axis, line in zip(axes[:, 0], lines):
            axis.set_ylabel(f"{line}\nruns")
        for axis in axes[-1]:
            axis.set_xlabel("mean gate")
        square = dict(linestyle="none", marker="s", markersize=8, markeredgecolor="#4C4C4C")
        handles = [Line2D([], [], label="solved", markerfacecolor="#4C4C4C", **square), Line2D([], [], label="not solved", markerfacecolor="none", **square)]
        if published is not None:
            handles.append(Line2D([], [], linestyle="none", label="published", marker="o", markersize=8, markerfacecolor="none", markeredgecolor="#4C4C4C"))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


def cost_curves(costs: Mapping[str, Sequence[tuple[float, float]]], ylabel: str) -> Figure:
    """A panel per name, side by side on one vertical axis: pairs of a number and its cost, both axes logarithmic.

    >>> [axis.get_xlabel() for axis in cost_curves({"runs": [(1, 40.0), (10, 5.0)]}, "cost").axes]
    ['runs']
    """
    with style():
        figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
        axes = figure.subplots(1, len(costs), sharey=True, squeeze=False)[0]
        for axis, (name, pairs) in zip(axes, costs.items(), strict=True):
            numbers, values = zip(*pairs, strict=True)
            axis.plot(numbers, values, "o-", color="#0072B2", markersize=5)
            axis.set(xscale="log", yscale="log", xlabel=name)
            shown = [number for place, number in enumerate(numbers) if len(numbers) < 6 or (len(numbers) - place) % 2 == 1]
            axis.set_xticks(shown, [f"{number:,}" for number in shown])
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
        axes[0].set_ylabel(ylabel)
    return figure


def _legend_entry(model: str, line: bool = False, styled: tuple[str, str] | None = None) -> Line2D:
    colour, marker = styled or unit_style(model)
    return Line2D([], [], color=colour, marker=marker, markersize=6, linestyle="-" if line else "none", label=model)


def _legend_columns(handles: Sequence[Line2D]) -> int:
    longest = max(len(handle.get_label()) for handle in handles)
    return max(1, min(len(handles), 76 // (longest + 6)))


def _axis_name(column: str) -> str:
    return column.replace("_", " ").replace("mse", "MSE")


def _known(name: str, allowed, what: str) -> None:
    names = [str(one) for one in allowed]
    if name not in names:
        raise ValueError(f"There is no {what} called {name!r}: {nearest(name, names)}")
