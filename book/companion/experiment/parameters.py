"""Parameters of a chapter: checked before anything trains.

papermill passes unknown names with a mere warning and does not check types. A cell of the chapter declares
its parameters with their types::

    seeds: int = 25  # seeds 0 to seeds - 1

The next cell calls :func:`check`, which refuses names that were not declared, wrong types and impossible
values. papermill sets its values between the two, so that what was defined before the first parameter is the
chapter's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from nalm.records import check_scheduler, results_folder
from nalm.study import MOST_SEEDS
from nalm.training import check_device
from nalm.units.checks import nearest

__all__ = ["above", "at_least", "between", "check", "one_of", "some_of", "some_or_none_of"]

Rule = Callable[[str, Any], Any]
MOST = 10**8
"""The largest count that a chapter takes: what is more fills the memory or never ends."""
TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list}


def at_least(lowest: float) -> Rule:
    """A rule: the number is ``lowest`` or more."""
    return _number(lambda value: value >= lowest, f"at least {lowest:g}")


def between(lowest: float, highest: float) -> Rule:
    """A rule: the number lies between these, both included."""
    return _number(lambda value: lowest <= value <= highest, f"between {lowest:,} and {highest:,}")


def above(limit: float) -> Rule:
    """A rule: the number is more than ``limit``."""
    return _number(lambda value: value > limit, f"more than {limit:g}")


def one_of(names: Iterable[str]) -> Rule:
    """A rule: the value is one of these names; of numbers also as text, as papermill's ``-p`` passes it."""
    names = list(names)
    written = {str(name): name for name in names}

    def rule(parameter: str, value: Any) -> Any:
        if value in names:
            return value
        if str(value) not in written:
            raise ValueError(
                f"Parameter {parameter!r} has the unknown value {value!r}: {nearest(value, names)}"
            )
        return written[str(value)]

    return rule


def some_of(names: Iterable[Any]) -> Rule:
    """A rule: the list holds some of these names, at least one, none twice."""
    names = list(names)

    def rule(parameter: str, values: list) -> list:
        if not values:
            raise ValueError(
                f"Parameter {parameter!r} is empty: choose at least one of {', '.join(map(repr, names))}."
            )
        values = [one_of(names)(parameter, value) for value in values]
        if len(set(values)) < len(values):
            raise ValueError(f"Parameter {parameter!r} names something twice: {values}.")
        return values

    return rule


def some_or_none_of(names: Iterable[Any]) -> Rule:
    """As :func:`some_of`, but the list may be empty."""
    rule = some_of(names)
    return lambda parameter, values: values and rule(parameter, values)


def check(namespace: dict[str, Any], **rules: Rule) -> SimpleNamespace:
    """The parameters of a chapter, checked.

    Args:
        namespace: ``globals()`` of the notebook, of which the cell before declared the parameters with
            annotations. What stands in it before the first of them is not looked at.
        rules: further rules by parameter name. ``device``, ``results`` and ``scheduler`` are always checked,
            ``seeds`` and ``iterations`` are at least 1. Where a scheduler is named, its workers check the
            device.

    Returns:
        The parameters as attributes. A list may be given as text with commas, as papermill's ``-p`` passes
        it; what looks like a number in it is one.

    Raises:
        ValueError: a name that was not declared, or an impossible value.
        TypeError: a value of the wrong type.

    >>> cell = {"__annotations__": {"seeds": int, "models": list}, "seeds": 2, "models": "NRU, NMRU"}
    >>> check(cell, models=some_of(["NRU", "NMRU"]))
    namespace(seeds=2, models=['NRU', 'NMRU'])
    >>> check(cell | {"sedes": 5})
    Traceback (most recent call last):
    ValueError: There is no parameter 'sedes': did you mean 'seeds'? Allowed: 'seeds', 'models'.
    """
    declared = {
        name: getattr(kind, "__name__", str(kind))
        for name, kind in namespace.get("__annotations__", {}).items()
    }
    names = list(namespace)
    first = min((names.index(name) for name in declared), default=0)
    for name, value in list(namespace.items())[first:]:
        misspelt = name.strip("_").lower() in declared and isinstance(value, int | float | str)
        if name not in declared and (_is_parameter(name, value) or misspelt):
            raise ValueError(f"There is no parameter {name!r}: {nearest(name, declared)}")
    everywhere = {
        "seeds": between(1, MOST_SEEDS),
        "iterations": at_least(1),
        "device": _device,
        "results": _results,
        "scheduler": _scheduler,
    }
    if namespace.get("scheduler"):
        del everywhere["device"]
    rules = {name: rule for name, rule in everywhere.items() if name in declared} | rules
    values = {name: _typed(name, namespace[name], kind) for name, kind in declared.items()}
    return SimpleNamespace(
        **{name: rules.get(name, lambda _, v: v)(name, value) for name, value in values.items()}
    )


def _is_parameter(name: str, value: Any) -> bool:
    """Modules, functions, constants and IPython's own names are not parameters."""
    return not (name.startswith("_") or name.isupper() or name in ("In", "Out")) and isinstance(
        value, bool | int | float | str | list | dict | tuple | None
    )


def _typed(name: str, value: Any, kind: str) -> Any:
    if kind == "list" and isinstance(value, str):
        # Commas inside of a range, U[1,2), do not separate.
        parts = [part.strip() for part in re.split(r",(?![^\[\]]*[)\]])", value) if part.strip()]
        return [_as_number(part) for part in parts]
    if kind == "list" and isinstance(value, int | float) and not isinstance(value, bool):
        return [value]  # papermill makes a number of a list of one
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    expected = TYPES[kind]
    if not isinstance(value, expected) or (isinstance(value, bool) and kind != "bool"):
        raise TypeError(
            f"Parameter {name!r} must be of type {kind}, but is {value!r} of type {type(value).__name__}."
        )
    if kind == "int" and value > MOST:
        raise ValueError(f"Parameter {name!r} is {value}, but must be at most {MOST:,}.")
    return value


def _as_number(part: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(part)
    return part


def _number(fits: Callable[[float], bool], allowed: str) -> Rule:
    def rule(parameter: str, value: float) -> float:
        if not math.isfinite(value) or not fits(value):
            raise ValueError(f"Parameter {parameter!r} is {value}, but must be {allowed}.")
        return value

    return rule


def _device(parameter: str, value: str) -> str:
    check_device(value)
    return value


def _results(parameter: str, value: str) -> str:
    results_folder(value)
    return value


def _scheduler(parameter: str, value: str) -> str:
    check_scheduler(value)
    return value
