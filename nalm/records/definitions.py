"""What a piece of code depends on, definition by definition, and a hash of it that does not see the layout.

A *definition* is a function, a class, a method or a constant of a module. Its hash is made of its syntax
tree, in which every name is resolved: one of the library's own to the hash of the definition that it means,
in whichever module that is and whatever it is called there; a foreign one to its qualified name,
``torch.clamp``. So moving, sorting and renaming change no hash, and a name that comes to mean something else
does.

Left out is what changes no number: docstrings, comments, ``__all__``, annotations (of a class's own names
only those that declare an ``nn.Parameter``, as others make the fields of a description), what is raised with
an error, and validators that run after a description is made, which only refuse. Of a class, those methods
count that are called somewhere in the code in use, which is told by their names; of a dict with strings as
keys that is only subscripted, the entries whose keys occur in the code in use or in what is asked for.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

__all__ = ["Definitions", "Place", "names_bound_by"]

_PARSING = threading.Lock()
"""CPython 3.11 fails when two threads build syntax trees at once."""
EFFECTS = "<effects>"
"""The statements of a module that bind no name; all its definitions depend on them."""
FOREIGN = {"forward"}
"""Methods that PyTorch calls."""
HARMLESS = {
    "property",
    "staticmethod",
    "classmethod",
    "abstractmethod",
    "cached_property",
    "no_grad",
    "cache",
    "setter",
}
"""Decorators that leave a method to be called by its name."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """Where a definition is: its module and its qualified name, ``Class.method`` or ``REGISTRY[key]``;
    ``part`` if only some of it is asked for.

    >>> str(Place("nalm.units.nau", "NAU.forward"))
    'nalm.units.nau.NAU.forward'
    """

    module: str
    name: str
    part: bool = False

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class _Shape:
    """The syntax of a definition without layout, the places it refers to in order, and the words in it that
    may name a method or an entry.
    """

    syntax: Any = None
    refers: list[Place] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    # methods or entries: counted where their name is in use
    members: dict[str, Place] = field(default_factory=dict)
    always: set[str] = field(default_factory=set)  # names of members that count in any case


class Definitions:
    """The definitions of some modules.

    Args:
        sources: module name -> source text.
        silent: places, as text, that are known to change no number; what they refer to is not followed.

    >>> sources = {"a": "from b import half\\ndef mean(x, y): return half(x + y)"}
    >>> sources["b"] = "def half(x): return x / 2"
    >>> moved = {"a": "def mean(x, y): return other(x + y)\\ndef other(x): return x / 2"}
    >>> Definitions(sources).hash([Place("a", "mean")]) == Definitions(moved).hash([Place("a", "mean")])
    True
    >>> wrong = sources | {"b": "def half(x): return x / 3"}
    >>> Definitions(sources).hash([Place("a", "mean")]) == Definitions(wrong).hash([Place("a", "mean")])
    False
    """

    def __init__(self, sources: Mapping[str, str], silent: Collection[str] = ()) -> None:
        self.sources, self.silent = dict(sources), frozenset(silent)
        self._modules: dict[str, _Module] = {}
        self._shapes: dict[Place, _Shape] = {}
        self._digests: dict[tuple[Place, tuple[str, ...]], str] = {}

    def hash(self, roots: Iterable[Place], words: Collection[str] = ()) -> str:
        """Sixteen hexadecimal digits that identify everything the roots depend on.

        Args:
            roots: where the code is entered.
            words: names of methods by which it is entered, and keys of entries that are asked for.
        """
        roots = set(roots)
        used = self.used(roots, words)
        colours, kinds = {place: self._colour(place, *syntax) for place, (syntax, _) in used.items()}, 0
        # Definitions may refer to each other in circles, so references are resolved round by round, until no
        # two more can be told apart.
        while len(set(colours.values())) > kinds:
            kinds = len(set(colours.values()))
            colours = {
                place: _digest_of(colours[place], [colours[other] for other in refers])
                for place, (_, refers) in used.items()
            }
        return _digest([sorted(colours[place] for place in roots), sorted(set(colours.values()))])[:16]

    def _colour(self, place: Place, syntax: Any, names: list[str]) -> str:
        key = place, tuple(names)
        if key not in self._digests:
            self._digests[key] = _digest([syntax, names])
        return self._digests[key]

    def used(
        self, roots: Iterable[Place], words: Collection[str] = ()
    ) -> dict[Place, tuple[Any, list[Place]]]:
        """Every place that the roots depend on, with its syntax and the places it refers to."""
        found: dict[Place, _Shape] = {}
        words, waiting = set(words), list(roots)
        # A word that is met late may name a method of a class that was met early.
        later: dict[str, list[Place]] = {}
        while waiting:
            place = waiting.pop()
            if place in found:
                continue
            shape = found[place] = self._shape(place)
            waiting += shape.refers
            for name, member in shape.members.items():
                if name in words or name in shape.always:
                    waiting.append(member)
                else:
                    later.setdefault(name, []).append(member)
            for word in shape.words - words:
                waiting += later.pop(word, ())
            words |= shape.words
        return {place: _with_members(shape, found) for place, shape in found.items()}

    def place_of(self, module: str, name: str) -> Place:
        """Where the name that a module knows is defined.

        Raises:
            KeyError: the module is not known or has no such definition.
        """
        match self._resolve(module, name):
            case Place() as place:
                return place
        raise KeyError(f"{module}.{name}")

    def named(self, name: str) -> list[Place]:
        """All definitions of that name."""
        return [
            Place(module, name) for module in sorted(self.sources) if name in self._module(module).definitions
        ]

    def part_of(self, place: Place) -> Place:
        """Of a dict with strings as keys, the entries that are asked for; anything else as a whole."""
        return place._replace(part=bool(_registry(self._module(place.module).definitions[place.name])))

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            self._modules[name] = _Module(_tree(self.sources[name]))
        return self._modules[name]

    def _resolve(self, module: str, name: str) -> Place | str | None:
        """A place, the qualified name of a module or of something foreign, or nothing if the module does not
        know the name.
        """
        known = self._module(module)
        if name in known.definitions:
            return Place(module, name)
        if name in known.imports:
            return self._imported(*known.imports[name])
        stars = (self._resolve(star, name) for star in known.stars if star in self.sources)
        return next((found for found in stars if found is not None), None)

    def _imported(self, module: str, name: str | None) -> Place | str:
        if name is None:
            return module
        if module in self.sources and (found := self._resolve(module, name)) is not None:
            return found
        return f"{module}.{name}"

    def _attribute(self, owner: Place | str, name: str) -> Place | str | None:
        """What an attribute of a module or of something foreign is; nothing for one of a definition, whose
        value is not known here.
        """
        return self._imported(owner, name) if isinstance(owner, str) else None

    def _shape(self, place: Place) -> _Shape:
        if place not in self._shapes:
            self._shapes[place] = (
                _Shape("silent")
                if str(place) in self.silent or place.module in self.silent
                else self._read(place)
            )
        return self._shapes[place]

    def _read(self, place: Place) -> _Shape:
        module, reader = self._module(place.module), _Reader(self, place.module)
        shape, (outer, inner) = reader.shape, re.fullmatch(r"([^.[]+)[.[]?(.*?)\]?", place.name).groups()  # type: ignore[union-attr]
        if outer == EFFECTS:
            shape.syntax = reader.read(module.effects)
            return shape
        statements = module.definitions[outer]
        if inner and isinstance(statements[0], ast.ClassDef):
            shape.syntax = [reader.function(node, node.name) for node in _methods(statements[0])[inner]]
        elif inner:
            shape.syntax = reader.read(_registry(statements)[inner])
        elif len(statements) == 1 and isinstance(statements[0], ast.ClassDef):
            reader.class_(place, statements[0])
        elif place.part:
            shape.syntax, shape.members = (
                "registry",
                {key: Place(place.module, f"{outer}[{key}]") for key in _registry(statements)},
            )
        else:
            shape.syntax = [reader.bound(node, outer) for node in statements]
        if module.effects:
            shape.refers.append(Place(place.module, EFFECTS))
        return shape


def _with_members(shape: _Shape, found: Collection[Place]) -> tuple[Any, list[Place]]:
    """The syntax and the references of a place with those of its members that count."""
    if not shape.members:
        return [shape.syntax, []], shape.refers
    names = sorted(name for name, member in shape.members.items() if member in found)
    return [shape.syntax, names], [*shape.refers, *(shape.members[name] for name in names)]


@cache
def _tree(source: str) -> ast.Module:
    with _PARSING:
        return ast.parse(source)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _digest_of(one: str, others: list[str]) -> str:
    """Of digests, faster.

    >>> _digest_of("a", ["b", "c"]) == _digest(["a", ["b", "c"]]), _digest_of("a", []) == _digest(["a", []])
    (True, True)
    """
    listed = '", "'.join(others)
    return hashlib.sha256(
        f'["{one}", ["{listed}"]]'.encode() if others else f'["{one}", []]'.encode()
    ).hexdigest()


class _Module:
    """What a module binds: name -> the statements that define it, name -> what it is imported from, the
    modules of which it imports everything; and its other statements.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.stars: list[str] = []
        self.effects: list[ast.stmt] = []
        self._enter(tree.body)

    def _enter(self, statements: list[ast.stmt]) -> None:
        for node in statements:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.imports |= _imports(node)
                if "*" in self.imports:
                    self.stars.append(self.imports.pop("*")[0])
            elif isinstance(node, ast.If | ast.Try):
                # Which of the branches is taken is part of none of the definitions in them.
                for branch in ("body", "orelse", "finalbody"):
                    self._enter(getattr(node, branch, []))
                for handler in getattr(node, "handlers", []):
                    self._enter(handler.body)
            elif names := names_bound_by(node):
                for name in names:
                    self.definitions.setdefault(name, []).append(node)
            elif not _is_text(node) and not isinstance(node, ast.Pass):
                self.effects.append(node)


def _imports(node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str | None]]:
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
    bound = {alias.asname or alias.name.partition(".")[0]: alias for alias in node.names}
    return {name: (alias.name if alias.asname else name, None) for name, alias in bound.items()}


def names_bound_by(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines or imports; none where it changes what one holds."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return list(_imports(node))
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return []
    parts = [part for target in targets for part in ast.walk(target)]
    if any(isinstance(part, ast.Attribute | ast.Subscript) for part in parts):
        return []
    return [part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def _declares_parameter(node: ast.stmt) -> bool:
    """Whether a statement of a class only declares a parameter for type checkers: ``gate: nn.Parameter``."""
    return (
        isinstance(node, ast.AnnAssign)
        and node.value is None
        and ast.unparse(node.annotation).startswith("nn.Parameter")
    )


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _registry(statements: list[ast.stmt]) -> dict[str, ast.expr]:
    """The entries of a dict display whose keys are strings; empty for anything else."""
    value = getattr(statements[0], "value", None) if len(statements) == 1 else None
    if not isinstance(value, ast.Dict) or not all(
        isinstance(key, ast.Constant) and isinstance(key.value, str) for key in value.keys
    ):
        return {}
    return {key.value: entry for key, entry in zip(value.keys, value.values, strict=True)}  # type: ignore[union-attr]


def _methods(node: ast.ClassDef) -> dict[str, list[Function]]:
    """Name -> definitions; several for the setter of a property and the like."""
    found: dict[str, list[Function]] = {}
    for statement in node.body:
        if isinstance(statement, Function):
            found.setdefault(statement.name, []).append(statement)
    return found


class _Reader:
    """Reads the shape of one definition.

    Args:
        definitions: resolve names.
        module: the module that the definition is in.
    """

    def __init__(self, definitions: Definitions, module: str) -> None:
        self.definitions, self.module, self.shape = definitions, module, _Shape()
        # local names, and what those are imported from that are
        self.scopes: list[dict[str, tuple[str, str | None] | None]] = []

    def bound(self, node: ast.stmt, name: str) -> Any:
        """A statement of a module that binds ``name``, without the name: a function by what it does, a
        constant by its value.
        """
        if isinstance(node, Function):
            return self.function(node, "")
        names = names_bound_by(node)
        place = names.index(name) if len(names) > 1 else 0
        return [
            type(node).__name__,
            len(names),
            place,
            self.read(getattr(node, "op", None)),
            self.read(node.value),  # type: ignore[attr-defined]
        ]

    def class_(self, place: Place, node: ast.ClassDef) -> None:
        """A class without its methods, which are members of their own."""
        methods, others = (
            _methods(node),
            [one for one in node.body if not isinstance(one, Function) and not _declares_parameter(one)],
        )
        self.scopes.append(
            dict.fromkeys([*methods, *(name for statement in others for name in names_bound_by(statement))])
        )
        inside = self.read(others)
        self.scopes.pop()
        handed_on = {
            part.id for statement in others for part in ast.walk(statement) if isinstance(part, ast.Name)
        }
        self.shape.syntax = [
            "class",
            node.name,
            self.read(node.decorator_list),
            self.read(node.bases),
            self.read(node.keywords),
            inside,
        ]
        self.shape.members = {
            name: Place(place.module, f"{place.name}.{name}")
            for name, parts in methods.items()
            if not _only_refuses(parts[0])
        }
        self.shape.always = {
            n
            for n, parts in methods.items()
            if n.startswith("__") or n in handed_on | FOREIGN or not all(map(_is_called_by_name, parts))
        }

    def read(self, node: Any) -> Any:
        """A syntax tree as nested lists, the same in all versions of Python: without what is empty."""
        if isinstance(node, list):
            return [
                self.read(one)
                for one in node
                if not _is_text(one) and not isinstance(one, ast.Import | ast.ImportFrom)
            ]
        if isinstance(node, ast.Name | ast.Attribute):
            return self._name(node)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name | ast.Attribute):
            return ["Subscript", self._name(node.value, subscripted=True), self.read(node.slice)]
        if isinstance(node, Function):
            return self.function(node, node.name)
        if isinstance(node, ast.Lambda):
            outside = self._defaults(node.args)
            return [
                "Lambda",
                outside,
                self._inside([node.args, node.body], lambda: [_signature(node.args), self.read(node.body)]),
            ]
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._inside(node.generators, lambda: self._fields(node))
        if isinstance(node, ast.AnnAssign):
            return ["Assign", self.read(node.target), self.read(node.value)]
        if isinstance(node, ast.Raise):
            return ["Raise"]
        if isinstance(node, ast.AST):
            return self._fields(node)
        if isinstance(node, str):
            self.shape.words.add(node)
        return repr(node)

    def function(self, node: Function, name: str) -> Any:
        outside = [self.read(node.decorator_list), self._defaults(node.args)]
        inside = self._inside([node.args, *node.body], lambda: [_signature(node.args), self.read(node.body)])
        return [type(node).__name__, name, outside, inside]

    def _defaults(self, node: ast.arguments) -> Any:
        return [self.read(node.defaults), self.read(node.kw_defaults)]

    def _inside(self, parts: Iterable[ast.AST], read: Callable[[], Any]) -> Any:
        self.scopes.append(_local_names(parts))
        shape = read()
        self.scopes.pop()
        return shape

    def _fields(self, node: ast.AST) -> Any:
        fields = ((name, self.read(value)) for name, value in ast.iter_fields(node) if value is not None)
        return [type(node).__name__, *([name, value] for name, value in fields if value != [])]

    def _name(self, node: ast.Name | ast.Attribute, subscripted: bool = False) -> Any:
        match self._meaning(node):
            case Place() as place:
                self.shape.refers.append(self.definitions.part_of(place) if subscripted else place)
                return ["own"]
            case str() as foreign:
                if foreign in self.definitions.sources:
                    raise ValueError(
                        f"{self.module} hands the module {foreign} on as a value, "
                        "so it cannot be told what is used of it."
                    )
                return ["foreign", foreign]
        if isinstance(node, ast.Attribute):
            self.shape.words.add(node.attr)
            return ["Attribute", self.read(node.value), node.attr]
        return ["Name", node.id]

    def _meaning(self, node: ast.expr) -> Place | str | None:
        if isinstance(node, ast.Attribute):
            owner = self._meaning(node.value)
            return None if owner is None else self.definitions._attribute(owner, node.attr)
        if not isinstance(node, ast.Name):
            return None
        for scope in reversed(self.scopes):
            if node.id in scope:
                imported = scope[node.id]
                return self.definitions._imported(*imported) if imported else None
        found = self.definitions._resolve(self.module, node.id)
        return f"builtins.{node.id}" if found is None and hasattr(builtins, node.id) else found


def _signature(node: ast.arguments) -> Any:
    """The names of the arguments."""
    every = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    return [
        [a.arg for a in every],
        len(node.posonlyargs),
        len(node.kwonlyargs),
        node.vararg and node.vararg.arg,
        node.kwarg and node.kwarg.arg,
    ]


def _local_names(parts: Iterable[ast.AST]) -> dict[str, tuple[str, str | None] | None]:
    """The names that a function or comprehension binds itself, without those of the scopes inside it."""
    names: dict[str, tuple[str, str | None] | None] = {}
    elsewhere: set[str] = set()
    for node in _of_this_scope(parts):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names[node.id] = None
        elif isinstance(node, ast.arg):
            names[node.arg] = None
        elif isinstance(node, Function | ast.ClassDef):
            names[node.name] = None
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= _imports(node)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names[node.rest] = None
        elif isinstance(node, ast.Global):
            elsewhere |= set(node.names)
    return {name: imported for name, imported in names.items() if name not in elsewhere}


def _of_this_scope(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in parts:
        yield node
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            # binds in the function around it
            yield from (part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr))
        elif not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            yield from _of_this_scope(ast.iter_child_nodes(node))


def _only_refuses(node: Function) -> bool:
    """Whether a method is a validator that runs when a description is complete."""
    return any(
        isinstance(d, ast.Call)
        and getattr(d.func, "id", "") == "model_validator"
        and any(k.arg == "mode" and getattr(k.value, "value", "") == "after" for k in d.keywords)
        for d in node.decorator_list
    )


def _is_called_by_name(node: Function) -> bool:
    """Whether nobody but a caller by name can reach a method: it has no decorator that may hand it on."""

    def name(decorator: ast.expr) -> str:
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator
        return decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")

    return all(name(decorator) in HARMLESS for decorator in node.decorator_list)
