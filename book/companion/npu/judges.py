"""Verdicts on *Neural Power Units*."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from companion import measures, published
from companion.npu.settings import fsir_arm, layers_of
from companion.statements import Claim, Comparison, Judge
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]


_FSIR_MODELS = ["NPU", "RealNPU", "Dense"]


def _fsir_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The 300 runs integrated as the authors did; ``count``: the number of parameters above 0.001."""
    measures.require_columns(rows, ["solver", "hidden", "penalty", "weights"])
    rows = rows[rows["model"].isin(_FSIR_MODELS) & (rows["solver"] == "euler")].copy()
    counted = [
        sum(int((np.abs(values) > 0.001).sum()) for values in _weights(row).values())
        for row in rows["weights"]
    ]
    rows["count"] = np.where(rows["weights"].notna(), counted, rows.get("parameters_above_0.001", np.nan))
    return rows


def _weights(text: str | float) -> dict[str, np.ndarray]:
    return (
        {name: np.asarray(values) for name, values in json.loads(text).items()}
        if isinstance(text, str)
        else {}
    )


def _npu_figure_4(rows: pd.DataFrame) -> Iterable[Comparison | Claim]:
    theirs = published.load("npu_pareto").query("kind == 'run'")
    ours = {model: rows[rows["model"] == model] for model in _FSIR_MODELS}
    for model, limit in product(_FSIR_MODELS, (0.1, 1.0)):
        printed = theirs[theirs["model"] == model]["train_mse"]
        yield Comparison(
            f"{model}: runs with an MSE below {text(limit)}",
            measures.success_rate(ours[model]["valid_mse"] < limit),
            measures.success_rate(printed < limit),
        )
    lowest = {model: part["valid_mse"].min() for model, part in ours.items()}
    yield Claim(
        "the NPU reaches a lower MSE than Dense", lowest["NPU"] < lowest["Dense"], text(lowest["NPU"])
    )
    fewest = {model: part[part["valid_mse"] < 0.1]["count"].min() for model, part in ours.items()}
    yield Claim(
        "the NPU reaches an MSE below 0.1 with fewer parameters than Dense",
        fewest["NPU"] < fewest["Dense"],
        text(float(fewest["NPU"])),
    )
    middle = {model: part["valid_mse"].median() for model, part in ours.items()}
    yield Claim(
        "the RealNPU is mostly worse than the NPU (median)",
        middle["RealNPU"] > middle["NPU"],
        text(middle["RealNPU"]),
    )
    sparse = ((ours["RealNPU"]["valid_mse"] < 0.1) & (ours["RealNPU"]["count"] < 20)).sum()
    yield Claim(
        "a few RealNPUs are good and sparse (below 0.1, fewer than 20 parameters)",
        0 < sparse < 50,
        f"{sparse} of {len(ours['RealNPU'])}",
    )


def _npu_figure_5(rows: pd.DataFrame) -> Iterable[Claim]:
    """Whether a RealNPU that fits the data has the drawn form: a unit for r, for I and for a power of R.

    The authors chose theirs by eye.
    """
    fitting = rows[(rows["model"] == "RealNPU") & (rows["valid_mse"] < 0.1) & rows["weights"].notna()]
    found = {
        "r, with exponents of S and I of 0.4 to 0.7": [],
        "I, with an exponent of 0.8 to 1.2": [],
        "a power of R": [],
    }
    for row in fitting["weights"]:
        weights = _weights(row)
        used = np.abs(weights["field.1.weight"]).max(0) > 0.005
        s, i, r = weights["field.0.weight"][used].T
        found["r, with exponents of S and I of 0.4 to 0.7"].append(
            bool(((s > 0.4) & (s < 0.7) & (i > 0.4) & (i < 0.7) & (np.abs(r) < 0.1)).any())
        )
        found["I, with an exponent of 0.8 to 1.2"].append(
            bool(((np.abs(s) < 0.1) & (i > 0.8) & (i < 1.2) & (np.abs(r) < 0.1)).any())
        )
        found["a power of R"].append(bool(((np.abs(s) < 0.1) & (np.abs(i) < 0.1) & (r > 0.1)).any()))
    together = np.all(list(found.values()), axis=0) if len(fitting) else np.array([])
    for what, which in found.items():
        yield Claim(f"a unit for {what}", any(which), f"{sum(which)} of {len(fitting)}")
    yield Claim(
        "all three in one RealNPU", bool(together.any()), f"{int(together.sum())} of {len(fitting)} that fit"
    )


def _npu_table_a1() -> Iterable[Claim]:
    printed = {
        "NPU": ("NPU(3, 6)", "NAU(6, 3)"),
        "RealNPU": ("RealNPU(3, 6)", "NAU(6, 3)"),  # printed: a second row of the NPU
        "Dense": ("Dense(2, 6)", "Dense(6, 6)", "Dense(6, 3)"),
    }
    for name, layers in printed.items():
        ours = layers_of(fsir_arm(name, 6, 0.0).model.build(1).field)
        yield Claim(name, ours == layers, ", ".join(ours))


JUDGES = {
    ("npu", "Figure 4"): Judge(_fsir_rows, ("model", "hidden", "penalty"), _npu_figure_4),
    ("npu", "Figure 5"): Judge(_fsir_rows, ("model", "hidden", "penalty"), _npu_figure_5),
    ("npu", "Table A1"): _npu_table_a1,
}
