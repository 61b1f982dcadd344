"""Matrix products through oneDNN in compiled code, where PyTorch's own are slower.

PyTorch's wheel multiplies matrices with MKL, which does without AVX-512 on processors that are not Intel's. oneDNN comes in the same wheel and uses it.
Both add up a product's terms one after another, so that the results are the same to the last bit while there are few terms.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from torch.fx import GraphModule

__all__ = ["library", "with_faster_products"]

FEWEST_MULTIPLICATIONS = 250_000
"""Of a product that is worth it: to call oneDNN takes some microseconds more."""
MOST_TERMS = 256
"""Up to so many terms both libraries add one after another."""


_kept: list[torch.library.Library] = []


@cache
def library() -> str:
    """What multiplies large matrices in compiled code of this process: ``"oneDNN"`` on AMD processors with AVX-512, else ``"torch"``."""
    try:
        about = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "torch"
    known = "AuthenticAMD" in about and "avx512f" in about.split() and torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    return "oneDNN" if known and hasattr(torch.ops.mkldnn, "_linear_pointwise") else "torch"


def with_faster_products(graph: GraphModule) -> GraphModule:
    """A graph of tensor operations, whose large products of float32 matrices are made by :func:`library`; changed in place."""
    if library() == "oneDNN":
        for node in graph.graph.nodes:
            if node.target is torch.ops.aten.mm.default and _is_worth_it(*(argument.meta["val"] for argument in node.args)):
                node.target = _operator()
        graph.recompile()
    return graph


@cache
def _operator() -> torch._ops.OpOverload:
    """An operator for it: inductor has none that it compiles, and calls one that it does not know as it is."""
    library = torch.library.Library("nalm", "FRAGMENT")
    library.define("product(Tensor left, Tensor right) -> Tensor")
    linear = torch.ops.mkldnn._linear_pointwise.default
    library.impl("product", lambda left, right: linear(left, right.t(), None, "none", [], ""), "CPU")
    library.impl("product", lambda left, right: left.new_empty(left.shape[0], right.shape[1]), "Meta")
    _kept.append(library)  # what a library defines ends with it
    return torch.ops.nalm.product.default


def _is_worth_it(left: torch.Tensor, right: torch.Tensor) -> bool:
    (rows, terms), columns = left.shape, right.shape[1]
    is_float = left.dtype == right.dtype == torch.float32 and left.device.type == "cpu"
    return is_float and terms <= MOST_TERMS and rows * terms * columns >= FEWEST_MULTIPLICATIONS
