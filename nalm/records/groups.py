"""Training in one process: a group of ensembles, their checkpoints, and the news of how far they are."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nalm.records.code import code_of_all, code_on_disk, with_torch
from nalm.records.provenance import provenance
from nalm.training import Ensemble, Log, Run
from nalm.training.checkpoint import PARTS, SealedCheckpoint
from nalm.training.lockstep import Lockstep
from nalm.training.trainers import trainer_of
from nalm.training.until_lost import EnsembleUntilLost

__all__ = ["Group", "News", "Trained", "checkpoint_of", "train_group"]

News = tuple[int, int | str | None]
"""The number of an ensemble, and the iteration that it has reached, a warning, or ``None`` when it begins to
be compiled.
"""
Trained = tuple[Log, dict[str, Any]]
"""What was trained, and where it comes from: its provenance, and the code that the process which trained it
runs.
"""
Group = dict[int, list[Run]]
"""Ensembles by their numbers, one or several that are trained in lockstep."""
POLL_SECONDS = 0.5
CHECKPOINT_SECONDS = 30.0
CHECKPOINTS = ".checkpoints"
"""The folder of checkpoints in one of results."""


def checkpoint_of(
    runs: list[Run], folder: Path, warn: Callable[[str], None] = warnings.warn
) -> SealedCheckpoint:
    """The checkpoint of an ensemble of these runs, in a folder of results; training goes on only with the
    code that it began with.

    It is written every half a minute; of a large model by itself at every evaluation, the last one included.
    """
    made_with = f"{with_torch(code_of_all(runs), torch.__version__)}"
    name = hashlib.sha256("".join([made_with, *(run.key for run in runs)]).encode()).hexdigest()[:16]
    every = 0.0 if runs[0].model.one_by_one and len(runs) == 1 else CHECKPOINT_SECONDS
    return SealedCheckpoint(folder / CHECKPOINTS / f"{name}.pt", every, warn, PARTS)


def train_group(
    group: Group, device: str, folder: Path | None, tell: Callable[[News], None], compiled: bool | None = None
) -> list[Trained | Exception]:
    if len(group) > 1:
        # Where one fails, or the compiler does, each goes on by itself from its checkpoint.
        with suppress(Exception):
            return [*_train_in_lockstep(group, folder, tell, compiled)]
        return [_outcome(number, runs, device, folder, tell, compiled) for number, runs in group.items()]
    return [_train_alone(number, runs, device, folder, tell, compiled) for number, runs in group.items()]


def _outcome(number: int, *of: Any) -> Trained | Exception:
    try:
        return _train_alone(number, *of)
    except Exception as error:
        return error


def _train_in_lockstep(
    group: Group, folder: Path | None, tell: Callable[[News], None], compiled: bool | None
) -> list[Trained]:
    ensembles = [EnsembleUntilLost(runs, "cpu", compiled) for runs in group.values()]
    if ensembles[0].compiled:
        for number in group:
            tell((number, None))
    logs = Lockstep(ensembles).train(
        [_progress_of(number, tell) for number in group],
        [_checkpoint_in(folder, number, runs, tell) for number, runs in group.items()],
    )
    return [_with_origin(runs, log) for runs, log in zip(group.values(), logs, strict=True)]


def _train_alone(
    number: int,
    runs: list[Run],
    device: str,
    folder: Path | None,
    tell: Callable[[News], None],
    compiled: bool | None,
) -> Trained:
    trainer = trainer_of(runs[0], device)
    ensemble = (EnsembleUntilLost if trainer is Ensemble else trainer)(runs, device, compiled)
    if ensemble.compiled:
        tell((number, None))
    try:
        log = ensemble.train(_progress_of(number, tell), _checkpoint_in(folder, number, runs, tell))
    except Exception as error:  # a small function was compiled before; a larger one may fail all the same
        if compiled or not ensemble.compiled or not _is_of_the_compiler(error):
            raise
        reason = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        tell((number, f"A training is not compiled, which makes it slower: {reason.strip().rstrip('.')}."))
        return _train_alone(number, runs, device, folder, tell, compiled=False)
    return _with_origin(runs, log)


def _is_of_the_compiler(error: Exception) -> bool:
    return type(error).__module__.startswith("torch._inductor")


def _with_origin(runs: list[Run], log: Log) -> Trained:
    return log, provenance(runs, log) | {"code": code_on_disk(runs)}


def _progress_of(number: int, tell: Callable[[News], None]) -> Callable[[int], None]:
    """Tells now and then how far the ensemble of this number is."""
    reached, reports, told_at = 0, 0, time.monotonic()

    def progress(iterations: int) -> None:
        nonlocal reached, reports, told_at
        reached, reports = reached + iterations, reports + 1
        # the first updates come after the second report
        if reports > 2 and time.monotonic() - told_at > POLL_SECONDS:
            tell((number, reached))
            told_at = time.monotonic()

    return progress


def _checkpoint_in(
    folder: Path | None, number: int, runs: list[Run], tell: Callable[[News], None]
) -> SealedCheckpoint | None:
    if folder is None:
        return None
    return checkpoint_of(runs, folder, lambda sentence: tell((number, sentence)))
