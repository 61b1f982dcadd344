"""What each unit can divide, and what helps where none can: Tables 3, 5 and 7."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Layer, Stack
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask, Uniform
from nalm.training import Adam, Run

from companion import measures, published, thresholds
from companion.division import settings
from companion.division.chance import TICK
from companion.division.compared import (
    MIXED,
    MODIFIED,
    NEGATIVE,
    REAL_NPU,
    SMALL,
    UNITS,
    Compared,
    of,
    success,
)
from companion.division.golden import golden_error
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Item
from companion.experiment.tables import text
from companion.figures import Figure, style, unit_style
from companion.measures import Interval
from companion.recorded import read

TRUNCATED = [name for name in settings.DISTRIBUTIONS if name.startswith("TN")]
LARGE = ["U[-100,100)", "U[-50,50)"]
WEAK = [*LARGE, *TRUNCATED]
KINDS = {
    "Mixed-signs, Uniform": [MIXED],
    "Mixed-signs, Truncated Normal": TRUNCATED,
    "Negative, Uniform": NEGATIVE,
    "Negative, Truncated Normal": TRUNCATED[:1],  # the one whose test numbers are all negative
    "Large magnitude, Uniform": LARGE,
    "Large magnitude, Benford": ["B[10,100)"],
    "Close to 0, Uniform": SMALL,
    "Close to 0, Truncated Normal": TRUNCATED[1:2],
}
"""Kinds of numbers of Table 3 and the ranges whose mean success rate they stand for."""

_SIGNS = {f"data set {name}": settings.MIXED_SIGNS[name] for name in ("1", "2", "4", "5")}  # 3 is U[-2,2)
PLACES = [*UNIFORM_RANGES, *settings.DISTRIBUTIONS, *_SIGNS, *SMALL]
"""All ranges, distributions and data sets of the page."""

ATTEMPTS = ["MAPE", "MSE + PCC", "scaled", "gate to 1", "lr 1e-4", "lr 1e-2", "MAPE and lr 1e-2"]


def _divided(drawn, by: float):
    """The distribution of a number divided by a constant."""
    numbers = {
        name: _divided(one, by) if hasattr(one, "but") else one / by for name, one in dict(drawn).items()
    }
    return drawn.but(**numbers)


def _scaled(name: str, by: float) -> tuple[str, float, SingleModuleTask]:
    pair = tuple(_divided(drawn, by) for drawn in settings.DISTRIBUTIONS[name])
    return name, by, settings.task(pair, inputs=10)


def _size(name: str) -> float:
    drawn, _ = settings.DISTRIBUTIONS[name]
    return max(abs(drawn.low), abs(drawn.high))


SCALINGS = [*(_scaled(name, _size(name) / 2) for name in WEAK), _scaled("U[-50,50)", 50.0)]
"""Distribution, by what it is divided, and the task that it becomes; two become the same one."""


def _below(high: float) -> SingleModuleTask:
    drawn = Uniform(low=0.0, high=high)
    return settings.task((drawn, drawn))


GROWN = {"U[0,2)": _below(2.0), "U[0,10)": _below(10.0)}
"""What numbers next to zero become, multiplied by a constant."""


def _with(arm: Arm, **changes: object) -> Arm:
    return arm.but(recipe=arm.recipe.but(**changes))


def _with_ten(unit: str, arm: Arm) -> dict[str, tuple[Arm, list[SingleModuleTask]]]:
    """The attempts with ten inputs: how a unit is trained, and on what."""
    drawn = [settings.task(settings.DISTRIBUTIONS[name], 10) for name in WEAK]
    found = {
        "MAPE": (_with(arm, loss="mape"), drawn),
        "MSE + PCC": (_with(arm, loss="mse+pcc"), drawn),
        "scaled": (arm, list({task.label(): task for _, _, task in SCALINGS}.values())),
    }
    if unit == "NMRU":
        gated = Stack(layers=(Layer(unit="NMRU", options={"gate": "identity"}),))
        found["gate to 1"] = arm.but(model=gated), drawn
    if unit == "NRU":
        uniform = [settings.task(pair, 10) for pair in UNIFORM_RANGES.values()]
        found["lr 1e-4"] = _with(arm, optimiser=Adam(lr=1e-4)), uniform
    return found


def _with_two(unit: str, arm: Arm) -> dict[str, tuple[Arm, Mapping[str, SingleModuleTask]]]:
    """The attempts on numbers next to zero."""
    drawn = {name: _below(float(name[4:-1])) for name in SMALL}
    slower = Adam(lr=1e-2)
    found = {"MAPE": (_with(arm, loss="mape"), drawn), "scaled": (arm, GROWN)}
    if unit == "NRU":
        found["lr 1e-2"] = _with(arm, optimiser=slower), drawn
        found["MAPE and lr 1e-2"] = _with(arm, loss="mape", optimiser=slower), drawn
    return found


def _small_numbers() -> pd.DataFrame:
    rows = read("division/small-numbers")
    return rows[(rows["question"] == "a/b from a, b") & rows["model"].isin(UNITS)]


def _attempts(p: SimpleNamespace) -> Iterator[Run]:
    limits = _small_numbers().groupby(["model", "range"])["threshold"].first().to_dict()
    for unit in p.units:
        few, many = settings.arms(2, p.few)[unit], settings.arms(10, p.many)[unit]
        if unit == "NMRU":  # as in the chapter on small numbers
            few = few.but(model=Stack(layers=(Layer(unit="NMRU", options={"rounding": "sequential"}),)))
        for name, (arm, tasks) in _with_ten(unit, many).items():
            if name in p.attempts:
                yield from runs_of({f"{unit}, {name}": arm}, tasks, p.seeds, thresholds.FIXED)
        layer = few.model.layers[0]
        for place, task in GROWN.items():
            error = golden_error(layer.unit, task, **layer.options)
            limits[unit, place] = float(f"{1.1 * error + 2.0**-23:.1e}")
        for name, (arm, tasks) in _with_two(unit, few).items():
            for place, task in tasks.items() if name in p.attempts else ():
                yield from runs_of({f"{unit}, {name}": arm}, {place: task}, p.seeds, limits[unit, place])


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    few, many = (
        {unit: settings.arms(inputs, length)[unit] for unit in p.units}
        for inputs, length in ((2, p.few), (10, p.many))
    )

    def asked(arms: Mapping[str, Arm], pairs: Mapping[str, tuple], inputs: int) -> list[Run]:
        tasks = {name: settings.task(pair, inputs) for name, pair in pairs.items()}
        return runs_of(arms, tasks, p.seeds, thresholds.FIXED)

    drawn = settings.DISTRIBUTIONS
    return {
        "division/no-redundancy": asked(few, UNIFORM_RANGES, 2),
        "division/redundancy": asked(many, UNIFORM_RANGES, 10),
        "division/distributions": asked(few, drawn, 2) + asked(many, drawn, 10),
        "division/mixed-signs": asked(few, _SIGNS, 2),
        "division/attempts": list(_attempts(p)),
    }


def _with_inputs(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with their number of ``inputs``, each of which has one weight, in an NMRU two."""
    kept = rows["weights"].notna()  # a row without its weights does not say
    entries = rows.loc[kept, "weights"].map(lambda weights: len(json.loads(weights)["0.weight"][0]))
    return rows.assign(inputs=entries // (1 + rows.loc[kept, "model"].str.startswith("NMRU")))


def with_small_numbers(rows: Rows, units: list[str]) -> Rows:
    """The rows with their number of ``inputs``, and those of numbers next to zero that are recorded."""
    small = _small_numbers()
    every = pd.concat([rows.frame, small[small["model"].isin(units)]], ignore_index=True)
    return Rows(_with_inputs(every), rows.results)


def rate(rows: Rows, **where: object) -> Interval | str:
    """A success rate, for a table."""
    part = rows.of(**where)
    return measures.success_rate(part.success, seeds=part.frame["seed"]) if len(part) else NOT_RUN


def rates(rows: Rows, models: Iterable[str], places: Iterable[str]) -> pd.DataFrame:
    """Success rates of each model on each range; those of the paper are called so."""
    said = {name: f"{name}, as in the paper" if name in UNITS else name for name in models}
    lines = [
        {"trained": said[name]} | {place: rate(rows, model=name, range=place) for place in places}
        for name in said
    ]
    return pd.DataFrame(lines)


def best(rows: Rows, units: list[str]) -> pd.DataFrame:
    """The success rates of each range, and the units whose interval reaches the best."""
    lines = []
    for (inputs, place), part in rows.frame.groupby(["inputs", "range"], sort=False):
        found = {unit: success(part, unit) for unit in units}
        top = max(one.estimate for one in found.values())
        good = [unit for unit, one in found.items() if one.high >= top] if top else ["none"]
        lines.append(
            {"inputs": inputs, "numbers": place} | found | {"not worse than the best": ", ".join(good)}
        )
    order = [(inputs, place) for inputs in (2, 10) for place in PLACES]
    return pd.DataFrame(sorted(lines, key=lambda line: order.index((line["inputs"], line["numbers"]))))


def figure_rates(rows: Rows, units: list[str]) -> Figure:
    """Success rates on all ranges, with 2 and with 10 inputs; the dotted line is the border of a tick."""
    with style():
        figure = Figure(figsize=(7.4, 7.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for axis, inputs in zip(axes, (2, 10), strict=True):
            for shift, unit in enumerate(units):
                colour, marker = unit_style(unit)[:2]
                part = rows.of(inputs=inputs, model=unit).frame.groupby("range")["success"]
                found = part.agg(measures.success_rate)
                at = [PLACES.index(place) + 0.25 * (shift - 1) for place in found.index]
                ends = [(one.low, one.estimate, one.high) for one in found]
                low, estimate, high = np.reshape(ends, (-1, 3)).T
                axis.hlines(at, low, high, color=colour, linewidth=1)
                axis.plot(estimate, at, marker, color=colour, markersize=4, label=unit, gid=unit)
            axis.set(title=f"{inputs} inputs", xlabel="success rate", xlim=(-0.03, 1.03))
            axis.set_yticks(range(len(PLACES)), PLACES)
            axis.axvline(TICK, color="#1A1A1A", linewidth=1.2, linestyle=":")
        axes[0].invert_yaxis()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=8)
    return figure


def weights_of(run: pd.Series) -> str:
    """The weights of a run by what they multiply, times their gates; without those near zero."""
    found, inputs = json.loads(run["weights"]), int(run["inputs"])
    names = [f"x{place}" for place in range(inputs)]
    operands = SingleModuleTask.on("U[1,2)", operation="div", inputs=inputs).operands(int(run["seed"]))
    for name, which in zip("ab", operands, strict=True):
        names[which.argmax()] = name
    weights = np.array(found["0.weight"][0])
    gates = np.resize(np.clip(found.get("0.gate", [1.0]), 0, 1), weights.size)
    named = zip([*names, *(f"1/{name}" for name in names)], weights * gates, strict=False)
    return ", ".join(f"{name} {weight:+.2g}" for name, weight in named if abs(weight) > 0.005) or "none"


def failures(rows: Rows) -> pd.DataFrame:
    """How often each model fails on each range, and the weights of the failed run with the smallest seed."""
    failed, lines = rows.failed.frame, []
    models = list(failed["model"].unique())
    for (inputs, model, place), part in failed.groupby(["inputs", "model", "range"], sort=False):
        run = part.loc[part["seed"].idxmin()]
        line = {"inputs": inputs, "trained": model, "numbers": place, "failed": len(part)}
        line |= {"seed": run["seed"], "selected at": run["selected_at"], "weights": weights_of(run)}
        lines.append(line)
    lines.sort(key=lambda line: (line["inputs"], models.index(line["trained"])))
    return pd.DataFrame(lines or {"trained": [NOT_RUN]})


def distances(rows: Rows, gates: bool = False) -> np.ndarray:
    """How far each run on a / b ends from golden weights, at most; from golden gates too, if asked for."""
    found = []
    for model, run in zip(rows.frame["model"], map(json.loads, rows.frame["weights"]), strict=True):
        golden = [1, 0, 0, 1] if model.startswith("NMRU") else [1, -1]
        gaps = np.subtract(run["0.weight"][0], golden), np.subtract(run["0.gate"], 1) if gates else [0.0]
        found.append(np.abs(np.concatenate(gaps)).max())
    return np.array(found)


def text_and_code() -> pd.DataFrame:
    """Success rates where text and code of the paper differ."""
    pairs = {
        "weights pulled to {-1, 1} (code) or {-1, 0, 1} (text), ten inputs": (
            "redundancy",
            {"model": MODIFIED},
            {"model": f"{MODIFIED}, {{-1,0,1}}"},
        ),
        "reciprocal 1 / (x + ε) in training (code) or 1 / x (text), NMRU, ten inputs": (
            "inside-the-nmru",
            {"model": "NMRU"},
            {"model": "NMRU, no epsilon"},
        ),
        "a gate that multiplies towards 0 (code) or towards 1 (as the NPU's), NMRU, ten inputs": (
            "inside-the-nmru",
            {"model": "NMRU, gate to 0"},
            {"model": "NMRU, gate to 1"},
        ),
        "test set of data set 3: a coin per number (code) or fixed signs (text), modified Real NPU": (
            "mixed-signs",
            {"model": MODIFIED, "range": "3"},
            {"model": MODIFIED, "range": "3 (paper's test set)"},
        ),
    }
    lines = []
    for difference, (experiment, *sides) in pairs.items():
        rows = Rows(read(f"division/{experiment}"))
        parts = [rows.of(**side) for side in sides]
        code, other = (measures.success_rate(part.success, seeds=part.frame["seed"]) for part in parts)
        lines.append((difference, code, other, "overlap" if code.overlaps(other) else "apart"))
    errors = Rows(read("division/no-redundancy")).of(model=REAL_NPU).solved.frame["sparsity_error"]
    lines.append(
        (
            "mean sparsity error: half of it plotted (code) or the mean (text), Real NPU (baseline)",
            measures.sparsity_error(errors, scale="published"),
            measures.sparsity_error(errors),
            "a factor of 2, by definition",
        )
    )
    return pd.DataFrame(lines, columns=["difference", "code", "other", "intervals"])


@dataclass(frozen=True)
class Cell:
    """A cell of Table 3: our success rate, and whether a tick is printed."""

    redundancy: str
    kind: str
    unit: str
    rate: Interval
    printed: bool

    @property
    def ticked(self) -> bool:
        return self.rate.estimate > TICK

    @property
    def agrees(self) -> bool:
        return self.ticked == self.printed

    @property
    def at_border(self) -> bool:
        """Whether other seeds could tip it."""
        return self.rate.low < TICK < self.rate.high

    def __str__(self) -> str:
        return ("✓ " if self.ticked else "  ") + text(self.rate) + ("" if self.agrees else " ≠ printed")


def table_3(rows: pd.DataFrame) -> list[Cell]:
    """The cells in the table's order, those of units that are not run left out."""
    found = []
    halves = {
        inputs: rows.loc[rows["inputs"] == inputs, ["model", "range", "seed", "success"]]
        for inputs in (2, 10)
    }
    for one in published.load("division_values").query("item == 'Table 3'").to_dict("records"):
        redundancy, kind = one["setting"].removeprefix("redundancy=").split("; ", 1)
        kind = kind.replace("; ", ", ")
        part = halves[10 if redundancy == "yes" else 2]
        found.append(
            Cell(
                redundancy,
                kind,
                one["model"],
                success(part, one["model"], KINDS[kind]),
                float(one["value"]) == 1,
            )
        )
    return [cell for cell in found if cell.rate.n]


def _table_3(rows: pd.DataFrame) -> Compared:
    """The first statement shows how many ticks the NMRU has."""
    cells = sorted(table_3(rows), key=lambda cell: cell.unit != "NMRU")
    ours = [cell for cell in cells if cell.unit == "NMRU"]
    for cell in cells:
        shown = text(cell.rate) if cell != cells[0] else f"{sum(one.ticked for one in ours)} of {len(ours)}"
        yield Claim(f"{cell.unit}: {cell.kind}, redundancy {cell.redundancy}", cell.agrees, shown)


def _of_table_3(rows: pd.DataFrame) -> pd.DataFrame:
    asked = rows.reindex(columns=["question"])["question"]
    rows = rows[(asked.isna() | (asked == "a/b from a, b")) & ~rows["range"].isin(_SIGNS)]
    rows = _with_inputs(of(*UNITS)(rows))
    return rows[rows["iterations"] == rows["inputs"].map({2: 50_000, 10: 100_000})]  # as the paper trains


def _table_5() -> Compared:
    arms = [settings.arms(inputs)[name] for inputs in (2, 10) for name in (REAL_NPU, MODIFIED)]
    growing = [penalty for arm in arms for penalty in arm.recipe.penalties if penalty.kind == "L1"]
    pulls = [penalty for arm in arms for penalty in arm.recipe.penalties if penalty.kind == "Discretisation"]
    for name, printed, ours in (
        ("β, start to end", "1e-09 to 1e-07", {f"{one.start:g} to {one.end:g}" for one in growing}),
        ("β, growth", "10", {text(one.growth) for one in growing}),
        ("β, step", "10,000", {text(one.every) for one in growing}),
        ("λ̂", "1", {text(one.weight) for one in pulls}),
    ):
        yield Claim(name, ours == {printed}, "; ".join(sorted(ours)))


def _of_table_7(rows: pd.DataFrame) -> pd.DataFrame:
    return _with_inputs(of(*UNITS)(rows[rows["range"].isin(UNIFORM_RANGES)]))


def _table_7(rows: pd.DataFrame) -> Compared:
    seconds = rows.groupby(["model", "inputs"])["seconds"].mean()
    for unit in UNITS:
        few, many = seconds[unit, 2], seconds[unit, 10]
        yield Claim(f"{unit}: ten inputs take longer than two", bool(many > few), f"{text(few, 2)} s")


def table_7(rows: Rows, units: list[str]) -> pd.DataFrame:
    """Published seconds of one run, ours, and ours of all seeds and ranges."""
    printed = published.load("division_values").query("item == 'Table 7'").set_index(["model", "setting"])
    lines = []
    for inputs, setting in ((2, "2 inputs, no redundancy"), (10, "10 inputs, redundancy")):
        for unit in units:
            minutes, rest = printed["value"][unit.removesuffix(" (modified)"), setting].split(":")
            ours = rows.of(inputs=inputs, model=unit, range=UNIFORM_RANGES).frame["seconds"].mean()
            times = {"published, one run": 60 * int(minutes) + int(rest), "here, one run": ours}
            times["here, 225 runs"] = round(225 * ours)
            line = {"inputs": inputs, "unit": unit}
            lines.append(line | {what: f"{text(time, 2)} s" for what, time in times.items()})
    return pd.DataFrame(lines)


def costs(experiments: Iterable[str]) -> pd.DataFrame:
    """What experiments of the paper took, the sum of all last."""
    lines = []
    for name in experiments:
        rows = read(f"division/{name}")
        lines.append((name, len(rows), rows["iterations"].sum() / 1e6, rows["seconds"].sum() / 60))
    lines.append(("all", *np.sum([line[1:] for line in lines], axis=0)))
    columns = ["experiment", "runs", "million iterations", "core minutes"]
    found = pd.DataFrame(lines, columns=columns).round({"million iterations": 1, "core minutes": 0})
    return found.astype({"runs": int, "core minutes": int})


EXPERIMENT = Experiment(
    chapter="book/division/summary.ipynb",
    rules={"few": at_least(1), "many": at_least(1), "units": some_of(UNITS), "attempts": some_of(ATTEMPTS)},
    runs=_runs,
    items=(
        Item(
            "division",
            "Table 3",
            "Which units solve which kind of division",
            "experiment",
            _table_3,
            headline="ticks of the NMRU",
            published="9 of 15",
            seeds=25,
            runs=2625,
            experiment=(
                "division/no-redundancy",
                "division/redundancy",
                "division/distributions",
                "division/small-numbers",
            ),
            rows=_of_table_3,
            by=("model", "range", "inputs"),
        ),
        Item("division", "Table 5", "Parameters of the Real NPU", "settings", _table_5),
        Item(
            "division",
            "Table 7",
            "Time to train one seed on one range",
            "experiment",
            _table_7,
            headline="seconds for the Real NPU, two inputs",
            published="200 s",
            seeds=1,
            runs=6,
            experiment=("division/no-redundancy", "division/redundancy"),
            rows=_of_table_7,
            by=("model", "inputs"),
            comparable=False,
        ),
    ),
    errata=(
        Erratum(
            "Appendix A, selection",
            "claim",
            (
                "Turning an irrelevant input into 1 avoids the division by zero; a weight of 0 does"
                " so in all units."
            ),
            (
                "The NMRU takes the reciprocal of every input, selected or not. A single 0 among "
                "redundant inputs makes its output undefined."
            ),
            "The statement is executed for the three units.",
            "The NMRU needs inputs that are not 0.",
        ),
    ),
)
