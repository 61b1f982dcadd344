"""Settings of *Exploring the Learning Mechanisms of Neural Division Modules* (Mistry, Farrahi & Hare,
2022), as its code has them.

Tables 4 and 5 of the paper (parameters), Table 2 (distributions) and Table 6 (mixed signs). Where text and
code differ, these are the code's, which made the published numbers: the penalty of the Real NPU pulls its
weights to {-1, 1}, its gate is clipped to [0, 1], the baseline has the growing L1.
"""

from __future__ import annotations

from nalm.models import Layer, Stack
from nalm.tasks import (
    Benford,
    Halves,
    Range,
    SingleModuleTask,
    TrainingRange,
    TruncatedNormal,
    Uniform,
    UniformUnion,
)
from nalm.training import L1, Adam, Discretisation, Recipe

from companion.experiment import Arm

REPAIRED = {"init": "capped-glorot", "clip": ("weight", "gate"), "discretise": ("weight", "gate")}
"""Options of the modified Real NPU: the paper's three repairs."""

_OUTER = UniformUnion(first=Uniform(low=-6.0, high=-2.0), second=Uniform(low=2.0, high=6.0))


def arms(inputs: int, iterations: int | None = None) -> dict[str, Arm]:
    """The four units of Figures 3 and 6, for division with 2 or with more inputs.

    Args:
        inputs: with 2 inputs the paper trains 50,000 iterations and turns penalties on earlier than with its
            10.
        iterations: other than the paper's; the schedules of the penalties stay.

    Returns:
        ``"Real NPU (baseline)"``, ``"Real NPU (modified)"``, ``"NRU"``, ``"NMRU"``.

    >>> arms(inputs=10)["NRU"].recipe.optimiser.lr, arms(inputs=2)["NRU"].recipe.optimiser.lr
    (0.001, 1.0)
    """
    wide = inputs > 2
    length = iterations or (100_000 if wide else 50_000)
    growing = L1(start=1e-9, end=1e-7)
    late = Discretisation(weight=1.0, start=50_000 if wide else 40_000, end=75_000 if wide else 50_000)
    early = Discretisation(weight=10.0, start=50_000 if wide else 20_000, end=75_000 if wide else 35_000)
    modified = Stack(layers=(Layer(unit="RealNPU", options=REPAIRED),))
    return {
        "Real NPU (baseline)": Arm(
            model=Stack.of("RealNPU", 1),
            recipe=Recipe(iterations=length, optimiser=Adam(lr=5e-3), penalties=(growing,)),
        ),
        "Real NPU (modified)": Arm(
            model=modified,
            recipe=Recipe(iterations=length, optimiser=Adam(lr=5e-3), penalties=(growing, late)),
        ),
        "NRU": Arm(
            model=Stack.of("NRU", 1),
            recipe=Recipe(iterations=length, optimiser=Adam(lr=1e-3 if wide else 1.0), penalties=(early,)),
        ),
        "NMRU": Arm(
            model=Stack.of("NMRU", 1),
            recipe=Recipe(
                iterations=length, optimiser=Adam(lr=1e-2), penalties=(early,), clip_gradient_norm=1.0
            ),
        ),
    }


DISTRIBUTIONS: dict[str, tuple[TrainingRange, Range]] = {
    str(interpolation): (interpolation, extrapolation)
    for interpolation, extrapolation in [
        (
            TruncatedNormal(mean=-1.0, deviation=3.0, low=-5.0, high=10.0),
            TruncatedNormal(mean=-10.0, deviation=3.0, low=-15.0, high=-5.0),
        ),
        (
            TruncatedNormal(mean=0.0, deviation=1.0, low=-5.0, high=5.0),
            TruncatedNormal(mean=10.0, deviation=1.0, low=5.0, high=15.0),
        ),
        (
            TruncatedNormal(mean=1.0, deviation=3.0, low=-10.0, high=5.0),
            TruncatedNormal(mean=10.0, deviation=3.0, low=5.0, high=15.0),
        ),
        (Benford(digits=2), Benford(digits=3)),
        (
            Uniform(low=-100.0, high=100.0),
            UniformUnion(first=Uniform(low=-200.0, high=-100.0), second=Uniform(low=100.0, high=200.0)),
        ),
        (
            Uniform(low=-50.0, high=50.0),
            UniformUnion(first=Uniform(low=-100.0, high=-50.0), second=Uniform(low=50.0, high=100.0)),
        ),
    ]
}
"""Training distributions with their test distributions (Table 2), by the name of the former."""

_NEGATIVE, _POSITIVE = Uniform(low=-6.0, high=-2.0), Uniform(low=2.0, high=6.0)
_BELOW = Halves(first_half=_NEGATIVE, second_half=_POSITIVE)
_ABOVE = Halves(first_half=_POSITIVE, second_half=_NEGATIVE)

MIXED_SIGNS: dict[str, tuple[TrainingRange, Range]] = {
    "1": (Halves(first_half=Uniform(low=-2.0, high=-0.1), second_half=Uniform(low=0.1, high=2.0)), _BELOW),
    "2": (Halves(first_half=Uniform(low=-2.0, high=-1.0), second_half=Uniform(low=1.0, high=2.0)), _BELOW),
    "3": (Uniform(low=-2.0, high=2.0), _OUTER),
    "3 (paper's test set)": (Uniform(low=-2.0, high=2.0), _BELOW),
    "4": (Halves(first_half=Uniform(low=0.1, high=2.0), second_half=Uniform(low=-2.0, high=-0.1)), _ABOVE),
    "5": (Halves(first_half=Uniform(low=1.0, high=2.0), second_half=Uniform(low=-2.0, high=-1.0)), _ABOVE),
}
"""Data sets of Table 6, training and test range. Of data set 3 the paper prints another test set than its
code draws; of 5 it misprints U[1,2).
"""


def task(ranges: tuple[TrainingRange, Range], inputs: int = 2, operation: str = "div") -> SingleModuleTask:
    """The single-module task on a pair of training and test range.

    >>> task(DISTRIBUTIONS["B[10,100)"], inputs=10).label()
    'B[10,100)'
    """
    return SingleModuleTask(
        operation=operation, interpolation=ranges[0], extrapolation=ranges[1], inputs=inputs
    )
