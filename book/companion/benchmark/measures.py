"""The measures of ``make bench``, by name; and how the cost of an update grows."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from nalm.records import run_all
from nalm.records.workers import cores
from nalm.training import Run
from nalm.units.checks import choose

from companion.benchmark import alternatives, rates
from companion.benchmark.starts import starts
from companion.benchmark.workloads import (
    WORKLOADS,
    digit_runs,
    division_runs,
    models_runs,
    subset_runs,
    wide_models_runs,
)

__all__ = ["FURTHER", "MEASURES", "SCALING", "Measure", "Size", "measure", "scaling"]

RATE = "run-iterations/s"
MOST_NUMBERS = {
    "runs": (1, 3, 10, 30, 100, 300, 1000),
    "inputs": (2, 5, 10, 20, 50, 100),
    "hidden": (2, 4, 6, 8, 10),
}
MOST_PROCESSES = 1024
ENSEMBLE = 100
"""Runs that are trained together where the cost against inputs and hidden size is measured."""


@dataclass(frozen=True)
class Size:
    """How much is measured.

    Args:
        runs: at most so many runs per workload.
        share: of the usual number of updates; with 1 a measure takes seconds, compiling not counted.
        processes: what "all cores" are.
        compiled: ``False`` measures eager ensembles and floors in place of compiled ones, for a machine
            without a compiler.

    Raises:
        ValueError: a number that is not positive, or more processes than 1,024.
    """

    runs: int = 1000
    share: float = 1.0
    processes: int = field(default_factory=cores)
    compiled: bool = True

    def __post_init__(self) -> None:
        for name in ("runs", "share", "processes"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(
                    f"The size of a measurement has {name}={getattr(self, name)}, but must be finite and "
                    "more than 0."
                )
        if self.processes > MOST_PROCESSES:
            raise ValueError(f"There can be at most {MOST_PROCESSES:,} processes, not {self.processes:,}.")

    def of(self, runs: int, iterations: int) -> tuple[int, int]:
        """So many runs and updates, made smaller where asked."""
        return min(runs, self.runs), max(2, round(iterations * self.share))


@dataclass(frozen=True)
class Measure:
    """A measured number; ``str`` of it is a line of ``make bench``.

    >>> print(Measure("division-2", 1_012_345.6, "run-iterations/s"))
    division-2: 1012346 run-iterations/s
    >>> print(Measure("subset-100-1000-runs-memory", 1.234, "GiB"))
    subset-100-1000-runs-memory: 1.23 GiB
    >>> print(Measure("warm-start", 1.5, "s", "importing modules 2.5 s"))
    warm-start: 1.5 s (importing modules 2.5 s)
    """

    name: str
    value: float
    unit: str
    beside: str = ""

    def __str__(self) -> str:
        line = (
            f"{self.name}: {self.value:.0f} {self.unit}"
            if self.value >= 100
            else f"{self.name}: {self.value:.3g} {self.unit}"
        )
        return f"{line} ({self.beside})" if self.beside else line


def _rate(
    way: Callable, workload: str, one_core: bool = False, compiled: bool = True
) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        kind, fast = WORKLOADS[workload], compiled and size.compiled
        runs = kind.make(*size.of(kind.runs, kind.iterations if fast else kind.iterations // 15))
        processes = 1 if one_core else size.processes
        return rates.rate(partial(way, compiled=fast), rates.shares(runs, processes)), RATE

    return measured


def _plain(processes: int) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        _, iterations = size.of(1, 5000)
        runs = division_runs(runs=processes, iterations=iterations)
        return rates.rate(rates.plain_loops, [[[run]] for run in runs]), RATE

    return measured


def _cell(size: Size) -> tuple[float, str]:
    runs = division_runs(2, *size.of(225, 50_000))
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run_all(runs, "bench/cell", results=folder, progress=False)
        return time.perf_counter() - start, "s"


def _digits(way: Callable) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        runs = digit_runs(*size.of(size.processes, 150))
        images = runs[0].recipe.batch_size * runs[0].task.length
        return images * rates.rate(way, rates.shares(runs, size.processes)), "images/s"

    return measured


def _few_runs(way: Callable) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        runs = division_runs(2, *size.of(20, 50_000))
        return rates.rate(partial(way, compiled=size.compiled), rates.shares(runs, 1)), RATE

    return measured


def _three_models(way: Callable, inputs: int) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        ensembles = models_runs(inputs, *size.of(75, 10_000 // inputs))
        return rates.rate(partial(way, compiled=size.compiled), [ensembles]), RATE

    return measured


def _wide_models(way: Callable) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        ensembles = wide_models_runs(*size.of(10, 10_000))
        return rates.rate(partial(way, compiled=size.compiled), [ensembles]), RATE

    return measured


def _compiling(way: Callable) -> Callable[[Size], tuple[float, str]]:
    def measured(size: Size) -> tuple[float, str]:
        runs = division_runs(2, *size.of(225, 50_000))
        first = rates.shares(runs, size.processes)[0]
        return rates.compiling(partial(way, compiled=size.compiled), first), "s"

    return measured


def _memory(size: Size) -> tuple[float, str]:
    runs, _ = size.of(1000, 1)
    return rates.peak_memory(
        partial(rates.ensembles, compiled=size.compiled), [subset_runs("own", runs, iterations=5)]
    ), "GiB"


def _start(processes: int) -> Callable[[Size], tuple[float, str, str]]:
    def measured(size: Size) -> tuple[float, str, str]:
        last = starts(division_runs(2, *size.of(225, 50_000)), size.compiled, processes)[-1]
        return last.seconds, "s", f"importing modules {last.importing:.3g} s"

    return measured


MEASURES: dict[str, Callable[[Size], tuple[float, str]]] = {
    "plain-loop-2": _plain(1),
    "two-plain-loops-2": _plain(2),
    "division-2-eager": _rate(rates.ensembles, "division-2", one_core=True, compiled=False),
    **{f"{name}-one-core": _rate(rates.ensembles, name, one_core=True) for name in WORKLOADS},
    **{name: _rate(rates.ensembles, name) for name in WORKLOADS},
    "division-2-20-runs-one-core": _few_runs(rates.ensembles),
    "division-2-20-runs-four-together": _few_runs(rates.four_together),
    "division-2-drawn-beforehand": _rate(alternatives.batch_drawn_beforehand, "division-2", one_core=True),
    **{f"three-models-{inputs}": _three_models(alternatives.call_for_each, inputs) for inputs in (2, 10)},
    **{
        f"three-models-{inputs}-one-call": _three_models(alternatives.call_for_all, inputs)
        for inputs in (2, 10)
    },
    "division-2-compiling": _compiling(rates.ensembles),
    "division-2-four-together-compiling": _compiling(rates.four_together),
    **{f"floor-{name}": _rate(rates.floors, name) for name in WORKLOADS},
    **{f"drawing-{name}": _rate(rates.drawing, name) for name in ("division-2", "subset-100-own")},
    "division-2-cell": _cell,
    "cnn": _digits(rates.updates_only),
    "floor-cnn": _digits(rates.reader_floors),
    "subset-100-1000-runs-memory": _memory,
}
"""Name -> function of a :class:`Size` that measures a value and names its unit.

``plain-loop-2`` is one run in an ordinary PyTorch loop, ``two-plain-loops-2`` two such loops side by side.
``division-2`` and the like are rates of all cores, a process on each, evaluation included and compilation
not; ``…-one-core`` and ``…-eager`` those of one process, ``…-four-together`` that of one process with four
updates in a compiled call, ``…-drawn-beforehand`` that of one process whose batches cost nothing,
``…-compiling`` the seconds until a process with an empty cache is ready to train. ``three-models-2`` is the
rate of one process that updates Real NPU, NRU and NMRU, 75 runs each, one after the other,
``three-models-2-one-call`` that with an update of each in every compiled call. ``floor-…`` is the rate of
only what an update cannot do without, ``drawing-…`` that of only drawing its batch. ``division-2-cell`` is
the time of 225 runs of 50,000 updates from the question to the recorded rows, with compiled code kept from
before; ``cnn`` the images of the digit network that go forward and backward, ``floor-cnn`` those of only as
many multiply-adds in large matrix products; the last the peak memory of a process that holds 1,000 runs in
one ensemble.
"""

FURTHER: dict[str, Callable[[Size], tuple]] = {
    "cold-start": _start(1),
    "warm-start": _start(2),
    "three-models-200-alone": _wide_models(rates.four_together),
    "three-models-200-in-lockstep": _wide_models(rates.in_lockstep),
}
"""The same for what is not part of the measurement that the book shows.

``three-models-200-alone`` is the rate of one process that trains NMU, NAC• and NALU on products of sums of
200 inputs, ten runs each, on the common stream and one after another, and ``…-in-lockstep`` that of
:class:`nalm.training.lockstep.Lockstep`. The others are how a process starts: seconds from the first call
into an ensemble of 225 runs to the end of its first update, without those of importing modules, which are
named beside: ``cold-start`` where nothing compiled is kept yet, ``warm-start`` in a second process, which
finds what the first has kept.
"""


def measure(name: str, size: Size = Size()) -> Measure:
    """Measure one thing.

    Raises:
        ValueError: a name that is none of :data:`MEASURES` and ``FURTHER``.

    >>> measure("plain-loop-2", Size(share=0.004)).unit
    'run-iterations/s'
    >>> measure("division-3")
    Traceback (most recent call last):
    ValueError: Unknown measure 'division-3': did you mean 'division-2'? Allowed: ...
    """
    known = MEASURES | FURTHER
    return Measure(name, *known[choose("measure", name, known)](size))


SCALING: dict[str, Callable[[int, int], list[Run]]] = {
    "runs": lambda number, share: division_runs(2, number, share),
    "inputs": lambda number, share: division_runs(number, ENSEMBLE, share),
    "hidden": lambda number, share: subset_runs("common", ENSEMBLE, share, hidden=number),
}
"""What the cost of an update grows with: two-input division with more runs, 100 runs of division with more
inputs, and 100 runs of 100-input subset arithmetic on the common stream with more outputs of the NAU.
"""


def scaling(over: str, size: Size = Size()) -> list[tuple[int, float]]:
    """The cost of an update of a run on one core, in microseconds, against the number of runs, inputs or
    hidden outputs.

    Args:
        over: one of :data:`SCALING`.
        size: ``runs`` limits the numbers; the smallest is always measured.

    Returns:
        Pairs of a number and its cost.
    """
    make, pairs = SCALING[choose("cost", over, SCALING)], []
    for number in MOST_NUMBERS[over]:
        if pairs and number > size.runs:
            break
        together = number if over == "runs" else ENSEMBLE
        _, iterations = size.of(1, min(10_000, max(1000, 300_000 // together)))
        runs = make(number, iterations)[: size.runs]
        way = partial(rates.ensembles, compiled=size.compiled)
        pairs.append((number, 1e6 / rates.rate(way, rates.shares(runs, 1))))
    return pairs
