"""Who trains ensembles: this process, one process per core, or any executor.

A small fused update is over before a second thread has joined in, so two processes with a thread each train
about twice as fast as one process with two threads (``make bench`` measures it). For the same reason, and
because torch's random generator and compiler belong to the whole process, ensembles of one process take
turns: an executor with threads trains correctly, but not faster.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import platform
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nalm.models import NODE
from nalm.own import IN_A_NOTEBOOK
from nalm.records.code import code_of_all
from nalm.records.groups import POLL_SECONDS, Group, News, Trained, train_group
from nalm.records.processes import own_processes
from nalm.training import Ensemble, Run, check_device, worth_compiling
from nalm.training.lockstep import batches_of
from nalm.training.trainers import trainer_of

__all__ = ["Team", "cores", "device_of", "train_ensembles"]

_TURN = threading.Lock()
_parent: tuple[Any, Any]


def device_of(name: str) -> str:
    """The name of a device that is there. ``"cpu"`` has no number: PyTorch takes one and ignores it.

    Raises:
        ValueError: as of :func:`nalm.training.check_device`.

    >>> device_of("cpu:1")
    'cpu'
    """
    return "cpu" if check_device(name).type == "cpu" else name


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


def train_ensembles(
    ensembles: Sequence[list[Run]],
    device: str,
    folder: Path,
    progress: Callable[[int], None],
    team: Team | None = None,
    compiled: bool | None = None,
    compiling: Callable[[int], None] = lambda ensembles: None,
) -> Iterator[tuple[list[Run], Trained]]:
    """Train ensembles and yield each as soon as it is done.

    Without a team, long CPU trainings run in one process per core and everything else one after another in
    this process; ensembles that see the same batches are trained in lockstep, as far as every core has some.

    Args:
        ensembles: lists of runs of equal structure.
        device: where they are trained.
        folder: where their checkpoints lie; whoever has recorded a log removes the checkpoint.
        progress: is told further run-iterations.
        team: trains everything.
        compiled: as in :class:`nalm.training.Ensemble`.
        compiling: is told how many ensembles are being compiled, which lasts until their first updates are
            through.

    Raises:
        Exception: that of the first ensemble that failed, after all others are done.
    """
    reached = [0] * len(ensembles)
    begun: set[int] = set()
    failures: list[BaseException] = []

    def hear(news: News) -> None:
        number, what = news
        if isinstance(what, str):
            warnings.warn(what, stacklevel=2)
            return
        (begun.add if what is None else begun.discard)(number)
        compiling(len(begun))
        if what is not None and what > reached[number]:  # a training that a dead worker began is told twice
            progress(len(ensembles[number]) * (what - reached[number]))
            reached[number] = what

    numbered = dict(enumerate(ensembles))
    elsewhere = (
        numbered
        if team
        else {
            number: runs
            for number, runs in numbered.items()
            if device == "cpu" and _is_long(runs) and not is_known_here_only(runs[0])
        }
    )
    if team:
        yield from _by(team, _alone(elsewhere), device, folder, hear, failures.append, compiled)
    elif len(elsewhere) > 1:
        groups = _in_lockstep(elsewhere, min(cores(), len(elsewhere)))
        if cores() > 1:
            with _own_processes(min(cores(), len(groups))) as processes:
                yield from _by(processes, groups, device, folder, hear, failures.append, compiled)
        else:
            yield from _one_after_another(groups, device, folder, hear, failures.append, compiled)
    else:
        elsewhere = {}
    here = {number: runs for number, runs in numbered.items() if number not in elsewhere}
    yield from _one_after_another(_alone(here), device, folder, hear, failures.append, compiled)
    if failures:
        raise failures[0]


def _alone(ensembles: Group) -> list[Group]:
    return [{number: runs} for number, runs in ensembles.items()]


def _in_lockstep(ensembles: Group, places: int) -> list[Group]:
    """Those that see the same batches together, in so many groups that each place has one."""
    alike: dict[Any, list[int]] = {}
    for number, runs in ensembles.items():
        alike.setdefault((_is_stacked(runs) and batches_of(runs)) or number, []).append(number)
    parts = -(-places // len(alike))
    groups = [numbers[part::parts] for numbers in alike.values() for part in range(parts)]
    return [{number: ensembles[number] for number in numbers} for numbers in groups if numbers]


def _is_stacked(runs: list[Run]) -> bool:
    return trainer_of(runs[0]) is Ensemble


def _one_after_another(
    groups: Sequence[Group],
    device: str,
    folder: Path,
    hear: Callable[[News], None],
    failed: Callable[[BaseException], None],
    compiled: bool | None,
) -> Iterator[tuple[list[Run], Trained]]:
    for group in groups:
        try:
            trained: Sequence[Trained | BaseException] = train_group(group, device, folder, hear, compiled)
        except Exception as error:
            trained = [error] * len(group)
        yield from _passed_on(group, trained, hear, failed)


def _passed_on(
    group: Group,
    outcomes: Sequence[Trained | BaseException],
    hear: Callable[[News], None],
    failed: Callable[[BaseException], None],
) -> Iterator[tuple[list[Run], Trained]]:
    """What was trained; of what failed, nothing more is reached than is known."""
    for (number, runs), outcome in zip(group.items(), outcomes, strict=True):
        hear((number, 0 if isinstance(outcome, BaseException) else runs[0].recipe.iterations))
        if isinstance(outcome, BaseException):
            failed(outcome)
        else:
            yield runs, outcome


def is_known_here_only(run: Run) -> bool:
    """Whether a class of the run is defined in a notebook, which other processes do not know."""
    return f'"{IN_A_NOTEBOOK}' in run.canonical()


def _is_long(runs: list[Run]) -> bool:
    """Whether an ensemble takes longer than starting a process for it."""
    slow = runs[0].model.one_by_one or isinstance(runs[0].model, NODE)
    return worth_compiling(runs) or (slow and runs[0].recipe.iterations >= 200)


@contextmanager
def _own_processes(number: int) -> Iterator[Team]:
    context = multiprocessing.get_context("spawn")
    told, stopped = context.Queue(), context.Event()
    with own_processes(number, _remember, (told, stopped)) as pool:
        yield Team(pool, _tell_parent, told, stopped.set)


def _remember(told: Any, stopped: Any) -> None:
    """In an own process: how to tell news."""
    global _parent
    _parent = told, stopped


def _tell_parent(news: News) -> None:
    told, stopped = _parent
    if stopped.is_set():
        raise RuntimeError("Nobody waits for this training any more.")
    told.put(news)


def _by(
    team: Team,
    groups: Sequence[Group],
    device: str,
    folder: Path,
    hear: Callable[[News], None],
    failed: Callable[[BaseException], None],
    compiled: bool | None,
) -> Iterator[tuple[list[Run], Trained]]:
    pending = {
        _submitted(team.executor, group, device, folder, team.tell, _codes(group), compiled): place
        for place, group in enumerate(groups)
    }
    try:
        while pending:
            done, _ = wait(pending, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            _pass_on(team.told, hear)
            for future in sorted(done, key=pending.__getitem__):  # a set: several may be done at once
                group, error = groups[pending.pop(future)], _error(future)
                outcomes = [error] * len(group) if error else future.result()
                yield from _passed_on(group, outcomes, hear, failed)
    finally:
        if pending:
            [future.cancel() for future in pending]
            team.stop()


def _codes(group: Group) -> list[str]:
    return [code_of_all(runs) for runs in group.values()]


def _submitted(executor: Executor, *arguments: Any) -> Future[list[Trained | Exception]]:
    try:
        return executor.submit(_train_elsewhere, *arguments)
    except BrokenExecutor as error:  # its processes may die before they have been given everything
        broken: Future[list[Trained | Exception]] = Future()
        broken.set_exception(error)
        return broken


def _error(future: Any) -> BaseException | None:
    kept = "What was finished is recorded"
    try:
        error = future.exception()
    except CancelledError:
        cause = "Trainings were cancelled: the executor was shut down, or its scheduler is gone."
        return RuntimeError(f"{cause} {kept}; the same command goes on from there.")
    if isinstance(error, BrokenExecutor):
        guard = """the script that asks for runs lacks 'if __name__ == "__main__":'"""
        cause = (
            f"was killed from outside, perhaps because memory was short, or could not start because {guard}"
        )
        return RuntimeError(
            f"A training process {cause}. {kept}; once the cause is removed, "
            "the same command goes on from there."
        )
    return error


def _train_elsewhere(
    group: Group,
    device: str,
    folder: Path,
    tell: Callable[[News], None],
    expected: Sequence[str] = (),
    compiled: bool | None = None,
) -> list[Trained | Exception]:
    """Train in a worker: with one thread, with the expected code if it is named, and with checkpoints where
    it sees the folder of results.
    """
    with _TURN:
        _check_code(group, expected)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            outcomes = train_group(group, device, folder if folder.is_dir() else None, tell, compiled)
            return [_as_it_arrives(one) if isinstance(one, Exception) else one for one in outcomes]
        except Exception as error:
            raise _as_it_arrives(error) from None
        finally:
            torch.set_num_threads(threads)


def _as_it_arrives(error: Exception) -> Exception:
    """The error, or its sentence where another process could not read it: some of torch's compiler hold
    frames and graphs.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # reading calls what the error's class defines, which may fail in any way
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _check_code(group: Group, expected: Sequence[str]) -> None:
    # Asked of what is loaded, as that trains; the files on disk may be other ones again.
    for ours, loaded in zip(expected, _codes(group), strict=False):
        if ours != loaded:
            worker = f"The worker on {platform.node()} runs other code ({loaded}) than this process ({ours})"
            raise RuntimeError(
                f"{worker}, so it trains nothing; start both with the same version of the library."
            )


def _pass_on(told: Any, hear: Callable[[News], None]) -> None:
    while True:
        try:
            hear(told.get_nowait())
        except queue.Empty:
            return
