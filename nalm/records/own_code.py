"""The reader's own source: that of units, tasks and ranges from outside of the library, and what they import.

Own is every module that is neither the library's, nor Python's, nor installed.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from inspect import unwrap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from nalm.own import cells, is_main
from nalm.records.definitions import names_bound_by

__all__ = ["own_is_unchanged", "own_sources"]


def own_sources(classes: frozenset[type]) -> dict[str, str]:
    """Module name -> source text of what these classes, their bases and what they call are defined in, as it
    was when it was asked for first; what was imported or defined anew since is asked for again.
    """
    if not (own := _not_the_librarys(classes)):
        return {}
    functions = (getattr(one, "__code__", None) for cls in own for one in vars(cls).values())
    return _known(own, frozenset(functions), tuple(cells()))


def _not_the_librarys(classes: Iterable[type]) -> frozenset[type]:
    return frozenset(one for one in classes if not one.__module__.startswith(("nalm.", "torch.")))


@cache
def _known(
    classes: frozenset[type], functions: frozenset[CodeType | None], ran: tuple[str, ...]
) -> dict[str, str]:
    return _read(classes)


def own_is_unchanged(classes: frozenset[type]) -> bool:
    """Whether the files still say what :func:`own_sources` found in them, and what was imported."""
    found = own_sources(classes)
    return found == _read(_not_the_librarys(classes)) and all(map(_is_as_imported, found))


def _is_as_imported(name: str) -> bool:
    """Whether the functions, methods, default arguments and literals of a module are those that its file has
    now.
    """
    module, file = sys.modules.get(name), None if is_main(name) and cells() else _file(name)
    if module is None or file is None:
        return True
    text = file.read_text(encoding="utf-8")
    written: dict[str, list[tuple]] = {}  # a property has several functions of its name
    for code in _codes(compile(text, str(file), "exec")):
        written.setdefault(code.co_qualname, []).append(_steps(code))
    values = list(vars(module).values())
    values += [one for value in values if isinstance(value, type) for one in vars(value).values()]
    codes = (getattr(function, "__code__", None) for value in values for function in _functions(value))
    return _has_values(ast.parse(text).body, vars(module), name) and all(
        _steps(code) in written.get(code.co_qualname, [])
        for code in codes
        if isinstance(code, CodeType)
        and Path(code.co_filename).resolve() == file
        and "@pytest_ar" not in code.co_names  # pytest writes assertions anew
    )


def _functions(value: Any) -> list[Any]:
    """What is called of a function, method, property or what decorates one."""
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, cached_property):
        value = value.func
    try:
        return [unwrap(value)] if callable(value) else []
    except ValueError:  # it wraps itself
        return []


PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, list, dict)
"""The types of literals that are compared."""


def _has_values(body: list[ast.stmt], loaded: Mapping[str, Any], module: str) -> bool:
    """Whether what a module or class has loaded are the literals and default arguments that are written.

    Left out is what may have changed since: a name that is bound twice or in a function, an attribute that
    is set on something else than ``self``, and what begins empty.
    """
    bound = Counter(name for node in body for name in names_bound_by(node))
    for one in (inner for node in body for inner in ast.walk(node)):
        if isinstance(one, ast.Global):
            bound.update(one.names)
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and not _of_self(one):
            bound[one.attr] += 1
    for node in body:
        for name in (one for one in names_bound_by(node) if bound[one] == 1 and one in loaded):
            value = loaded[name]
            if isinstance(node, ast.ClassDef):
                if isinstance(value, type) and value.__module__ == module:
                    fields = getattr(value, "model_fields", {}).items()
                    inner = {name: field.default for name, field in fields} | dict(vars(value))
                    if not _has_values(node.body, inner, module):
                        return False
            elif isinstance(node, ast.FunctionDef):
                functions = [one for one in _functions(value) if isinstance(one, FunctionType)]
                # what decorates it without saying so has arguments of its own
                written = [one for one in functions if one.__code__.co_name == node.name]
                if not all(_has_defaults(node.args, one) for one in written):
                    return False
            elif isinstance(node, ast.Assign | ast.AnnAssign) and type(value) in PLAIN:
                targets = getattr(node, "targets", [getattr(node, "target", None)])
                named = all(isinstance(target, ast.Name) for target in targets)
                if named and not _is_literal(node.value, value):
                    return False
    return True


def _of_self(attribute: ast.Attribute) -> bool:
    """Whether an attribute is one of an instance, which leaves that of the class as it is."""
    return isinstance(attribute.value, ast.Name) and attribute.value.id == "self"


def _has_defaults(written: ast.arguments, function: FunctionType) -> bool:
    named = function.__kwdefaults__ or {}
    of_names = zip(written.kwonlyargs, written.kw_defaults, strict=True)
    pairs = [(one, named.get(argument.arg)) for argument, one in of_names if one is not None]
    values = function.__defaults__ or ()
    return (
        len(values) == len(written.defaults)
        and len(named) == len(pairs)
        and all(_is_literal(*pair) for pair in [*zip(written.defaults, values, strict=True), *pairs])
    )


def _is_literal(written: ast.expr | None, value: Any) -> bool:
    """Whether a value is the literal that is written; anything is where no literal is, or an empty one."""
    try:
        literal = ast.literal_eval(written)  # type: ignore[arg-type]
    except (ValueError, TypeError, SyntaxError):
        return True
    return literal in ([], {}, None) or repr(literal) == repr(value)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def _steps(code: CodeType) -> tuple:
    """What a function does, without the functions in it."""
    values = tuple(repr(one) for one in code.co_consts if not isinstance(one, CodeType))
    return code.co_code, code.co_names, values


def _read(classes: Iterable[type]) -> dict[str, str]:
    found: dict[str, str] = {}
    waiting = sorted({base.__module__ for one in classes for base in one.__mro__})
    while waiting:
        name = waiting.pop()
        if name not in found and (tree := _own_tree(name)):
            found[name] = ast.unparse(tree)
            waiting += _imported_by(tree)
    return found


def _own_tree(name: str) -> ast.Module | None:
    """The source of a module of the reader's own, without what stands under ``if __name__ == "__main__"`` and
    with relative imports written out; ``None`` for any other module.
    """
    if is_main(name) and (ran := cells()):
        return _of_cells(ran)
    above, file = _file(name.partition(".")[0]), None
    if above is None or _is_own(above):
        file = _file(name)
    if file is None or not _is_own(file):
        return None
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not _is_guarded(node)]
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = package.rsplit(".", node.level - 1)[0]
            node.module, node.level = f"{start}.{node.module}" if node.module else start, 0
    return tree


def _file(name: str) -> Path | None:
    try:
        module = sys.modules.get(name)
        found = getattr(module, "__file__", None) or importlib.util.find_spec(name).origin  # type: ignore[union-attr]
    except (AttributeError, ImportError, ValueError):
        return None
    return Path(found).resolve() if found and found.endswith(".py") else None


def _is_own(file: Path) -> bool:
    elsewhere = {"site-packages", "dist-packages"} & set(file.parts)
    return not elsewhere and not any(file.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> frozenset[Path]:
    """Where Python, packages and this library are."""
    python = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib")}
    return frozenset({*python, Path(__file__).resolve().parents[1]})


def _is_guarded(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _of_cells(ran: list[str]) -> ast.Module:
    """What the cells of a notebook define, each name as it was defined last."""
    last: dict[str, ast.stmt] = {}
    for cell in ran:
        for node, names in _bound_in(cell):
            last |= dict.fromkeys(names, node)
    return ast.Module(list(dict.fromkeys(last.values())), [])


@cache
def _bound_in(cell: str) -> list[tuple[ast.stmt, list[str]]]:
    """The statements of a cell, each with the names that it binds; none if the cell is not Python."""
    with suppress(SyntaxError):
        return [(node, list(names_bound_by(node))) for node in ast.parse(cell).body]
    return []


def _imported_by(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
