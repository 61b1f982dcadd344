"""Compiling an ensemble's functions, around some shortcomings of ``torch.compile`` on CPUs."""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable
from functools import cache

import torch

__all__ = ["compiled"]


def compiled(function: Callable) -> Callable:
    """``function`` compiled for fixed shapes, in a compile cache of its own."""
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # compiling for CPU needs no CUDA
    _avoid_out_of_bounds_tails()
    _keep_freed_memory()
    _keep_erfinv_out_of_loops()
    # The compiler counts recompilations per code object, and all ensembles of a process share these.
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 256)
    return torch.compile(function, dynamic=False)


@cache
def _keep_freed_memory() -> None:
    """Let the C library keep what an update frees for the next one; to ask the system for it again costs up to a quarter of a wide update."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        trim_threshold, mmap_threshold = -1, -3  # malloc.h
        library.mallopt(mmap_threshold, 2**30)
        library.mallopt(trim_threshold, 2**31 - 1)


@cache
def _keep_erfinv_out_of_loops() -> None:
    """Call the library for ``erfinv``: inductor has no vector instructions for it and writes the whole loop that holds it, a third as fast, without."""
    from torch._inductor.lowering import lowerings, make_fallback

    operation = torch.ops.aten.erfinv
    for known in (operation, operation.default):
        lowerings.pop(known, None)
    make_fallback(operation.default, warn=False, override_decomp=True)


@cache
def _avoid_out_of_bounds_tails() -> None:
    """Keep inductor's C++ backend (seen in torch 2.12) from writing behind the end of a buffer.

    Where a reduction is vectorised over an outer loop that is not the one directly around the reduction, and that loop's length is not a multiple of
    the vector's, the result of the last, partly filled vector is stored in full. Such loops are left unvectorised here; the layouts that the units
    choose (examples last) hardly ever lead to one.
    """
    from torch._inductor.codegen.cpp import TilingSelect

    select_tiling = TilingSelect.select_tiling

    def safe(self, functions, sizes):
        factors, indices = select_tiling(self, functions, sizes)
        outer, reduced = max(sizes, key=lambda size: len(size[1]))
        lengths = [*outer, *reduced]
        unsafe = len(reduced) and any(
            index < len(outer) - 1 and lengths[index] % factor != 0 for factor, index in zip(factors, indices, strict=True)
        )
        return ([], []) if unsafe else (factors, indices)

    TilingSelect.select_tiling = safe
