"""The picture of the landing page: what networks of the simple arithmetic task answer far outside of the
numbers that they were trained on. They are rebuilt from the weights in their rows.

``python -m companion.picture`` writes it, once for light and once for dark pages.
"""

from __future__ import annotations

import io
import json
import re

import numpy as np
import torch
from matplotlib import rc_context
from nalm.commands import exit_with
from nalm.records.folders import PUBLISHED

from companion.figures import Figure, style, unit_style
from companion.npu.simple_arithmetic import simple_arm, simple_task
from companion.recorded import read

__all__ = ["FILES", "answers", "drawn", "main"]

FILES = {
    theme: PUBLISHED.parent / "_static" / f"beyond-the-training-range-{theme}.svg"
    for theme in ("light", "dark")
}
_INK = {"light": "#1A1A1A", "dark": "#E6E6E6"}
_COLOURS = {
    "light": {"NMU": unit_style("NMU")[0], "Dense": "#A63D00", "trained": "#00705A"},
    "dark": {"NMU": "#A79BFF", "Dense": "#FF9A4D", "trained": "#33C79A"},
}
_SEEDS = 20


def answers(x: np.ndarray) -> dict[str, np.ndarray]:
    """What the networks of either model answer to x · x: ``(seeds, len(x))``."""
    rows = read("npu/simple-arithmetic")
    rows = rows[(rows["arm"] == "code") & (rows["seed"] < _SEEDS)]
    pairs = torch.tensor(np.stack([x, x], 1))
    found = {}
    for model in ("NMU", "Dense"):
        given = []
        for weights in rows.loc[rows["model"] == model, "weights"]:
            network = simple_arm(model).model.build(in_features=2).double()
            network.load_state_dict({name: torch.tensor(one) for name, one in json.loads(weights).items()})
            with torch.no_grad():
                given.append(network(pairs)[:, 1].numpy())
        found[model] = np.array(given)
    return found


def drawn(theme: str) -> str:
    """The picture as SVG; ``theme`` is ``"light"`` or ``"dark"``."""
    x, trained, ink = np.linspace(-10, 10, 81), simple_task().interpolation, _INK[theme]
    found = answers(x)
    with style(), rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 11}):
        figure = Figure(figsize=(5.2, 3), layout="constrained", facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        axes.grid(color=ink, alpha=0.15)
        axes.axvspan(trained.low, trained.high, color=_COLOURS[theme]["trained"], alpha=0.3, linewidth=0)
        axes.plot(x, x * x, color=ink, linewidth=6, alpha=0.2)
        for model, given in found.items():
            axes.plot(x, given.T, color=_COLOURS[theme][model], linewidth=1)
        for label, at, colour, side in (
            (f"trained on\n{trained.low:g} to {trained.high:g}", (2.4, 84), "trained", "left"),
            (f"{_SEEDS} NMU networks", (-0.3, 80), "NMU", "right"),
            (f"{_SEEDS} sigmoid networks", (9.9, -7), "Dense", "right"),
        ):
            axes.text(*at, label, color=_COLOURS[theme][colour], fontweight="bold", ha=side)
        axes.set(
            xlabel="x", ylabel="answer to x · x", xlim=(-10, 10), ylim=(-12, 104), xticks=range(-10, 11, 5)
        )
        axes.tick_params(colors=ink)
        axes.xaxis.label.set_color(ink)
        axes.yaxis.label.set_color(ink)
        for spine in axes.spines.values():
            spine.set_color(ink)
        file = io.StringIO()
        figure.savefig(file, format="svg", facecolor="none", metadata={"Date": None, "Creator": None})
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", file.getvalue())


def main() -> None:
    """Write both pictures."""
    for theme, file in FILES.items():
        file.write_text(drawn(theme), encoding="utf-8")


if __name__ == "__main__":
    exit_with(main)
