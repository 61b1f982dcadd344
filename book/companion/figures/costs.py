"""What training costs: rates, and what they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from companion.figures.styles import WIDTH, Figure, require, style

__all__ = ["bars", "cost_curves"]


def bars(values: Mapping[str, float], xlabel: str, limits: Sequence[str] = ()) -> Figure:
    """Horizontal bars on a logarithmic axis, each with its value; those named in `limits` are hollow: what
    could be, not what is.

    >>> bars({"measured": 10.0, "possible": 40.0}, "rate", limits=["possible"]).axes[0].get_xlabel()
    'rate'
    """
    if not values or not all(np.isfinite(value) and value > 0 for value in values.values()):
        raise ValueError(
            f"Bars on a logarithmic axis need positive numbers, but the values are {dict(values)}."
        )
    for name in limits:
        require(name, values, "bar")
    with style():
        figure = Figure(figsize=(WIDTH, 0.8 + 0.36 * len(values)), layout="constrained")
        axis = figure.subplots()
        for place, (name, value) in enumerate(values.items()):
            hollow = {"facecolor": "none", "edgecolor": "#4C4C4C", "linestyle": "--"}
            axis.barh(place, value, height=0.66, **(hollow if name in limits else {"color": "#0072B2"}))
            axis.annotate(
                f"{value:,.0f}",
                (value, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        axis.set_xscale("log")
        low, high = min(values.values()), max(values.values())
        axis.set(xlim=(10 ** np.floor(np.log10(low) - 0.3), high * (high / low) ** 0.2 * 1.2), xlabel=xlabel)
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.grid(axis="y", visible=False)
        axis.set_yticks(range(len(values)), list(values))
        axis.tick_params(axis="y", length=0)
        axis.invert_yaxis()
    return figure


def cost_curves(costs: Mapping[str, Sequence[tuple[float, float]]], ylabel: str) -> Figure:
    """A panel per name, side by side on one vertical axis: pairs of a number and its cost, both axes
    logarithmic.

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
            shown = [
                number
                for place, number in enumerate(numbers)
                if len(numbers) < 6 or (len(numbers) - place) % 2 == 1
            ]
            axis.set_xticks(shown, [f"{number:,}" for number in shown])
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.yaxis.set_minor_formatter(NullFormatter())
        axes[0].set_ylabel(ylabel)
    return figure
