"""What both chapters on sequences of handwritten digits say beside their statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from nalm.models.digit_sequence import DigitSequenceNetwork
from nalm.records.provenance import is_gpu
from nalm.tasks import DigitSequenceTask
from nalm.units import Unit
from torch import Tensor

from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.tables import Table, text
from companion.nau_nmu.digit_runs import EPOCHS, HORIZON, ITERATIONS, MODELS, TRAINED_ON
from companion.nau_nmu.digits import REFERENCE, longest, references, solved_by_length
from companion.recorded import devices, read

__all__ = [
    "Numbers",
    "accumulated",
    "error_of",
    "longer",
    "medians",
    "median_table",
    "on_both_devices",
    "scope",
    "shares",
    "weights",
]

Numbers = dict[str, object]

SPARSE = 1e-3
"""A sparsity error below which weights have arrived at -1, 0 or 1."""


def accumulated(unit: Unit, numbers: Tensor, weight: tuple[float, float], start: float = 0.0) -> Tensor:
    """The states of a recurrent unit with the weights w_z and w_y that is given these numbers.

    >>> from nalm import NAU
    >>> accumulated(NAU(2, 1), torch.tensor([3.0, 4.0]).double(), (1.0, 0.5)).tolist()
    [3.0, 5.5]
    """
    network = DigitSequenceNetwork(unit, initial_state=start).double()
    network.cell.weight.data = torch.tensor([weight], dtype=torch.float64)
    return network.accumulate(numbers)


def scope(rows: Rows, p: SimpleNamespace, task: DigitSequenceTask) -> Numbers:
    """What the page runs, and the hours that the whole experiment of the paper takes at its pace."""
    seeds = f"{p.seeds} {'seed' if p.seeds == 1 else 'seeds'}"
    whole = 10 * len(MODELS[task.operation]) * EPOCHS * task.steps_per_epoch(batch_size=64)
    pace = rows.frame["seconds"].sum() / rows.frame["iterations"].sum()
    return {
        "epochs": p.epochs,
        "seeds": p.seeds,
        "scope": f"{len(p.models)} models, {seeds} each, {p.epochs:,} epochs",
        "hours": f"{whole * pace / 3600:,.0f}",
    }


def shares(rows: Rows, of: Mapping[int, float]) -> pd.DataFrame:
    """The test errors of each run, a line for each number of digits, as shares of an error of that length."""
    columns = [f"test_{length}" for length in of]
    long = rows.frame.melt(["model", "seed"], columns, var_name="digits", value_name="mse")
    long["digits"] = long["digits"].str.removeprefix("test_").astype(int)
    long["share"] = long["mse"] / long["digits"].map(of)
    return long


def medians(shares: pd.DataFrame, lengths: Sequence[int]) -> pd.DataFrame:
    """The median share of each model, a column for each of these numbers of digits."""
    return shares.groupby(["model", "digits"], sort=False)["share"].median().unstack()[list(lengths)]


def median_table(middle: pd.DataFrame, of: str, folded: str = "") -> Table:
    """The medians in percent.

    Args:
        middle: see :func:`medians`.
        of: what they are shares of.
        folded: see :class:`companion.experiment.tables.Table`.
    """
    caption = f"Error in % of {of}, median over seeds, by number of digits"
    return Table((100 * middle).rename(columns="{:,}".format).reset_index(), caption, folded=folded)


def error_of(middle: pd.DataFrame, model: str, length: int, shown: Callable[[float], str]) -> str:
    """The median error of a model in percent, at a number of digits or at the longest that was tested."""
    if model not in middle.index:
        return NOT_RUN
    return f"{shown(100 * middle.loc[model, min(length, middle.columns[-1])])}%"


def weights(rows: Rows) -> pd.DataFrame:
    """The two weights of each run's unit, as they were selected."""
    found = rows.frame[["model", "seed"]].reset_index(drop=True)
    found[["w_z", "w_y"]] = rows.weights("cell.weight").reshape(-1, 2)
    return found


def longer(every: pd.DataFrame, operation: str, lengths: Sequence[int]) -> tuple[Table, Numbers]:
    """What the runs have come to that are long enough to be judged: how many there are of each model, their
    median error on single digits, how many are solved at these lengths, and their weights of images; of the
    paper's unit, with and without the penalty R_z, how many arrived at discrete weights.
    """
    rows = longest(every, operation)
    if rows.empty:
        names = "longer-epochs", "longer-updates", "sparse", "sparse-free", "unsolved"
        none = dict.fromkeys(names, NOT_RUN)
        return Table([], f"Runs of {HORIZON} epochs or more"), {"longer": 0} | none
    updates = int(rows["iterations"].max())
    epochs = updates * EPOCHS // ITERATIONS[operation]
    solved = solved_by_length(rows, operation, lengths).set_index("model")
    lines, missing = [], [model for model in MODELS[operation] if model not in set(rows["model"])]
    for model in MODELS[operation]:
        if (of := rows[rows["model"] == model]).empty:
            continue
        line = {"model": model, "runs": str(len(of)), "MSE on single digits": of["test_1"].median()}
        if model != REFERENCE[operation]:
            line |= {f"solved on {name}": count for name, count in solved.loc[model].items()}
            weights = [json.loads(one).get("cell.weight") for one in of["weights"]]
            line |= {"w_z": ", ".join(f"{one[0][0]:.2f}" for one in weights if one)}
        lines.append(line)
    known = len(references(rows, operation))
    note = f"; thresholds from {known} readers with the {REFERENCE[operation]}"
    note += f"; {NOT_RUN} yet: {'; '.join(missing)}" if missing else ""
    own, free = (rows[rows["model"] == model]["sparsity_error"] for model in MODELS[operation][:2])
    unsolved = [
        f"{line['model']} ({'one run' if line['runs'] == '1' else line['runs'] + ' runs'})"
        for line in lines
        if line["model"] != REFERENCE[operation]
        and all(count.startswith("0 ") for count in solved.loc[line["model"]])
    ]
    numbers: Numbers = {
        "longer": len(rows),
        "longer-epochs": f"{epochs:,}",
        "longer-updates": f"{updates:,}",
        "sparse": f"{(own < SPARSE).sum()} of {len(own)}",
        "sparse-free": f"{(free < SPARSE).sum()} of {len(free)}",
        "unsolved": ("; ".join(unsolved) or "none") if known > 1 else NOT_RUN,
    }
    return Table(pd.DataFrame(lines).fillna(""), f"Runs of {epochs:,} epochs{note}", digits=2), numbers


def on_both_devices(files: Mapping[str, str]) -> tuple[Table, Numbers]:
    """How far apart the errors are of runs that a core and a GPU have both begun, with the same seeds: at the
    updates at which the errors of both were lower than ever before. A line for those of several runs.

    Args:
        files: operation -> the results file of its runs.
    """
    found, spent = [], {True: [0.0, 0.0], False: [0.0, 0.0]}
    for operation, experiment in files.items():
        rows = read(experiment)
        on_gpu = devices(rows, experiment).map(is_gpu).astype(bool)
        for gpu, of in spent.items():
            of[0] += rows.loc[on_gpu == gpu, "seconds"].sum()
            of[1] += rows.loc[on_gpu == gpu, "iterations"].sum()
        longest = rows[on_gpu].sort_values("iterations").drop_duplicates(["model", "seed"], keep="last")
        pairs = rows[~on_gpu].merge(longest, on=["model", "seed"], suffixes=("", "_gpu"))
        for pair in pairs.to_dict("records"):
            core, gpu = (
                dict(json.loads(pair[name])[f"test_{TRAINED_ON[operation]}"]) for name in ("lows", "lows_gpu")
            )
            found += [
                {"task": operation, "updates": at, "ratio": gpu[at] / core[at]} for at in core.keys() & gpu
            ]
    caption = "The error at the length of training on a GPU, as a multiple of that on a core"
    if not found:
        return Table([], caption), dict.fromkeys(["pace_core", "pace_gpu", "largest", "middle"], NOT_RUN)
    ratios = pd.DataFrame(found)
    lines = [
        {"task": task, "updates": f"{updates:,}", "runs": len(of)}
        | dict(zip(("lowest", "median", "highest"), of["ratio"].quantile([0, 0.5, 1]), strict=True))
        for (task, updates), of in ratios.groupby(["task", "updates"], sort=True)
        if len(of) > 1
    ]
    later = ratios.loc[ratios["updates"] > 0, "ratio"]
    core, gpu = (1000 * seconds / updates for seconds, updates in (spent[False], spent[True]))
    return Table(lines, caption, digits=4), {
        "pace_core": text(core, 2),
        "pace_gpu": text(gpu, 2),
        "middle": f"{later.median():.2f}",
        "largest": f"{np.exp(np.log(later).abs().max()):.1f}",
    }
