"""With which weights the runs of division start and end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from nalm.models import Stack
from torch import nn

from companion.division.compared import MODIFIED
from companion.figures import unit_style
from companion.measures import operands_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Whether initial weights W_a, W_b are good ones."""


def holding(unit: nn.Module, **values: Sequence) -> nn.Module:
    """The unit in double precision, with these values in its parameters.

    >>> from nalm import NRU
    >>> holding(NRU(2, 1), weight=[[1.0, -1.0]]).eval()(torch.tensor([[3.0, 2.0]]).double()).item()
    1.5
    """
    for name, numbers in values.items():
        getattr(unit, name).data = torch.tensor(numbers, dtype=torch.float64)
    return unit.double()


def initial(model: Stack, inputs: int, seeds: Iterable[int]) -> np.ndarray:
    """The weights of the only unit with which runs start, ``(seeds, weights)``.

    >>> initial(Stack.of("NRU", 1), inputs=2, seeds=range(3)).shape
    (3, 2)
    """

    def drawn(seed: int) -> list[float]:
        torch.manual_seed(seed)
        return model.build(inputs)[0].weight.flatten().tolist()

    return np.array([drawn(seed) for seed in seeds])


def initial_of_ten(unit: str, seeds: Iterable[int], parts: int = 1) -> np.ndarray:
    """The weights with which runs of ten inputs start, (runs, parts, inputs), the operands first."""
    seeds = list(seeds)
    weights = [json.dumps({"0.weight": one.tolist()}) for one in initial(Stack.of(unit, 1), 10, seeds)]
    return operands_first(pd.DataFrame({"seed": seeds, "weights": weights}), parts=parts)


def with_states(rows: pd.DataFrame, inputs: int = 2) -> pd.DataFrame:
    """The rows of Real NPUs with the weights and gates of the operands with which each run ended.

    Their columns are ``W_a``, ``W_b``, ``g_a`` and ``g_b``.
    """
    W, g = (operands_first(rows, name, inputs)[:, 0, :2] for name in ("0.weight", "0.gate"))
    return rows.assign(W_a=W[:, 0], W_b=W[:, 1], g_a=g[:, 0], g_b=g[:, 1])


def shown(runs: pd.DataFrame, columns: Sequence[str], errors: str = "") -> pd.DataFrame:
    """Columns of runs for a table; ``errors`` is the format of the two errors, ``"{:.1e}"``."""
    names = {"valid_mse": "training range", "test_mse": "test range"}
    if errors:
        runs = runs.assign(**{name: runs[name].map(errors.format) for name in names})
    return runs[list(columns)].rename(columns=names)


def draw_starts(axis: Axes, weights: np.ndarray, won: np.ndarray, good: Side) -> None:
    """Initial weights on a panel: points of solved runs, crosses of failed ones, the good side shaded."""
    grid = np.linspace(-0.5, 0.5, 401)
    side = good(*np.meshgrid(grid, grid)).astype(float)
    axis.contourf(grid, grid, side, levels=[0.5, 1.5], colors=["#E6F2EF"])
    axis.plot(*weights[won].T, "o", color=unit_style(MODIFIED)[0], markersize=5, gid="solved")
    axis.plot(
        *weights[~won].T, "x", color=unit_style("NRU")[0], markersize=6, markeredgewidth=2, gid="not solved"
    )
    axis.set(xlim=(-0.52, 0.52), ylim=(-0.52, 0.52), aspect="equal")
