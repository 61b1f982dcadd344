"""What is measured: runs of the papers' experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nalm.models import DigitSequence, Layer, Stack
from nalm.tasks import UNIFORM_RANGES, DigitSequenceTask, SingleModuleTask, SubsetArithmeticTask
from nalm.training import L1, Adam, Discretisation, Recipe, Run

__all__ = [
    "WORKLOADS",
    "Workload",
    "digit_runs",
    "division_runs",
    "models_runs",
    "subset_runs",
    "wide_models_runs",
]

MODIFIED_REAL_NPU = Stack(
    layers=(
        Layer(
            unit="RealNPU",
            options={"init": "capped-glorot", "clip": ("weight", "gate"), "discretise": ("weight", "gate")},
        ),
    )
)


def division_runs(inputs: int = 2, runs: int = 225, iterations: int = 50_000) -> list[Run]:
    """The modified Real NPU of the division paper, on its nine ranges in turn; batches of 128 examples, own
    streams.

    >>> len({str(run.task.interpolation) for run in division_runs(runs=225)})
    9
    """
    penalties = (L1(start=1e-9, end=1e-7), Discretisation(weight=1.0, start=40_000, end=50_000))
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=5e-3), penalties=penalties)
    tasks = [SingleModuleTask.on(name, operation="div", inputs=inputs) for name in UNIFORM_RANGES]
    return [
        Run(task=tasks[i % len(tasks)], model=MODIFIED_REAL_NPU, recipe=recipe, seed=i // len(tasks))
        for i in range(runs)
    ]


def models_runs(inputs: int, runs: int, iterations: int) -> list[list[Run]]:
    """The three modules of the division paper, each with the same tasks, seeds and recipe.

    >>> [ensemble[0].model.layers[0].unit for ensemble in models_runs(2, 1, 10)]
    ['RealNPU', 'NRU', 'NMRU']
    """
    first = division_runs(inputs, runs, iterations)
    return [
        [run.but(model=model) for run in first]
        for model in (MODIFIED_REAL_NPU, Stack.of("NRU", 1), Stack.of("NMRU", 1))
    ]


def subset_runs(
    stream: str, runs: int = 100, iterations: int = 50_000, inputs: int = 100, hidden: int = 2
) -> list[Run]:
    """NAU and NMU on the subset arithmetic of the nau-nmu paper, a product; batches of 128 examples.

    Args:
        stream: ``"own"`` or ``"common"``, see :class:`nalm.training.Recipe`.
        runs: how many, each with its own seed.
        iterations: updates per run.
        inputs: size of the input.
        hidden: outputs of the NAU.
    """
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=1e-3), stream=stream)
    task, model = SubsetArithmeticTask(operation="mul", inputs=inputs), Stack.of("NAU", hidden, "NMU", 1)
    return [Run(task=task, model=model, recipe=recipe, seed=seed) for seed in range(runs)]


def wide_models_runs(runs: int, iterations: int) -> list[list[Run]]:
    """NMU, NAC• and NALU on products of sums of 200 inputs, each with the same seeds on the common stream
    and targets in float64, as in the replays of the nau-nmu paper.

    >>> [ensemble[0].model.layers[-1].unit for ensemble in wide_models_runs(1, 10)]
    ['NMU', 'NACMul', 'NALU']
    """
    task = SubsetArithmeticTask(operation="mul", inputs=200, targets="float64")
    first = [run.but(task=task) for run in subset_runs("common", runs, iterations, inputs=200)]
    return [
        [run.but(model=Stack.of(of_sums, 2, of_the_product, 1)) for run in first]
        for of_sums, of_the_product in (("NAU", "NMU"), ("NAC", "NACMul"), ("NALU", "NALU"))
    ]


def digit_runs(runs: int, iterations: int) -> list[Run]:
    """The digit reader with an NMU, on products of two digits: batches of 64 pairs of images of 28 by 28
    pixels.

    The digits are scikit-learn's, enlarged, so that no other data are needed; the time of an update does not
    depend on what is on an image.
    """
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=1e-3), batch_size=64)
    task = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,))
    return [
        Run(task=task, model=DigitSequence(cell=Layer(unit="NMU")), recipe=recipe, seed=seed)
        for seed in range(runs)
    ]


@dataclass(frozen=True)
class Workload:
    """Runs to measure with.

    Args:
        make: number of runs, number of updates -> runs of one structure.
        runs: the usual number of runs.
        iterations: updates that take some seconds on a laptop.
    """

    make: Callable[[int, int], list[Run]]
    runs: int
    iterations: int


WORKLOADS = {
    "division-2": Workload(lambda runs, iterations: division_runs(2, runs, iterations), 225, 15_000),
    "division-10": Workload(lambda runs, iterations: division_runs(10, runs, iterations), 225, 5000),
    "subset-100-common": Workload(
        lambda runs, iterations: subset_runs("common", runs, iterations), 100, 10_000
    ),
    "subset-100-own": Workload(lambda runs, iterations: subset_runs("own", runs, iterations), 100, 3000),
}
"""Name -> workload. The number in a name is the number of inputs."""
