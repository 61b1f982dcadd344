"""Which unit for which numbers, by the recorded runs: what solved an operation on numbers of these signs and
this size, how often, how it was trained, and how the others failed.

A *cell* is an operation, a training range and a number of inputs. Whatever has no run is not measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from math import ceil, log
from typing import Any, NamedTuple

import pandas as pd
from nalm.models import Stack
from nalm.records import PUBLISHED, Store
from nalm.tasks import UNIFORM_RANGES
from nalm.training import L1, Discretisation, Recipe, Run

from companion import measures
from companion.division.compared import MODIFIED, REAL_NPU
from companion.experiment.tables import text
from companion.measures import Interval
from companion.nau_nmu import settings as nau_nmu
from companion.npu.simple_arithmetic import ERRORS
from companion.recorded import read

__all__ = [
    "COLUMNS",
    "GLANCE",
    "NOT_MEASURED",
    "OPERATIONS",
    "OTHERS",
    "SETTINGS",
    "SIGNS",
    "SOURCES",
    "Numbers",
    "best",
    "cell",
    "every_cell",
    "failure",
    "failures",
    "glance",
    "measured",
    "network",
    "numbers",
    "others",
    "picker_data",
    "recipe",
    "recipes",
    "seeds_to_train",
    "settings_worth",
    "sizes",
    "summarised",
    "together",
    "unit_for",
]

NOT_MEASURED = "not measured"

OPERATIONS = nau_nmu.SIGNS | {"reciprocal": "1 / a"}
_ONE_OPERAND = ("root", "squared", "reciprocal")

_SAME = ("NAC+", "NAC•", "NALU", "NAU", "NMU", "Linear")
_DIVIDERS = (MODIFIED, "NRU", "NMRU")
_FIELD = (
    "NAC+", "NAC•", "NALU", "G-NALU", "iNALU", "NAU", "NMU", "sNMU", "Gated NAU/NMU", "MC-FC",
    "NaiveNPU", "NPU", REAL_NPU, *_DIVIDERS,
)  # fmt: skip

SOURCES: dict[str, dict[str, str]] = {
    "division/no-redundancy": {name: name for name in (REAL_NPU, *_DIVIDERS)},
    "division/redundancy": {name: name for name in (REAL_NPU, *_DIVIDERS)},
    "division/mixed-signs": {name: name for name in _DIVIDERS},
    "division/distributions": {name: name for name in _DIVIDERS},
    # of the NMRU the variant that rounds as the library's does
    "division/small-numbers": {MODIFIED: MODIFIED, "NRU": "NRU", "NMRU, exact": "NMRU"},
    "nau-nmu/arithmetic": {name: name for name in _SAME},
    "nau-nmu/ranges": {"NMU": "NMU"},
    "nau-nmu/ten-parameter": {name: name for name in ("NAC•", "NALU", "NMU")},
    "beyond/leaderboard": {name: name for name in _FIELD},
}
"""Results file -> what a unit is called in its rows -> the unit. All units are trained as published."""

SMALL = "division/small-numbers"

COLUMNS = [
    "unit", "operation", "range", "inputs", "runs", "solved", "rate", "low", "high", "solved_at", "source",
]  # fmt: skip
"""Of :func:`measured`, which has more: network and recipe as text, and what :func:`failure` says."""
_MORE = ["network", "recipe", "discrete", "between", "fits", "valid", "test"]

SIGNS = {
    "positive": "positive",
    "negative": "negative",
    "either": "of either sign",
    "below": "a negative, b positive",
    "above": "a positive, b negative",
}

OTHERS = {
    "none": "none",
    "one": "one redundant input",
    "many": "eight or nine redundant inputs",
    "sums-4": "a and b are sums of 4 inputs",
    "sums-100": "a and b are sums of some of 100 inputs",
}


class Numbers(NamedTuple):
    """What operands are like: a key of :data:`SIGNS`; the size, in words; its ends."""

    signs: str
    size: str
    smallest: float
    largest: float


def numbers(place: str) -> Numbers:
    """What the numbers of a range are like, by its name.

    Raises:
        ValueError: a name without an interval ``[low,high)``.

    >>> numbers("U[-2,2)")
    Numbers(signs='either', size='−2 to 2', smallest=0.0, largest=2.0)
    >>> numbers("U[-2,-0.1) then U[0.1,2)")
    Numbers(signs='below', size='0.1 to 2', smallest=0.1, largest=2.0)
    >>> numbers("TN(0,1)[-5,5)").size, numbers("B[10,100)").size
    ('−5 to 5, normal around 0', '10 to 100, whole')
    """
    ends = [(float(low), float(high)) for low, high in re.findall(r"\[([^,]+),([^)]+)\)", place)]
    if not ends:
        raise ValueError(f"The range {place!r} has no interval [low,high).")
    kinds = tuple("positive" if low >= 0 else "negative" if high <= 0 else "either" for low, high in ends)
    both = {("negative", "positive"): "below", ("positive", "negative"): "above"}
    sizes = [abs(end) for one in ends for end in one]
    smallest = 0.0 if "either" in kinds else min(sizes)
    normal = re.match(r"TN\(([^,]+),", place)
    drawn = f", normal around {normal[1]}" if normal else ", whole" if place.startswith("B") else ""
    low, high = ends[0] if "either" in kinds else (smallest, max(sizes))
    size = f"{_plain(low)} to {_plain(high)}{drawn}".replace("-", "−")
    return Numbers(both.get(kinds, kinds[0]), size, smallest, max(sizes))


def _plain(number: float) -> str:
    """Without powers of ten.

    >>> _plain(1e-4), _plain(20.0)
    ('0.0001', '20')
    """
    return f"{number:.6f}".rstrip("0").rstrip(".")


def others(operation: str, inputs: int) -> str:
    """What a network gets beside the operands, a key of :data:`OTHERS`.

    >>> others("div", 2), others("reciprocal", 2), others("reciprocal", 10), others("mul", 100)
    ('none', 'one', 'many', 'sums-100')
    """
    if f"sums-{inputs}" in OTHERS:
        return f"sums-{inputs}"
    redundant = inputs - (1 if operation in _ONE_OPERAND else 2)
    return {0: "none", 1: "one"}.get(redundant, "many")


@cache
def measured() -> pd.DataFrame:
    """All cells of all sources, a line per unit; where two sources have the same, the first counts.

    >>> found = measured()
    >>> found[found["operation"] == "sub"][["unit", "range", "inputs"]].values.tolist()[0]
    ['NAU', 'U[1,2)', 100]
    """
    parts = []
    for source, units in SOURCES.items():
        store = Store(PUBLISHED, source)
        rows = store.read()
        if source == SMALL:  # tested on the training range, where other weights may do as well
            discrete = rows["sparsity_error"] < _DISCRETE
            rows = rows.assign(success=rows["success"].eq(True) & discrete)
        if not rows.empty:
            parts.append(summarised(rows, store.sidecar()["configurations"], source, units))
    return pd.concat(parts, ignore_index=True).drop_duplicates(["unit", "operation", "range", "inputs"])


def summarised(
    rows: pd.DataFrame, configurations: Mapping[str, dict[str, Any]], source: str, units: Mapping[str, str]
) -> pd.DataFrame:
    """A line for each configuration of the rows, as :func:`measured` has them.

    Args:
        rows: of a results file.
        configurations: of its runs, by the key without the seed.
        source: the name of the file.
        units: what a unit is called in the rows -> the unit; rows of other models are left out, and rows
            that have another ``arm`` than "as published".
    """
    rows = rows[rows["model"].isin(list(units))]
    if "arm" in rows:
        rows = rows[rows["arm"] == "as published"]
    lines = []
    for key, runs in rows.groupby(rows["key"].str.rpartition("-")[0], sort=False):
        run = Run.model_validate_json(json.dumps(configurations[key] | {"seed": 0}))
        task = run.task
        won = runs["success"].eq(True)
        rate = measures.success_rate(won, seeds=runs["seed"])
        line = {
            "unit": units[runs["model"].iloc[0]],
            "operation": task.operation,
            "range": str(task.interpolation),
            "inputs": task.in_features,
            "runs": len(runs),
            "solved": int(won.sum()),
            "rate": rate.estimate,
            "low": rate.low,
            "high": rate.high,
            "solved_at": runs["solved_at"][won].median(),
            "source": source,
            "network": network(run.model, task.in_features),
            "recipe": recipe(run.recipe),
        }
        lines.append(line | _failed(runs[~won], run.threshold))
    return pd.DataFrame(lines, columns=[*COLUMNS, *_MORE])


def network(stack: Stack, inputs: int) -> str:
    """The units of a network, as one writes them in Python.

    >>> network(Stack.of("NAU", 2, "NMU", 1), inputs=4)
    'NAU(4, 2), NMU(2, 1)'
    """
    made = []
    for layer in stack.layers:
        options = [f"{name}={_tuples(value)!r}" for name, value in layer.options.items()]
        made.append(f"{layer.unit}({', '.join([str(inputs), str(layer.out_features), *options])})")
        inputs = layer.out_features
    return ", ".join(made).replace("'", '"')


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def recipe(one: Recipe) -> str:
    """How a run is trained, in words.

    >>> from companion.division import settings
    >>> recipe(settings.arms(inputs=2)["NMRU"].recipe)
    'Adam, learning rate 0.01; penalty 10, ramp from 20,000 to 35,000; gradient clipped to norm 1; 50,000 iterations of 128 examples'
    """  # noqa: E501
    said = [f"{one.optimiser.kind}, learning rate {text(one.optimiser.lr)}"]
    for penalty in one.penalties:
        if isinstance(penalty, Discretisation):
            ramp = f"ramp from {penalty.start:,} to {penalty.end:,}"
            never = ", after the last iteration" if penalty.start >= one.iterations else ""
            said.append(f"penalty {text(penalty.weight)}, {ramp}{never}")
        elif isinstance(penalty, L1):
            steps = f"growing {text(penalty.growth)}-fold every {penalty.every:,}"
            said.append(f"L1 from {text(penalty.start)} to {text(penalty.end)}, {steps}")
    if not one.penalties:
        said.append("no penalty")
    if one.clip_gradient_norm:
        said.append(f"gradient clipped to norm {text(one.clip_gradient_norm)}")
    said.append(f"{one.iterations:,} iterations of {one.batch_size} examples")
    return "; ".join(said)


_DISCRETE = 0.01
"""A sparsity error below it counts as none."""


def _failed(failed: pd.DataFrame, threshold: float) -> dict[str, float]:
    """How many failed runs end with which weights, how many fit the training range; median errors."""
    discrete = int((failed["sparsity_error"] < _DISCRETE).sum())
    return {
        "discrete": discrete,
        "between": len(failed) - discrete,
        "fits": int((failed["valid_mse"] < threshold).sum()),
        "valid": failed["valid_mse"].median(),
        "test": failed["test_mse"].median(),
    }


def failure(line: Mapping[str, Any]) -> str:
    """What the failed runs of a line of :func:`measured` look like, in words; without any, nothing.

    >>> line = {"runs": 3, "solved": 1, "discrete": 0, "between": 2, "fits": 1, "valid": 0.25, "test": 4.0}
    >>> print(failure(line).replace("; ", "\\n"))
    2 with weights in between
    1 right on the training range
    median error 0.25 on the training range, 4 on the test range
    """
    if line["runs"] == line["solved"]:
        return ""
    kinds = {
        "with discrete weights, of something else": line["discrete"],
        "with weights in between": line["between"],
        "right on the training range": line["fits"],
    }
    said = [f"{int(count)} {kind}" for kind, count in kinds.items() if count]
    valid, test = (text(line[name], 2) for name in ("valid", "test"))
    return "; ".join([*said, f"median error {valid} on the training range, {test} on the test range"])


def cell(found: pd.DataFrame, operation: str, signs: str, size: str, beside: str) -> pd.DataFrame:
    """The units that were measured on one kind of numbers, the best first; of equal ones the faster.

    Args:
        found: lines with :data:`COLUMNS`, as :func:`measured` has them.
        operation: a key of :data:`OPERATIONS`.
        signs: a key of :data:`SIGNS`.
        size: as of :class:`Numbers`.
        beside: a key of :data:`OTHERS`.

    Raises:
        ValueError: an operation, signs or inputs that are none of these.

    >>> units = cell(measured(), "div", "either", "−2 to 2", "many")
    >>> print(units["unit"][0], units["solved"][0])
    NMRU 25
    """
    for value, allowed in ((operation, OPERATIONS), (signs, SIGNS), (beside, OTHERS)):
        if value not in allowed:
            raise ValueError(f"{value!r} is none of {', '.join(allowed)}.")
    return _cells(found).get((operation, signs, size, beside), found.iloc[:0])


def _cells(found: pd.DataFrame) -> dict[tuple[str, str, str, str], pd.DataFrame]:
    """Operation, signs, size and other inputs -> the lines of the units, the best first."""
    kinds = [
        (one.operation, *numbers(one.range)[:2], others(one.operation, one.inputs))
        for one in found.itertuples()
    ]
    order = found.sort_values(["rate", "solved_at"], ascending=[False, True], kind="stable")
    places = pd.Series(kinds, found.index, dtype=object)[order.index]
    return {kind: part.reset_index(drop=True) for kind, part in order.groupby(places, sort=False)}


def best(units: pd.DataFrame) -> list[str]:
    """The units of a cell that are not worse than the best: their intervals reach its rate. None, where no
    run was solved.

    >>> best(cell(measured(), "div", "either", "−2 to 2", "none")), best(measured().iloc[:0])
    (['NRU', 'NMRU'], [])
    """
    won = units[units["solved"] > 0]
    return list(won["unit"][won["high"] >= won["rate"].max()])


def seeds_to_train(low: float) -> int | None:
    """How many seeds to train so that one of them is solved with 95% probability, if a run is with ``low``.

    >>> seeds_to_train(0.3), seeds_to_train(0.86), seeds_to_train(0.0)
    (9, 2, None)
    """
    return ceil(log(0.05) / log(1 - low)) if 0 < low < 1 else None


def sizes(found: pd.DataFrame) -> list[str]:
    """All sizes, those that reach down to zero last, small ones first."""
    every = {numbers(place) for place in found["range"].unique()}
    order = sorted(every, key=lambda one: (one.smallest == 0, one.largest, one.smallest, one.size))
    return list(dict.fromkeys(one.size for one in order))


def unit_for(units: pd.DataFrame) -> str:
    """The units for a cell with the best one's count, or that there is none.

    >>> unit_for(cell(measured(), "div", "either", "−2 to 2", "many"))
    'NMRU (25 of 25)'
    >>> unit_for(cell(measured(), "div", "either", "−100 to 100", "many"))
    'none of 3 units'
    >>> unit_for(cell(measured(), "div", "negative", "0 to 1", "none"))
    'not measured'
    """
    if units.empty:
        return NOT_MEASURED
    names = best(units)
    if not names:
        return f"none of {len(units)} units"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} ({units['solved'][0]} of {units['runs'][0]})"


GLANCE = {
    "positive, 1 to 2": ("positive", "1 to 2"),
    "negative, 1 to 2": ("negative", "1 to 2"),
    "either sign, −2 to 2": ("either", "−2 to 2"),
    "positive, 0 to 1": ("positive", "0 to 1"),
}
"""The kinds of numbers of :func:`glance`."""


def glance(found: pd.DataFrame) -> list[dict[str, str]]:
    """Operation and other inputs, and the units for four kinds of numbers."""
    asked = [
        (operation, beside)
        for operation in OPERATIONS
        for beside in OTHERS
        if beside in ("none", "many") or any(_of(found, operation, beside))
    ]
    cells, none = _cells(found), found.iloc[:0]
    return [
        {"operation": OPERATIONS[operation], "other inputs": OTHERS[beside]}
        | {
            name: unit_for(cells.get((operation, signs, size, beside), none))
            for name, (signs, size) in GLANCE.items()
        }
        for operation, beside in asked
        if (operation, beside) != ("root", "none") or any(_of(found, operation, beside))
    ]


def _of(found: pd.DataFrame, operation: str, beside: str) -> Iterable[bool]:
    lines = zip(found["operation"], found["inputs"], strict=True)
    return [one == operation and others(one, inputs) == beside for one, inputs in lines]


def every_cell(found: pd.DataFrame, operation: str) -> list[dict[str, str]]:
    """All cells of an operation: the numbers, the best unit and how sure it is, and the units not worse."""
    cells = _cells(found)
    order = {size: place for place, size in enumerate(sizes(found))}
    kinds = [kind for kind in cells if kind[0] == operation]
    kinds.sort(key=lambda kind: (list(OTHERS).index(kind[3]), list(SIGNS).index(kind[1]), order[kind[2]]))
    lines = []
    for kind in kinds:
        _, signs, size, beside = kind
        units, first = cells[kind], cells[kind].iloc[0]
        names, seeds = best(units), seeds_to_train(first["low"])
        lines.append(
            {
                "other inputs": OTHERS[beside],
                "numbers": f"{SIGNS[signs]}, {size}",
                "unit": names[0] if names else f"none of {len(units)}",
                "solved": f"{first['solved']} of {first['runs']}",
                "rate": text(Interval(*first[["rate", "low", "high"]], first["runs"])),
                "seeds": str(seeds) if seeds else "–",
                "not worse": ", ".join(names[1:]) or "–",
            }
        )
    return lines


def recipes(found: pd.DataFrame) -> list[dict[str, str]]:
    """How each unit was trained, and for what."""
    beside = [OTHERS[others(*one)] for one in zip(found["operation"], found["inputs"], strict=True)]
    by = found.assign(beside=beside, kind=found["operation"].map(OPERATIONS))
    lines = []
    for (unit, how, built), part in by.groupby(["unit", "recipe", "network"], sort=False):
        where = "; ".join(
            f"{', '.join(dict.fromkeys(some['kind']))} ({name})"
            for name, some in part.groupby("beside", sort=False)
        )
        lines.append({"unit": unit, "for (other inputs)": where, "network": built, "recipe": how})
    return sorted(lines, key=lambda line: line["unit"])


def failures(found: pd.DataFrame) -> list[dict[str, str]]:
    """What failed runs of each unit look like, over all its cells."""
    lines = []
    for unit, part in found.groupby("unit", sort=False):
        failed = int((part["runs"] - part["solved"]).sum())
        if failed:
            shares = {
                "discrete weights of something else": part["discrete"].sum(),
                "weights in between": part["between"].sum(),
                "right on the training range": part["fits"].sum(),
            }
            counts = {name: f"{int(count):,}" for name, count in shares.items()}
            lines.append({"unit": unit, "failed": f"{failed:,} of {part['runs'].sum():,}"} | counts)
    return lines


SETTINGS = {
    "Real NPU as its paper trains it": ("division/no-redundancy", REAL_NPU),
    "with weights and gates clipped": ("division/robust-real-npu", "clip both"),
    "and pulled to discrete values": ("division/robust-real-npu", "discretise both"),
    "and started within the bounds": ("division/no-redundancy", MODIFIED),
    "NRU, learning rate 1": ("division/no-redundancy", "NRU"),
    "NRU, learning rate 0.1": ("division/no-redundancy", "NRU, lr 1e-1"),
    "NRU, learning rate 0.01": ("division/no-redundancy", "NRU, lr 1e-2"),
    "NRU, learning rate 0.001": ("division/no-redundancy", "NRU, lr 1e-3"),
}
"""What one setting is worth: line -> results file and model, on a / b of two inputs from the nine ranges."""


def settings_worth() -> list[dict[str, str]]:
    """Solved runs over nine ranges, by setting."""
    lines = []
    for name, (source, model) in SETTINGS.items():
        rows = read(source)
        part = rows[(rows["model"] == model) & rows["range"].isin(UNIFORM_RANGES)]
        won = part["success"].astype(bool)
        rate = measures.success_rate(won, seeds=part["seed"])
        lines.append({"setting": name, "solved": f"{won.sum()} of {len(won)}", "rate": text(rate)})
    return lines


def together() -> list[dict[str, str]]:
    """Median errors of networks that learn four operations at once."""
    rows = read("npu/simple-arithmetic")
    rows = rows[rows["arm"] == "code"]
    lines = []
    for unit, part in rows.groupby("model", sort=False):
        errors = {f"error of {sign}": text(part[name].median(), 2) for sign, name in ERRORS.items()}
        lines.append({"unit": unit, "runs": str(len(part))} | errors)
    return lines


def picker_data() -> dict[str, Any]:
    """What the picker shows: the questions with their answers, and the lines of each cell.

    A cell is keyed by the places of its answers, joined with a space; a line has the unit, solved runs, runs,
    rate and its interval, iterations, seeds to train, and the places of network, recipe and failure in
    ``texts``.
    """
    found = measured()
    texts: dict[str, int] = {}

    def place(said: str) -> int:
        return texts.setdefault(said, len(texts))

    answers = [list(OPERATIONS), list(SIGNS), sizes(found), list(OTHERS)]
    cells = {}
    for kind, units in _cells(found).items():
        good = best(units)
        cells[" ".join(str(every.index(one)) for every, one in zip(answers, kind, strict=True))] = [
            [
                one.unit,
                one.unit in good,
                *(one.solved, one.runs),
                *(round(value, 3) for value in (one.rate, one.low, one.high)),
                None if pd.isna(one.solved_at) else int(one.solved_at),
                seeds_to_train(one.low),
                *(place(said) for said in (one.network, one.recipe, failure(one._asdict()), one.source)),
            ]
            for one in units.itertuples()
        ]
    near = [numbers(place).size for place in found["range"].unique() if numbers(place).smallest == 0]
    return {
        "operations": list(OPERATIONS.values()),
        "signs": list(SIGNS.values()),
        "sizes": answers[2],
        "near": [size in near for size in answers[2]],
        "others": list(OTHERS.values()),
        "cells": cells,
        "texts": list(texts),
    }
