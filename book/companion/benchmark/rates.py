"""Ways to train runs, and how fast each is.

A way is a function that gets some ensembles ready, compilation included, and returns a function of no
arguments that does what is timed. Where there is no compiler, those that compile are asked for
``compiled=False``.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any

import torch
from nalm.records.memoised import ensembles_of
from nalm.records.processes import own_processes
from nalm.training import Ensemble, Run
from nalm.training.compiler import Compiled, Eager
from nalm.training.lockstep import Lockstep
from nalm.training.until_lost import EnsembleUntilLost

from companion.benchmark import floor

Ensembles = Sequence[Sequence[Run]]
Ready = Callable[[], Any]
BARRIER_SECONDS = 600.0
_barrier: Any = None


def plain_loops(ensembles: Ensembles) -> Ready:
    """One run after another in an ordinary PyTorch loop: a module, ``torch.optim.Adam``, fresh batches,
    evaluations; without penalties.
    """
    runs = [run for ensemble in ensembles for run in ensemble]
    [_plain_loop(run, max(1, run.recipe.iterations // 20)) for run in runs]
    return lambda: [_plain_loop(run, run.recipe.iterations) for run in runs]


def _plain_loop(run: Run, iterations: int) -> None:
    generator = torch.Generator().manual_seed(run.seed)
    module, constants = run.model.build(run.task.in_features), run.task.constants(run.seed)
    optimiser = torch.optim.Adam(module.parameters(), lr=run.recipe.optimiser.lr)
    evaluation = run.task.evaluation(run.seed)
    for iteration in range(iterations):
        if iteration % run.recipe.log_interval == 0:
            with torch.no_grad():
                [
                    (module(examples.inputs) - examples.targets).square().mean()
                    for examples in evaluation.values()
                ]
        noise = torch.rand(run.task.noise_rows(), run.recipe.batch_size, generator=generator)
        x, target = run.task.batch(noise, constants, {})
        optimiser.zero_grad()
        loss = (module(x) - target).square().mean()
        loss.backward()
        optimiser.step()
        [unit.project_() for unit in module]


def ensembles(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """Ensembles as the book's runs are trained."""
    return _ensembles(ensembles, compiled)


def four_together(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """The same with four updates in one call, where calls are compiled."""
    return _ensembles(ensembles, compiled, together=4 if compiled else 1)


def _ensembles(ensembles: Ensembles, compiled: bool, together: int = 1) -> Ready:
    ready = [Ensemble(runs, compiled=compiled, together=together) for runs in ensembles]
    [ensemble.warm_up() for ensemble in ready]
    return lambda: [ensemble.train() for ensemble in ready]


def in_lockstep(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """Ensembles that see the same batches, as the book's runs with wide inputs are trained."""
    together = 4 if compiled else 1
    ready = Lockstep([EnsembleUntilLost(runs, compiled=compiled, together=together) for runs in ensembles])
    ready.warm_up()
    number = len(ensembles)
    return lambda: ready.train([lambda iterations: None] * number, [None] * number)


def updates_only(ensembles: Ensembles) -> Ready:
    """Eager updates of ensembles, without evaluation."""
    ready = [Ensemble(runs, compiled=False) for runs in ensembles]

    def update(ensemble: Ensemble, iterations: int) -> None:
        parameters, state, step = ensemble.parameters, ensemble.state, ensemble.update
        for iteration, draw in enumerate(step.draws(0, iterations)):
            parameters, state = step(
                parameters, state, torch.tensor(iteration), draw, step.constants, step.numbers
            )

    [update(ensemble, 1) for ensemble in ready]
    return lambda: [update(ensemble, ensemble.recipe.iterations) for ensemble in ready]


def floors(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """What the updates cannot do without, see :mod:`companion.benchmark.floor`."""
    return _repeated(floor.floor, ensembles, compiled)


def reader_floors(ensembles: Ensembles) -> Ready:
    """What the updates of digit readers cannot do without; never compiled, as they are."""
    ready = []
    for runs in ensembles:
        images = runs[0].recipe.batch_size * runs[0].task.length * len(runs)
        ready.append((floor.reader_floor(images), runs[0].recipe.iterations))
    [multiply() for multiply, _ in ready]
    return lambda: [multiply() for multiply, iterations in ready for _ in range(iterations)]


def drawing(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """The batches of the updates alone."""
    return _repeated(floor.drawing, ensembles, compiled)


def wrapped(function: Callable, compiled: bool) -> Eager:
    """A function that is repeated as updates are, compiled or not."""
    return Compiled(function) if compiled else Eager(function)


def _repeated(kind: Callable, ensembles: Ensembles, compiled: bool) -> Ready:
    """Repeats what ``kind`` makes of each ensemble, called as the updates are, with what it computed last as
    its state.
    """
    ready = []
    for runs in ensembles:
        compute, iterations = kind(runs), torch.arange(runs[0].recipe.iterations)
        step = wrapped(lambda last, iteration, compute=compute: (compute(iteration),), compiled)
        state = (compute(iterations[0]),)
        step.repeat(state, [(iterations[0],)], ())
        ready.append((step, state, iterations))
    return lambda: [
        step.repeat(state, ((iteration,) for iteration in iterations), ())
        for step, state, iterations in ready
    ]


def shares(runs: Sequence[Run], processes: int) -> list[Ensembles]:
    """The ensembles of each of some processes, as :func:`nalm.records.run_all` divides runs."""
    ensembles = ensembles_of(runs, processes)
    return [ensembles[first::processes] for first in range(min(processes, len(ensembles)))]


def rate(way: Callable[[Ensembles], Ready], shares: Sequence[Ensembles]) -> float:
    """Run-iterations per second of processes that work side by side, each with one thread.

    All start when all are ready; what counts is the one that is done last.

    Args:
        way: how the runs are trained; found by name in the other processes.
        shares: the ensembles of each process. One share is trained in this process.
    """
    seconds = side_by_side(_seconds, [(way, share) for share in shares])
    return sum(len(runs) * runs[0].recipe.iterations for share in shares for runs in share) / max(seconds)


def peak_memory(way: Callable[[Ensembles], Ready], ensembles: Ensembles) -> float:
    """GiB that a fresh process has held at most, its libraries included, when it has trained ensembles."""
    return side_by_side(_peak, [(way, ensembles)], here=False)[0]


def compiling(way: Callable[[Ensembles], Ready], ensembles: Ensembles) -> float:
    """Seconds until a fresh process, with an empty cache of compiled code, has ensembles ready."""
    return side_by_side(_getting_ready, [(way, ensembles)], here=False)[0]


def side_by_side(function: Callable, arguments: Sequence[tuple], here: bool = True) -> list[Any]:
    """Results of a function called in a process for each tuple of arguments; a single call may be made
    ``here``, in this process.
    """
    if here and len(arguments) == 1:
        return [function(*arguments[0])]
    context = _fresh_processes()
    barrier = context.Barrier(len(arguments))
    with own_processes(len(arguments), _begin, (barrier,), context) as pool:
        futures = [pool.submit(function, *some) for some in arguments]
        errors = [error for future in futures if (error := future.exception())]
    if errors:
        raise next((error for error in errors if not isinstance(error, BrokenBarrierError)), errors[0])
    return [future.result() for future in futures]


@cache
def _fresh_processes() -> Any:
    """Where they come from: forked, where that can be done, from a process that has imported this library and
    done nothing yet.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _begin(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def _seconds(way: Callable[[Ensembles], Ready], ensembles: Ensembles) -> float:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        work = way(ensembles)
        if _barrier is not None:
            _barrier.wait(BARRIER_SECONDS)
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    except BaseException:
        if _barrier is not None:
            _barrier.abort()  # the others need not wait
        raise
    finally:
        torch.set_num_threads(threads)


def _getting_ready(way: Callable[[Ensembles], Ready], ensembles: Ensembles) -> float:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        start = time.perf_counter()
        way(ensembles)
        return time.perf_counter() - start


def _peak(way: Callable[[Ensembles], Ready], ensembles: Ensembles) -> float:
    _seconds(way, ensembles)
    status = Path("/proc/self/status")
    if status.exists():
        kib = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(kib) / 2**20
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
