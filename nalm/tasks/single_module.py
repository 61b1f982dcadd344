"""The single-module task of the division paper: one operation on two operands, with or without redundant
inputs.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from nalm.tasks.arithmetic import OperandTask
from nalm.tasks.ranges import Range, Uniform, UniformUnion
from nalm.units.checks import choose

__all__ = ["SingleModuleTask", "UNIFORM_RANGES", "uniform_range"]

UNIFORM_RANGES: dict[str, tuple[Uniform, Range]] = {
    str(interpolation): (interpolation, extrapolation)  # type: ignore[misc]
    for interpolation, extrapolation in [
        (Uniform(low=-20.0, high=-10.0), Uniform(low=-40.0, high=-20.0)),
        (Uniform(low=-2.0, high=-1.0), Uniform(low=-6.0, high=-2.0)),
        (Uniform(low=-1.2, high=-1.1), Uniform(low=-6.1, high=-1.2)),
        (Uniform(low=-0.2, high=-0.1), Uniform(low=-2.0, high=-0.2)),
        (
            Uniform(low=-2.0, high=2.0),
            UniformUnion(first=Uniform(low=-6.0, high=-2.0), second=Uniform(low=2.0, high=6.0)),
        ),
        (Uniform(low=0.1, high=0.2), Uniform(low=0.2, high=2.0)),
        (Uniform(low=1.0, high=2.0), Uniform(low=2.0, high=6.0)),
        (Uniform(low=1.1, high=1.2), Uniform(low=1.2, high=6.0)),
        (Uniform(low=10.0, high=20.0), Uniform(low=20.0, high=40.0)),
    ]
}
"""The nine interpolation ranges with their extrapolation ranges (division paper, Table 1), by the name of the
former.
"""


def uniform_range(name: str) -> tuple[Uniform, Range]:
    """Interpolation and extrapolation range by name, e.g. ``"U[1,2)"``; an unknown name raises a
    ``ValueError``.
    """
    return UNIFORM_RANGES[choose("range", name, UNIFORM_RANGES)]


class SingleModuleTask(OperandTask):
    """y = op(a, b) where a and b are two adjacent inputs; the others are redundant.

    Args:
        operation: ``"add"``, ``"sub"``, ``"mul"``, ``"div"``, ``"squared"``, ``"root"`` or ``"reciprocal"``
            (the last three ignore b).
        interpolation: training and validation range.
        extrapolation: test range.
        inputs: number of inputs, at least 1. With 2 inputs a = x[0] and b = x[1]; with more, the position
            depends on the seed.

    Source: division paper, sections 4 to 6; the position of the operands is the first draw of
    ``RandomState(seed)``, as in its code.

    >>> task = SingleModuleTask.on("U[1,2)", operation="div", inputs=10)
    >>> task.operands(seed=0).argmax(1)
    array([5, 6])
    """

    kind: Literal["SingleModuleTask"] = "SingleModuleTask"
    inputs: int = Field(2, ge=1)

    @classmethod
    def on(cls, range_name: str, operation: str, inputs: int = 2) -> SingleModuleTask:
        """The task on one of the nine uniform ranges of the division paper, by name."""
        interpolation, extrapolation = uniform_range(range_name)
        return cls(
            operation=operation, interpolation=interpolation, extrapolation=extrapolation, inputs=inputs
        )

    @property
    def in_features(self) -> int:
        return self.inputs

    def place(self, generator: np.random.RandomState) -> int:
        return int(generator.randint(0, self.inputs - min(2, self.inputs) + 1))

    def operands(self, seed: int) -> np.ndarray:
        used = min(2, self.inputs)
        offset = self.place(np.random.RandomState(seed))
        operands = np.zeros((2, self.inputs))
        operands[0, offset] = operands[1, offset + used - 1] = 1.0
        return operands
