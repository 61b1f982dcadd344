"""Large-scale arithmetic by the text of *Neural Power Units*, where its code differs: one setting at a time,
and all at once.

``ran`` are the runs as the paper has them, ``rows`` all of them, with the further seeds of the NPU. The runs
with the settings of the code are those of :mod:`companion.npu.large_scale`, which judges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Literal

import numpy as np
from nalm.training import Run

from companion import measures
from companion.experiment import Arm, Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_or_none_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.tables import Table, text
from companion.npu.large_scale import EXPERIMENT as CODE
from companion.npu.large_scale import (
    LARGE_SCALE,
    PAPER,
    POSITIVE,
    SIGNS,
    best_constant,
    chosen,
    code_arms,
    error,
    error_of_best,
    large_scale_arm,
    parameters_left,
    printed,
    printed_points,
    runs_on,
    seeds_of,
    test_targets,
)
from companion.npu.large_scale_page import Numbers, agrees, line_of, middle, within_three

_STARTS = {"gate 1": ("NPU", "RealNPU, gate 1"), "gate ½": ("NPU, gate 0.5", "RealNPU")}


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    return runs_on(p, lambda operation: _arms(p, operation))


def _arms(p: SimpleNamespace, operation: str) -> Iterator[tuple[str, Arm, int]]:
    for model in p.text_models:
        arm = large_scale_arm(model, operation, arm="text", iterations=p.iterations)
        yield f"{model}, text", arm, p.seeds
    yield from code_arms(p, operation)
    yield from _switched(p, operation, "norms", "", p.models)
    for model in p.l1_models:
        arm = large_scale_arm(model, operation, "L1", iterations=p.iterations)
        yield f"{model}, L1", arm, seeds_of(p, model, operation, "L1")
    yield from _switched(p, operation, "L1", ", L1", p.l1_models)


def _switched(
    p: SimpleNamespace, operation: str, penalty: Literal["norms", "L1"], tail: str, models: list[str]
) -> Iterator[tuple[str, Arm, int]]:
    """NPU and RealNPU with the other's first gates, and the NMU with the shorter schedule."""
    if penalty not in p.switched:
        return
    for model, gate in (("NPU", 0.5), ("RealNPU", 1.0)):
        if model in models and operation in POSITIVE:
            arm = large_scale_arm(model, operation, penalty, gate=gate, iterations=p.iterations)
            yield f"{model}, gate {gate:g}{tail}", arm, p.seeds
    if "NMU" in models and operation in ("add", "mul"):
        arm = large_scale_arm("NMU", operation, penalty, short=True)
        yield f"NMU, short{tail}", arm, seeds_of(p, "NMU", operation, penalty)


EXPERIMENT = Experiment(
    chapter="book/npu/large-scale-text.ipynb",
    rules={
        **CODE.rules,
        "l1_models": some_or_none_of(LARGE_SCALE),
        "text_models": some_or_none_of(LARGE_SCALE),
        "switched": some_or_none_of(["norms", "L1"]),
    },
    runs=_runs,
    errata=(
        Erratum(
            "Equation 24",
            "description",
            "The penalty is the $L_1$ norm of all parameters.",
            (
                "The code takes Julia's `norm(θ, 1)` of a list of arrays, which is the sum of their"
                " Euclidean norms. It hardly pulls a small weight of a large array."
            ),
            "Both penalties are trained, alone and with the other settings of the text.",
            "The sparse networks of Figure 7 owe nothing to an $L_1$ penalty.",
        ),
        Erratum(
            "Section 3.2, initial weights",
            "description",
            "Gates start at ½, weights as Glorot and Bengio have it.",
            (
                "In this task all real weights start from U(0, 0.1), the gates of the NPU at 1 and "
                "those of the RealNPU at ½."
            ),
            "Both starts are trained, alone and together with the other settings of the text.",
            "Table 1 compares NPU and RealNPU with different gates.",
        ),
    ),
)


def _median(ran: Rows, model: str, operation: str) -> float:
    """The median of all runs; those that ended without a number are the worst."""
    return float(ran.of(model=model, operation=operation).frame["test_mse"].fillna(np.inf).median())


def printed_ranges(ran: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """Errors on the code's and on the printed test ranges, over those of the best constants."""
    lines = []
    for operation, model in product(p.operations, LARGE_SCALE):
        part = chosen(ran.frame, model, operation)
        if len(part) and operation != "root":
            line = line_of(operation, model)
            line["code's range"] = part["test_mse"].median() / best_constant(operation)
            line["printed range"] = part["test_paper"].median() / best_constant(operation, "test_paper")
            lines.append(line)
    lowest = [line["printed range"] for line in lines if line["task"] == SIGNS["reciprocal"]]
    targets = test_targets("reciprocal")["test_paper"].ravel()
    squares = np.sort(targets**2)[::-1]
    numbers = {
        "lowest_singular": min(lowest, default=np.nan),
        "singular": f"{targets[np.abs(targets).argmax()]:,.0f}",
        "singular_share": f"{squares[:2].sum() / squares.sum():.0%}",
    }
    return Table(lines, "Median test error of the ten best runs over that of the best constant"), numbers


def penalties(ran: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """Runs of the same seeds under the code's and under the text's penalty."""
    lines, better, sparser = [], [], []
    for operation, model in product(p.operations, p.l1_models):
        names = {"code": model, "text": f"{model}, L1"}
        both = {
            name: ran.of(model=one, operation=operation, seed=range(p.seeds)).frame
            for name, one in names.items()
        }
        line = line_of(operation, model) | {f"error, {name}": error(part) for name, part in both.items()}
        line |= {f"above 0.01, {name}": parameters_left(part, 0.01) for name, part in both.items()}
        lines.append(line)
        if all(map(len, both.values())):
            # a network that is no better than a constant has nearly the same error with both
            better.append(line["error, text"].estimate < 0.999 * line["error, code"].estimate)
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


def penalties_told_apart(rows: Rows, p: SimpleNamespace) -> Numbers:
    """Which of the two penalties the published medians agree with."""
    code, l1 = (_ten_seeds(rows, p, tail) for tail in ("", ", L1"))
    places = [place for place in product(p.operations, p.l1_models) if place[1] in PAPER]
    told = [
        f"{model} on {SIGNS[operation]} ({'code' if agrees(code, operation, model) else 'text'})"
        for operation, model in places
        if agrees(code, operation, model) != agrees(l1, operation, model)
    ]
    agree = [sum(agrees(part, *place) for place in places) for part in (code, l1)]
    within = [
        sum(within_three(_median(part, model, by), by, model) for by, model in places) for part in (code, l1)
    ]
    said = f"{agree[0]} of {len(places)} published medians agree with the runs under the code's penalty"
    return {
        "penalty_tell": "; ".join(told) or "none",
        "penalty_agrees": f"{said}, {agree[1]} with those under the text's",
        "penalty_within": " and ".join(map(str, within)),
    }


def twins(ran: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
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


def gates(rows: Rows, ran: Rows, p: SimpleNamespace) -> Numbers:
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
        effects.append(f"{place} {' and '.join(ends)}, and their 95% intervals {overlap}")
    for operation in POSITIVE:
        npu, real = (printed_points(operation, model)["test_mse"].median() for model in ("NPU", "RealNPU"))
        ours = middle(ran, "NPU", operation) / middle(ran, "RealNPU", operation)
        for name, ratio in ((f"apart_{operation}", npu / real), (f"ours_apart_{operation}", ours)):
            numbers[name] = text(max(ratio, 1 / ratio), 2)
    every = rows.of(model="NPU", operation="root").frame["test_mse"].fillna(np.inf)
    return numbers | {
        "gates_effect": "; ".join(effects),
        "npu_root_1": error_of_best(ran.frame, "NPU", "root"),
        "npu_root_half": error_of_best(ran.frame, "NPU, gate 0.5", "root"),
        "npu_root_runs": f"{len(every)}",
        "npu_root_all": measures.median(every),
    }


def schedules(ran: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
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


def all_settings(rows: Rows, ran: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """All settings of the text at once, beside those of the code."""
    code, by_text = _ten_seeds(rows, p, ""), _ten_seeds(rows, p, ", text")
    lines, places = [], list(product(p.operations, p.text_models))
    for operation, model in places:
        part = ran.of(model=f"{model}, text", operation=operation).frame
        line = line_of(operation, model)
        if model in PAPER:
            line["published"] = printed(operation, model)
        line |= {"code": error(code.of(model=model, operation=operation).frame), "text": error(part)}
        if model in PAPER:
            line["agrees"] = agrees(by_text, operation, model)
        constant = best_constant(operation, "test" if operation == "root" else "test_paper")
        line["text / constant, printed range"] = part["test_paper"].fillna(np.inf).median() / constant
        finite = part.dropna(subset=["test_mse"])
        lines.append(line | {f"above {least}": parameters_left(finite, least) for least in (0.001, 0.01)})
    known = [place for place in places if place[1] in PAPER]
    agree = [sum(agrees(part, *place) for place in known) for part in (by_text, code)]
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
