"""All units on all operations, each trained as its own paper or the field's benchmark says.

The benchmark is the Single Module Arithmetic Task of *A Primer for Neural Arithmetic Logic Modules* (Mistry,
Farrahi & Hare, 2022): one unit, nine ranges, 25 seeds. Its figures print no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Layer, Stack
from nalm.tasks import UNIFORM_RANGES, Range, SingleModuleTask, Uniform
from nalm.tasks.ranges import UniformUnion
from nalm.training import L1, Adam, Discretisation, Recipe, Run

from companion import measures, thresholds
from companion.division import settings as division
from companion.experiment import Arm, Experiment
from companion.experiment.parameters import at_least, some_of

__all__ = [
    "ALSO",
    "EXPERIMENT",
    "ITERATIONS",
    "OPERATIONS",
    "PUBLISHED",
    "RECIPES",
    "RESULTS",
    "TUNED",
    "UNITS",
    "arms",
    "benchmark_threshold",
    "expresses",
    "runs_of",
    "summary",
    "tasks",
]

OPERATIONS = {
    "add": "+",
    "sub": "−",
    "mul": "×",
    "div": "÷",
    "root": "√",
    "squared": "x²",
    "reciprocal": "1/x",
}
"""Operation -> its sign. The first four are the benchmark's; the others have one operand, and all other
inputs are redundant.
"""

ITERATIONS = {2: 50_000, 10: 100_000}
"""Number of inputs -> the benchmark's updates."""

PUBLISHED, TUNED = ARMS = ("as published", "tuned alike")

_POWERS = ("mul", "div", "root", "squared", "reciprocal")
UNITS: dict[str, tuple[str, ...]] = {
    "NAC+": ("add", "sub"),
    "NAC•": ("mul", "div", "root", "reciprocal"),
    "NALU": ("add", "sub", "mul", "div", "root", "reciprocal"),
    "G-NALU": ("add", "sub", "mul", "div", "root", "reciprocal"),
    "iNALU": ("add", "sub", "mul", "div", "root", "reciprocal"),
    "NAU": ("add", "sub"),
    "NMU": ("mul",),
    "sNMU": ("mul",),
    "Gated NAU/NMU": ("add", "sub", "mul"),
    "MC-FC": ("add", "mul"),
    "NaiveNPU": _POWERS,
    "NPU": _POWERS,
    "Real NPU (baseline)": _POWERS,
    "Real NPU (modified)": ("mul", "div", "reciprocal"),
    "NRU": ("mul", "div", "reciprocal"),
    "NMRU": ("mul", "div", "reciprocal"),
}
"""Unit -> the operations that it can express: there are weights within its bounds, and to which its penalty
draws if it has one, at which one unit computes them for positive inputs.
"""

RESULTS = "beyond/leaderboard"
ALSO = ("division/no-redundancy", "division/redundancy")
"""The results file, and others that have some of the runs already."""


def expresses(unit: str, operation: str, inputs: int) -> bool:
    """Whether a unit can compute the operation on two of its inputs.

    >>> expresses("NMU", "mul", 10), expresses("NMU", "div", 2), expresses("MC-FC", "add", 10)
    (True, False, False)
    """
    # With one output an MC-FC cannot leave an input out.
    return operation in UNITS[unit] and not (unit == "MC-FC" and inputs > 2)


@cache
def arms(operation: str, inputs: int, iterations: int | None = None) -> dict[str, Arm]:
    """The units that can express the operation, each with the recipe of its own paper or of the benchmark.

    Args:
        operation: one of ``OPERATIONS``.
        inputs: 2 or 10. With 10 the benchmark trains longer, and its penalties begin later.
        iterations: other than the benchmark's; the schedules of the penalties stay.

    >>> list(arms("sub", inputs=2))
    ['NAC+', 'NALU', 'G-NALU', 'iNALU', 'NAU', 'Gated NAU/NMU']
    >>> arms("div", inputs=2)["NRU"] == division.arms(inputs=2)["NRU"]
    True
    """
    ramp = {"start": 50_000, "end": 75_000} if inputs > 2 else {"start": 20_000, "end": 35_000}
    plain = Recipe(iterations=iterations or ITERATIONS[inputs], optimiser=Adam(lr=1e-3))
    light = plain.but(penalties=(Discretisation(weight=0.01, **ramp),))
    heavy = plain.but(penalties=(Discretisation(weight=10.0, **ramp),))
    # The benchmark has two strengths, for × and for ÷.
    growing = L1(start=1e-9, end=1e-7) if operation in ("div", "reciprocal") else L1(start=1e-7, end=1e-5)
    power = plain.but(optimiser=Adam(lr=5e-3), penalties=(growing,))
    conserving = Stack(layers=(Layer(unit="MCFC", options={"multiply": operation == "mul"}),))
    every = {
        "NAC+": Arm(model=Stack.of("NAC", 1), recipe=plain),
        "NAC•": Arm(model=Stack.of("NACMul", 1), recipe=plain),
        "NALU": Arm(model=Stack.of("NALU", 1), recipe=plain),
        "G-NALU": Arm(model=Stack.of("GNALU", 1), recipe=plain),
        "iNALU": Arm(model=Stack.of("INALU", 1), recipe=plain),
        "NAU": Arm(model=Stack.of("NAU", 1), recipe=light),
        "NMU": Arm(model=Stack.of("NMU", 1), recipe=heavy),
        "sNMU": Arm(model=Stack.of("SNMU", 1), recipe=heavy),
        "MC-FC": Arm(model=conserving, recipe=plain),
        "Gated NAU/NMU": Arm(model=Stack.of("GatedNAUNMU", 1), recipe=heavy),
        "NaiveNPU": Arm(model=Stack.of("NaiveNPU", 1), recipe=power),
        "NPU": Arm(model=Stack.of("NPU", 1), recipe=power),
        "Real NPU (baseline)": Arm(model=Stack.of("RealNPU", 1), recipe=power),
    }
    papers = division.arms(inputs, iterations)
    every |= {name: papers[name] for name in ("Real NPU (modified)", "NRU", "NMRU")}
    return {name: every[name] for name in UNITS if expresses(name, operation, inputs)}


RECIPES = {
    "NAC+": "benchmark: Adam 1e-3",
    "NAC•": "benchmark: Adam 1e-3",
    "NALU": "benchmark: Adam 1e-3, shared weights, no bias of the gate",
    "G-NALU": "benchmark: as the NALU",
    "iNALU": "benchmark: Adam 1e-3, but as Heim et al. reduced it, without clipping and second start",
    "NAU": "benchmark: Adam 1e-3, penalty 0.01",
    "NMU": "benchmark: Adam 1e-3, penalty 10",
    "sNMU": "as the NMU, with noise of U[1,5]",
    "Gated NAU/NMU": "as the NMU; the penalty of its paper",
    "MC-FC": "benchmark: Adam 1e-3",
    "NaiveNPU": "as the NPU",
    "NPU": "benchmark: Adam 5e-3, growing L1",
    "Real NPU (baseline)": "benchmark and division paper: Adam 5e-3, growing L1",
    "Real NPU (modified)": "division paper: Adam 5e-3, growing L1, penalty 1",
    "NRU": "division paper: Adam 1, with 10 inputs 1e-3, penalty 10",
    "NMRU": "division paper: Adam 1e-2, penalty 10, gradient clipped to 1",
}
"""Unit -> where its recipe is from, and what it is."""


def tasks(operation: str, inputs: int) -> dict[str, SingleModuleTask]:
    """The task on each of the nine ranges on which the operation is defined.

    >>> list(tasks("root", 2))
    ['U[0.1,0.2)', 'U[1,2)', 'U[1.1,1.2)', 'U[10,20)']
    """
    return {
        name: SingleModuleTask.on(name, operation=operation, inputs=inputs)
        for name, (trained, _) in UNIFORM_RANGES.items()
        if operation != "root" or trained.low >= 0
    }


def runs_of(
    operation: str,
    inputs: int,
    seeds: int = 25,
    units: Sequence[str] = tuple(UNITS),
    ranges: Sequence[str] = tuple(UNIFORM_RANGES),
    iterations: int | None = None,
) -> list[Run]:
    """The runs of the arm *as published* for an operation.

    >>> len(runs_of("root", 2, seeds=2, units=["NPU", "NMU"]))
    8
    """
    every = tasks(operation, inputs)
    return [
        Run(
            task=task,
            model=arm.model,
            recipe=arm.recipe,
            seed=seed,
            threshold=thresholds.FIXED,
            labels={"model": unit, "operation": operation, "inputs": str(inputs), "arm": PUBLISHED},
        )
        for unit, arm in arms(operation, inputs, iterations).items()
        if unit in units
        for name, task in every.items()
        if name in ranges
        for seed in range(seeds)
    ]


@cache
def benchmark_threshold(task: SingleModuleTask, eps: float = 1e-4) -> float:
    r"""The benchmark's threshold: the mean squared test error of a solution whose weights are off by ``eps``.

    With operands a and b, and c over all other inputs, that solution computes

    * :math:`a \pm b - \epsilon \sum_x |x|` for sums, over all inputs,
    * :math:`(1-\epsilon)^2\, ab \prod_c (1 - \epsilon |c|)` and
      :math:`\frac{1-\epsilon}{1+\epsilon} \frac{a}{b} \prod_c (1 - \epsilon |c|)`.

    The benchmark simulates the mean; here it is integrated. It has no operations of one operand. Theirs are
    made alike: :math:`\sqrt{(1-\epsilon) a}`, :math:`(1-\epsilon)^2 a^2`, :math:`\frac{1}{(1+\epsilon) a}`,
    and b is one of the other inputs.

    >>> f"{benchmark_threshold(SingleModuleTask.on('U[1,2)', operation='mul')):.2g}"
    '1.2e-05'
    """
    mean, operands = _moments(task.extrapolation), 1 if task.operation in _ONE_OPERAND else 2
    if task.operation in ("add", "sub"):
        size = mean(np.abs)
        variance = mean(np.square) - size**2
        return float(eps**2 * (task.inputs * variance + (task.inputs * size) ** 2))
    factor, powers = _ONE_OPERAND.get(task.operation) or _TWO_OPERANDS[task.operation]
    others = task.inputs - operands
    # of 1 - factor * product over the others, and of its square
    first, second = (mean(lambda x, n=n: (1 - eps * np.abs(x)) ** n) ** others for n in (1, 2))
    off = 1 - 2 * factor(eps) * first + factor(eps) ** 2 * second
    return float(off * np.prod([mean(lambda x, p=power: np.abs(x) ** (2 * p)) for power in powers]))


_ONE_OPERAND: dict[str, tuple[Callable[[float], float], tuple[float, ...]]] = {
    "root": (lambda eps: (1 - eps) ** 0.5, (0.5,)),
    "squared": (lambda eps: (1 - eps) ** 2, (2.0,)),
    "reciprocal": (lambda eps: 1 / (1 + eps), (-1.0,)),
}
_TWO_OPERANDS: dict[str, tuple[Callable[[float], float], tuple[float, ...]]] = {
    "mul": (lambda eps: (1 - eps) ** 2, (1.0, 1.0)),
    "div": (lambda eps: (1 - eps) / (1 + eps), (1.0, -1.0)),
}
"""Operation -> by what a nearly perfect solution is off, and the exponents of the operands."""


def _moments(of: Range) -> Callable[[Callable[[np.ndarray], np.ndarray]], float]:
    """The mean of a function of a number from a uniform range, by quadrature."""
    parts = (of.first, of.second) if isinstance(of, UniformUnion) else (of,)
    nodes, weights = np.polynomial.legendre.leggauss(100)

    def mean(function: Callable[[np.ndarray], np.ndarray]) -> float:
        each = [
            weights @ function(part.low + (part.high - part.low) * (nodes + 1) / 2) / 2
            for part in parts
            if isinstance(part, Uniform)
        ]
        return float(np.mean(each))

    return mean


def summary(rows: pd.DataFrame, ranges: bool = True) -> pd.DataFrame:
    """How many runs of each unit solved each task.

    Args:
        rows: of the leaderboard, with the columns ``arm``, ``model``, ``operation``, ``inputs`` and those of
            every results file.
        ranges: a line per range; otherwise one for all of them together, whose ``range`` is ``"all"``.

    Returns:
        The columns ``arm``, ``unit``, ``operation``, ``inputs``, ``range``, ``runs``, ``solved``, ``rate``,
        ``low`` and ``high``, its 95% interval by seeds, and ``solved_at``, the median iteration at which
        solved runs were.

    >>> line = {"arm": "as published", "model": "NMU", "operation": "mul", "inputs": 2, "range": "U[1,2)"}
    >>> rows = [line | {"seed": s, "success": s < 3, "solved_at": 1000.0 * (1 + s)} for s in range(4)]
    >>> summary(pd.DataFrame(rows))[["unit", "range", "runs", "solved", "rate", "solved_at"]]
      unit   range  runs  solved  rate  solved_at
    0  NMU  U[1,2)     4       3  0.75     2000.0
    """
    lines = []
    by = ["arm", "model", "operation", "inputs", "range"]
    rows = rows.assign(inputs=rows["inputs"].astype(int), success=rows["success"].astype(bool))
    rows = rows if ranges else rows.assign(range="all")
    for names, group in rows.groupby(by, sort=False):
        rate = measures.success_rate(group["success"], seeds=group["seed"])
        found = {"runs": len(group), "solved": int(group["success"].sum()), "rate": rate.estimate}
        found |= {"low": rate.low, "high": rate.high}
        found |= {"solved_at": group["solved_at"][group["success"]].median()}
        lines.append(dict(zip(COLUMNS, names, strict=False)) | found)
    return pd.DataFrame(lines, columns=COLUMNS)


COLUMNS = [
    "arm", "unit", "operation", "inputs", "range", "runs", "solved", "rate", "low", "high", "solved_at",
]  # fmt: skip
"""Of :func:`summary`."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    asked = [
        run
        for inputs in p.inputs
        for operation in p.operations
        for run in runs_of(operation, inputs, p.seeds, p.units, p.ranges, p.iterations or None)
    ]
    return {RESULTS: asked}


EXPERIMENT = Experiment(
    chapter="book/beyond/leaderboard.ipynb",
    rules={
        "units": some_of(UNITS),
        "operations": some_of(OPERATIONS),
        "inputs": some_of([2, 10]),
        "ranges": some_of(UNIFORM_RANGES),
        "iterations": at_least(0),
    },
    runs=_runs,
    also=ALSO,
)
