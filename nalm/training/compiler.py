"""Compiling an ensemble's functions, around some shortcomings of PyTorch's compiler on CPUs.

What is changed in the compiler has no public interface and differs between torch's versions, so each change
looks first at what it changes.
"""

from __future__ import annotations

import ctypes
import inspect
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, wraps
from itertools import islice
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from nalm.training.kept import elsewhere, keep

__all__ = ["Compiled", "Eager", "compiled", "is_compiled", "obstacle"]


def is_compiled(asked: bool | None, worth: bool, device: torch.device) -> bool:
    """Whether something is to be compiled.

    Args:
        asked: what the user says; ``None``: if it is worth it and possible.
        worth: whether it would gain from that.
        device: for which device.

    Raises:
        TypeError: ``asked`` is neither a flag nor ``None``.
        RuntimeError: compiled code is asked for and :func:`obstacle` finds one. Where it is not asked for
            there is a warning, one per process.

    >>> is_compiled(None, False, torch.device("cpu")), is_compiled(False, True, torch.device("cpu"))
    (False, False)
    """
    if not (asked is None or isinstance(asked, bool)):
        raise TypeError(f"compiled must be True, False or None, but it is {asked!r}.")
    if asked and (reason := obstacle(device.type)):
        raise RuntimeError(f"compiled=True, but {reason}.")
    return asked or (asked is None and worth and not _warned(device.type))


@cache
def obstacle(device: str) -> str | None:
    """Why nothing can be compiled in this process for ``"cpu"`` or ``"cuda"``; ``None`` if a small function
    was compiled and is right.

    Beside loading the compiler this takes a fraction of a second, but for the first time on a machine.
    """
    numbers = torch.arange(1.0, 41.0, device=device).reshape(5, 8)
    try:
        right = torch.allclose(Compiled(_probed)(numbers), _probed(numbers), rtol=1e-4)
    except Exception as error:  # the compiler may raise anything
        return (
            f"torch {torch.__version__} does not compile here ({type(error).__name__}: {_first_line(error)})"
        )
    return None if right else f"torch {torch.__version__} compiles a small function here to one that is wrong"


def _probed(x: Tensor) -> Tensor:
    return (x.log() * x).sum(-1)


def _first_line(error: Exception) -> str:
    return next(
        (line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "no reason given"
    )


@cache
def _warned(device: str) -> bool:
    if reason := obstacle(device):
        warnings.warn(f"Trainings are not compiled, which makes long ones slower: {reason}.", stacklevel=4)
    return reason is not None


def compiled(function: Callable) -> Callable:
    """``function`` compiled for fixed shapes with ``torch.compile``, which can be differentiated."""
    _prepare()
    # The compiler counts recompilations per code object, and all ensembles of a process share these.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 256)
    return torch.compile(function, dynamic=False)


class Eager:
    """A function of tensors in dicts, lists and tuples, called as it is."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def repeat(self, state: tuple, inputs: Iterable[tuple], fixed: tuple) -> tuple:
        """``state = function(*state, *input, *fixed)`` for one input after another; an input is a tuple of
        tensors and ``None``.
        """
        for given in inputs:
            state = self._function(*state, *given, *fixed)
        return state


class Compiled(Eager):
    """The same, compiled anew for shapes that are new to it. It cannot be differentiated.

    The tensor operations that the function makes are recorded once and handed to inductor, the compiler
    behind ``torch.compile``, so they must not depend on the values of tensors. ``torch.compile`` would read
    the bytecode of ``torch.func`` for ten seconds to find the same operations, and check guards in every
    call. While a call is repeated, nothing but the compiled code and a counter runs.

    Args:
        function: what is compiled.
        together: repeated calls that are compiled into one. Each but the first saves what it costs to enter
            compiled code, and takes as long to compile as the first; the results are the same.

    Calls raise ``RuntimeError`` if the function's operations depend on values.

    >>> double = Compiled(lambda tensors, factor: ({"x": factor * tensors["x"]},))
    >>> double.repeat(({"x": torch.ones(2)},), [(torch.tensor(2.0),), (torch.tensor(3.0),)], ())
    ({'x': tensor([6., 6.])},)
    """

    def __init__(self, function: Callable, together: int = 1) -> None:
        super().__init__(function)
        _prepare()
        self._together = together
        self._known: dict[tuple, _Flat] = {}

    def __call__(self, *arguments: Any) -> Any:
        flat = self._flat(self._function, arguments)
        return tree_unflatten(flat.function(*_tensors(arguments)), flat.results)

    def repeat(self, state: tuple, inputs: Iterable[tuple], fixed: tuple) -> tuple:
        tensors, others = _tensors(state), _tensors(fixed)
        waiting, flat, size = iter(inputs), None, 0
        while given := tuple(islice(waiting, self._together)):
            if len(given) != size:
                flat, size = self._flat(super().repeat, (state, given, fixed)), len(given)
            tensors = flat.function(  # type: ignore[union-attr]
                *tensors, *(tensor for one in given for tensor in one if tensor is not None), *others
            )
        return state if flat is None else tree_unflatten(tensors, flat.results)

    def _flat(self, function: Callable, arguments: tuple) -> _Flat:
        leaves, structure = tree_flatten(arguments)
        key = (
            function,
            structure,
            *((t.shape, t.stride(), t.dtype, t.device) if isinstance(t, Tensor) else t for t in leaves),
        )
        if key not in self._known:
            self._known[key] = self._compile(function, leaves, structure)
        return self._known[key]

    @torch.no_grad()
    def _compile(self, function: Callable, leaves: list[Any], structure: TreeSpec) -> _Flat:
        from torch._guards import TracingContext, tracing
        from torch._inductor.compile_fx import compile_fx
        from torch._subclasses import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        results = None

        def of_tensors(*tensors: Tensor) -> list[Tensor]:
            nonlocal results
            given = iter(tensors)
            arguments = tree_unflatten(
                [next(given) if isinstance(leaf, Tensor) else leaf for leaf in leaves], structure
            )
            found, results = tree_flatten(function(*arguments))
            return found

        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        graph = make_fx(of_tensors)(*tensors)

        def compile_graph() -> _Flat:
            # Inductor keeps nothing that is compiled outside of such a context. Shapes are fixed: those of
            # the tensors.
            with tracing(TracingContext(FakeTensorMode(shape_env=ShapeEnv()))):
                return _Flat(compile_fx(graph, tensors, ignore_shape_env=True), results)  # type: ignore[arg-type]

        try:
            return compile_graph()
        except Exception:  # what is kept may be damaged in any way
            with elsewhere():
                return compile_graph()


@dataclass(frozen=True)
class _Flat:
    """A compiled function of tensors alone, and the structure of what it returns."""

    function: Callable[..., list[Tensor]]
    results: TreeSpec


OUTER_LOOPS_RIGHT_FROM = (2, 13)
"""The version of torch that stores the reductions of partly filled vectors within their buffers, see
:func:`_avoid_out_of_bounds_tails`.
"""


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _prepare() -> None:
    """Set up inductor; loads it, which takes seconds."""
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # compiling for CPU needs no CUDA
    keep()
    if torch.__version__ < OUTER_LOOPS_RIGHT_FROM:  # type: ignore[operator]
        _avoid_out_of_bounds_tails()
    _keep_freed_memory()
    _keep_erfinv_out_of_loops()
    _probe_instructions_here()


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep what an update frees for the next one; to ask the system for it again costs up
    to a quarter of a wide update.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold = -1, -3  # malloc.h
        library.mallopt(mmap_threshold, 2**30)
        library.mallopt(trim_threshold, 2**31 - 1)


@cache
def _keep_erfinv_out_of_loops() -> None:
    """Call the library for ``erfinv``: inductor has no vector instructions for it, so the loop that holds it
    gets none and is a third as fast.

    Where inductor is built otherwise, this is left out.
    """
    from torch._inductor import lowering

    known, make_fallback = getattr(lowering, "lowerings", None), getattr(lowering, "make_fallback", None)
    if not isinstance(known, dict) or not _takes(make_fallback, "op", "warn", "override_decomp"):
        return
    operation = torch.ops.aten.erfinv
    for name in (operation, operation.default):
        known.pop(name, None)
    make_fallback(operation.default, warn=False, override_decomp=True)  # type: ignore[misc]


@cache
def _avoid_out_of_bounds_tails() -> None:
    """Keep inductor's C++ backend from writing behind the end of a buffer, which it does before torch 2.13.

    Where a reduction is vectorised over an outer loop that is not the one directly around the reduction, and
    that loop's length is not a multiple of the vector's, the result of the last, partly filled vector is
    stored in full. Such loops are left unvectorised here; the layouts that the units choose (examples last)
    hardly ever lead to one.

    Raises:
        RuntimeError: the compiler is not built as expected; without this it cannot be trusted.
    """
    from torch._inductor.codegen import cpp

    select_tiling = getattr(getattr(cpp, "TilingSelect", None), "select_tiling", None)
    if not _takes(select_tiling, "self", "fn_list", "var_sizes_list"):
        raise RuntimeError("TilingSelect.select_tiling of torch's compiler is not what it was in torch 2.12")

    @wraps(select_tiling)  # type: ignore[arg-type]
    def safe(self: Any, functions: Any, sizes: Any) -> Any:
        found = select_tiling(self, functions, sizes)  # type: ignore[misc]
        if not (isinstance(found, tuple) and len(found) == 2):
            raise RuntimeError(
                "TilingSelect.select_tiling of torch's compiler returns something else than in torch 2.12"
            )
        factors, indices = found
        outer, reduced = max(sizes, key=lambda size: len(size[1]))
        lengths = [*outer, *reduced]
        unsafe = len(reduced) and any(
            index < len(outer) - 1 and lengths[index] % factor != 0
            for factor, index in zip(factors, indices, strict=True)
        )
        return ([], []) if unsafe else (factors, indices)

    cpp.TilingSelect.select_tiling = safe


@cache
def _probe_instructions_here() -> None:
    """Load inductor's probes of the processor's vector instructions in this process; it would start six for
    them, and each would import torch.

    From torch 2.13 on it starts them in another way and without torch, which costs little, and this changes
    nothing.
    """
    from torch._inductor import cpu_vec_isa

    def check_call(command: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(command, list) and command[:2] == [sys.executable, "-c"] and len(command) == 3:
            return exec(command[-1], {})
        return subprocess.check_call(command, *arguments, **options)

    if getattr(cpu_vec_isa, "subprocess", None) is subprocess:
        cpu_vec_isa.subprocess = SimpleNamespace(**vars(subprocess) | {"check_call": check_call})


def _takes(function: Callable | None, *names: str) -> bool:
    """Whether this is a function with arguments of these names."""
    return callable(function) and set(names) <= set(inspect.signature(function).parameters)
