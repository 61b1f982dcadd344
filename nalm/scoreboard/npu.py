"""Verdicts on *Neural Power Units*."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from nalm import NPU, NaiveNPU, measures, published
from nalm.scoreboard.rules import Claim, Comparison, Judge, student
from nalm.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]

_TASKS = {"+": "test_add", "x": "test_mul", "div": "test_div", "sqrt": "test_sqrt"}
_SIMPLE_MODELS = ["RealNPU", "NPU", "NMU", "NALU", "iNALU", "Dense"]
_SIMPLE_SEEDS = 20
"""The paper's number of runs per model; rows of further seeds answer another question."""


def _simple_rows(rows: pd.DataFrame) -> pd.DataFrame:
    measures.require_columns(rows, ["arm", "seed", *_TASKS.values()])
    return rows[rows["model"].isin(_SIMPLE_MODELS) & (rows["arm"] == "code") & (rows["seed"] < _SIMPLE_SEEDS)]


def _npu_table_a2(rows: pd.DataFrame) -> Iterable[Comparison]:
    table = published.load("npu_values").query("item == 'Table A2'").set_index(["task", "model"])
    for task in ("div", "+", "x", "sqrt"):
        for model in _SIMPLE_MODELS:
            one = table.loc[(task, model)]
            ours = measures.mean(rows[rows["model"] == model][_TASKS[task]])
            yield Comparison(f"{model} on {task}", ours, student(one["value"], one["spread"], 20))


def _npu_figure_6(rows: pd.DataFrame) -> Iterable[Claim]:
    errors = rows[list(_TASKS.values())].sum(axis=1, skipna=False).fillna(np.inf)
    best = {model: rows.loc[errors[rows["model"] == model].idxmin()] for model in _SIMPLE_MODELS}

    def better(one: str, other: str, task: str) -> Claim:
        left, right = best[one][_TASKS[task]], best[other][_TASKS[task]]
        return Claim(f"{one} better than {other} on {task}", bool(left < right), text(float(left)))

    for unit in ("RealNPU", "NPU"):
        for task in ("div", "+", "x", "sqrt"):
            for other in ("NALU", "iNALU"):
                yield better(unit, other, task)
        yield better("NMU", unit, "x")
        for task in ("div", "sqrt"):
            yield better(unit, "NMU", task)


def _diagram(gate: bool) -> Iterable[Claim]:
    """Whether the drawn boxes and arrows compute the unit, and show all that is trained."""
    from nalm import diagrams

    name, unit = ("NPU", NPU(2, 5)) if gate else ("NaiveNPU", NaiveNPU(2, 5))
    unit, steps = unit.double(), diagrams.power_unit(gate)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for parameter in unit.parameters():
            torch.nn.init.uniform_(parameter, -1.2, 1.2)
    x = torch.cartesian_prod(*[torch.tensor([-2.0, -0.5, 0.0, 3.0], dtype=torch.float64)] * 2)
    same = torch.allclose(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-10, atol=0)
    yield Claim(f"the arrows compute the {name}", same, f"the {name}")
    drawn = {step.parameter for step in steps} | {arrow.weight for step in steps for arrow in step.arrows}
    yield Claim("all trainables are drawn", drawn - {""} == {parameter for parameter, _ in unit.named_parameters()})


def _gradient_norms(unit: NPU | NaiveNPU, gate: list[float] | None, weights: torch.Tensor, imaginary: bool) -> torch.Tensor:
    """Norms of the gradient of the expected squared error to x₁, where x₁ is of U(0, 2) and x₂ of U(-0.05, 0.05), as in the authors' code."""
    part = (torch.arange(32, dtype=torch.float64) + 0.5) / 32
    x = torch.cartesian_prod(2 * part, 0.1 * part - 0.05)

    def loss(real: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
        state = {"weight": real[None], "weight_im": im[None]} | ({} if gate is None else {"gate": torch.tensor(gate, dtype=torch.float64)})
        return (functional_call(unit, state, x)[:, 0] - x[:, 0]).square().mean()

    slopes = vmap(grad(loss, (0, 1)))(weights, torch.zeros_like(weights))
    return torch.cat(slopes if imaginary else slopes[:1], 1).norm(dim=1)


def _figure_3() -> Iterable[Claim]:
    """In the reading of the code, which drew the figure. "No gradient" is a norm below a fifth of the colour bar, which ends at 2.5."""
    naive, npu = NaiveNPU(2, 1).double(), NPU(2, 1).double()
    flat = torch.cartesian_prod(torch.linspace(-0.2, 2.5, 10), torch.tensor([0.76, 0.8, 0.9, 1.0])).double()
    without = _gradient_norms(naive, None, flat, imaginary=False)
    yield Claim("NaiveNPU: no gradient for w₂ > 0.75", bool(without.max() < 0.5), f"w₂ > 0.75 (norm at most {text(without.max().item(), 2)})")
    half = _gradient_norms(npu, [0.5, 0.5], flat, imaginary=True)
    yield Claim("NPU with gates ½: a gradient there", bool(half.min() > 0.5))
    stripe = torch.cartesian_prod(torch.tensor([0.0, 1.5]), torch.tensor([-0.2, 0.4, 1.0])).double()
    norms = _gradient_norms(npu, [1.0, 0.0], stripe, imaginary=False).reshape(2, 3)
    yield Claim("NPU with gates 1, 0: independent of w₂", bool((norms == norms[:, :1]).all()))
    solution = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    for name, unit, gate in (("NaiveNPU", naive, None), ("NPU with gates 1, 0", npu, [1.0, 0.0])):
        yield Claim(f"{name}: (1, 0) is stationary", bool(_gradient_norms(unit, gate, solution, imaginary=False) < 1e-9))


JUDGES = {
    ("npu", "Figure 1"): lambda: _diagram(gate=False),
    ("npu", "Figure 2"): lambda: _diagram(gate=True),
    ("npu", "Figure 3"): _figure_3,
    ("npu", "Table A2"): Judge(_simple_rows, ("model",), _npu_table_a2),
    ("npu", "Figure 6"): Judge(_simple_rows, ("model",), _npu_figure_6),
}
