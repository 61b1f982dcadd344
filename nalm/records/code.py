"""The code that a run's result depends on, as a hash: rows know whether they are older than it.

A run depends on all of :mod:`nalm.training` (and of :mod:`nalm.dynamics` or :mod:`nalm.sequences`, if it is trained there), on the descriptions
of its model and of values, on how a row is made, and on the files of its own task, units and networks with everything they import. What is hashed
is the syntax tree, without comments, docstrings and layout.

A change of code that changes no result makes rows older than it all the same. :func:`nalm.records.confirm` retrains a sample of them, and where it
comes out the same to the last digit, the others count as confirmed whose configurations take the same way through the code (``way``).
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import pandas as pd
import torch

from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.records.trainers import trainer_of
from nalm.training import Run

__all__ = ["CONFIRMED", "FRESH", "OLDER", "Freshness", "code", "code_on_disk", "codes", "freshness", "freshness_of", "least_fresh", "modules", "way"]

Freshness = Literal["fresh", "confirmed by retraining a sample", "older than the code it depends on"]
FRESH, CONFIRMED, OLDER = get_args(Freshness)

_PARSING = threading.Lock()
"""CPython 3.11 fails when two threads build syntax trees at once."""
PACKAGE = Path(__file__).resolve().parents[1]
ALWAYS = ("nalm.models.stack", "nalm.models.whole", "nalm.values", "nalm.records.row")
FUNCTIONS = {"nalm.measures": "first_solved"}
"""Of a module that is mostly about something else, the one function that rows depend on."""
ON_CUDA = {"nalm.training.graphed"}
"""Not part of the code: how CUDA devices replay the same updates. No published row has passed through it."""


def _sources() -> dict[str, str]:
    def name(file: Path) -> str:
        return ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")

    return {name(file): file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}


LOADED = _sources()
"""The library's source as it was when this process started; a file that is edited later is not what this process runs."""


def code(run: Run, sources: dict[str, str] | None = None) -> str:
    """Twelve hexadecimal digits that identify the code a run's result depends on.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import TenParameterTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=10, optimiser=Adam(lr=1e-3))
    >>> runs = [Run(task=TenParameterTask(), model=Stack.of("NAU", 2, unit, 1), recipe=recipe, seed=0) for unit in ("NMU", "NAC")]
    >>> len(code(runs[0])), code(runs[0]) == code(runs[1])
    (12, False)
    """
    sources = LOADED if sources is None else sources
    return _hash(tuple((name, sources[name]) for name in modules(run)))


@cache
def _hash(sources: tuple[tuple[str, str], ...]) -> str:
    """Of module names and their texts; many configurations depend on the same ones."""
    texts = {name: _syntax(source, FUNCTIONS.get(name)) for name, source in sources}
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:12]


def code_on_disk(run: Run) -> str | None:
    """The code of a run, to be recorded with its row; ``None``, unknown, if the files are no longer those that this process started with."""
    now = code(run)
    return now if all(LOADED[name] == text for name, text in _sources().items() if name in modules(run)) else None


def modules(run: Run) -> list[str]:
    """The modules of the library that a run's result depends on."""
    with torch.device("meta"):  # only to see which classes there are; nothing is drawn or allocated
        parts = run.model.build(run.task.in_features).modules()
    owners = {type(part).__module__ for part in parts} | {type(run.task).__module__}
    found: set[str] = set()
    waiting = {name for name in owners if name in LOADED}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= set(_imported(LOADED[name])) - found
    training = ("nalm.training.", trainer_of(run).__module__.rpartition(".")[0] + ".")
    trained = {name for name in LOADED if name.startswith(training)} - ON_CUDA
    return sorted(found.union(ALWAYS, FUNCTIONS, {type(run.model).__module__}, trained))


TURNS = ("kind", "unit", "loss", "method", "selection", "stream")
"""Entries of a configuration that decide which functions of the library its runs pass through, whatever the numbers."""


def way(configuration: dict[str, Any]) -> str:
    """The way of a configuration's runs through the code: kinds of model, task, optimiser and penalties, units, loss, stream and the like.

    Numbers, ranges, operations and the options of units are left out; they make a difference only within the files of task and unit.

    >>> way({"task": {"kind": "LargeScaleTask"}, "model": {"layers": [{"unit": "NAU"}]}, "recipe": {"loss": "mse", "clip_gradient_norm": 1.0}})
    'LargeScaleTask, NAU, clipped, mse'
    """
    clipped = ["clipped"] if configuration["recipe"].get("clip_gradient_norm") else []
    return ", ".join(sorted({*_turns(configuration), *clipped}))


def _turns(value: Any) -> list[str]:
    if isinstance(value, list):
        return [turn for one in value for turn in _turns(one)]
    if isinstance(value, dict):
        return [turn for name, one in value.items() for turn in ([one] if name in TURNS and isinstance(one, str) else _turns(one))]
    return []


def codes(rows: pd.DataFrame, sidecar: dict[str, Any]) -> pd.DataFrame:
    """For each of the rows the code that it was ``recorded`` with, the ``current`` one and its ``way`` through it, NaN where that is not known."""
    configurations, known = rows["key"].str.rpartition("-")[0], sidecar["configurations"]
    current = {key: _code_of_configuration(known.get(key)) for key in configurations.unique()}
    recorded = rows["batch"].map(lambda batch: sidecar["batches"].get(batch, {}).get("code"))
    ways = {key: way(known[key]) for key in configurations.unique() if current[key] is not None}
    return pd.DataFrame({"recorded": recorded, "current": configurations.map(current), "way": configurations.map(ways)}, dtype=object)


def freshness_of(rows: pd.DataFrame, sidecar: dict[str, Any]) -> pd.Series:
    """The freshness of each of the rows; one of which the code is not known is older."""
    of = codes(rows, sidecar)
    known = dict(zip(rows["key"], of["way"], strict=True))
    confirmed = {(one["recorded"], one["current"], known.get(key)) for one in sidecar.get("confirmations", []) for key in one["rows"]}
    states = pd.Series(OLDER, index=rows.index)
    states[[one in confirmed for one in of[["recorded", "current", "way"]].itertuples(index=False, name=None)]] = CONFIRMED
    states[of["recorded"].notna() & (of["recorded"] == of["current"])] = FRESH
    return states


def least_fresh(states: Iterable[str]) -> Freshness:
    """Of several rows: fresh if all of them are, and older if one of them is.

    >>> least_fresh(["fresh", "confirmed by retraining a sample"])
    'confirmed by retraining a sample'
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
    rows = store.read()
    if rows.empty:
        raise ValueError(f"There are no rows of {experiment!r} in {folder}.")
    return least_fresh(freshness_of(rows, store.sidecar()))


def _code_of_configuration(configuration: dict[str, Any] | None) -> str | None:
    try:
        return code(Run.from_json(json.dumps(configuration | {"seed": 0})))
    except (TypeError, ValueError):  # there is none, or the library has no such run any more
        return None


def _tree(source: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source)


@cache
def _syntax(source: str, function: str | None) -> Any:
    tree = _tree(source)
    if function is not None:
        tree = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function)
    return _canonical(tree)


def _canonical(node: Any) -> Any:
    """A syntax tree as nested lists, the same in all versions of Python: without what is empty, and without text that stands by itself."""
    if isinstance(node, list):
        return [_canonical(n) for n in node if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str))]
    if isinstance(node, ast.AST):
        fields = ((name, _canonical(value)) for name, value in ast.iter_fields(node) if value is not None)
        return [type(node).__name__, *([name, value] for name, value in fields if value != [])]
    return repr(node)


@cache
def _imported(source: str) -> tuple[str, ...]:
    """The modules of the library that a module imports; of a name that a package passes on, the module that defines it."""
    found = []
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "") in LOADED:
            for alias in node.names:
                part = getattr(importlib.import_module(node.module), alias.name)
                owner = part.__name__ if isinstance(part, ModuleType) else getattr(part, "__module__", None)
                found.append(owner if owner in LOADED else node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name in LOADED]
    return tuple(found)
