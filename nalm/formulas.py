"""What a trained model computes, as formulas of SymPy: its own forward pass, run on symbols.

So a formula is never a second statement of a unit's equation, and a unit or a layer of one's own has one too.
SymPy is the extra ``formulas``.
"""

from __future__ import annotations

import builtins
import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves, tree_map

from nalm.units.checks import integer

if TYPE_CHECKING:
    import sympy

__all__ = ["formula", "formula_error"]

aten = torch.ops.aten


@torch.no_grad()
def formula(
    model: nn.Module, names: Sequence[str | sympy.Symbol], digits: int | None = None
) -> tuple[sympy.Expr, ...]:
    """The outputs of a model as SymPy expressions of its inputs, as it computes them in evaluation.

    Args:
        model: from ``(..., len(names))`` to ``(..., outputs)``: units, stacks of them, and networks of other
            layers with them. It is not changed.
        names: of the inputs, which are real numbers; or symbols, which may be known to be more than that:
            ``sympy.Symbol("x", positive=True)``.
        digits: round every number that meets an input to so many decimals; what rounds to zero vanishes.
            ``None``: not at all.

    Returns:
        One expression for each output.

    Raises:
        ImportError: SymPy is not installed.
        TypeError: no model; names that are neither texts nor symbols, or a number of decimals that is no
            integer.
        ValueError: two names are the same; the model takes another number of inputs, returns something else
            than a vector, or cannot be copied, as with pruned weights; a negative number of decimals.
        NotImplementedError: the model contains an operation that has no symbol here, or is on ``meta``.

    Example:
        >>> import torch
        >>> from nalm import NAU, NMU, round_
        >>> model = torch.nn.Sequential(NAU(4, 2), NMU(2, 1))
        >>> with torch.no_grad():
        ...     _ = model[0].weight.copy_(torch.tensor([[0.9, 0.8, 0.1, 0.0], [0.1, 0.0, 1.0, 0.9]]))
        ...     _ = model[1].weight.fill_(0.9)
        >>> round_(model)
        >>> formula(model, ["x1", "x2", "x3", "x4"])
        ((x1 + x2)*(x3 + x4),)
    """
    _needs_sympy()
    names = _checked(names)
    if digits is not None:
        integer("digits", digits, low=0)
    import sympy
    from torch.fx.experimental.proxy_tensor import make_fx

    if not isinstance(model, nn.Module):
        raise TypeError(f"What has a formula is a torch.nn.Module, not {model!r}.")
    model = _copied(model).cpu().double()
    try:
        graph = make_fx(model)(torch.ones(len(names), dtype=torch.float64))
    except RuntimeError as error:  # of a layer of PyTorch
        raise ValueError(f"The model does not take {len(names)} inputs: {error}.") from None
    symbols = [sympy.Symbol(name, real=True) if isinstance(name, str) else name for name in names]
    interpreter = _Symbols(graph, digits)
    outputs = interpreter.run(np.array(symbols, dtype=object))
    if not (isinstance(outputs, np.ndarray) and outputs.ndim == 1):
        raise ValueError(f"The model must map {len(names)} numbers to a vector that depends on them.")
    return tuple(interpreter.rounded(_signed(one)) for one in outputs)


@torch.no_grad()
def formula_error(
    formulas: Sequence[sympy.Expr] | sympy.Expr,
    names: Sequence[str | sympy.Symbol],
    model: nn.Module,
    inputs: Tensor,
) -> float:
    """The largest absolute difference between formulas and a model's outputs, over given inputs.

    Args:
        formulas: one for each output, as :func:`formula` returns them; or the only one.
        names: of the inputs, as they were given there.
        model: the model, which is evaluated as it is in evaluation.
        inputs: ``(examples, len(names))``.

    Raises:
        ImportError: SymPy is not installed.
        TypeError: formulas that are no expressions of SymPy, names that are neither texts nor symbols, or
            inputs that are no tensor.
        ValueError: two names are the same; formulas of other names or of another number, no inputs or other
            ones than these, or a model that cannot be copied, as with pruned weights.

    Example:
        >>> import torch
        >>> from nalm import NMU
        >>> model, names = NMU(2, 1), ["a", "b"]
        >>> _ = torch.nn.init.constant_(model.weight, 0.999)
        >>> product = formula(model, names, digits=2)
        >>> product
        (a*b,)
        >>> formula_error(product, names, model, torch.full((1, 2), 10.0)) < 0.2
        True
    """
    _needs_sympy()
    names = _checked(names)
    import sympy

    formulas = [formulas] if isinstance(formulas, sympy.Basic | str) else list(formulas)
    if others := [one for one in formulas if not isinstance(one, sympy.Basic)]:
        raise TypeError(f"A formula is an expression of SymPy, not {others[0]!r}.")
    if not isinstance(inputs, Tensor):
        raise TypeError(f"The inputs must be a tensor, but are of type {type(inputs).__name__}.")
    free = {str(symbol): symbol for one in formulas for symbol in one.free_symbols}
    symbols = [free.get(str(name), sympy.Symbol(str(name))) for name in names]
    if others := sorted(free.keys() - set(map(str, names))):
        raise ValueError(f"The formulas have {', '.join(others)}, which is none of the names {list(names)}.")
    if inputs.dim() != 2 or inputs.shape[1] != len(names) or not len(inputs):
        raise ValueError(
            f"The inputs must be (examples, {len(names)}), one at least, but are {tuple(inputs.shape)}."
        )
    # SymPy would write it as cases, which it multiplies out.
    functions = {"Heaviside": np.heaviside}
    # Names of inputs may be those of functions; to replace them makes long formulas anew.
    taken = functions.keys() | vars(np).keys() | vars(builtins).keys()
    dummies = not taken.isdisjoint(map(str, names))
    compute = sympy.lambdify(symbols, list(formulas), [functions, "numpy"], dummify=dummies)
    inputs = inputs.detach().cpu()
    columns = inputs.double().numpy().T
    found = _copied(model).cpu()(inputs)
    if found.shape != (len(inputs), len(formulas)):
        raise ValueError(
            f"The outputs must be (examples, {len(formulas)}), one for each formula, but are "
            f"{tuple(found.shape)}."
        )
    expected = np.stack([np.broadcast_to(column, len(inputs)) for column in compute(*columns)], -1)
    return float(np.abs(found.double().numpy() - expected).max())


def _checked(names: Any) -> list[str | sympy.Symbol]:
    import sympy

    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [None]
    if not all(isinstance(name, str | sympy.Symbol) for name in listed):
        raise TypeError(f"The names must be a list of texts or symbols, but are {names!r}.")
    if len(set(map(str, names))) < len(names):
        raise ValueError(f"The names must be different, but are {', '.join(map(str, names))}.")
    return listed


def _copied(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model).eval()
    except RuntimeError:
        raise ValueError(
            "The model cannot be copied, as some of its weights are computed from others: make pruning or a "
            "norm of its weights permanent first."
        ) from None


def _needs_sympy() -> None:
    from nalm.extras import formulas as _  # noqa: F401


class _Symbols(fx.Interpreter):
    """Runs a graph of tensor operations on arrays of expressions; what does not depend on them stays a
    tensor.
    """

    def __init__(self, graph: fx.GraphModule, digits: int | None) -> None:
        super().__init__(graph)
        self.digits = digits
        self.extra_traceback = False  # it would make several lines of one sentence

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        symbolic = any(isinstance(one, np.ndarray) for one in tree_leaves(args))
        if not symbolic or not isinstance(target, torch._ops.OpOverload):
            return super().call_function(target, args, kwargs)
        if target not in _operations():
            raise NotImplementedError(f"This model computes {target}, for which there is no symbol.")
        operation = _operations()[target]
        try:
            signature(operation).bind(*args, **kwargs)
        except TypeError:
            options = ", ".join(f"{name}={value}" for name, value in kwargs.items())
            raise NotImplementedError(
                f"This model computes {target} with {options}, for which there is no symbol."
            ) from None
        return operation(*tree_map(self._expressions, args), **tree_map(self._expressions, kwargs))

    def rounded(self, expression: sympy.Expr) -> sympy.Expr:
        """With the numbers that have met each other rounded as well."""
        import sympy

        return expression.xreplace({one: self._number(one) for one in expression.atoms(sympy.Float)})

    def _expressions(self, value: Any) -> Any:
        """Numbers that meet an input, as SymPy's; sizes and dimensions, which are integers, as they are."""
        if isinstance(value, Tensor):
            return np.vectorize(self._number, otypes=[object])(value.numpy())
        return self._number(value) if isinstance(value, float) else value

    def _number(self, value: float | sympy.Float) -> sympy.Expr:
        import sympy

        if value == math.pi:
            return sympy.pi
        value = float(value) if self.digits is None else round(float(value), self.digits)
        if value.is_integer():
            return sympy.Integer(int(value))
        return sympy.Float(value if self.digits is None else str(value))


@cache
def _operations() -> Mapping[Any, Callable[..., Any]]:
    """Operation of PyTorch -> the same on arrays of expressions."""
    import sympy
    from sympy.core.relational import Relational
    from sympy.logic.boolalg import BooleanAtom, BooleanFunction

    truths = Relational | BooleanFunction | BooleanAtom  # a symbol is a Boolean too
    bounds = {sympy.Ge: sympy.Max, sympy.Gt: sympy.Max, sympy.Le: sympy.Min, sympy.Lt: sympy.Min}

    def each(function: Callable[..., Any], inputs: int = 1) -> Callable[..., np.ndarray]:
        computed = np.frompyfunc(function, inputs, 1)
        return lambda *args: np.asarray(computed(*args), dtype=object)

    def scaled(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
        computed = each(function, 3)
        return lambda a, b, alpha=1: computed(a, b, alpha)

    def clamp(x: np.ndarray, low: Any = None, high: Any = None) -> np.ndarray:
        x = x if low is None else each(sympy.Max, 2)(x, low)
        return x if high is None else each(sympy.Min, 2)(x, high)

    def summed(x: np.ndarray, dims: Sequence[int], keepdim: bool = False) -> np.ndarray:
        return np.asarray(x.sum(axis=tuple(dims), keepdims=keepdim), dtype=object)

    def sliced(x: np.ndarray, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> np.ndarray:
        return np.take(x, range(x.shape[dim])[start:end:step], dim)

    def unbound(x: np.ndarray, dim: int = 0) -> tuple[np.ndarray, ...]:
        return tuple(np.asarray(one, dtype=object) for one in np.moveaxis(x, dim, 0))

    def compared(relation: Any) -> Callable[..., np.ndarray]:
        # Of a long expression it takes minutes to see that its sign is not known.
        return each(lambda a, b: relation(a, b, evaluate=a.count_ops() < 10), 2)

    def piece(condition: Any, value: Any, otherwise: Any) -> sympy.Expr:
        bound = bounds.get(type(condition))
        if bound and isinstance(otherwise, bound) and condition.lhs == value:
            if set(otherwise.args) == {value, condition.rhs}:
                return otherwise  # a clamp with a gradient of its own
        if condition in (True, False):
            return value if condition else otherwise
        return sympy.Piecewise((value, condition), (otherwise, True), evaluate=False)

    def counted(a: Any) -> sympy.Expr:
        """One for what is true and zero for what is not; a number stays one."""
        if isinstance(a, sympy.StrictLessThan) and a.rhs == 0:
            return sympy.Heaviside(-a.lhs, 0)  # which SymPy leaves alone in long expressions
        return piece(a, sympy.Integer(1), sympy.Integer(0)) if isinstance(a, truths) else a

    def copied(x: np.ndarray, dtype: torch.dtype | None = None, **_: Any) -> np.ndarray:
        truncates = dtype is not None and not (dtype.is_floating_point or dtype.is_complex)
        if truncates and not all(isinstance(a, truths) for a in x.flat):
            raise NotImplementedError(f"This model computes a copy as {dtype}, for which there is no symbol.")
        return each(counted)(x)

    def smooth(function: Callable[[Any], Any]) -> Callable[..., np.ndarray]:
        def number(a: sympy.Expr) -> sympy.Expr:
            value = function(a)
            return value.evalf() if value.is_number and not value.is_Integer else value

        return each(number)

    def softplus(x: np.ndarray, beta: Any = 1, threshold: Any = 20) -> np.ndarray:
        def number(a: sympy.Expr) -> sympy.Expr:
            curve = sympy.log(1 + sympy.exp(beta * a)) / beta
            if threshold >= 20:  # the default, beyond which the line is the curve to ten digits
                return curve
            return piece(sympy.Gt(beta * a, threshold, evaluate=a.count_ops() < 10), a, curve)

        return smooth(number)(x)

    same = lambda x, *_, **__: x  # noqa: E731
    return {
        aten.add.Tensor: scaled(lambda a, b, alpha: a + alpha * b),
        aten.sub.Tensor: scaled(lambda a, b, alpha: a - alpha * b),
        aten.rsub.Scalar: scaled(lambda a, b, alpha: b - alpha * a),
        aten.mul.Tensor: each(lambda a, b: a * b, 2),
        aten.div.Tensor: each(lambda a, b: a / b, 2),
        aten.reciprocal.default: each(lambda a: 1 / a),
        aten.neg.default: each(lambda a: -a),
        aten.pow.Tensor_Tensor: each(lambda a, b: a**b, 2),
        aten.pow.Tensor_Scalar: each(lambda a, b: a**b, 2),
        aten.remainder.Scalar: each(lambda a, b: sympy.Mod(a, b, evaluate=False), 2),
        aten.exp.default: smooth(sympy.exp),
        aten.log.default: smooth(sympy.log),
        aten.sqrt.default: smooth(sympy.sqrt),
        aten.cos.default: each(_cosine),
        aten.sin.default: smooth(sympy.sin),
        aten.tanh.default: smooth(sympy.tanh),
        aten.sigmoid.default: smooth(lambda a: 1 / (1 + sympy.exp(-a))),
        aten.softplus.default: softplus,
        aten.abs.default: each(sympy.Abs),
        aten.sign.default: each(sympy.sign),
        aten.relu.default: each(lambda a: sympy.Max(a, 0)),
        aten.clamp.default: clamp,
        aten.hardtanh.default: clamp,
        aten.lt.Scalar: compared(sympy.Lt),
        aten.le.Scalar: compared(sympy.Le),
        aten.gt.Scalar: compared(sympy.Gt),
        aten.ge.Scalar: compared(sympy.Ge),
        aten.eq.Scalar: each(sympy.Eq, 2),
        aten.bitwise_and.Tensor: each(sympy.And, 2),
        aten.where.self: each(piece, 3),
        aten._to_copy.default: copied,
        aten.sum.dim_IntList: summed,
        aten.mv.default: lambda a, b: np.asarray(a @ b, dtype=object),
        aten.mm.default: lambda a, b: np.asarray(a @ b, dtype=object),
        aten.addmm.default: lambda c, a, b: np.asarray(a @ b + c, dtype=object),
        aten.view.default: lambda x, shape: x.reshape(shape),
        aten.unsqueeze.default: np.expand_dims,
        aten.squeeze.dim: np.squeeze,
        aten.squeeze_.dim: np.squeeze,
        aten.unbind.int: unbound,
        aten.slice.Tensor: sliced,
        aten.select.int: lambda x, dim, index: np.asarray(np.take(x, index, dim), dtype=object),
        aten.cat.default: lambda parts, dim=0: np.concatenate(parts, dim),
        aten.t.default: np.transpose,
        aten.detach.default: same,
        aten.alias.default: same,
        aten.clone.default: same,
    }


def _cosine(angle: sympy.Expr) -> sympy.Expr:
    r"""The cosine; that of :math:`\pi \sum_i n_i [x_i < 0]` with whole numbers :math:`n_i`, with which power
    units recover a sign, is :math:`\prod_i \operatorname{sign}(x_i)^{n_i}`.
    """
    import sympy

    signs = sympy.Integer(1)
    for term in sympy.Add.make_args(angle):
        factor, indicator = (term / sympy.pi).as_independent(sympy.Heaviside)
        if not factor.is_Integer or not (factor == 0 or isinstance(indicator, sympy.Heaviside)):
            return sympy.cos(angle)
        if factor % 2:
            negative = -indicator.args[0]
            signs *= sympy.sign(1 / negative if negative.is_Pow and negative.exp == -1 else negative)
    return signs


def _signed(expression: sympy.Expr) -> sympy.Expr:
    """With x**n in the place of sign(x) Abs(x)**n, for odd n."""
    import sympy

    def joined(product: sympy.Mul) -> sympy.Expr:
        factors = product.as_powers_dict()
        for sign in product.atoms(sympy.sign):
            x = sign.args[0]
            power = factors.get(sympy.Abs(x), sympy.Integer(0))
            if factors[sign] == 1 and power.is_Integer and power % 2:
                product = product / sign / sympy.Abs(x) ** power * x**power
        return product

    return expression.replace(lambda one: one.is_Mul and one.has(sympy.sign), joined)
