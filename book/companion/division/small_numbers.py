"""Division by small numbers: Figures 5, 11, 12 and 13."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
from nalm.models import Stack
from nalm.tasks import SingleModuleTask, Uniform
from nalm.training import Run
from torch import Tensor

from companion import published
from companion.division import settings
from companion.division.compared import MODIFIED, QUESTIONS, SMALL, UNITS, Compared, part, success
from companion.division.golden import AUTHORS_PATH, errors_by_path, golden_error, golden_weights
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Comparison, Explanation, Item, Read, exactly, solved
from companion.experiment.tables import text
from companion.figures import Figure, style, styles_of
from companion.replay import in_place

EASY, MEDIUM, HARD = QUESTIONS
EPS32 = 2.0**-23
NO_EPSILON = "Real NPU, ε = 0"


class Variant(NamedTuple):
    """A unit as it rounds in training: options of the unit ``of`` the paper.

    Its threshold is the error that the authors recorded of the unit that rounds ``like`` it, with
    ``margin``.
    """

    of: str
    options: dict[str, str]
    like: str
    margin: float

    @property
    def arm(self) -> Arm:
        paper = settings.arms(inputs=2)[self.of]
        layer = paper.model.layers[0]
        return paper.but(model=Stack(layers=(layer.but(options=layer.options | self.options),)))


VARIANTS = {
    MODIFIED: Variant(MODIFIED, {}, "Real NPU", 1e-5),
    "NRU": Variant("NRU", {}, "NRU", 0.1),
    "NMRU": Variant("NMRU", {"rounding": "sequential"}, "NMRU", 0.1),
    "NRU, sequential": Variant("NRU", {"rounding": "sequential"}, "NMRU", 0.1),
    "NMRU, exact": Variant("NMRU", {}, "NRU", 0.1),
    "NRU, pow": Variant("NRU", {"power": "pow"}, "NRU", 0.1),
}
_AUTHORS = [MODIFIED, "NRU, pow", "NMRU"]
"""The units of Figure 11. With two inputs the power does not matter; there the NRU has the library's."""


def small(question: str, place: str) -> SingleModuleTask:
    """The task of a question on a range "U[0,u)", in training and in the test.

    >>> small("a/b from a, b", "U[0,0.1)").interpolation.high
    0.1
    """
    operation, inputs = QUESTIONS[question]
    drawn = Uniform(low=0.0, high=float(place[4:-1]))
    return SingleModuleTask(operation=operation, interpolation=drawn, extrapolation=drawn, inputs=inputs)


_GOLDEN = {
    "Real NPU": ("RealNPU", {}),
    NO_EPSILON: ("RealNPU", {"eps": 0.0}),
    "NRU": ("NRU", {}),
    "NMRU": ("NMRU", {"rounding": "sequential"}),
    "NMRU, exact": ("NMRU", {}),
}


def _errors(model: str) -> pd.DataFrame:
    """The test errors of golden weights by ``task`` and ``range``, as this processor rounds."""
    unit, options = _GOLDEN[model]
    places = published.load("division_golden_errors")["range"].unique()
    lines = [
        (question, place, golden_error(unit, small(question, place), **options))
        for question in QUESTIONS
        for place in places
    ]
    return pd.DataFrame(lines, columns=["task", "range", "error"])


def without_epsilon() -> pd.DataFrame:
    """Those of the Real NPU without epsilon: all rounding, which processors do differently."""
    return _errors(NO_EPSILON)


@cache
def golden() -> pd.DataFrame:
    """Test errors of golden weights by model, task and range: ``here``, and ``recorded`` by the authors.

    Without epsilon ``here`` is what was recorded on the code path that gives the authors' errors
    (:data:`companion.division.golden.AUTHORS_PATH`).
    """
    recorded = published.load("division_golden_errors").rename(columns={"value": "recorded"})
    paths = errors_by_path()
    theirs = paths[paths["path"] == AUTHORS_PATH].drop(columns="path")
    tables = [(theirs if model == NO_EPSILON else _errors(model)).assign(model=model) for model in _GOLDEN]
    here = pd.concat(tables, ignore_index=True).rename(columns={"error": "here"})
    here = here[["model", "task", "range", "here"]]
    return here.merge(recorded.drop(columns="item"), how="left")


def _threshold(model: str, question: str, place: str, margin: float) -> float:
    recorded = golden().set_index(["model", "task", "range"])["recorded"]
    return recorded[VARIANTS[model].like, question, place] * (1 + margin) + EPS32


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """The first task has a tenth of the iterations and no penalty."""
    runs = []
    for question in QUESTIONS:
        for model in p.models:
            recipe = VARIANTS[model].arm.recipe.but(iterations=p.iterations)
            if question == EASY:
                recipe = recipe.but(iterations=p.iterations // 10, penalties=())
            arm = {model: VARIANTS[model].arm.but(recipe=recipe)}
            for place in p.ranges:
                limit = float(f"{_threshold(model, question, place, VARIANTS[model].margin):.6g}")
                found = runs_of(arm, {place: small(question, place)}, p.seeds, threshold=limit)
                runs += [run.but(labels=run.labels | {"question": question}) for run in found]
    return {"division/small-numbers": runs}


def shown(rows: pd.DataFrame, question: str) -> pd.DataFrame:
    """The rows of a task that its figure draws, or all of the task where there are none of these."""
    asked = rows[rows["question"] == question]
    drawn = asked[asked["model"].isin(_AUTHORS if question == EASY else UNITS)]
    return drawn if len(drawn) else asked


def with_witnesses(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with what else tells success: ``distance`` and ``strict``.

    The largest distance of a parameter from its golden value; whether the threshold is met without margin.
    """
    parts = []
    for place, group in rows.groupby(["model", "question", "range"], sort=False):
        model, *task = place
        wanted = golden_weights(VARIANTS[model].arm.model.layers[0].unit, small(*task))
        strict = group["test_mse"] <= _threshold(*place, margin=0.0)
        parts.append(group.assign(distance=_distance(Rows(group), wanted), strict=strict))
    return pd.concat(parts).loc[rows.index] if parts else rows.assign(distance=np.nan, strict=False)


def _distance(rows: Rows, golden: dict[str, Tensor]) -> np.ndarray:
    apart = {name: np.abs(rows.weights(f"0.{name}") - exact.numpy()) for name, exact in golden.items()}
    if "gate" in golden:
        apart["weight"] *= golden["gate"].numpy()  # a closed gate makes its weight idle
    return np.max([gap.reshape(len(rows), -1).max(1) for gap in apart.values()], axis=0)


def figure_5() -> Figure:
    """The errors of golden weights over the ranges; rings: as recorded."""
    with style():
        figure = Figure(figsize=(7, 3.5), layout="constrained")
        axes = dict(zip(QUESTIONS, figure.subplots(1, 3, sharey=True), strict=True))
        styles = styles_of(list(golden()["model"]))
        for (question, model), lines in golden().groupby(["task", "model"], sort=False):
            look = styles[model]
            upper = [float(place[4:-1]) for place in lines["range"]]
            line = {"linestyle": look.line, "linewidth": 1.2, "markersize": 4}
            axes[question].plot(upper, lines["here"], **look.mark, **line, label=model, gid=model)
            ring = dict(markersize=9, markerfacecolor="none", markeredgecolor=look.colour)
            axes[question].plot(
                upper, lines["recorded"], "o", linestyle="none", gid=f"{model}, published", **ring
            )
        for question, axis in axes.items():
            axis.set(xscale="log", yscale="log", title=question, xticks=[1e-8, 1e-4, 1])
        axes[EASY].set_ylabel("test MSE of golden weights")
        axes[MEDIUM].set_xlabel("largest input, u")
        entries = axes[EASY].get_legend_handles_labels()
        figure.legend(*entries, loc="outside upper center", ncols=5, fontsize=9)
    return figure


def _figure_5() -> Compared:
    """All recorded points, then the sentences."""
    table = golden()
    for one in table.dropna(subset="recorded").to_dict("records"):
        here, recorded = (exactly(one[name]) for name in ("here", "recorded"))
        yield Comparison(f"{one['model']}, {one['task']}, {one['range']}", here, recorded, 1 + 2e-4)
    curves = table[table["model"].isin(["Real NPU", "NRU", "NMRU"])].groupby(["model", "task"])["here"]
    grow = curves.apply(lambda errors: bool((np.diff(errors) < 0).all()))
    at = table.pivot(index=["task", "range"], columns="model", values="here")
    largest = at["Real NPU"] > at[["NRU", "NMRU"]].max(axis=1)
    less = at[NO_EPSILON] < at["Real NPU"]
    for what, holds, of in (
        ("errors grow as the range gets closer to zero", grow, "curves"),
        ("the Real NPU has the largest for all tasks and ranges", largest, "tasks and ranges"),
        ("without epsilon the Real NPU's are smaller", less, "tasks and ranges"),
    ):
        yield Claim(what, bool(holds.all()), f"{holds.sum()} of {len(holds)} {of}")


def _in_the_recorded_points(read: Read) -> str:
    at = golden().set_index(["task", "range", "model"])["recorded"][HARD]
    near, far = at["U[0,1e-8)"], at["U[0,1)"]
    return (
        "The points that the authors recorded agree with ours and not with the text. For a/b the NRU's error "
        f"is {text(near['NRU'], 2)} on U[0,1e-8) and {text(far['NRU'], 2)} on U[0,1); on U[0,1e-8) "
        f"the NMRU's is {text(near['NMRU'])} and the Real NPU's {text(near['Real NPU'])}."
    )


def _later(rows: pd.DataFrame) -> Claim:
    """Whether most units that solve several ranges take longer on the smallest than on the largest."""
    slower, every = [], solved(rows[["model", "range", "success", "solved_at"]])
    for _, of_unit in every.groupby(["model", "range"])["solved_at"].mean().groupby("model"):
        means = of_unit.droplevel("model").reindex(SMALL).dropna().to_list()
        slower += [means[0] > means[-1]] if len(means) > 1 else []
    agrees = 2 * sum(slower) > len(slower)
    return Claim("smaller ranges are solved later", agrees, f"{sum(slower)} of {len(slower)} units")


def _figure_11(rows: pd.DataFrame) -> Compared:
    found = success(rows, "NRU, pow", [SMALL[0]])
    yield Claim(f"the NRU begins to struggle at {SMALL[0]}", found.estimate < 1, text(found))
    for unit, name in zip(UNITS, _AUTHORS, strict=True):
        for place in SMALL[unit == "NRU" :]:
            found = success(rows, name, [place])
            yield Claim(f"{unit} with ease on {place}", found.estimate > 0.9, text(found))
    yield _later(rows)


def _figure_12(rows: pd.DataFrame) -> Compared:
    for place in SMALL[2:]:
        rates = {unit: success(rows, unit, [place]) for unit in UNITS}
        others = max(rates[MODIFIED].estimate, rates["NRU"].estimate)
        yield Claim(f"the NMRU is reasonable on {place}", rates["NMRU"].estimate > 0.5, text(rates["NMRU"]))
        yield Claim(f"only the NMRU is on {place}", others < 0.5, f"the others: {text(others)} at most")
    near = solved(part(rows, MODIFIED, [SMALL[0]]))
    false = with_witnesses(near)["distance"] > 1e-3
    what = f"false positives of the Real NPU on {SMALL[0]}"
    yield Claim(what, len(false) > 0 and bool(false.all()), f"{false.sum()} of {len(false)} successes")
    true = solved(rows[rows["model"] != MODIFIED])["sparsity_error"].max()
    lowest = near["sparsity_error"].min()
    shown = f"{text(lowest, 2)} or more, other units {text(true, 2)} or less"
    yield Claim("these have a high sparsity error", bool(lowest > true), shown)
    yield _later(rows)


def _figure_13(rows: pd.DataFrame) -> Compared:
    hard, medium = (rows[rows["question"] == question] for question in (HARD, MEDIUM))
    for unit in ("NMRU", "NRU"):
        first, second = success(hard, unit, SMALL[3:]), success(medium, unit, SMALL[3:])
        said = f"{text(first.estimate)} against {text(second.estimate)}"
        what = f"the {unit} improves on Figure 12 on the larger ranges"
        yield Claim(what, first.estimate > second.estimate, said)
    yield _later(hard)


def _at_once(read: Read) -> str:
    rows = shown(read("division/small-numbers"), EASY)
    again = in_place(rows, read)
    times = solved(rows if again.empty else again)["solved_at"]
    first = (times <= 1000).sum()
    return f"{first} of {len(times)} solved runs are solved by the first evaluation, after 1,000 iterations."


def _of(models: list[str], *questions: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows[rows["model"].isin(models) & rows["question"].isin(questions)]


_PROTOCOL = {"seeds": 25, "runs": 375, "experiment": ("division/small-numbers",)}

EXPERIMENT = Experiment(
    chapter="book/division/small-numbers.ipynb",
    rules={"models": some_of(VARIANTS), "ranges": some_of(SMALL), "iterations": at_least(10)},
    runs=_runs,
    items=(
        Item(
            "division",
            "Figure 5",
            "Test error of exact weights close to zero",
            "analytic",
            _figure_5,
            headline="test MSE of the Real NPU, 1/a on U[0,1e-8)",
            published="1.8e+20",
            explanations=(
                Explanation(
                    (
                        "errors grow as the range gets closer to zero",
                        "the Real NPU has the largest for all tasks and ranges",
                    ),
                    _in_the_recorded_points,
                ),
            ),
        ),
        Item(
            "division",
            "Figure 11",
            "Reciprocal of one small number",
            "experiment",
            _figure_11,
            headline="the NRU begins to struggle at",
            published="U[0,1e-4)",
            iterations=5_000,
            rows=_of(_AUTHORS, EASY),
            by=("model", "range"),
            explanations=(Explanation(("smaller ranges are solved later",), _at_once),),
            **_PROTOCOL,
        ),
        Item(
            "division",
            "Figure 12",
            "Reciprocal of a small number, one redundant input",
            "experiment",
            _figure_12,
            headline="only unit with reasonable success on the larger ranges",
            published="NMRU",
            iterations=50_000,
            rows=_of(UNITS, MEDIUM),
            by=("model", "range"),
            **_PROTOCOL,
        ),
        Item(
            "division",
            "Figure 13",
            "Division of small numbers",
            "experiment",
            _figure_13,
            headline="units that improve on Figure 12 on the larger ranges",
            published="NRU and NMRU",
            iterations=50_000,
            rows=_of(UNITS, MEDIUM, HARD),
            by=("model", "range", "question"),
            **_PROTOCOL,
        ),
    ),
    errata=(
        Erratum(
            "Section 6.1.2, Figure 5",
            "claim",
            (
                "Test errors grow as the range comes closer to zero, and the Real NPU has the "
                "largest for all tasks and ranges."
            ),
            _in_the_recorded_points,
            ("The errors of golden weights are computed again; most of them come out number by number."),
            (
                "On a/b near zero the NMRU loses as much to rounding as the Real NPU to its ε; elsewhere "
                "ε decides."
            ),
        ),
    ),
)
