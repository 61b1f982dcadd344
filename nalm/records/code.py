"""The code that a run's result depends on, as a hash: rows know whether they are older than it.

A run's code is the definitions (:mod:`nalm.records.definitions`) that are reached from its task, its units
and networks, the descriptions it is made of, what trains it and how its row is made. So a new unit, task,
loss or optimiser makes no row older that does not use it, nor does anything that changes no number: where a
definition stands, checkpoints, progress, error messages. PyTorch counts by its minor version, 2.12.
What trains a run on a GPU does not count: such a row has the code that trains the run on a processor.

A change of code that changes no result makes rows older than it all the same. Two notes in a sidecar say that
they are right still: a confirmation, that a sample of them was retrained to the last digit, which counts for
all rows whose configurations take the same way through the code (``way``); and a comparison, that old and new
code were run side by side and gave the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch

from nalm.models import DigitSequence
from nalm.models.outline import outline
from nalm.records.definitions import Definitions, Place
from nalm.records.folders import PUBLISHED
from nalm.records.own_code import own_is_unchanged, own_sources
from nalm.records.store import Store
from nalm.training import Run
from nalm.training.trainers import trainer_of
from nalm.values import Value

__all__ = [
    "CONFIRMED",
    "FRESH",
    "OLDER",
    "Freshness",
    "code",
    "code_of_all",
    "code_on_disk",
    "codes",
    "entrances",
    "freshness",
    "freshness_of",
    "least_fresh",
    "way",
]

Freshness = Literal["fresh", "confirmed", "older than the code it depends on"]
FRESH, CONFIRMED, OLDER = get_args(Freshness)

PACKAGE = Path(__file__).resolve().parents[1]
NO_NUMBER = (
    "nalm.training.checkpoint",  # what is read is what was written; tests kill and resume
    "nalm.training.kept",  # compiled code is the same wherever it is kept
    "nalm.training.compiler.is_compiled",  # whether it is, each batch of rows says
    "nalm.training.worth",  # the same
    "nalm.own",  # finds what is an entrance itself
    "nalm.tasks.operations._computed",  # the expression is part of the key
    "nalm.training.trial",  # whether runs are projected one by one follows from the unit
    "nalm.units.UNITS",  # the units of a run are entrances themselves
    "nalm.units.checks.choose",  # refuses
    "nalm.units.checks.nearest",
    "nalm.values.choose",  # where they stood before: older sources are hashed alike
    "nalm.values.nearest",
)
"""Modules and definitions that cannot change what is trained, and what they refer to."""


def sources_in(package: Path) -> dict[str, str]:
    """Module name -> source text of the library in a folder."""

    def name(file: Path) -> str:
        return ".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")

    return {name(file): file.read_text(encoding="utf-8") for file in sorted(package.rglob("*.py"))}


def _sources() -> dict[str, str]:
    return sources_in(PACKAGE)


LOADED = _sources()
"""The library's source as it was when this process started; a file that is edited later is not what this
process runs.
"""


def code(run: Run, sources: dict[str, str] | None = None) -> str:
    """Sixteen hexadecimal digits that identify the code a run's result depends on.

    Args:
        run: the run.
        sources: module name -> text of the library; as this process loaded it if not given.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import TenParameterTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=10, optimiser=Adam(lr=1e-3))
    >>> models = Stack.of("NAU", 2, "NMU", 1), Stack.of("NAU", 2, "NAC", 1)
    >>> runs = [Run(task=TenParameterTask(), model=model, recipe=recipe, seed=0) for model in models]
    >>> len(code(runs[0])), code(runs[0]) == code(runs[1])
    (16, False)
    """
    classes = _classes(run)
    sources = (LOADED if sources is None else sources) | own_sources(classes)
    return _hash(_definitions(tuple(sorted(sources.items()))), *_entrances(run, classes))


def code_of_all(runs: Iterable[Run]) -> str:
    """The code of runs that are trained together; several where they have penalties or ranges of other kinds,
    which make no difference in structure.
    """
    configurations = {run.configuration_key: run for run in runs}.values()
    unlike = {json.dumps(_shape(run.full_configuration), sort_keys=True): run for run in configurations}
    return " ".join(sorted({code(run) for run in unlike.values()}))


def entrances(run: Run) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """Where the code of a run is entered, as modules and names in them, and the names of methods and entries
    that it asks for.
    """
    return _entrances(run, _classes(run))


def _entrances(run: Run, classes: frozenset[type]) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    known = LOADED.keys() | own_sources(classes)
    functions = {("nalm.records.row", "row_of")} | (
        {("nalm.records.row", "record_lows")} if isinstance(run.model, DigitSequence) else set()
    )
    own = {(one.__module__, one.__qualname__) for one in classes if one.__module__ in known}
    return frozenset(own | functions), frozenset(
        {"train", *(text for _, text in _entries(run.full_configuration))}
    )


def _classes(run: Run) -> frozenset[type]:
    """Those of the modules and descriptions that a run is made of, and of what trains it."""
    return frozenset({*_parts(run), *(type(value) for value in _values(run)), trainer_of(run)})


_PARTS: dict[tuple[type[Value], str, int], frozenset[type]] = {}


def _parts(run: Run) -> frozenset[type]:
    """The classes of the modules of a run's model."""
    described = type(run.model), run.model.canonical(), run.task.in_features
    if described in _PARTS:
        return _PARTS[described]
    with outline():  # only to see which classes there are
        found = frozenset({type(part) for part in run.model.build(run.task.in_features).modules()})
    if all(one.__module__.startswith(("nalm.", "torch.")) for one in found):  # one's own may be defined anew
        _PARTS[described] = found
    return found


def _values(value: Any) -> Iterator[Value]:
    """A description and all descriptions that it is made of."""
    if isinstance(value, Value):
        yield value
        value = [content for _, content in value]
    if isinstance(value, list | tuple):
        for one in value:
            yield from _values(one)


def _entries(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts in a configuration, each with the name of the entry that it is in."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _entries(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from _entries(one, name)


@cache
def _definitions(sources: tuple[tuple[str, str], ...]) -> Definitions:
    return Definitions(dict(sources), NO_NUMBER)


@cache
def _hash(definitions: Definitions, entered: frozenset[tuple[str, str]], words: frozenset[str]) -> str:
    return definitions.hash([_place(definitions, *one) for one in entered], words)


def _place(definitions: Definitions, module: str, name: str) -> Place:
    """Where something is that this process knows in a module; in other sources it may stand elsewhere."""
    with suppress(KeyError):
        return definitions.place_of(module, name)
    found = definitions.named(name)
    if len(found) != 1:
        raise ValueError(
            f"There {'are several definitions' if found else 'is no definition'} of {name} in these sources "
            "of the library."
        )
    return found[0]


def code_on_disk(runs: Iterable[Run]) -> str | dict[str, str | None] | None:
    """The code of runs that were trained together, to be recorded with their rows; configuration key -> code
    where it is not the same for all.

    ``None``, unknown, if the files are no longer those that this process started with.
    """
    on_disk, configurations = _sources(), {run.configuration_key: run for run in runs}
    each = {
        key: now if (now := code(run)) == code(run, on_disk) and own_is_unchanged(_classes(run)) else None
        for key, run in configurations.items()
    }
    return each if len(set(each.values())) > 1 else next(iter(each.values()))


TURNS = ("kind", "unit", "loss", "method", "selection", "stream")
"""Entries of a configuration that decide which functions of the library its runs pass through, whatever the
numbers.
"""


def way(configuration: dict[str, Any]) -> str:
    """The way of a configuration's runs through the code: kinds of model, task, optimiser and penalties,
    units, loss, stream and the like.

    Numbers, ranges, operations and the options of units are left out; they make a difference only within the
    files of task and unit.

    >>> described = {"task": {"kind": "LargeScaleTask"}, "model": {"layers": [{"unit": "NAU"}]}}
    >>> way({**described, "recipe": {"loss": "mse", "clip_gradient_norm": 1.0}})
    'LargeScaleTask, NAU, clipped, mse'
    """
    clipped = ["clipped"] if configuration["recipe"].get("clip_gradient_norm") else []
    turns = {text for name, text in _entries(configuration) if name in TURNS}
    return ", ".join(sorted({*turns, *clipped}))


def codes(rows: pd.DataFrame, sidecar: dict[str, Any]) -> pd.DataFrame:
    """For each of the rows the code and version of PyTorch that it was ``recorded`` with, the ``current``
    ones and its ``way`` through the code, NaN where that is not known.
    """
    configurations, known = rows["key"].str.rpartition("-")[0], sidecar["configurations"]
    # A search has thousands of configurations that differ in a rate only.
    alike: dict[str, tuple[str, str] | None] = {}
    current, ways = {}, {}
    for key in configurations.unique():
        shape = json.dumps(_shape(configuration := known.get(key)), sort_keys=True)
        if shape not in alike:
            now = with_torch(_code_of_configuration(configuration), torch.__version__)
            alike[shape] = (now, way(configuration)) if now and configuration else None
        if found := alike[shape]:
            current[key], ways[key] = found
    recorded = [
        _recorded(sidecar["batches"].get(batch, {}), key)
        for batch, key in zip(rows["batch"], configurations, strict=True)
    ]
    columns = {"recorded": recorded, "current": configurations.map(current), "way": configurations.map(ways)}
    return pd.DataFrame(columns, index=rows.index, dtype=object)


def _shape(value: Any) -> Any:
    """A configuration without its rates, weights and ranges, of which no class depends on more than the sign.

    >>> _shape({"lr": 0.01, "penalty": 0.0, "iterations": 10, "kind": "Adam"})
    {'lr': 1.0, 'penalty': 0.0, 'iterations': 10, 'kind': 'Adam'}
    >>> _shape([-1.5, 2.0])
    [-1.0, 1.0]
    """
    if isinstance(value, dict):
        return {name: _shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_shape(one) for one in value]
    return float((value > 0) - (value < 0)) if isinstance(value, float) else value


def _recorded(batch: dict[str, Any], configuration: str) -> str | None:
    """The runs of a batch were trained together; where they do not all have the same code, it is kept by
    configuration.
    """
    found = batch.get("code")
    return with_torch(
        found.get(configuration) if isinstance(found, dict) else found, batch.get("versions", {}).get("torch")
    )


def with_torch(code: str | None, version: str | None) -> str | None:
    """The name of a code with the minor version of PyTorch that it was run on."""
    return None if code is None or version is None else f"{code} on torch {'.'.join(version.split('.')[:2])}"


def freshness_of(rows: pd.DataFrame, sidecar: dict[str, Any]) -> pd.Series:
    """The freshness of each of the rows; one of which the code is not known is older."""
    if rows.empty:
        return pd.Series(dtype=object)
    of = codes(rows, sidecar)
    known = sidecar["configurations"]
    ways = {  # also of rows that are not asked about
        key: way(known[configuration])
        for one in sidecar.get("confirmations", [])
        for key in one["rows"]
        if (configuration := key.rpartition("-")[0]) in known
    }
    # (code, way or any) -> codes that are known to give the same rows
    equal: dict[tuple[str, str | None], set[str]] = {}
    for one in sidecar.get("confirmations", []):
        for found in {ways[key] for key in one["rows"] if key in ways}:
            equal.setdefault((one["recorded"], found), set()).update(one["current"])
    for one in sidecar.get("comparisons", []):
        for before, after in one["codes"].items():
            equal.setdefault((before, None), set()).add(after)

    def state(recorded: Any, current: Any, way: Any) -> Freshness:
        if pd.isna(recorded) or pd.isna(current):
            return OLDER
        known: set[str] = set()
        waiting = {recorded}
        while waiting - known:
            known |= waiting
            waiting = {
                after
                for before in known
                for of_way in (way, None)
                for after in equal.get((before, of_way), ())
            }
        return FRESH if recorded == current else CONFIRMED if current in known else OLDER

    states = {
        one: state(*one) for one in set(of[["recorded", "current", "way"]].itertuples(index=False, name=None))
    }
    return pd.Series(
        [states[one] for one in of[["recorded", "current", "way"]].itertuples(index=False, name=None)],
        index=rows.index,
        dtype=object,
    )


def least_fresh(states: Iterable[Freshness]) -> Freshness:
    """Of several rows: fresh if all of them are, and older if one of them is.

    >>> least_fresh(["fresh", "confirmed"])
    'confirmed'
    """
    return max(states, key=get_args(Freshness).index)


def freshness(experiment: str, folder: str | Path = PUBLISHED) -> Freshness:
    """Whether the recorded rows of an experiment were all made, or confirmed, with the code as it is now.

    Args:
        experiment: ``"<paper>/<name>"``.
        folder: the folder of results; the published ones if not given.

    Raises:
        ValueError: an experiment without rows.
    """
    store = Store(folder, experiment)
    rows = store.read(checked=False)
    if rows.empty:
        raise ValueError(f"There are no rows of {experiment!r} in {folder}.")
    return least_fresh(freshness_of(rows, store.sidecar()))


def _code_of_configuration(configuration: dict[str, Any] | None) -> str | None:
    if configuration is None:
        return None
    try:
        return code(Run.from_json(json.dumps(configuration | {"seed": 0})))
    except (TypeError, ValueError):  # the library has no such run any more
        return None
