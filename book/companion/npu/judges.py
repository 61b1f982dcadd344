"""Verdicts on *Neural Power Units*."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from nalm.tasks import LargeScaleTask
from nalm.tasks.large_scale import FIRST_INPUTS, RANGES, SECOND_INPUTS

from companion import measures, published
from companion.npu.settings import fsir_arm, large_scale_arm, layers_of
from companion.statements import Claim, Comparison, Judge
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]


_LARGE_MODELS = ["NPU", "RealNPU", "NALU", "NMU", "NaiveNPU"]
_LARGE_TASKS = {"reciprocal": "div", "root": "sqrt", "add": "+", "mul": "x"}
_IN_FIGURE_7 = {"reciprocal": "div", "root": "sqrt", "add": "add", "mul": "mult"}
_CHOSEN_RUNS = 10
_LARGE_SEEDS = {"mul": 20}
"""Of so many runs, else of ten, the paper's numbers are the ten with the lowest test error."""


def _large_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs with the penalty as the code computes it and the settings of Table A6, the same for all models."""
    measures.require_columns(rows, ["operation", "parameters_above_0.01"])
    seeds = rows["operation"].map(_LARGE_SEEDS).fillna(_CHOSEN_RUNS)
    return rows[
        rows["model"].isin(_LARGE_MODELS)
        & rows["operation"].isin(list(_LARGE_TASKS))
        & (rows["seed"] < seeds)
    ]


def _chosen(rows: pd.DataFrame, model: str, operation: str) -> pd.DataFrame:
    """As in the paper: without the runs that ended with NaN, the ten with the lowest test error."""
    part = rows[(rows["model"] == model) & (rows["operation"] == operation)]
    return part.dropna(subset=["test_mse"]).nsmallest(_CHOSEN_RUNS, "test_mse")


def _published_errors(model: str, operation: str) -> list[float]:
    """The ten errors behind a number of Table 1: the points of Figure 7, and infinite ones, which have no point. The NALU has eight on products."""
    points = published.load("npu_fig7").query("task == @_IN_FIGURE_7[@operation] and model == @model")[
        "test_mse"
    ]
    missing = _CHOSEN_RUNS - len(points) if model == "NaiveNPU" else 0
    return [*points, *[np.inf] * missing]


def _npu_table_1(rows: pd.DataFrame) -> Iterable[Comparison | Claim]:
    medians = {}
    for operation, task in _LARGE_TASKS.items():
        for model in _LARGE_MODELS:
            ours = measures.median(_chosen(rows, model, operation)["test_mse"])
            medians[model, operation] = ours.estimate
            yield Comparison(
                f"{model} on {task}", ours, measures.median(_published_errors(model, operation)), factor=3.0
            )
    for operation, best in (("reciprocal", "NPU"), ("root", "RealNPU"), ("add", "NMU"), ("mul", "NMU")):
        ours = min(_LARGE_MODELS, key=lambda model: np.nan_to_num(medians[model, operation], nan=np.inf))
        yield Claim(f"{best} is the best on {_LARGE_TASKS[operation]}", ours == best, ours)


def _npu_figure_7(rows: pd.DataFrame) -> Iterable[Claim]:
    """The caption and section 4.3. Parameters count as they do in the figure, above 0.01; "the NPUs" are the NPU and the RealNPU."""
    runs = {
        (model, operation): _chosen(rows, model, operation)
        for model in _LARGE_MODELS
        for operation in _LARGE_TASKS
    }
    error = {place: part["test_mse"].median() for place, part in runs.items()}
    count = {place: part["parameters_above_0.01"].median() for place, part in runs.items()}
    constant = {
        op: float(LargeScaleTask(operation=op).evaluation(0)["test"].targets.double().var())
        for op in ("add", "mul")
    }

    for operation in ("reciprocal", "root"):
        for other in ("NMU", "NALU", "NaiveNPU"):
            what, ours, theirs = (
                f"than the {other} on {_LARGE_TASKS[operation]}",
                ("NPU", operation),
                (other, operation),
            )
            yield Claim(
                f"NPU sparser {what}",
                count[ours] < count[theirs],
                text(int(runs[ours]["parameters_above_0.01"].min())),
            )
            yield Claim(f"NPU more accurate {what}", error[ours] < error[theirs], text(error[ours]))
    for model in ("NMU", "NPU", "RealNPU"):
        what, found = (
            f"{model} learns + and extrapolates (error below a hundredth of a constant's)",
            error[model, "add"],
        )
        yield Claim(what, found < constant["add"] / 100, text(found))
    for operation in ("add", "mul"):
        found = error["NMU", operation]
        yield Claim(
            f"NMU more accurate than the NPU on {_LARGE_TASKS[operation]}",
            found < error["NPU", operation],
            text(found),
        )
    yield Claim("NMU more accurate than the RealNPU on +", error["NMU", "add"] < error["RealNPU", "add"])
    for unit in ("NPU", "RealNPU"):
        yield Claim(
            f"NMU sparser than the {unit} on +",
            count["NMU", "add"] < count[unit, "add"],
            text(count["NMU", "add"]),
        )
        best = runs["NMU", "mul"]["test_mse"].min()
        yield Claim(
            f"the best NMU more accurate than the best {unit} on x",
            best < runs[unit, "mul"]["test_mse"].min(),
            text(best),
        )
    products = rows[(rows["model"] == "NMU") & (rows["operation"] == "mul")]["test_mse"]
    lost = int((~(products < constant["mul"])).sum())
    yield Claim(
        "some NMUs do not converge on x (error above a constant's)", lost > 0, f"{lost} of {len(products)}"
    )
    yield Claim(
        "the NALU's errors on x are above the plot's 1e5",
        error["NALU", "mul"] > 1e5,
        text(error["NALU", "mul"]),
    )
    for (operation, task), unit in product(_LARGE_TASKS.items(), ("NPU", "RealNPU")):
        ratio = error["NaiveNPU", operation] / error[unit, operation]
        yield Claim(
            f"{unit} more accurate than the NaiveNPU by far on {task} (a hundred times)",
            ratio > 100,
            text(ratio),
        )
        ratio = count["NaiveNPU", operation] / count[unit, operation]
        yield Claim(f"{unit} sparser than the NaiveNPU by far on {task} (twice)", ratio > 2, text(ratio))


def _npu_table_a4() -> Iterable[Claim]:
    printed = {
        "NPU": ("NAU(100, 100)", "NPU(100, 1)"),
        "RealNPU": ("NAU(100, 100)", "RealNPU(100, 1)"),  # printed: a second row of the NPU
        "NMU": ("NAU(100, 100)", "NMU(100, 1)"),
        "NALU": ("NALU(100, 100)", "NALU(100, 1)"),
    }
    for name, layers in printed.items():
        ours = layers_of(
            large_scale_arm(name, "add").model.build(LargeScaleTask(operation="add").in_features)
        )
        yield Claim(name, ours == layers, ", ".join(ours))


def _npu_table_a5() -> Iterable[Claim]:
    printed = {
        "add": ("Add", "U[-1,1)", "U[-4,4)"),
        "mul": ("Mult", "U[-1,1)", "U[-4,4)"),
        "reciprocal": ("Div", "U[0,0.5)", "U[-0.5,0.5)"),
        "root": ("Sqrt", "U[0,2)", "U[0,4)"),
    }
    first, second = (set(range(100)[part]) for part in (FIRST_INPUTS, SECOND_INPUTS))
    for operation, (name, trained, tested) in printed.items():
        size = LargeScaleTask(operation=operation).in_features
        yield Claim(f"{name}, input size", size == 100, text(size))
        yield Claim(f"{name}, subset ratio", len(first) == len(second) == 0.5 * size, text(len(first) / size))
        if operation in ("add", "mul"):
            yield Claim(
                f"{name}, overlap ratio",
                len(first & second) == round(0.25 * len(first)),
                f"{len(first & second)} of {len(first)}",
            )
        training, test, _ = RANGES[operation]
        yield Claim(f"{name}, training range", str(training) == trained, str(training))
        yield Claim(f"{name}, validation range", str(test) == tested, str(test))


def _npu_table_a6() -> Iterable[Claim]:
    printed = {
        "add": ("Add", 1e-2, 1e-5, 1e-4),
        "mul": ("Mult", 5e-3, 1e-5, 1e-7),
        "reciprocal": ("Div", 5e-3, 1e-9, 1e-7),
        "root": ("Sqrt", 5e-3, 1e-6, 1e-4),
    }
    for operation, (name, rate, start, end) in printed.items():
        recipe = large_scale_arm("NPU", operation).recipe
        growing = recipe.penalties[0]
        yield Claim(f"{name}, learning rate", recipe.optimiser.lr == rate, text(recipe.optimiser.lr))
        yield Claim(f"{name}, iterations", recipe.iterations == 100_000, text(recipe.iterations))
        yield Claim(f"{name}, first β", growing.start == start, text(growing.start))
        yield Claim(f"{name}, last β", growing.end == end, text(growing.end))
        yield Claim(f"{name}, step and growth of β", (growing.every, growing.growth) == (10_000, 10.0))


_FSIR_MODELS = ["NPU", "RealNPU", "Dense"]


def _fsir_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The 300 runs that are integrated as the authors did, with the number of parameters above 0.001 as ``count``."""
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
    """Whether a RealNPU that fits the data has the drawn form: a unit for r, one for I and one for a power of R. The authors chose theirs by eye."""
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
    ("npu", "Figure 7"): Judge(_large_rows, ("model", "operation"), _npu_figure_7),
    ("npu", "Table 1"): Judge(_large_rows, ("model", "operation"), _npu_table_1),
    ("npu", "Table A4"): _npu_table_a4,
    ("npu", "Table A5"): _npu_table_a5,
    ("npu", "Table A6"): _npu_table_a6,
}
