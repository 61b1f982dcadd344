"""Ensembles on all cores: one process with one thread per core.

A small fused update is over before a second thread has joined in, so two processes with a thread each train about twice as fast as one process
with two threads (``make bench`` measures it).
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

import torch

from nalm.records.code import code
from nalm.training import Checkpoint, Ensemble, Log, Run, worth_compiling

__all__ = ["checkpoint_of", "cores", "train_ensembles"]

Progress = Callable[[int], None]
POLL_SECONDS = 0.5
CHECKPOINT_SECONDS = 30.0


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checkpoint_of(runs: list[Run], folder: Path) -> Checkpoint:
    """The checkpoint of an ensemble of these runs, in a folder of results; training goes on only with the code that it began with."""
    name = hashlib.sha256("".join([code(runs[0]), *(run.key for run in runs)]).encode()).hexdigest()[:16]
    return Checkpoint(folder / ".checkpoints" / f"{name}.pt", CHECKPOINT_SECONDS)


def train_ensembles(ensembles: Sequence[list[Run]], device: str, folder: Path, progress: Progress) -> Iterator[tuple[list[Run], Log]]:
    """Train ensembles and yield each with its log as soon as it is done.

    Long CPU trainings run in one process per core, everything else one after another in this process.

    Args:
        ensembles: lists of runs of equal structure.
        device: where they are trained.
        folder: where their checkpoints lie; whoever has recorded a log removes the checkpoint.
        progress: is told further run-iterations.
    """
    long = [runs for runs in ensembles if device == "cpu" and _is_long(runs[0])]
    if len(long) > 1 and cores() > 1:
        yield from _in_processes(long, folder, progress)
        ensembles = [runs for runs in ensembles if runs not in long]
    for runs in ensembles:
        yield runs, _train(runs, device, folder, progress)


def _is_long(run: Run) -> bool:
    """Whether a training takes longer than starting a process for it."""
    return worth_compiling(run.recipe.iterations) or (run.model.one_by_one and run.recipe.iterations >= 200)


def _train(runs: list[Run], device: str, folder: Path, progress: Progress) -> Log:
    return Ensemble(runs, device).train(lambda iterations: progress(iterations * len(runs)), checkpoint_of(runs, folder))


def _in_processes(ensembles: Sequence[list[Run]], folder: Path, progress: Progress) -> Iterator[tuple[list[Run], Log]]:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(min(cores(), len(ensembles)), mp_context=context) as pool:
        told = manager.Queue()
        pending = {pool.submit(_train_in_process, runs, folder, told): runs for runs in ensembles}
        try:
            while pending:
                done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                _pass_on(told, progress)
                for future in done:
                    yield pending.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _train_in_process(runs: list[Run], folder: Path, told: queue.Queue) -> Log:
    torch.set_num_threads(1)
    return _train(runs, "cpu", folder, told.put)


def _pass_on(told: queue.Queue, progress: Progress) -> None:
    while True:
        try:
            progress(told.get_nowait())
        except queue.Empty:
            return
