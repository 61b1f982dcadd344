"""Values: frozen, validated descriptions of what is trained (law: a run is a value).

Every description in this library (a range, a task, a model, a recipe, a run) is a :class:`Value`: it is
checked when it is made, cannot be changed afterwards, compares by content and has one canonical JSON form.
What is wrong with bad input is said in one sentence.
"""

from __future__ import annotations

from nalm.extras import train as _  # noqa: F401

# isort: split
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

from nalm.own import find, name_of
from nalm.units.checks import nearest

__all__ = ["Value", "kind_of", "OrOwn"]


class _OneSentence(type(BaseModel)):  # type: ignore[misc]
    """Turns pydantic's report on wrong fields into one sentence where a value is made by a call."""

    def __call__(cls, *unnamed: Any, **fields: Any) -> Any:
        if unnamed:
            raise TypeError(_by_name(cls, unnamed[0]))
        try:
            return super().__call__(**fields)
        except ValidationError as error:
            raise ValueError(_sentence(cls, error)) from None


class Value(BaseModel, metaclass=_OneSentence):
    """A frozen, strictly typed description. Unknown field names, wrong types and numbers that are not finite
    are refused with one sentence. Numbers in a dict, such as the options of a unit, are checked by whom they
    are for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def canonical(self) -> str:
        """The canonical JSON form: sorted keys, no spaces, fields at their default left out. Equal values
        have equal forms, but for numbers that are written otherwise, as 0 and 0.0 in a dict, or 0.0 and -0.0.

        As defaults are left out, a new field with a default changes no existing form; a default must
        therefore never change its meaning.
        """
        return json.dumps(
            self.model_dump(mode="json", exclude_defaults=True),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )

    def but(self, **fields: Any) -> Self:
        """This value with other fields, checked like a new one.

        >>> from nalm.training import Adam
        >>> Adam(lr=0.01).but(lr=0.1)
        Adam(kind='Adam', lr=0.1, beta1=0.9, beta2=0.999, eps=1e-08)
        """
        return type(self)(**(dict(self) | fields))

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError(f"A {type(self).__name__} is frozen: make another one with but({name}={value!r}).")

    @model_serializer(mode="wrap")
    def _keep_kind(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """``kind`` is what a value is recognised by, so it is written even though it is a default."""
        kind = kind_of(self)
        return serialise(self) if kind is None else serialise(self) | {"kind": kind}

    @classmethod
    def from_json(cls, text: str) -> Any:
        """The value whose canonical form is ``text``."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ValueError(_sentence(cls, error)) from None


def kind_of(value: Value) -> str | None:
    """What a value is recognised by: its ``kind``, or the importable name of a class of one's own."""
    return name_of(type(value)) if _is_own(type(value)) else getattr(value, "kind", None)


@dataclass(frozen=True)
class OrOwn:
    """Annotates a field that also takes values of a reader's own subclass of ``base``.
    They are written with the importable name of their class as ``kind``.
    """

    base: type[Value]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        own = core_schema.no_info_plain_validator_function(self._found)
        return core_schema.tagged_union_schema(
            {"ours": handler(source), "own": own},
            self._whose,
            serialization=core_schema.simple_ser_schema("any"),
        )

    def _whose(self, value: Any) -> str:
        kind = value.get("kind") if isinstance(value, Mapping) else None
        named = isinstance(kind, str) and ":" in kind
        return "own" if named or (isinstance(value, self.base) and _is_own(type(value))) else "ours"

    def _found(self, value: Any) -> Any:
        if isinstance(value, self.base):
            return value
        if not issubclass(cls := find(value["kind"]), self.base):
            raise ValueError(f"{value['kind']} is no {self.base.__name__}.")
        return cls.from_json(json.dumps({name: v for name, v in value.items() if name != "kind"}))


@cache  # asked for each part of each key
def _is_own(cls: type[Value]) -> bool:
    """Whether it is a subclass, outside of the library, of one of the library's descriptions."""
    ours = [one for one in cls.__mro__ if one.__module__.startswith("nalm.") and one is not Value]
    return bool(ours) and cls not in ours


def _sentence(cls: type[BaseModel], error: ValidationError) -> str:
    errors = error.errors()
    # A misspelled field is both unknown and missing; the former says more.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    where = ".".join(str(part) for part in first["loc"] if part != "ours" and "[" not in str(part))
    where = where or cls.__name__
    if first["type"] == "missing":
        return f"{cls.__name__} needs the field {where!r}."
    if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
        return f"{cls.__name__} has no field {where!r}: {nearest(where, cls.model_fields)}"
    if first["type"] == "extra_forbidden":
        outer, _, inner = where.rpartition(".")
        return f"{cls.__name__}: {outer} has no field {inner!r}."
    if first["type"] == "value_error":  # a sentence of our own validators
        return str(first["ctx"]["error"])
    if first["type"] in _NO_DESCRIPTION and (allowed := _allowed(cls, *first["loc"])):
        return f"{cls.__name__}: {allowed}, but it is {first['input']!r}."
    return f"{cls.__name__}: {where} is {first.get('input')!r}: {first['msg'][0].lower()}{first['msg'][1:]}."


_NO_DESCRIPTION = {"model_type", "model_attributes_type", "union_tag_not_found"}
"""pydantic's names for a value that is no description where one belongs."""


def _allowed(cls: type[BaseModel], name: int | str = "", *inside: int | str) -> str:
    """Which descriptions a field takes, or an entry of it, as the beginning of a sentence; empty where the
    place is a field of another description.

    >>> from nalm.training import Recipe
    >>> _allowed(Recipe, "optimiser")
    'optimiser must be Adam(...), SGD(...) or RMSProp(...)'
    """
    field = cls.model_fields.get(str(name))
    if field is None:
        return ""
    found = list(dict.fromkeys(one.__name__ for one in _descriptions(field.annotation)))
    texts = {part for part in inside if isinstance(part, str) and "[" not in part}
    if not found or texts - {"ours", *found}:
        return ""
    own = [one.base.__name__ for one in field.metadata if isinstance(one, OrOwn) and one.base is not Value]
    every = [*(f"{one}(...)" for one in found), *(f"a subclass of {one}" for one in own)]
    where = ".".join([str(name), *(str(part) for part in inside if isinstance(part, int))])
    return f"{where} must be {' or '.join(filter(None, [', '.join(every[:-1]), every[-1]]))}"


def _descriptions(annotation: Any) -> Iterator[type[Value]]:
    """Those that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Value):
        yield annotation
    for part in get_args(annotation):
        yield from _descriptions(part)


def _by_name(cls: type[BaseModel], value: Any) -> str:
    """That fields are named, and which there are."""
    fields = [name for name in cls.model_fields if name != "kind"]
    if not fields:
        return f"{cls.__name__} has no fields, but got {value!r}."
    example = f"{cls.__name__}({fields[0]}={value!r})"
    return f"{cls.__name__} takes its fields by name, as in {example}: it has {', '.join(fields)}."
