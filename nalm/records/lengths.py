"""A run of more updates goes on where a shorter one ended.

Nothing that a large model is trained with depends on how many updates there will be: weights, batches,
schedules and evaluations are those of the seed and of the number of the update, and such models are neither
compiled nor stacked. So a run of 42,680 updates is the beginning of that of 388,388, bit for bit. Each has a
key and a row of its own. Where the **state** in which the shorter one ended was kept, a training of the
longer one begins from there; where it is lost, or its row is older than its code, from the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from nalm.records.code import code, with_torch
from nalm.records.groups import CHECKPOINTS, checkpoint_of
from nalm.training import Run
from nalm.training.checkpoint import SealedCheckpoint

__all__ = ["begin", "keep", "shorter", "state_of"]


def shorter(run: Run) -> Iterator[Run]:
    """The runs that a run passes on its way, the longest first: those that end with one of its evaluations.
    None of a model that is not trained by itself.

    >>> from nalm.models import DigitSequence
    >>> from nalm.tasks import DigitSequenceTask
    >>> from nalm.training import Adam, Recipe
    >>> task = DigitSequenceTask(operation="product", source="sklearn")
    >>> recipe = Recipe(iterations=25, optimiser=Adam(lr=1e-3), log_interval=10)
    >>> run = Run(task=task, model=DigitSequence(cell=None), recipe=recipe, seed=0)
    >>> [one.recipe.iterations for one in shorter(run)]
    [20, 10]
    """
    recipe = run.recipe
    if not run.model.one_by_one:
        return
    last = (recipe.iterations - 1) // recipe.log_interval
    for evaluations in range(last, 0, -1):
        yield run.but(recipe=recipe.but(iterations=evaluations * recipe.log_interval))


def state_of(run: Run, folder: Path) -> SealedCheckpoint:
    """Where the last state of a run is kept, in a folder of results: some megabytes, with their SHA-256."""
    return SealedCheckpoint(folder / CHECKPOINTS / f"{run.key}.pt", warn=warnings.warn)


def keep(runs: list[Run], folder: Path) -> None:
    """Keep the state in which an ensemble of one run ended, which its checkpoint holds, in place of those of
    shorter runs. Of other ensembles nothing is kept.
    """
    run, *others = runs
    if others or not run.model.one_by_one:
        return
    ends_with_an_evaluation = run.recipe.iterations % run.recipe.log_interval == 0
    if ends_with_an_evaluation and (content := checkpoint_of(runs, folder).read()):
        state_of(run, folder).write(content | {"code": _code_of(run)})
    if state_of(run, folder).read():  # else a shorter one is the most that there is
        for one in shorter(run):
            state_of(one, folder).remove()


def begin(runs: list[Run], folder: Path, trusted: Callable[[str], bool]) -> None:
    """Make the state of the longest run on the way of an ensemble's only run its checkpoint, unless it has
    one.

    Args:
        runs: the ensemble.
        folder: of its results.
        trusted: whether the row with this key is recorded and not older than its code.
    """
    checkpoint = checkpoint_of(runs, folder)
    if len(runs) > 1 or checkpoint.path.exists():
        return
    kept = set((folder / CHECKPOINTS).glob("*.pt"))
    for one in shorter(runs[0]) if kept else ():
        state = state_of(one, folder)
        if state.path in kept and trusted(one.key) and (content := state.read()):
            if content.pop("code", None) == _code_of(one):
                checkpoint.write(content | {"runs": [runs[0].canonical()]})
                return


def _code_of(run: Run) -> str | None:
    return with_torch(code(run), torch.__version__)
