"""Operations on the two operands a and b of an arithmetic task, for torch tensors and NumPy arrays alike."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator
from functools import cache
from types import CodeType
from typing import Annotated

import torch
from pydantic import BeforeValidator
from torch import Tensor

from nalm.units.checks import nearest

__all__ = ["OPERATIONS", "Operation", "check_operation", "operation"]

OPERATIONS: dict[str, Callable] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "squared": lambda a, b: a * a,
    "root": lambda a, b: a**0.5,
    "reciprocal": lambda a, b: 1 / a,
}
"""name -> op(a, b). ``squared``, ``root`` and ``reciprocal`` ignore b."""


LONGEST = 500
"""Characters of an expression; Python cannot read one of any depth."""


def operation(name: str) -> Callable:
    """The operation of that name, or what an expression of a and b computes.

    Raises:
        ValueError: no name of an operation, nor an expression made of a, b, numbers, ``abs`` and
            ``+ - * / // % **``.

    >>> operation("a * a + b")(3, 4)
    13
    """
    try:
        return OPERATIONS[name]
    except KeyError:
        return _computed(name)


@cache
def _computed(expression: str) -> Callable:
    if len(str(expression)) > LONGEST:
        raise ValueError(f"An operation is written in at most {LONGEST} characters, not {len(expression)}.")
    try:
        tree = ast.parse(expression, mode="eval")
    except (SyntaxError, TypeError, MemoryError, RecursionError):
        tree = ast.Expression(ast.Constant(None))
    for node in ast.walk(tree):
        if not (
            isinstance(node, ast.Expression | ast.BinOp | ast.UnaryOp | ast.Load | ast.UAdd | ast.USub)
            or isinstance(node, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow)
            or (isinstance(node, ast.Constant) and type(node.value) in (int, float))
            or (isinstance(node, ast.Name) and node.id in ("a", "b", "abs"))
            or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1)
        ):
            raise ValueError(
                f"Unknown operation {expression!r}: {nearest(expression, OPERATIONS)} One of your own is "
                "computed from a, b and numbers with + - * / // % ** and abs."
            )
    if any(map(_is_too_large, ast.walk(tree))):
        raise _no_number(expression)
    names = {"__builtins__": {}, "abs": abs}
    return eval(compile(ast.parse(f"lambda a, b: {expression}", mode="eval"), "<operation>", "eval"), names)


def _is_too_large(node: ast.AST) -> bool:
    """Whether it is a power of numbers beyond float64: to write out 9 ** 9 ** 9 takes for ever."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
        return False
    numbers = ast.parse(ast.unparse(node), mode="eval")
    for one in ast.walk(numbers):
        if isinstance(one, ast.Constant):
            one.value = float(one.value)  # type: ignore[arg-type]
    try:
        eval(compile(numbers, "<operation>", "eval"), {"__builtins__": {}, "abs": abs})
    except ArithmeticError:
        return True
    except (NameError, TypeError):
        pass  # it is one of a or b, or of what has no power
    return False


def _no_number(name: str) -> ValueError:
    return ValueError(
        f"Operation {name!r} computes no number from a and b: write an expression such as 'a * b + 1'."
    )


@cache  # asked for each task that is made
def check_operation(name: str) -> None:
    """Refuse what computes no number from two operands.

    Raises:
        ValueError: see :func:`operation`; or an expression that fails, or has no finite value anywhere.

    >>> check_operation("a + abs")
    Traceback (most recent call last):
        ...
    ValueError: Operation 'a + abs' computes no number from a and b: write an expression such as 'a * b + 1'.
    """
    a, b = torch.tensor([1.5, 2.5]), torch.tensor([0.5, 3.0])
    computed = operation(name)
    try:
        found = computed(a, b)
    except Exception:  # of many kinds
        found = None
    if not (isinstance(found, Tensor) and found.shape == a.shape and found.isfinite().any()):
        raise _no_number(name)


def _named(given: object) -> object:
    """The expression that a function of two operands returns."""
    if not callable(given):
        return given
    known = [name for name, one in OPERATIONS.items() if one is given]
    return known[0] if known else _expression(given)


def _expression(function: Callable) -> str:
    """What a function of two operands returns, as an expression of a and b."""
    try:
        found = list(_defined_with(getattr(function, "__code__", None)))
    except OSError:
        raise ValueError(
            f"The source of {function!r} cannot be read: write the operation as text, as 'a * a + b'."
        ) from None
    for arguments, body in found:
        named = dict(zip((one.arg for one in arguments.args), "ab", strict=False)) | {"abs": "abs"}
        names = [node for node in ast.walk(body) if isinstance(node, ast.Name)]
        if len(arguments.args) == 2 and all(node.id in named for node in names):
            for node in names:
                node.id = named[node.id]
            return ast.unparse(body)
    raise ValueError(
        f"{function!r} is no operation: it must be a function of two operands that returns one "
        "expression of these alone, as lambda a, b: a * a + b."
    )


def _defined_with(code: CodeType | None) -> Iterator[tuple[ast.arguments, ast.expr]]:
    """Arguments and result of the functions in a source that have this code."""
    for node in ast.walk(ast.parse("".join(inspect.findsource(code)[0]))) if code else ():
        if not isinstance(node, ast.Lambda | ast.FunctionDef) or node.lineno != code.co_firstlineno:  # type: ignore[union-attr]
            continue
        made = _made_of(node)
        if (made.co_code, made.co_consts) != (code.co_code, code.co_consts):  # type: ignore[union-attr]
            continue
        if isinstance(node, ast.Lambda):
            yield node.args, node.body
        else:
            match node.body[1:] if ast.get_docstring(node) is not None else node.body:
                case [ast.Return(value=ast.expr() as result)]:
                    yield node.args, result


def _made_of(node: ast.Lambda | ast.FunctionDef) -> CodeType:
    """The code of a function in a source, which may have been edited since the function was made."""
    statement = ast.Expr(node) if isinstance(node, ast.Lambda) else node
    module = compile(ast.fix_missing_locations(ast.Module([statement], [])), "", "exec")
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return next(one for one in module.co_consts if isinstance(one, CodeType) and one.co_name == name)


Operation = Annotated[str, BeforeValidator(_named)]
"""A name of :data:`OPERATIONS`, an expression of a and b, or a function that returns one, which is kept as
the expression.
"""
