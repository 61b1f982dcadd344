"""How fast are runs trained on this machine? ``make bench`` prints one line per measure: ``name: value unit``.

Every measure is in run-iterations per second (runs times updates by wall seconds), evaluations every 1,000 iterations included, compilation not.
The baseline is what a single run costs in an ordinary PyTorch training loop, in the same process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from nalm.models import Layer, Stack
from nalm.tasks import SingleModuleTask, SubsetArithmeticTask, UNIFORM_RANGES
from nalm.training import L1, Adam, Discretisation, Ensemble, Recipe, Run

__all__ = ["MEASURES", "ensemble_rate", "main", "plain_loop_rate"]

MODIFIED_REAL_NPU = Stack(
    layers=(Layer(unit="RealNPU", options={"init": "capped-glorot", "clip": ("weight", "gate"), "discretise": ("weight", "gate")}),)
)


def division_runs(inputs: int, iterations: int, seeds: int = 25) -> list[Run]:
    """The modified Real NPU on the division paper's nine ranges."""
    penalties = (L1(start=1e-9, end=1e-7), Discretisation(weight=1.0, start=40_000, end=50_000))
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=5e-3), penalties=penalties)
    tasks = [SingleModuleTask.on(name, operation="div", inputs=inputs) for name in UNIFORM_RANGES]
    return [Run(task=task, model=MODIFIED_REAL_NPU, recipe=recipe, seed=seed) for task in tasks for seed in range(seeds)]


def subset_runs(stream: str, iterations: int, seeds: int = 100) -> list[Run]:
    """NAU and NMU on the nau-nmu paper's default subset arithmetic with 100 inputs."""
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=1e-3), stream=stream)
    return [Run(task=SubsetArithmeticTask(operation="mul"), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=s) for s in range(seeds)]


def plain_loop_rate(run: Run, iterations: int = 2000) -> float:
    """Run-iterations per second of one run in an ordinary training loop: a module, ``torch.optim.Adam``, fresh batches, evaluations."""
    generator = torch.Generator().manual_seed(run.seed)
    module, constants = run.model.build(run.task.in_features), run.task.constants(run.seed)
    optimiser = torch.optim.Adam(module.parameters(), lr=run.recipe.optimiser.lr)
    evaluation = run.task.evaluation(run.seed)

    def loop(iterations: int) -> None:
        for iteration in range(iterations):
            if iteration % run.recipe.log_interval == 0:
                with torch.no_grad():
                    [(module(examples.inputs) - examples.targets).square().mean() for examples in evaluation.values()]
            noise = torch.rand(run.task.noise_rows(), run.recipe.batch_size, generator=generator)
            x, target = run.task.batch(noise, constants, {})
            optimiser.zero_grad()
            loss = (module(x) - target).square().mean()
            loss.backward()
            optimiser.step()
            [unit.project_() for unit in module]

    return _rate(loop, 1, iterations)


def ensemble_rate(runs: list[Run], compiled: bool = True) -> float:
    """Run-iterations per second of an ensemble; the compiled update is warmed up first."""
    ensemble = Ensemble(runs, compiled=compiled)
    ensemble.warm_up()
    start = time.perf_counter()
    ensemble.train()
    return len(runs) * runs[0].recipe.iterations / (time.perf_counter() - start)


def _rate(loop: Callable[[int], None], runs: int, iterations: int) -> float:
    loop(max(1, iterations // 20))
    start = time.perf_counter()
    loop(iterations)
    return runs * iterations / (time.perf_counter() - start)


MEASURES: dict[str, Callable[[], float]] = {
    "plain-loop-2": lambda: plain_loop_rate(division_runs(2, 1)[0]),
    "plain-loop-100": lambda: plain_loop_rate(subset_runs("own", 1)[0], 1000),
    "division-2-eager": lambda: ensemble_rate(division_runs(2, 1000), compiled=False),
    "division-2": lambda: ensemble_rate(division_runs(2, 10_000)),
    "division-10": lambda: ensemble_rate(division_runs(10, 4000)),
    "subset-100-common": lambda: ensemble_rate(subset_runs("common", 4000)),
    "subset-100-own": lambda: ensemble_rate(subset_runs("own", 2000)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure run-iterations per second on this machine.")
    parser.add_argument("measures", nargs="*", help=f"some of {', '.join(MEASURES)}; all by default")
    parser.add_argument("--threads", type=int, default=1, help="torch threads per process (default 1: one process per core is fastest)")
    arguments = parser.parse_args()
    unknown = set(arguments.measures) - set(MEASURES)
    if unknown or arguments.threads < 1:
        parser.error(f"unknown measure {unknown.pop()!r}" if unknown else "threads must be at least 1")
    torch.set_num_threads(arguments.threads)
    for name in arguments.measures or MEASURES:
        print(f"{name}: {MEASURES[name]():.0f} run-iterations/s", flush=True)


if __name__ == "__main__":
    main()
