"""What the chapter on ten parameters says beside its statements: how runs end, and numbers of its text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import torch
from nalm.tasks import TenParameterTask
from scipy.stats import binom, fisher_exact
from torch import Tensor

from companion import measures
from companion.experiment.rows import Rows
from companion.experiment.tables import Table, text
from companion.nau_nmu import settings
from companion.nau_nmu.ten_parameter import NAME

Numbers = dict[str, object]


def counts(rows: Rows, recorded: Rows, nac_seeds: int) -> Numbers:
    """Solved runs and their times; how far the count of NAC• is from the 13 of 100 in Table 1.

    Args:
        rows: the runs of Table 1.
        recorded: with further seeds of NAC•, and its replays.
        nac_seeds: so many seeds of NAC•.
    """
    nac, more = rows.of(model="NAC•"), recorded.of(experiment=NAME, model="NAC•", seed=range(nac_seeds))
    solved, rate = int(nac.success.sum()), measures.success_rate(more.success)
    numbers: Numbers = {}
    for name, model in {"nac": "NAC•", "nalu": "NALU", "nmu": "NMU"}.items():
        part = rows.of(model=model)
        numbers |= {f"{name}-solved": part.count(), f"{name}-median": part.solved.middle("solved_at")}
    sparsity = rows.of(model="NMU").solved.frame["sparsity_error"].mean()
    numbers |= {
        "nmu-sparsity": f"{sparsity * 1e8:.1f}",
        "nac-p": text(fisher_exact([[solved, len(nac) - solved], [13, 87]]).pvalue, 2),
        "nac-more": more.count(),
        "nac-rate": text(rate, 2),
        "nac-replay": recorded.count(experiment="nau-nmu/replay"),
        "nac-as-few": text(float(binom.cdf(13, 100, rate.estimate)), 2),
        "nac-as-many": text(float(binom.sf(solved - 1, len(nac), rate.estimate)), 2),
    }
    return _named(numbers)


def endings(rows: Rows) -> Rows:
    """The runs with their second layer, before and after training, and how they end.

    Its smaller exponent at the start is ``smallest_start``; ``start`` and ``end`` are those of the exponent
    that is the smaller one after training, ``hidden`` and ``largest`` the mean and the largest absolute
    hidden value under it, ``factor`` what a NAC• makes of it, ``gate`` that of a NALU. The ``ending`` says it
    in words, ``range_of_start`` where the smaller exponent starts.
    """
    inputs = TenParameterTask().evaluation(0)["valid"].inputs
    found = pd.DataFrame([_second_layer(row, inputs) for row in rows.frame.itertuples()])
    rest = rows.frame.drop(columns=found.columns, errors="ignore")  # labels of other rows of the file
    ends = rest.reset_index(drop=True).join(found)
    ends["ending"] = [_ending(row) for row in ends.itertuples()]
    edges = [-np.inf, -0.05, 0.05, np.inf]
    names = ["below -0.05", "-0.05 to 0.05", "above 0.05"]
    ends["range_of_start"] = pd.cut(ends["smallest_start"], edges, labels=names)
    return Rows(ends, rows.results)


def _second_layer(row: Any, inputs: Tensor) -> dict[str, float]:
    torch.manual_seed(row.seed)
    model = settings.arms()[row.model].model.build(inputs.shape[1])
    start = model[1].effective_weights()[0].detach()[0]
    weights = json.loads(row.weights).items()
    model.load_state_dict({name: torch.tensor(value) for name, value in weights})
    with torch.no_grad():
        end, hidden = model[1].effective_weights()[0][0], model[0](inputs)
        low = end.argmin()
        of_low = hidden[:, low]
        return {
            "smallest_start": start.min().item(),
            "start": start[low].item(),
            "end": end[low].item(),
            "hidden": of_low.mean().item(),
            "largest": of_low.abs().max().item(),
            "factor": ((of_low.abs() + 1e-7) ** end[low]).mean().item(),
            "gate": model[1].gate(hidden).mean().item() if row.model == "NALU" else 0,
        }


def _ending(row: Any) -> str:
    if row.success:
        return "exact"
    if row.model == "NALU":
        return "multiplies" if row.gate < 0.01 else "adds" if row.gate > 0.99 else "in between"
    if row.end < 0:
        return "divides by a hidden value"
    return "ignores a hidden value" if row.end == 0 else "other"


def kinds(ends: Rows) -> Table:
    """How many runs of each model end in each way, and with which errors."""
    found = ends.frame.groupby(["model", "ending"], sort=False).agg(
        runs=("seed", "size"), valid=("valid_mse", "median"), test=("test_mse", "median")
    )
    found = found.sort_values(["model", "test"]).reset_index()
    found.columns = ["model", "second layer", "runs", "validation error", "test error"]
    return Table(found, "How runs end (errors: medians)")


def by_start(ends: Rows) -> Table:
    """The success rates of NAC• and NALU by where the smaller exponent starts."""
    exponential = ends.frame[ends.frame["model"] != "NMU"]
    lines = [
        [model, start, len(part), measures.success_rate(part["success"])]
        for (model, start), part in exponential.groupby(["model", "range_of_start"], observed=True)
    ]
    columns = ["model", "smaller exponent at the start", "runs", "success rate"]
    return Table(lines, "Starting exponents and success", columns=columns)


def ending_numbers(ends: Rows) -> Numbers:
    """How many runs end in the ways that the text names, and with which values."""
    nac, nalu, nmu = (ends.of(model=model) for model in ("NAC•", "NALU", "NMU"))
    divides, lost = nac.of(ending="divides by a hidden value"), nalu.failed
    constant = Rows(divides.frame[divides.frame["largest"] < 0.05])
    multiplies, off = lost.of(ending="multiplies"), nmu.of(ending="ignores a hidden value")
    numbers: Numbers = {
        "nac-divides": nac.failed.share(nac.failed.frame["end"] < 0),
        "nac-constant": len(constant),
        "nac-factor-low": constant.middle("factor", 2, pd.Series.min),
        "nac-factor-high": constant.middle("factor", 2, pd.Series.max),
        "nac-below": nac.count(range_of_start="below -0.05"),
        "nac-above": nac.count(range_of_start="above 0.05"),
        "nalu-adds": lost.share(lost.frame["ending"] == "adds"),
        "nalu-between": len(lost.of(ending="in between")),
        "nalu-fits": int((lost.frame["valid_mse"] < 0.1).sum()),
        "nalu-divides": multiplies.share(multiplies.frame["end"] < 0),
        "nmu-ignores": nmu.failed.share(nmu.failed.frame["end"] == 0),
    }
    for column in ("hidden", "start"):
        numbers[f"nmu-{column}-low"] = off.middle(column, 2, pd.Series.min)
        numbers[f"nmu-{column}-high"] = off.middle(column, 2, pd.Series.max)
    return _named(numbers)


def _named(numbers: Numbers) -> Numbers:
    """By their names in the text of the chapter."""
    return {f"ten-{name}": number for name, number in numbers.items()}
