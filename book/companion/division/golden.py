"""Exact weights of the division units on single-module tasks, and the test error that is left with them.

Mistry et al. (2022), section 6.1.2, call such weights golden. In exact arithmetic their error would be
zero (for the Real NPU: with epsilon 0); in 32-bit arithmetic it is not, and for divisors near zero it is
large: Figure 5. The success thresholds of their Figures 11 to 13 are made of it.
"""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import torch
from nalm.models import Layer
from nalm.records.folders import PUBLISHED
from nalm.tasks import SingleModuleTask
from nalm.units.checks import choose
from torch import Tensor

from companion import sealed

__all__ = ["AUTHORS_PATH", "PATHS", "PATHS_FILE", "errors_by_path", "golden_error", "golden_weights"]

PATHS_FILE = PUBLISHED / "golden-paths.csv"

PATHS = {"AVX2": "Intel with AVX2", "AVX512": "Intel with AVX-512", "COMPATIBLE": "AMD"}
"""What Intel's MKL calls a code path -> the processors that take it.

PyTorch takes logarithms and exponentials of 32 bits from MKL, and these are what remains of the Real NPU's
error without epsilon.
"""

AUTHORS_PATH = "AVX2"
"""On it all these errors are those that the authors recorded."""

_EXPONENTS = {"mul": (1.0, 1.0), "div": (1.0, -1.0), "reciprocal": (-1.0, 0.0)}
_UNITS = {
    "RealNPU": lambda powers: {"weight": np.where(powers == 0, 1, powers)[None], "gate": powers != 0},
    "NRU": lambda powers: {"weight": powers[None]},
    "NMRU": lambda powers: {"weight": np.concatenate([powers == 1, powers == -1])[None]},
}


def golden_weights(unit: str, task: SingleModuleTask, seed: int = 0) -> dict[str, Tensor]:
    """The discrete parameters with which a unit solves a task exactly, as a state for ``load_state_dict``.

    Args:
        unit: ``"RealNPU"``, ``"NRU"`` or ``"NMRU"``. A Real NPU ignores an input by a closed gate; the
            weight behind it is 1, as in the authors' code.
        task: ``"mul"``, ``"div"`` or ``"reciprocal"`` of one or more inputs.
        seed: with more than two inputs, the run whose operands are meant.

    Raises:
        ValueError: a unit or an operation for which there are none.

    >>> from nalm.tasks import Uniform
    >>> small = Uniform(low=0.0, high=0.1)
    >>> task = SingleModuleTask(operation="reciprocal", interpolation=small, extrapolation=small, inputs=2)
    >>> golden_weights("RealNPU", task)
    {'weight': tensor([[-1.,  1.]]), 'gate': tensor([1., 0.])}
    >>> golden_weights("NMRU", task)
    {'weight': tensor([[0., 0., 1., 0.]])}
    """
    choose("unit with golden weights", unit, _UNITS)
    operation = choose("operation with golden weights", task.operation, _EXPONENTS)
    powers = np.array(_EXPONENTS[operation]) @ task.operands(seed)
    return {name: torch.tensor(values, dtype=torch.float32) for name, values in _UNITS[unit](powers).items()}


@torch.no_grad()
def golden_error(unit: str, task: SingleModuleTask, **options: object) -> float:
    """The mean squared error of a unit with golden weights on a test set: in 32 bits, summed in 64.

    Args:
        unit: as for :func:`golden_weights`.
        task: likewise.
        options: of the unit, ``eps=0.0`` of the Real NPU or ``rounding="sequential"`` of the NMRU.

    >>> from nalm.tasks import Uniform
    >>> unit = Uniform(low=0.0, high=1.0)
    >>> task = SingleModuleTask(operation="reciprocal", interpolation=unit, extrapolation=unit, inputs=1)
    >>> f"{golden_error('RealNPU', task):.4f} {golden_error('NMRU', task):.1e}"
    '0.0056 4.5e-11'
    """
    weights = golden_weights(unit, task)
    module = Layer(unit=unit, options=options).build(task.in_features).eval()
    module.load_state_dict(weights)
    test = task.evaluation(0)["test"]
    return float((module(test.inputs).double() - test.targets.double()).square().mean())


def errors_by_path() -> pd.DataFrame:
    """What was recorded of the Real NPU without epsilon: ``path``, ``task``, ``range`` and ``error``."""
    return pd.read_csv(io.StringIO(sealed.read_text(PATHS_FILE)))
