"""What the chapter on large-scale arithmetic says beside its statements: tables, and the numbers of its text.

``ran`` are its runs as the paper has them, ``rows`` all of them, with the further seeds of the NPU.
:mod:`companion.npu.large_scale_text` has the tables of the chapter on the settings of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from nalm.tasks.large_scale import RANGES

from companion import measures
from companion.experiment.rows import Rows
from companion.experiment.statements import Comparison, Statements
from companion.experiment.tables import Table, text
from companion.npu.large_scale import (
    LARGE_SCALE,
    PAPER,
    POSITIVE,
    SIGNS,
    best_constant,
    chosen,
    compared,
    counted,
    error,
    error_of_best,
    large_scale_arm,
    parameters_left,
    printed,
    printed_points,
    ten_errors,
    test_targets,
)

Numbers = dict[str, object]


def as_ran(rows: Rows, p: SimpleNamespace) -> Rows:
    """The rows without the further seeds of the NPU."""
    frame = rows.frame
    further = (frame["model"] == "NPU") & frame["operation"].isin(POSITIVE) & (frame["seed"] >= p.seeds)
    return Rows(frame[~further], rows.results)


def middle(ran: Rows, model: str, operation: str) -> float:
    """The median of the ten best runs; those that ended without a number are the worst."""
    return float(np.median(ten_errors(chosen(ran.frame, model, operation)["test_mse"])))


def _done(ran: Rows, models: Sequence[str] = PAPER) -> list[tuple[str, str]]:
    """Operation and model of what was run."""
    return [(op, model) for op, model in product(SIGNS, models) if len(ran.of(model=model, operation=op))]


def line_of(operation: str, model: str) -> dict[str, object]:
    return {"task": SIGNS[operation], "model": model}


def agrees(ran: Rows, operation: str, model: str) -> bool:
    return compared(ran.frame, operation, model).agrees


def within_three(ours: float, operation: str, model: str) -> bool:
    """Whether a median is within a factor of three of the published one."""
    return 1 / 3 <= ours / printed(operation, model).estimate <= 3


def _near(ran: Rows, operation: str, model: str) -> bool:
    """Whether that of the ten best runs is."""
    return within_three(middle(ran, model, operation), operation, model)


def test_sets() -> tuple[Table, Numbers]:
    """The test sets, and the errors of answers that ignore the input."""
    lines = []
    for operation, sign in SIGNS.items():
        targets = test_targets(operation)
        mean, (trained, *tested) = targets["valid"].mean(), RANGES[operation]
        for name, used, place in zip(("test", "test_paper"), ("code", "paper"), tested, strict=True):
            target = targets[name]
            line = {"task": sign, "trained on": str(trained), "tested on": f"{place} ({used})"}
            line["always 0"] = (target**2).mean()
            line["training mean"] = ((target - mean) ** 2).mean()
            lines.append(line | {"best constant": target.var()})
    caption = "Test sets, and the mean squared errors of answers without a network"
    return Table(lines, caption), {"constant_add": best_constant("add")}


def built() -> Table:
    """The models of the task as they are built.

    Raises:
        AssertionError: initial weights that are not drawn from U(0, 0.1).
    """
    lines = []
    for model in LARGE_SCALE:
        torch.manual_seed(0)
        network = large_scale_arm(model, "reciprocal").model.build(100)
        parameters = dict(network.named_parameters())
        first = next(iter(parameters.values()))
        assert 0 <= first.min() and first.max() < 0.1
        layers = [f"{type(one).__name__}({one.in_features}, {one.out_features})" for one in network]
        line = {"model": model, "first layer": layers[0], "second layer": layers[1]}
        line["parameters"] = sum(parameter.numel() for parameter in parameters.values())
        gates = parameters["1.gate"][0].item() if "1.gate" in parameters else "–"
        lines.append(line | {"gates start at": gates})
    return Table(lines, "The models, built")


def table_1(ran: Rows) -> Table:
    """Published and our median errors, and those of all runs."""
    lines = []
    for operation, model in [*_done(ran), *_done(ran, ["iNALU"])]:
        known = model in PAPER
        line = line_of(operation, model) | {"published": printed(operation, model) if known else None}
        line["ours"] = error_of_best(ran.frame, model, operation)
        line["agrees"] = agrees(ran, operation, model) if known else None
        lines.append(line | {"ours, all runs": error(ran.of(model=model, operation=operation).frame)})
    return Table(lines, "Mean squared error on the code's test range, median ± MAD")


def _times(ratio: float) -> str:
    return (
        f"{text(ratio, 2)} times the published"
        if np.isfinite(ratio)
        else "most of which ended without a number"
    )


def agreement(ran: Rows, judged: Statements) -> Numbers:
    """How many medians agree, which do not, and which only because their intervals are wide."""
    found = {place: compared(ran.frame, *place) for place in _done(ran)}
    agree = {place: one for place, one in found.items() if one.agrees}
    wide = [
        f"{one.what}, {_times(middle(ran, model, op) / printed(op, model).estimate)}"
        for (op, model), one in agree.items()
        if not _near(ran, op, model)
    ]
    firsts = [one for one in judged.statements if not isinstance(one, Comparison)]
    return {
        "agree": f"{len(agree)} of {len(found)}",
        "within": str(sum(_near(ran, *place) for place in found)),
        "differ": "; ".join(one.what for one in found.values() if not one.agrees) or "none",
        "by_intervals": "; ".join(wide) or "none",
        "best": f"{sum(one.agrees for one in firsts)} of {len(firsts)}",
    }


def named_errors(rows: Rows, ran: Rows) -> Numbers:
    """Errors that the text names, and the runs without one."""
    ours = chosen(ran.frame, "NPU", "reciprocal")["test_mse"]
    theirs, lost = printed_points("reciprocal", "NPU")["test_mse"], rows.frame[rows.frame["test_mse"].isna()]
    where = sorted(set(zip(lost["model"], lost["operation"], strict=True)))
    said = "; ".join(f"{model} on {SIGNS[operation]}" for model, operation in where)
    named = {"npu_reciprocal": ("NPU", "reciprocal"), "real_reciprocal": ("RealNPU", "reciprocal")}
    on_root = rows.of(model="NPU", operation="root").frame["test_mse"].fillna(np.inf)
    of_ten = measures.median_of_best(on_root, best=10, of=10).estimate if len(on_root) else np.nan
    return {
        "worst_npu": text(theirs.max(), 2),
        "unrounded_npu": text(theirs.median()),
        "below_npu": f"{(ours <= theirs.max()).sum()} of {len(ours)}",
        "nans": rows.share(rows.frame["test_mse"].isna()) + (f" ({said})" if said else ""),
        "inalu_add": text(middle(ran, "iNALU", "add"), 2),
        "npu_add": text(middle(ran, "NPU", "add"), 2),
        "npu_root_ten": text(of_ten, 2),
    } | {name: error_of_best(ran.frame, *place) for name, place in named.items()}


def of_constant(ran: Rows) -> tuple[Table, Numbers]:
    """Published and our medians beside the error of the best constant."""
    lines, numbers = [], {"published_naive": printed("add", "NaiveNPU").estimate}
    for operation, model in _done(ran):
        ours, theirs = middle(ran, model, operation), printed(operation, model).estimate
        constant = best_constant(operation)
        line = line_of(operation, model) | {"ours / published": ours / theirs}
        lines.append(line | {"published / constant": theirs / constant, "ours / constant": ours / constant})
    named = [("add", "NPU"), ("add", "RealNPU"), ("add", "NaiveNPU"), ("reciprocal", "NPU")]
    for operation, model in (*named, ("root", "NPU"), ("root", "RealNPU")):
        share = printed(operation, model).estimate / best_constant(operation)
        numbers[f"of_constant_{operation}_{model}"] = text(share, 2)
    for model in ("NPU", "RealNPU"):
        share = middle(ran, model, "root") / best_constant("root")
        numbers[f"ours_of_constant_root_{model}"] = text(share, 2)
    caption = "Ratios of medians; at 1 times the constant's error a network is no better than no network"
    return Table(lines, caption), numbers


def ranks(ran: Rows, p: SimpleNamespace) -> Table:
    """The order of the models by their median errors, published and ours."""
    lines = []
    for operation in p.operations:
        medians = {
            "published": {model: printed(operation, model).estimate for model in PAPER},
            "ours": {model: middle(ran, model, operation) for model in PAPER},
        }
        for name, values in medians.items():
            places = pd.Series(values).fillna(np.inf).rank(method="min").astype(int)
            lines.append({"task": SIGNS[operation], "medians": name} | places.to_dict())
    return Table(lines, "Rank by median test error, 1 is best")


def selection(rows: Rows, ran: Rows) -> tuple[Table, Numbers]:
    """The medians that are not near the published ones, by how many runs the ten best are chosen from."""
    sizes, lines, inside, outside = (10, 15, 20, 30, 40), [], 0, []
    for operation, model in _done(ran):
        errors = rows.of(model=model, operation=operation).frame["test_mse"]
        if errors.isna().all() or _near(ran, operation, model):
            continue
        theirs = printed(operation, model).estimate
        best = {size: measures.median_of_best(errors, best=10, of=size) for size in sizes}
        fits = [size for size in sizes if theirs in best[size]]
        line = line_of(operation, model) | {"our runs": len(errors), "published": theirs}
        lines.append(line | {f"10 of {size}": one for size, one in best.items()})
        inside += 10 in fits
        if 10 not in fits:
            enough = f"lies in it where ten are chosen from {fits[0]}" if fits else "lies in none"
            outside.append(f"That of the {model} on {SIGNS[operation]} {enough}")
    numbers = {
        "selection_inside": f"{inside} of {len(lines)}",
        "selection_outside": ". ".join(outside) or "None lies outside",
    }
    return Table(lines, "Median test error of the ten best of so many runs, with 95% intervals"), numbers


def parameters(ran: Rows, p: SimpleNamespace) -> Table:
    """How many parameters the ten best runs keep."""
    lines = []
    for operation, model in product(p.operations, LARGE_SCALE):
        part = chosen(ran.frame, model, operation)
        if len(part):
            line = line_of(operation, model) | {"all": int(part["parameters"].iloc[0])}
            line |= {f"above {least}": parameters_left(part, least) for least in (0.001, 0.01)}
            lines.append(line | {"published": counted(printed_points(operation, model)["count"])})
    caption = "Number of parameters, median (from the fewest) of the ten best runs"
    return Table(lines, caption, folded="How many parameters the ten best runs keep")
