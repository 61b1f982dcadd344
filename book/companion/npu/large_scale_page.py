"""What the chapter on large-scale arithmetic says beside its statements: tables, and the numbers of its text.

``ran`` are its runs as the paper has them, ``rows`` all of them, with the further seeds of the NPU.
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
from companion.experiment.rows import NOT_RUN, Rows
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
    large_scale_arm,
    parameters_left,
    printed,
    printed_points,
    test_targets,
)

_STARTS = {"gate 1": ("NPU", "RealNPU, gate 1"), "gate ½": ("NPU, gate 0.5", "RealNPU")}
_Numbers = dict[str, object]


def as_ran(rows: Rows, p: SimpleNamespace) -> Rows:
    """The rows without the further seeds of the NPU."""
    frame = rows.frame
    further = (frame["model"] == "NPU") & frame["operation"].isin(POSITIVE) & (frame["seed"] >= p.seeds)
    return Rows(frame[~further], rows.results)


def _middle(ran: Rows, model: str, operation: str) -> float:
    return float(chosen(ran.frame, model, operation)["test_mse"].median())


def _error(ran: Rows, model: str, operation: str) -> float:
    """The median of all runs."""
    return float(ran.of(model=model, operation=operation).frame["test_mse"].median())


def _done(ran: Rows, models: Sequence[str] = PAPER) -> list[tuple[str, str]]:
    """Operation and model of what was run."""
    return [(op, model) for op, model in product(SIGNS, models) if len(ran.of(model=model, operation=op))]


def _line(operation: str, model: str) -> dict[str, object]:
    return {"task": SIGNS[operation], "model": model}


def _agrees(ran: Rows, operation: str, model: str) -> bool:
    return compared(ran.frame, operation, model).agrees


def _within_three(ours: float, operation: str, model: str) -> bool:
    """Whether a median is within a factor of three of the published one."""
    return 1 / 3 <= ours / printed(operation, model).estimate <= 3


def _near(ran: Rows, operation: str, model: str) -> bool:
    """Whether that of the ten best runs is."""
    return _within_three(_middle(ran, model, operation), operation, model)


def test_sets() -> tuple[Table, _Numbers]:
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
    targets = test_targets("reciprocal")["test_paper"].ravel()
    squares = np.sort(targets**2)[::-1]
    numbers = {
        "singular": f"{targets[np.abs(targets).argmax()]:,.0f}",
        "singular_share": f"{squares[:2].sum() / squares.sum():.0%}",
        "constant_add": best_constant("add"),
    }
    return Table(lines, "Test sets, and the mean squared errors of answers without a network"), numbers


def built() -> Table:
    """The models of the task as they are built.

    Raises:
        AssertionError: first weights that are not drawn from U(0, 0.1).
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
        line = _line(operation, model) | {"published": printed(operation, model) if known else None}
        line["ours"] = error(chosen(ran.frame, model, operation))
        line["agrees"] = _agrees(ran, operation, model) if known else None
        lines.append(line | {"ours, all runs": error(ran.of(model=model, operation=operation).frame)})
    return Table(lines, "Mean squared error on the code's test range, median ± MAD")


def agreement(ran: Rows, judged: Statements) -> _Numbers:
    """How many medians agree, which do not, and which only because their intervals are wide."""
    found = {place: compared(ran.frame, *place) for place in _done(ran)}
    agree = {place: one for place, one in found.items() if one.agrees}
    wide = [
        f"{one.what}, {text(_middle(ran, model, op) / printed(op, model).estimate, 2)} times the published"
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


def named_errors(rows: Rows, ran: Rows) -> _Numbers:
    """Errors that the text names, and the runs without one."""
    ours = chosen(ran.frame, "NPU", "reciprocal")["test_mse"]
    theirs, lost = printed_points("reciprocal", "NPU")["test_mse"], rows.frame[rows.frame["test_mse"].isna()]
    where = sorted(set(zip(lost["model"], lost["operation"], strict=True)))
    said = "; ".join(f"{model} on {SIGNS[operation]}" for model, operation in where)
    named = {
        "npu_reciprocal": ("NPU", "reciprocal"),
        "real_reciprocal": ("RealNPU", "reciprocal"),
        "npu_root_1": ("NPU", "root"),
        "npu_root_half": ("NPU, gate 0.5", "root"),
    }
    on_root = rows.of(model="NPU", operation="root").frame["test_mse"].fillna(np.inf)
    of_ten = measures.median_of_best(on_root, best=10, of=10).estimate if len(on_root) else np.nan
    return {
        "worst_npu": text(theirs.max(), 2),
        "unrounded_npu": text(theirs.median()),
        "below_npu": f"{(ours <= theirs.max()).sum()} of {len(ours)}",
        "nans": rows.share(rows.frame["test_mse"].isna()) + (f" ({said})" if said else ""),
        "inalu_add": text(_middle(ran, "iNALU", "add"), 2),
        "npu_add": text(_middle(ran, "NPU", "add"), 2),
        "npu_root_runs": f"{len(on_root)}",
        "npu_root_all": measures.median(on_root),
        "npu_root_ten": text(of_ten, 2),
    } | {name: error(chosen(ran.frame, *place)) for name, place in named.items()}


def of_constant(ran: Rows) -> tuple[Table, _Numbers]:
    """Published and our medians beside the error of the best constant."""
    lines, numbers = [], {"published_naive": printed("add", "NaiveNPU").estimate}
    for operation, model in _done(ran):
        ours, theirs = _middle(ran, model, operation), printed(operation, model).estimate
        constant = best_constant(operation)
        line = _line(operation, model) | {"ours / published": ours / theirs}
        lines.append(line | {"published / constant": theirs / constant, "ours / constant": ours / constant})
    named = [("add", "NPU"), ("add", "RealNPU"), ("add", "NaiveNPU"), ("reciprocal", "NPU")]
    for operation, model in (*named, ("root", "NPU"), ("root", "RealNPU")):
        share = printed(operation, model).estimate / best_constant(operation)
        numbers[f"of_constant_{operation}_{model}"] = text(share, 2)
    for model in ("NPU", "RealNPU"):
        share = _middle(ran, model, "root") / best_constant("root")
        numbers[f"ours_of_constant_root_{model}"] = text(share, 2)
    caption = "Ratios of medians; at 1 times the constant's error a network is no better than no network"
    return Table(lines, caption), numbers


def ranks(ran: Rows, p: SimpleNamespace) -> Table:
    """The order of the models by their median errors, published and ours."""
    lines = []
    for operation in p.operations:
        medians = {
            "published": {model: printed(operation, model).estimate for model in PAPER},
            "ours": {model: _middle(ran, model, operation) for model in PAPER},
        }
        for name, values in medians.items():
            places = pd.Series(values).fillna(np.inf).rank(method="min").astype(int)
            lines.append({"task": SIGNS[operation], "medians": name} | places.to_dict())
    return Table(lines, "Rank by median test error, 1 is best")


def selection(rows: Rows, ran: Rows) -> tuple[Table, _Numbers]:
    """The medians that are not near the published ones, by how many runs the ten best are chosen from."""
    sizes, lines, inside, outside = (10, 15, 20, 30, 40), [], 0, []
    for operation, model in _done(ran):
        errors = rows.of(model=model, operation=operation).frame["test_mse"]
        if errors.isna().all() or _near(ran, operation, model):
            continue
        theirs = printed(operation, model).estimate
        best = {size: measures.median_of_best(errors, best=10, of=size) for size in sizes}
        fits = [size for size in sizes if theirs in best[size]]
        line = _line(operation, model) | {"our runs": len(errors), "published": theirs}
        lines.append(line | {f"10 of {size}": one for size, one in best.items()})
        inside += 10 in fits
        if 10 not in fits:
            enough = f"lies in it where ten are chosen from {fits[0]}" if fits else "lies in none"
            outside.append(f"That of the {model} on {SIGNS[operation]} {enough}")
    numbers = {
        "selection_inside": f"{inside} of {len(lines)}",
        "selection_outside": ". ".join(outside) or "None lies outside",
    }
    return Table(lines, "Median test error of the ten best of so many runs, with 95 % intervals"), numbers


def parameters(ran: Rows, p: SimpleNamespace) -> Table:
    """How many parameters the ten best runs keep."""
    lines = []
    for operation, model in product(p.operations, LARGE_SCALE):
        part = chosen(ran.frame, model, operation)
        if len(part):
            line = _line(operation, model) | {"all": int(part["parameters"].iloc[0])}
            line |= {f"above {least}": parameters_left(part, least) for least in (0.001, 0.01)}
            lines.append(line | {"published": counted(printed_points(operation, model)["count"])})
    return Table(lines, "Number of parameters, median (from the fewest) of the ten best runs")


def printed_ranges(ran: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """Errors on the code's and on the printed test ranges, over those of the best constants."""
    lines = []
    for operation, model in product(p.operations, LARGE_SCALE):
        part = chosen(ran.frame, model, operation)
        if len(part) and operation != "root":
            line = _line(operation, model)
            line["code's range"] = part["test_mse"].median() / best_constant(operation)
            line["printed range"] = part["test_paper"].median() / best_constant(operation, "test_paper")
            lines.append(line)
    lowest = [line["printed range"] for line in lines if line["task"] == SIGNS["reciprocal"]]
    caption = "Median test error of the ten best runs over that of the best constant"
    return Table(lines, caption), {"lowest_singular": min(lowest, default=np.nan)}


def penalties(ran: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """Runs of the same seeds under the code's and under the text's penalty."""
    lines, better, sparser = [], [], []
    for operation, model in product(p.operations, p.l1_models):
        names = {"code": model, "text": f"{model}, L1"}
        both = {
            name: ran.of(model=one, operation=operation, seed=range(p.seeds)).frame
            for name, one in names.items()
        }
        line = _line(operation, model) | {f"error, {name}": error(part) for name, part in both.items()}
        line |= {f"above 0.01, {name}": parameters_left(part, 0.01) for name, part in both.items()}
        lines.append(line)
        if all(map(len, both.values())):
            better.append(line["error, text"].estimate < line["error, code"].estimate)
            code, text_ = (part["parameters_above_0.01"].median() for part in both.values())
            sparser.append(text_ < code)
    said = f"the median error is lower for {sum(better)} of {len(better)} pairs of task and model"
    numbers = {"penalty_short": said, "penalty_sparser": f"{sum(sparser)} of {len(sparser)}"}
    shown = f"test error (median ± MAD) and number of parameters, seeds 0 to {p.seeds - 1}"
    return Table(lines, f"Code's and text's penalty: {shown}"), numbers


def _ten_seeds(rows: Rows, p: SimpleNamespace, tail: str) -> Rows:
    """The ten seeds of the arm whose models' names end so, under the plain names of the models."""
    part = rows.of(seed=range(p.seeds), model=[model + tail for model in PAPER]).frame
    order = {model + tail: place for place, model in enumerate(PAPER)}
    part = part.sort_values("model", key=lambda names: names.map(order), kind="stable")
    return Rows(part.assign(model=part["model"].str.removesuffix(tail)))


def penalties_told_apart(rows: Rows, p: SimpleNamespace) -> _Numbers:
    """Which of the two penalties the published medians agree with."""
    code, l1 = (_ten_seeds(rows, p, tail) for tail in ("", ", L1"))
    places = [place for place in product(p.operations, p.l1_models) if place[1] in PAPER]
    told = [
        f"{model} on {SIGNS[operation]} ({'code' if _agrees(code, operation, model) else 'text'})"
        for operation, model in places
        if _agrees(code, operation, model) != _agrees(l1, operation, model)
    ]
    agree = [sum(_agrees(part, *place) for place in places) for part in (code, l1)]
    within = [
        sum(_within_three(_error(part, model, by), by, model) for by, model in places) for part in (code, l1)
    ]
    said = f"{agree[0]} of {len(places)} published medians agree with the runs under the code's penalty"
    return {
        "penalty_tell": "; ".join(told) or "none",
        "penalty_agrees": f"{said}, {agree[1]} with those under the text's",
        "penalty_within": " and ".join(map(str, within)),
    }


def twins(ran: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """Runs of NPU and RealNPU with the same start of the gates: which are equal to the last bit."""
    equal = ["valid_mse", "test_mse", "test_paper", "parameters_above_0.001", "parameters_above_0.01"]
    lines, every = [], []
    for operation, (start, names) in product(_positive(p), _STARTS.items()):
        first, second = (ran.of(model=name, operation=operation).frame.set_index("seed") for name in names)
        seeds = first.index.intersection(second.index)
        same = (first.loc[seeds, equal] == second.loc[seeds, equal]).all(axis=1)
        every += list(same)
        line = {"task": SIGNS[operation], "start": start, "equal runs": f"{same.sum()} of {len(seeds)}"}
        lines.append(line | {"NPU": error(first), "RealNPU": error(second)})
    said = f"{sum(every)} of {len(every)} pairs of runs are equal to the last bit"
    caption = "Both units with both starts: equal runs, test error (median ± MAD of all runs)"
    return Table(lines, caption), {"twins_short": said}


def _positive(p: SimpleNamespace) -> list[str]:
    return [operation for operation in POSITIVE if operation in p.operations]


def gates(ran: Rows, p: SimpleNamespace) -> _Numbers:
    """What the start of the gates changes, and how far apart NPU and RealNPU are."""
    effects, numbers = [], {}
    for operation in _positive(p):
        models = [model for pair in _STARTS.values() for model in pair]
        four = [
            measures.median(ran.of(model=model, operation=operation).frame["test_mse"].fillna(np.inf))
            for model in models
        ]
        ends = [text(end([one.estimate for one in four])) for end in (min, max)]
        together = all(one.overlaps(other) for one, other in product(four, four))
        place = f"on {SIGNS[operation]} the medians of the four combinations lie between"
        overlap = "overlap" if together else "do not all overlap"
        effects.append(f"{place} {' and '.join(ends)}, and their 95 % intervals {overlap}")
    for operation in POSITIVE:
        npu, real = (printed_points(operation, model)["test_mse"].median() for model in ("NPU", "RealNPU"))
        ours = _middle(ran, "NPU", operation) / _middle(ran, "RealNPU", operation)
        for name, ratio in ((f"apart_{operation}", npu / real), (f"ours_apart_{operation}", ours)):
            numbers[name] = text(max(ratio, 1 / ratio), 2)
    return numbers | {"gates_effect": "; ".join(effects)}


def schedules(ran: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """The NMU by the schedule of Table A6, and by the shorter one of the authors' last script."""
    lines, said = [], []
    kinds = {"Table A6": ["NMU"], "short": ["NMU, short"], "both": ["NMU", "NMU, short"]}
    for operation in [operation for operation in ("add", "mul") if operation in p.operations]:
        theirs = {"error": printed(operation, "NMU"), "above 0.01": "–"}
        lines.append({"task": SIGNS[operation], "schedule": "published"} | theirs)
        for name, models in kinds.items():
            part = ran.of(operation=operation, model=models).frame.nsmallest(10, "test_mse")
            found = {"error": error(part), "above 0.01": parameters_left(part, 0.01)}
            lines.append({"task": SIGNS[operation], "schedule": name} | found)
            said.append(f"{SIGNS[operation]}, {name}: {text(found['error'])}")
    count = int(printed_points("add", "NMU")["count"].median())
    numbers = {"short_text": "; ".join(said) or NOT_RUN, "printed_count": text(count)}
    for name, model in {"short_count": "NMU, short", "long_count": "NMU"}.items():
        left = parameters_left(chosen(ran.frame, model, "add"), 0.01)
        numbers[name] = left.partition(" ")[0]
    return Table(lines, "NMU, ten best runs: test error (median ± MAD) and number of parameters"), numbers


def all_settings(rows: Rows, ran: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """All settings of the text at once, beside those of the code."""
    code, by_text = _ten_seeds(rows, p, ""), _ten_seeds(rows, p, ", text")
    lines, places = [], list(product(p.operations, p.text_models))
    for operation, model in places:
        part = ran.of(model=f"{model}, text", operation=operation).frame
        line = _line(operation, model)
        if model in PAPER:
            line["published"] = printed(operation, model)
        line |= {"code": error(chosen(ran.frame, model, operation)), "text": error(part)}
        if model in PAPER:
            line["agrees"] = _agrees(by_text, operation, model)
        constant = best_constant(operation, "test" if operation == "root" else "test_paper")
        line["text / constant, printed range"] = part["test_paper"].fillna(np.inf).median() / constant
        finite = part.dropna(subset=["test_mse"])
        lines.append(line | {f"above {least}": parameters_left(finite, least) for least in (0.001, 0.01)})
    known = [place for place in places if place[1] in PAPER]
    agree = [sum(_agrees(part, *place) for place in known) for part in (by_text, code)]
    said = f"{agree[0]} of {len(known)} medians agree with the published ones"
    numbers = {"text_agrees": f"{said}, with the settings of the code (the same ten seeds) {agree[1]}"}
    for operation in SIGNS:
        errors = by_text.of(operation=operation).frame.groupby("model")["test_mse"]
        medians = errors.apply(lambda values: values.fillna(np.inf).median())
        best = f"the {medians.idxmin()} ({text(medians.min())})" if len(medians) else NOT_RUN
        numbers[f"text_best_{operation}"] = best
    finite = by_text.frame.dropna(subset=["test_mse"])
    numbers["text_share"] = f"{(finite['parameters_above_0.001'] / finite['parameters']).min():.0%}"
    caption = "All settings of the text: test error (median ± MAD of all runs) and number of parameters"
    return Table(lines, caption), numbers
