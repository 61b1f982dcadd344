"""Values over a plane, as heat maps whose colours are the same on light and dark pages."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps, rcParams
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, to_rgb
from matplotlib.image import imread, imsave

from companion.figures.styles import WIDTH, Figure, require, style

__all__ = ["Map", "error_maps", "on_dark"]


class Map(Figure):
    """A figure in which dark and light have a meaning. It has no ground, and marks on its data are not in the
    colours of text and frames, so that on_dark can change these alone.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(facecolor="none", **settings)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(include, exclude)
        metadata["image/png"]["needs_background"] = "light"  # where a notebook is shown on a dark ground
        return data, metadata


def on_dark(png: bytes) -> bytes:
    """A map's picture for dark pages: text, ticks and frames are inverted as the style sheet inverts other
    figures, data keep their colours.
    """
    pixels = (255 * imread(io.BytesIO(png))).round().astype(np.uint8)
    colour = pixels[..., :3]
    with style():
        inks = [to_rgb(rcParams[name]) for name in ("text.color", "axes.edgecolor")]
    ink = pixels[..., 3] < 255
    for one in inks:
        ink |= (colour == np.round(255 * np.array(one)).astype(np.uint8)).all(-1)
    inverted = 255 * (0.9 - 0.8 * (np.arange(256) / 255).astype(np.float32))
    colour[ink] = inverted.round().astype(np.uint8)[colour[ink]]
    changed = io.BytesIO()
    imsave(changed, pixels, metadata={"Software": None})
    return changed.getvalue()


def error_maps(
    errors: Mapping[str, Mapping[str, np.ndarray]],
    grids: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    limits: tuple[float, float] = (-4.0, 2.0),
    xlabel: str = "x",
    ylabel: str = "y",
) -> Figure:
    """Heat maps of the absolute error on a logarithmic colour scale: a row per task, a column per model.

    `errors[task][model]` has shape (len(y), len(x)) for the coordinates `grids[task] = (x, y)`; light is
    accurate. Errors beyond the limits (powers of ten) take the colour of the limit, missing ones are grey.
    """
    if not errors:
        raise ValueError("There are no error maps to draw.")
    tasks = list(errors)
    models = list(dict.fromkeys(model for maps in errors.values() for model in maps))
    for task in tasks:
        require(task, grids, "task with a grid")
        shape = (len(grids[task][1]), len(grids[task][0]))
        for model, values in errors[task].items():
            if np.shape(values) != shape:
                raise ValueError(
                    f"The map of {model} on {task} has shape {np.shape(values)}; its grid asks for {shape}."
                )
    colours = colormaps["inferno_r"].with_extremes(bad="#BDBDBD")
    norm = BoundaryNorm(np.linspace(*limits, 13), colours.N, clip=True)
    with style():
        figure = Map(figsize=(WIDTH, 0.9 + 1.12 * len(tasks)), layout="constrained")
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
                    axis.pcolormesh(
                        *map(np.asarray, grids[task]),
                        logs,
                        cmap=colours,
                        norm=norm,
                        shading="nearest",
                        rasterized=True,
                    )
        scale = ScalarMappable(norm, colours)
        bar = figure.colorbar(
            scale, ax=axes, shrink=0.7, aspect=30, ticks=np.arange(limits[0], limits[1] + 1)
        )
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
