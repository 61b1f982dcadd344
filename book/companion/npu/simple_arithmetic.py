"""Simple arithmetic: Figure 6, Tables A2 and A3 of *Neural Power Units*.

Where text and code of the authors differ, the defaults are the code's, which made the published numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pandas as pd
import torch
from nalm.models import Layer, Stack
from nalm.tasks import SimpleArithmeticTask, Uniform
from nalm.training import Adam, Recipe, RMSProp, Run

from companion import measures, published
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Comparison, Explanation, Item, Later, Read, student
from companion.experiment.tables import Table, text
from companion.figures import Figure, error_maps
from companion.measures import Spread
from companion.npu.settings import layers_of

SIMPLE = ("NPU", "RealNPU", "NMU", "NALU", "iNALU", "Dense")
"""The models of the simple arithmetic task, in the order of Table A2."""

ERRORS = {"+": "test_add", "×": "test_mul", "÷": "test_div", "√": "test_sqrt"}
"""Task -> the column of its error."""

_PRINTED = {"+": "+", "×": "x", "÷": "div", "√": "sqrt"}
_MANY = ("NPU", "RealNPU", "NMU")
_SEEDS = 20


def simple_task(arm: Literal["code", "text"] = "code") -> SimpleArithmeticTask:
    """The simple arithmetic task (Eq. 20) with the training inputs of the code or of the text.

    >>> simple_task("text").interpolation
    Uniform(low=0.1, high=2.0)
    """
    return SimpleArithmeticTask(interpolation=Uniform(low=0.1, high=2.0 if arm == "text" else 2.1))


def simple_arm(
    model: str, arm: Literal["code", "text"] = "code", iterations: int = 20_000, clipped: bool = False
) -> Arm:
    """A model of the simple arithmetic task.

    Args:
        model: one of :data:`SIMPLE`.
        arm: the settings of the code, or those of the text: Adam with a learning rate of 0.001 for all
            models, NAU weights clipped to [-1, 1] (Eq. 5), a gate of the NALU without bias (Eq. 3).
        iterations: updates per run.
        clipped: whether the NAU is clipped in the code's settings, too.

    Text and code put the power unit (or NMU) before the NAU and have four outputs, Table A3 prints the
    reverse order and two outputs. The ``eps`` of the NALU is the code's; the text gives none.

    >>> simple_arm("iNALU").recipe.optimiser
    RMSProp(kind='RMSProp', lr=0.001, decay=0.9, eps=1e-08)
    """
    text = arm == "text"
    usual = Adam(lr=0.001 if text else 0.005)
    others = {} if text else {"NALU": RMSProp(lr=0.005), "iNALU": RMSProp(lr=0.001)}
    optimiser = others.get(model, usual)
    recipe = Recipe(iterations=iterations, optimiser=optimiser, batch_size=100, selection="last")
    return Arm(model=Stack(layers=_layers(model, text, clipped or text)), recipe=recipe)


def _layers(model: str, text: bool, clipped: bool) -> tuple[Layer, ...]:
    if model == "NALU":
        options = {"init": "glorot", "gate_bias": not text, "eps": 1e-8}
        return tuple(Layer(unit="NALU", out_features=size, options=options) for size in (6, 4))
    if model == "iNALU":
        return tuple(Layer(unit="INALU", out_features=size) for size in (6, 4))
    if model == "Dense":
        sigmoid = Layer(unit="Dense", out_features=10, options={"activation": "sigmoid"})
        return (sigmoid, sigmoid, Layer(unit="Dense", out_features=4, options={"activation": "identity"}))
    options = {"init": "uniform", "clamp": "forward"} if model == "NMU" else {}
    nau = {"init": "glorot", "clamp": "step" if clipped else "none"}
    return (
        Layer(unit=model, out_features=6, options=options),
        Layer(unit="NAU", out_features=4, options=nau),
    )


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Both arms; more seeds of three models with the code's settings; the NMU behind a clipped NAU."""
    clipped = {"NMU": simple_arm("NMU", "code", p.iterations, clipped=True)}
    groups = [(arm, arm, _arms(p.models, arm, p.iterations), p.seeds) for arm in p.arms]
    groups += [
        ("code", "code", _arms(_MANY, "code", p.iterations), p.many),
        ("code, NAU clipped", "code", clipped, p.seeds),
    ]
    runs = [
        run.but(labels=run.labels | {"arm": label})
        for label, arm, arms, seeds in groups
        for run in runs_of(arms, [simple_task(arm)], seeds)
    ]
    return {"npu/simple-arithmetic": list({run.key: run for run in runs}.values())}


def _arms(models: Iterable[str], arm: Literal["code", "text"], iterations: int) -> dict[str, Arm]:
    return {model: simple_arm(model, arm, iterations) for model in models}


def printed(task: str, model: str) -> Spread:
    """The error of Table A2, mean and standard error.

    >>> printed("÷", "RealNPU")
    Spread(estimate=0.085, spread=0.038, n=20)
    """
    where = {"item": "Table A2", "task": _PRINTED[task], "model": model}
    estimate, spread = (published.value("npu_values", column, **where) for column in ("value", "spread"))
    return Spread(estimate, spread, _SEEDS)


def compared(rows: pd.DataFrame, task: str, model: str) -> Comparison:
    """The mean error of a model on a task, beside the printed one."""
    theirs = printed(task, model)
    ours = measures.mean(rows[ERRORS[task]][rows["model"] == model])
    them = student(theirs.estimate, theirs.spread, theirs.n)
    return Comparison(f"{model} on {task}", ours, them, family=len(_NUMBERS))


def apart(rows: pd.DataFrame, shut: np.ndarray) -> dict[str, tuple[float, float]]:
    """Task -> how often two groups of twenty of these runs are as far apart as the printed NPU and RealNPU.

    Ten thousand times two groups are drawn from all runs, then from those without a shut gate.
    """
    generator, shares = np.random.default_rng(0), {}
    for task, column in ERRORS.items():
        ratio = printed(task, "NPU").estimate / printed(task, "RealNPU").estimate
        errors = rows[column].to_numpy()
        both = []
        for values in (errors, errors[~shut]):
            first, second = (generator.choice(values, (10_000, _SEEDS)).mean(1) for _ in range(2))
            both.append(float((np.maximum(first / second, second / first) >= ratio).mean()))
        shares[task] = tuple(both)
    return shares


def nmu_ahead(rows: pd.DataFrame, task: str, chosen_by: Iterable[str]) -> float:
    """The probability that the NMU drawn has a lower error than the NPU drawn.

    Drawn is the best of twenty runs, themselves drawn from all rows with replacement.

    Args:
        rows: with the settings of the code.
        task: whose errors are compared.
        chosen_by: the tasks whose errors are added up to say which run is the best.
    """
    errors, chances = [], []
    for model in ("NMU", "NPU"):
        runs = rows[rows["model"] == model]
        order = _sum(runs, chosen_by).sort_values(kind="stable").index
        worse = np.arange(len(runs), -1, -1) / len(runs)
        errors.append(runs.loc[order, ERRORS[task]].to_numpy())
        chances.append(worse[:-1] ** _SEEDS - worse[1:] ** _SEEDS)
    return float(chances[0] @ (errors[0][:, None] < errors[1]) @ chances[1])


def _sum(rows: pd.DataFrame, tasks: Iterable[str] = tuple(ERRORS)) -> pd.Series:
    return rows[[ERRORS[task] for task in tasks]].sum(axis=1, skipna=False).fillna(np.inf)


def best(rows: pd.DataFrame, model: str) -> pd.Series:
    """The run that Figure 6 draws of a model: the one with the smallest sum of the four errors."""
    runs = rows[rows["model"] == model]
    return runs.loc[_sum(runs).idxmin()]


def twins(arms: Mapping[str, Rows]) -> tuple[Table, dict[str, object]]:
    """Runs of NPU and RealNPU with the same seed: whether they end with the same weights."""
    lines, every = [], []
    for arm, part in arms.items():
        npus, reals = part.of(model="NPU"), part.of(model="RealNPU")
        if len(npus) == len(reals) > 0:
            equal = np.ones(len(npus), dtype=bool)
            for name in ("0.weight", "0.gate", "1.weight"):
                same = npus.weights(name) == reals.weights(name)
                equal &= same.reshape(len(npus), -1).all(1)
            asleep = ~npus.weights("0.weight_im").any((1, 2))
            every += list(equal)
            shares = {"imaginary weights all 0": asleep.sum(), "all other weights equal": equal.sum()}
            lines.append({"arm": arm, "pairs": len(npus)} | shares)
    caption = "Runs of the NPU and of the RealNPU with the same seed"
    return Table(lines, caption), {"twins": f"{sum(every)} of {len(every)}"}


def clipped(first: Rows) -> tuple[Table, dict[str, object]]:
    """The NMU behind a NAU that is free, and behind one that is clipped."""
    groups = {
        "code": first.of(arm="code", model="NMU"),
        "code, NAU clipped": first.of(arm="code, NAU clipped"),
        "text": first.of(arm="text", model="NMU"),
    }
    # the largest weight that leads from a hidden unit to x / y, median over runs
    largest = {
        arm: float(np.median(np.abs(group.weights("1.weight")[:, 2]).max(1)))
        for arm, group in groups.items()
        if len(group)
    }
    lines = [
        {"arm": arm, "loss": measures.median_and_mad(groups[arm].frame["valid_mse"]), "weight": weight}
        | {task: measures.median_and_mad(groups[arm].frame[ERRORS[task]]) for task in "+×÷"}
        for arm, weight in largest.items()
    ]
    free, frame = groups["code"], groups["code, NAU clipped"].frame
    lost, loss = frame["test_add"] > 1, frame["valid_mse"]
    numbers = {
        "clip_largest": largest.get("code", NOT_RUN),
        "free_kept": free.share(free.frame["test_add"] < 1),
        "clip_lost": str(lost.sum()),
        "clip_kept": str((~lost).sum()),
        "clip_loss_lost": loss[lost].median(),
        "clip_loss_kept": loss[~lost].median(),
    }
    return Table(lines, "NMU: training-range loss, largest weight for ÷, test errors (median ± MAD)"), numbers


def luck(many: Rows, seeds: int) -> tuple[Table, dict[str, object]]:
    """How often the NMU drawn would be better than the NPU drawn, by how they are chosen."""
    rules = {"best by the sum": lambda task: list(ERRORS), "best on the task": lambda task: [task]}
    ahead = {
        task: {rule: f"{nmu_ahead(many.frame, task, by(task)):.0%}" for rule, by in rules.items()}
        for task in ERRORS
    }
    nmus = many.of(model="NMU").frame
    share = (nmus["test_div"] / nmus[list(ERRORS.values())].sum(axis=1)).median()
    by_sum, by_task = ahead["×"].values()
    numbers = {"nmu_div_share": f"{share:.0%}", "nmu_by_sum": by_sum, "nmu_by_task": by_task}
    caption = f"Best of 20 out of {seeds}: how often the NMU drawn has a lower error than the NPU"
    return Table([{"task": task} | shares for task, shares in ahead.items()], caption), numbers


def figure_6(rows: Rows, models: Iterable[str]) -> Figure:
    """Maps of the errors of the best run of each model, which is rebuilt from the weights in its row.

    Raises:
        AssertionError: a map does not have the mean error of the row.
    """
    wide, root = np.arange(-20.5, 20) / 5, np.arange(1, 51) / 10  # the table goes to √4, the figure to √5
    targets = {"x + y": np.add, "x y": np.multiply, "x / y": np.divide, "√x": lambda x, y: np.sqrt(x)}
    grids = {name: (root, root) if name == "√x" else (wide, wide) for name in targets}
    maps: dict[str, dict[str, np.ndarray]] = {name: {} for name in grids}
    for model in models:
        row = best(rows.frame, model)
        network = simple_arm(model, row["arm"]).model.build(in_features=2)
        weights = json.loads(row["weights"])
        network.load_state_dict({name: torch.tensor(values) for name, values in weights.items()})
        for output, (name, column) in enumerate(zip(grids, ERRORS.values(), strict=True)):
            x, y = np.meshgrid(*grids[name])
            with torch.no_grad():
                answer = network(torch.tensor(np.stack([x, y], -1), dtype=torch.float32)).double().numpy()
            maps[name][model] = found = np.abs(answer[..., output] - targets[name](x, y))
            found = found[:40, :40] if name == "√x" else found
            assert np.isclose(found.mean(), row[column], rtol=1e-3, atol=1e-6, equal_nan=True)
    return error_maps(maps, grids)


def _rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The code's settings and the paper's twenty runs per model."""
    measures.require_columns(rows, ["arm", "seed", *ERRORS.values()])
    return rows[rows["model"].isin(SIMPLE) & (rows["arm"] == "code") & (rows["seed"] < _SEEDS)]


_NUMBERS = list(product("÷+×√", ("RealNPU", "NPU", "NMU", "NALU", "iNALU", "Dense")))
"""Task and model of each number of Table A2."""

_BETTER = "the RealNPU performs better than the NPU"


def _table_a2(rows: pd.DataFrame) -> Iterable[Claim | Later]:
    """The numbers, and what section 4.2 says of them."""
    yield lambda: [compared(rows, task, model) for task, model in _NUMBERS]
    mean = rows.groupby("model")[list(ERRORS.values())].mean()
    npus, nalus = mean.loc[["NPU", "RealNPU"]], mean.loc[["NALU", "iNALU"]]
    both, nmu = npus.max(), mean.loc["NMU"]
    yield Claim("both NPUs outperform NALU and iNALU on all tasks", bool((both < nalus.min()).all()))
    yield Claim(
        "the NMU is better on × than both NPUs",
        bool(nmu["test_mul"] < npus["test_mul"].min()),
        f"{text(nmu['test_mul'])} against {text(npus['test_mul'].min())}",
    )
    hard = ["test_div", "test_sqrt"]
    yield Claim("the NMU cannot learn ÷ and √ (worse than both NPUs)", bool((nmu > both)[hard].all()))
    real, npu = mean.loc["RealNPU"], mean.loc["NPU"]
    yield Claim(
        _BETTER, bool((real < npu).all()), f"on ÷ {text(real['test_div'])} and {text(npu['test_div'])}"
    )


def _figure_6(rows: pd.DataFrame) -> Iterable[Claim]:
    drawn = {model: best(rows, model) for model in SIMPLE}

    def better(one: str, other: str, task: str) -> Claim:
        left, right = drawn[one][ERRORS[task]], drawn[other][ERRORS[task]]
        shown = f"{text(float(left))} against {text(float(right))}"
        return Claim(f"{one} better than {other} on {task}", bool(left < right), shown)

    for unit in ("RealNPU", "NPU"):
        for task, other in product(("÷", "+", "×", "√"), ("NALU", "iNALU")):
            yield better(unit, other, task)
        yield better("NMU", unit, "×")
        for task in ("÷", "√"):
            yield better(unit, "NMU", task)


_TABLE_A3 = {
    "NPU": ("NAU(2, 6)", "NPU(6, 2)"),
    "RealNPU": ("NAU(2, 6)", "RealNPU(6, 2)"),
    "NMU": ("NAU(2, 6)", "NMU(6, 2)"),
    "NALU": ("NALU(2, 6)", "NALU(6, 2)"),
    "iNALU": ("INALU(2, 6)", "INALU(6, 2)"),
    "Dense": ("Dense(2, 10)", "Dense(10, 10)", "Dense(10, 2)"),
}


def _table_a3() -> Iterable[Claim]:
    for name, layers in _TABLE_A3.items():
        ours = layers_of(simple_arm(name).model.build(simple_task().in_features))
        yield Claim(f"{name}: {', '.join(layers)}", ours == layers, ", ".join(ours), id=name)


def _code(read: Read, *models: str) -> pd.DataFrame:
    rows = read("npu/simple-arithmetic")
    return rows[(rows["arm"] == "code") & rows["model"].isin(models)].reset_index(drop=True)


def _luck(read: Read) -> str:
    runs = _code(read, "NMU", "NPU")
    by_sum, by_task = nmu_ahead(runs, "×", ERRORS), nmu_ahead(runs, "×", ["×"])
    return (
        "The figure draws one run of twenty per model, the one with the smallest sum of four errors, and for "
        "an NMU that sum is its error on division: which NMU is drawn is luck as far as products go. Of "
        f"draws of twenty from {len(runs) // 2} runs, {by_sum:.0%} have the published order; by the best run "
        f"on each task, as the text says, the NMU is ahead on products in {by_task:.0%}."
    )


def _one_model(read: Read) -> str:
    runs = Rows(_code(read, "RealNPU"))
    shares = [both for both, _ in apart(runs.frame, (runs.weights("0.gate") <= 0).any(1)).values()]
    return (
        "On positive inputs the two units are one model: their runs of a seed end with equal weights. Two "
        f"groups of twenty of its {len(runs)} runs have means as far apart as the printed ones, or farther, "
        f"in {min(shares):.0%} to {max(shares):.0%} of the draws, by task."
    )


_item = partial(
    Item,
    "npu",
    kind="experiment",
    seeds=_SEEDS,
    iterations=20_000,
    runs=120,
    experiment=("npu/simple-arithmetic",),
    rows=_rows,
    by=("model",),
)

EXPERIMENT = Experiment(
    chapter="book/npu/simple-arithmetic.ipynb",
    rules={"many": at_least(1), "models": some_of(SIMPLE), "arms": some_of(["code", "text"])},
    runs=_runs,
    items=(
        Item(
            "npu",
            "Table A3",
            "Models of the simple arithmetic task",
            "settings",
            _table_a3,
            explanations=(
                Explanation(
                    tuple(_TABLE_A3),
                    "Table A3 prints the layers of the power units and the NMU in reverse order and two "
                    "outputs; the text and the authors' code put the unit first and have four outputs, one "
                    "per operation, which are run here.",
                ),
            ),
        ),
        _item(
            "Table A2",
            "Simple arithmetic: test errors of six models",
            statements=_table_a2,
            headline="mean absolute error of the RealNPU on division",
            published="0.085 ± 0.038",
            explanations=(Explanation((_BETTER,), _one_model),),
        ),
        _item(
            "Figure 6",
            "Simple arithmetic: error maps of the best of twenty models",
            statements=_figure_6,
            headline="mean absolute error of the best RealNPU on division",
            published="drawn only",
            explanations=(Explanation(("NMU better than RealNPU on ×", "NMU better than NPU on ×"), _luck),),
        ),
    ),
    errata=(
        Erratum(
            "Table A2, caption",
            "evaluation",
            "Median and median absolute deviation of 20 models.",
            "The numbers are means and standard errors.",
            "Means, medians and printed values beside each other.",
            ("One failed run of twenty rules several means. By medians the NMU adds better than the NPUs."),
        ),
        Erratum(
            "Section 4.2, RealNPU against NPU",
            "claim",
            "The RealNPU performs better than the NPU, as it corresponds to the task.",
            _one_model,
            (
                "The gradient of the imaginary weights is exactly zero on positive inputs; pairs of"
                " runs of a seed are compared weight by weight."
            ),
            "The two columns of Table A2 are two samples of one model.",
        ),
        Erratum(
            "Section 4.2, Figure 6",
            "evaluation",
            "The error surface of the best of 20 models on each task.",
            _luck,
            "The rule is applied to all draws of twenty from 200 runs.",
            "Which of two units looks better in a map of Figure 6 can be the choice of the run.",
        ),
        Erratum(
            "Equation 22 and section 4.2, settings",
            "description",
            "Inputs from U(0.1, 2), Adam with a learning rate of 0.001.",
            (
                "The published numbers come from U(0.1, 2.1), a learning rate of 0.005 (iNALU "
                "0.001), RMSProp for NALU and iNALU, and a NALU whose gate has a bias."
            ),
            "All models are trained with both settings.",
            ("Table A2 is that of the code's settings: with those of the text fewer numbers agree."),
        ),
        Erratum(
            "Equation 5",
            "description",
            "The weights of the NAU are clipped to [-1, 1].",
            "They are free in the code of this paper.",
            "The clip alone is changed.",
            "With it, NMU networks lose their sums in Table A2.",
        ),
        Erratum(
            "Table A3",
            "misprint",
            "The NAU comes before the power unit, and networks have two outputs.",
            ("The power unit (or the NMU) comes first, and there are four outputs, as section 4.2 says."),
            "The printed lines beside the networks of the runs.",
            "Nothing.",
        ),
    ),
)
