"""Verdicts on *Neural Arithmetic Units*."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from nalm import measures, published
from nalm.measures import Interval
from nalm.scoreboard.rules import Comparison, Judge, exactly, rate, solved

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]


def _ten_parameter_rows(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["model"].isin(["NMU", "NAC•", "NALU"])]


def _nau_nmu_table_1(rows: pd.DataFrame) -> Iterable[Comparison]:
    # the printed intervals of the sparsity errors are symmetric, thus Student's, which were never halved
    statistics = {
        "success_rate": lambda part: measures.success_rate(part["success"]),
        "solved_at_step_median": lambda part: measures.solved_at_median(solved(part)["solved_at"]),
        "solved_at_step_mean": lambda part: measures.solved_at(solved(part)["solved_at"]),
        "sparsity_error_mean": lambda part: measures.mean(solved(part)["sparsity_error"]),
    }
    table = published.load("nau_nmu_table1")
    for model in ("NMU", "NAC•", "NALU"):
        for name, statistic in statistics.items():
            one = table[(table["model"] == model) & (table["metric"] == name)].iloc[0]
            if name == "success_rate":
                printed = rate(one["value"], 100)
            elif np.isnan(one["plus"]):
                printed = exactly(one["value"])
            else:
                printed = Interval(one["value"], one["value"] - one["minus"], one["value"] + one["plus"], 0)
            yield Comparison(f"{model}, {name}", statistic(rows[rows["model"] == model]), printed)


JUDGES = {("nau-nmu", "Table 1"): Judge(_ten_parameter_rows, ("model",), _nau_nmu_table_1)}
