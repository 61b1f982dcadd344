"""Checks of constructor arguments: each raises one sentence that says what was wrong and what is allowed."""

import difflib
import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

import torch


def nearest(name: object, allowed: Iterable[Any]) -> str:
    """The end of an error sentence: the nearest allowed name, if there is one, and all that are allowed.

    >>> nearest("NRUU", ["NRU", "NMU"])
    "did you mean 'NRU'? Allowed: 'NRU', 'NMU'."
    """
    by_text = {str(a): a for a in allowed}
    guesses = difflib.get_close_matches(str(name), by_text, n=1, cutoff=0.5)
    listed = ", ".join(repr(a) for a in by_text.values())
    return f"did you mean {by_text[guesses[0]]!r}? Allowed: {listed}." if guesses else f"allowed: {listed}."


def choose(what: str, name: object, allowed: Iterable[str]) -> str:
    """``name`` itself if it is allowed, else a ``ValueError`` of one sentence.

    >>> choose("unit", "NRU", ["NRU", "NMU"])
    'NRU'
    """
    allowed = list(allowed)
    if name not in allowed:
        raise ValueError(f"Unknown {what} {name!r}: {nearest(name, allowed)}")
    return str(name)


def positive_int(name: str, value: Any) -> int:
    """``value`` as an int if it is an integer, also one of NumPy, of at least 1."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a positive integer, but it is {value!r} ({type(value).__name__}).")
    if (number := operator.index(value)) < 1:
        raise ValueError(f"{name} must be a positive integer, but it is {value!r}.")
    return number


def integer(name: str, value: Any, low: int | None = None) -> int:
    """``value`` as an int if it is an integer, also one of NumPy, of at least ``low`` if that is given."""
    wanted = "an integer" if low is None else f"an integer of at least {low}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be {wanted}, but it is {value!r} ({type(value).__name__}).")
    if low is not None and value < low:
        raise ValueError(f"{name} must be {wanted}, but it is {value!r}.")
    return operator.index(value)


def number(name: str, value: Any, low: float = float("-inf"), high: float = float("inf")) -> float:
    """``value`` as a float if it is a finite number in ``[low, high]``."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, but it is {value!r} ({type(value).__name__}).")
    if not (low <= float(value) <= high and math.isfinite(value)):
        raise ValueError(f"{name} must be {_within(low, high)}, but it is {value!r}.")
    return float(value)


def _within(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"a number in [{low}, {high}]"
    return f"a finite number of at least {low}" if math.isfinite(low) else "a finite number"


def floating_point(name: str, value: Any) -> torch.dtype | None:
    """``value`` if it is a floating-point dtype, or None."""
    if value is not None and not (isinstance(value, torch.dtype) and value.is_floating_point):
        raise TypeError(f"{name} must be a floating-point type of torch, but it is {value!r}.")
    return value


def boolean(name: str, value: Any) -> bool:
    """``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, but it is {value!r} ({type(value).__name__}).")
    return value


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """``value`` if it is one of ``allowed``."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise ValueError(f"Unknown {name} {value!r}: {nearest(value, allowed)}")
    return value


def as_tuple(value: Any) -> Any:
    """A list, as JSON has them, as a tuple; anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def subset(name: str, values: Any, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """``values`` as a tuple if each of them is one of ``allowed``."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        meant = f"write ({values!r},)." if values in allowed else nearest(values, allowed)
        raise TypeError(f"{name} must be a tuple of names, but it is {values!r}: {meant}")
    return tuple(one_of(name, value, allowed) for value in values)
