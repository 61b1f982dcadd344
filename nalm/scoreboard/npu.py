"""Verdicts on *Neural Power Units*."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from nalm import measures, published
from nalm.scoreboard.rules import Claim, Comparison, Judge, student
from nalm.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]

_TASKS = {"+": "test_add", "x": "test_mul", "div": "test_div", "sqrt": "test_sqrt"}
_SIMPLE_MODELS = ["RealNPU", "NPU", "NMU", "NALU", "iNALU", "Dense"]


def _simple_rows(rows: pd.DataFrame) -> pd.DataFrame:
    measures.require_columns(rows, ["arm", *_TASKS.values()])
    return rows[rows["model"].isin(_SIMPLE_MODELS) & (rows["arm"] == "code")]


def _npu_table_a2(rows: pd.DataFrame) -> Iterable[Comparison]:
    table = published.load("npu_values").query("item == 'Table A2'").set_index(["task", "model"])
    for task in ("div", "+", "x", "sqrt"):
        for model in _SIMPLE_MODELS:
            one = table.loc[(task, model)]
            ours = measures.mean(rows[rows["model"] == model][_TASKS[task]])
            yield Comparison(f"{model} on {task}", ours, student(one["value"], one["spread"], 20))


def _npu_figure_6(rows: pd.DataFrame) -> Iterable[Claim]:
    errors = rows[list(_TASKS.values())].sum(axis=1, skipna=False).fillna(np.inf)
    best = {model: rows.loc[errors[rows["model"] == model].idxmin()] for model in _SIMPLE_MODELS}

    def better(one: str, other: str, task: str) -> Claim:
        left, right = best[one][_TASKS[task]], best[other][_TASKS[task]]
        return Claim(f"{one} better than {other} on {task}", bool(left < right), text(float(left)))

    for unit in ("RealNPU", "NPU"):
        for task in ("div", "+", "x", "sqrt"):
            for other in ("NALU", "iNALU"):
                yield better(unit, other, task)
        yield better("NMU", unit, "x")
        for task in ("div", "sqrt"):
            yield better(unit, "NMU", task)


JUDGES = {
    ("npu", "Table A2"): Judge(_simple_rows, ("model",), _npu_table_a2),
    ("npu", "Figure 6"): Judge(_simple_rows, ("model",), _npu_figure_6),
}
