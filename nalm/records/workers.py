"""Who trains ensembles: this process, one process per core, or any executor.

A small fused update is over before a second thread has joined in, so two processes with a thread each train about twice as fast as one process
with two threads (``make bench`` measures it). For the same reason, and because torch's random generator and compiler belong to the whole process,
ensembles of one process take turns: an executor with threads trains correctly, but not faster.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nalm.models import NODE
from nalm.records.code import code
from nalm.records.provenance import provenance
from nalm.records.trainers import trainer_of
from nalm.training import Checkpoint, Log, Run, worth_compiling

__all__ = ["News", "Team", "Trained", "checkpoint_of", "cores", "train_ensembles"]

News = tuple[int, int | str]
"""The number of an ensemble, and the iteration that it has reached or a warning."""
Trained = tuple[Log, dict[str, Any]]
"""What was trained, and where it comes from."""
POLL_SECONDS = 0.5
CHECKPOINT_SECONDS = 30.0
_TURN = threading.Lock()
_parent: tuple[Any, Any]


def _say_nothing(news: News) -> None:
    """For workers that cannot tell how far they are."""


@dataclass(frozen=True)
class Team:
    """An executor, and how its workers tell how far they are.

    Args:
        executor: trains ensembles.
        tell: called in a worker with news, so it must travel there.
        told: where the news arrive here.
        stop: makes workers give up what nobody waits for any more.
    """

    executor: Executor
    tell: Callable[[News], None] = _say_nothing
    told: Any = field(default_factory=queue.SimpleQueue)
    stop: Callable[[], None] = lambda: None


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checkpoint_of(runs: list[Run], folder: Path, warn: Callable[[str], None] = warnings.warn) -> Checkpoint:
    """The checkpoint of an ensemble of these runs, in a folder of results; training goes on only with the code that it began with."""
    name = hashlib.sha256("".join([code(runs[0]), *(run.key for run in runs)]).encode()).hexdigest()[:16]
    return Checkpoint(folder / ".checkpoints" / f"{name}.pt", CHECKPOINT_SECONDS, warn)


def train_ensembles(
    ensembles: Sequence[list[Run]], device: str, folder: Path, progress: Callable[[int], None], team: Team | None = None
) -> Iterator[tuple[list[Run], Trained]]:
    """Train ensembles and yield each as soon as it is done.

    Without a team, long CPU trainings run in one process per core and everything else one after another in this process.

    Args:
        ensembles: lists of runs of equal structure.
        device: where they are trained.
        folder: where their checkpoints lie; whoever has recorded a log removes the checkpoint.
        progress: is told further run-iterations.
        team: trains everything.

    Raises:
        Exception: that of the first ensemble that failed, after all others are done.
    """
    reached = [0] * len(ensembles)

    def hear(news: News) -> None:
        number, what = news
        if isinstance(what, str):
            warnings.warn(what, stacklevel=2)
        elif what > reached[number]:  # a training that a dead worker began is told twice
            progress(len(ensembles[number]) * (what - reached[number]))
            reached[number] = what

    numbered = dict(enumerate(ensembles))
    long = numbered if team else {number: runs for number, runs in numbered.items() if device == "cpu" and _is_long(runs[0])}
    if team:
        yield from _by(team, numbered, device, folder, hear)
        return
    if len(long) > 1 and cores() > 1:
        with _own_processes(min(cores(), len(long))) as processes:
            yield from _by(processes, long, device, folder, hear)
        numbered = {number: runs for number, runs in numbered.items() if number not in long}
    for number, runs in numbered.items():
        yield runs, _train(number, runs, device, folder, hear)


def _is_long(run: Run) -> bool:
    """Whether a training takes longer than starting a process for it."""
    slow = run.model.one_by_one or isinstance(run.model, NODE)
    return worth_compiling(run.recipe.iterations) or (slow and run.recipe.iterations >= 200)


@contextmanager
def _own_processes(number: int) -> Iterator[Team]:
    context = multiprocessing.get_context("spawn")
    told, stopped = context.Queue(), context.Event()
    with ProcessPoolExecutor(number, mp_context=context, initializer=_begin, initargs=(told, stopped)) as pool:
        yield Team(pool, _tell_parent, told, stopped.set)


def _begin(told: Any, stopped: Any) -> None:
    """In an own process: remember how to tell news, and end when the parent does, however that ends."""
    global _parent
    _parent = told, stopped
    threading.Thread(target=lambda: (multiprocessing.parent_process().join(), os._exit(1)), daemon=True).start()


def _tell_parent(news: News) -> None:
    told, stopped = _parent
    if stopped.is_set():
        raise RuntimeError("Nobody waits for this training any more.")
    told.put(news)


def _by(team: Team, ensembles: dict[int, list[Run]], device: str, folder: Path, hear: Callable[[News], None]) -> Iterator[tuple[list[Run], Trained]]:
    pending = {team.executor.submit(_train_elsewhere, n, runs, device, folder, team.tell): n for n, runs in ensembles.items()}
    failure = None
    try:
        while pending:
            done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            _pass_on(team.told, hear)
            for future in done:
                number = pending.pop(future)
                runs = ensembles[number]
                if error := _error(future):
                    failure = failure or error
                    continue
                hear((number, runs[0].recipe.iterations))
                yield runs, future.result()
    finally:
        if pending:
            [future.cancel() for future in pending]
            team.stop()
    if failure:
        raise failure


def _error(future: Any) -> BaseException | None:
    lost = "What was finished is recorded; the same command goes on from there."
    try:
        error = future.exception()
    except CancelledError:
        return RuntimeError(f"Trainings were cancelled: the executor was shut down, or its scheduler is gone. {lost}")
    if isinstance(error, BrokenExecutor):
        return RuntimeError(f"A training process was killed from outside, perhaps because memory was short. {lost}")
    return error


def _train_elsewhere(number: int, runs: list[Run], device: str, folder: Path, tell: Callable[[News], None]) -> Trained:
    """Train in a worker: with one thread, and with checkpoints where the worker sees the folder of results."""
    with _TURN:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return _train(number, runs, device, folder if folder.is_dir() else None, tell)
        finally:
            torch.set_num_threads(threads)


def _train(number: int, runs: list[Run], device: str, folder: Path | None, tell: Callable[[News], None]) -> Trained:
    reached, told_at = 0, time.monotonic()

    def progress(iterations: int) -> None:
        nonlocal reached, told_at
        reached += iterations
        if time.monotonic() - told_at > POLL_SECONDS or reached == runs[0].recipe.iterations:
            tell((number, reached))
            told_at = time.monotonic()

    checkpoint = None if folder is None else checkpoint_of(runs, folder, lambda sentence: tell((number, sentence)))
    log = trainer_of(runs[0])(runs, device).train(progress, checkpoint)
    return log, provenance(runs, log)


def _pass_on(told: Any, hear: Callable[[News], None]) -> None:
    while True:
        try:
            hear(told.get_nowait())
        except queue.Empty:
            return
