"""Ensembles that see the same batches, trained in lockstep: each batch is drawn once for all of them.

On the common stream the runs of all models see the same inputs, and those of equal seeds the same targets.
With hundreds of inputs, to draw a batch and to compute its targets takes more than half of a small model's
update. Here a few batches are drawn at a time, and one ensemble after another is updated on them while they
lie in the core's cache: five models of ten runs each, with 150 to 300 inputs, take seven tenths of the time
that they take one after another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import copy
from typing import Any

from torch import Tensor
from torch.func import vmap
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from nalm.tasks.arithmetic import OperandTask
from nalm.training.checkpoint import Checkpoint
from nalm.training.compiler import Compiled
from nalm.training.log import Journal, Log
from nalm.training.run import Run
from nalm.training.stacked import Tensors
from nalm.training.streams import uniforms
from nalm.training.until_lost import EnsembleUntilLost
from nalm.training.update import State

__all__ = ["Lockstep", "batches_of"]

WIDE = 64 * 128
"""The numbers of a batch from which on drawing it takes long enough."""


def batches_of(runs: Sequence[Run]) -> tuple | None:
    """What decides the batches that runs of one structure are trained on; ensembles for which it is equal can
    be trained in lockstep. ``None`` where that gains nothing: each run draws its own, or they are small.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SubsetArithmeticTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=10**6, optimiser=Adam(lr=1e-3), stream="common")
    >>> task, model = SubsetArithmeticTask(operation="mul", inputs=200), Stack.of("NAU", 2, "NMU", 1)
    >>> run = Run(task=task, model=model, recipe=recipe, seed=0)
    >>> batches_of([run]) == batches_of([run.but(model=Stack.of("NAC", 2, "NMU", 1))])
    True
    >>> batches_of([run.but(recipe=recipe.but(stream="own"))])
    """
    task, recipe = runs[0].task, runs[0].recipe
    numbers = task.noise_rows() * recipe.batch_size
    if recipe.stream != "common" or not isinstance(task, OperandTask) or numbers < WIDE:
        return None
    schedule = recipe.iterations, recipe.log_interval, recipe.batch_size
    return (*schedule, *((run.task.canonical(), run.seed) for run in runs))


class Lockstep:
    """Trains ensembles that see the same batches. Each has the log that it has by itself, bit for bit.

    Args:
        ensembles: on a CPU, all compiled or none, with equal :func:`batches_of` their runs.
    """

    def __init__(self, ensembles: Sequence[EnsembleUntilLost]) -> None:
        self.ensembles = tuple(ensembles)
        for ensemble in ensembles[1:]:
            ensemble._counter = ensembles[0]._counter  # it is long
        self._draw = _Draw(ensembles[0])
        self._updates = {ensemble: _Updates(ensemble) for ensemble in ensembles}

    def train(
        self, progress: Sequence[Callable[[int], None]], checkpoints: Sequence[Checkpoint | None]
    ) -> list[Log]:
        """Train all ensembles from their initial weights or checkpoints to the end.

        Args:
            progress: of each ensemble, as :meth:`~nalm.training.Ensemble.train` takes it.
            checkpoints: of each ensemble. Those that are behind go on by themselves until they meet the
                others.

        Returns:
            The log of each ensemble; the seconds are its share of all, by the number of runs.
        """
        courses = [_Course(*of) for of in zip(self.ensembles, progress, checkpoints, strict=True)]
        recipe = self.ensembles[0].recipe
        while (first := min(course.iteration for course in courses)) < recipe.iterations:
            start, last = time.perf_counter(), min(first + recipe.log_interval, recipe.iterations)
            now = [course for course in courses if course.iteration == first]
            for course in now:
                course.log(last)
            self._advance([course.ensemble for course in now], first, last)
            seconds = (time.perf_counter() - start) / sum(len(course.ensemble.runs) for course in now)
            for course in now:
                course.iteration = last
                course.seconds += seconds * len(course.ensemble.runs)
        return [course.end() for course in courses]

    def warm_up(self) -> None:
        """Compile without training, as :meth:`nalm.training.Ensemble.warm_up` does."""
        before = [ensemble._position() for ensemble in self.ensembles]
        for ensemble in self.ensembles:
            ensemble.evaluate(ensemble.parameters)
        self._update(self.ensembles, 0, min(self.ensembles[0].together, self.ensembles[0].recipe.iterations))
        for ensemble, position in zip(self.ensembles, before, strict=True):
            ensemble._go_on_from(position)

    def _advance(self, ensembles: Sequence[EnsembleUntilLost], first: int, last: int) -> None:
        """Updates number ``first`` to ``last - 1``."""
        whole = [ensemble for ensemble in ensembles if ensemble.is_whole()]
        for ensemble in ensembles:
            if ensemble not in whole or len(whole) == 1:
                ensemble._advance(first, last)
        if len(whole) > 1:
            with ExitStack() as stack:
                for ensemble in whole:
                    stack.enter_context(ensemble.watched())
                self._update(whole, first, last)

    def _update(self, ensembles: Sequence[EnsembleUntilLost], first: int, last: int) -> None:
        updates = [self._updates[ensemble] for ensemble in ensembles]
        for update in updates:
            update.begin()
        counter, together = ensembles[0]._counter[:last], ensembles[0].together
        for start in range(first, last, together):
            batches = self._draw(counter[start : start + together])
            for update in updates:
                update(batches)
            del batches  # before the next ones are drawn, which take its place in the cache
        for update in updates:
            update.end()


class _Course:
    """An ensemble on its way: what :meth:`nalm.training.Ensemble.train` does between the updates."""

    def __init__(
        self, ensemble: EnsembleUntilLost, progress: Callable[[int], None], checkpoint: Checkpoint | None
    ) -> None:
        self.ensemble, self.progress, self.checkpoint = ensemble, progress, checkpoint
        self.journal = Journal(ensemble.selection)
        ensemble._begin()
        self.iteration, self.seconds = ensemble._restore(checkpoint, self.journal)
        progress(self.iteration)

    def log(self, following: int) -> None:
        self._keep()
        self.ensemble._log(self.iteration, self.journal)
        self.progress(following - self.iteration)

    def end(self) -> Log:
        self._keep()
        self.ensemble._log(self.iteration, self.journal)
        return self.journal.log(self.seconds, str(self.ensemble.device), self.ensemble.compiled)

    def _keep(self) -> None:
        if self.checkpoint is not None and self.checkpoint.due():
            self.checkpoint.write(self.ensemble._content(self.iteration, self.journal, self.seconds))


class _Code:
    """A function of tensors in dicts, lists and tuples, called with its tensors alone, which gives those of
    the result: of compiled code, nothing else is called.
    """

    def __init__(self, function: Callable, compiled: bool) -> None:
        self._function, self._compiled = function, Compiled(function) if compiled else None

    def __call__(self, *arguments: Any) -> Callable[..., list[Tensor]]:
        """For arguments of these shapes."""
        if self._compiled is not None:
            return self._compiled._flat(self._function, arguments).function
        _, structure = tree_flatten(arguments)
        return lambda *tensors: tree_leaves(self._function(*tree_unflatten(tensors, structure)))


Batch = tuple[Tensor, Tensor, Tensor]
"""The number of an update; its inputs (1, in_features, examples), as noise is drawn; its targets
(runs, examples, 1).
"""


class _Draw:
    """Draws batches with the numbers of their updates, as this ensemble does."""

    def __init__(self, ensemble: EnsembleUntilLost) -> None:
        self._update, self._fixed = ensemble.update, tree_leaves(ensemble.update.constants)
        self._code_of = _Code(self._batches, ensemble.compiled)
        self._code: dict[int, Callable[..., list[Tensor]]] = {}

    def __call__(self, numbers: Tensor) -> list[Batch]:
        iterations = list(numbers)
        if len(iterations) not in self._code:
            self._code[len(iterations)] = self._code_of(iterations, self._update.constants)
        drawn = self._code[len(iterations)](*iterations, *self._fixed)
        return list(zip(iterations, drawn[::2], drawn[1::2], strict=True))

    def _batches(self, iterations: Sequence[Tensor], constants: Tensors) -> list[tuple[Tensor, Tensor]]:
        return [self._batch(iteration, constants) for iteration in iterations]

    def _batch(self, iteration: Tensor, constants: Tensors) -> tuple[Tensor, Tensor]:
        update, task = self._update, self._update.task
        noise = uniforms(update.seeds, iteration, task.noise_rows(), update.recipe.batch_size)[0]

        def batch(constants: Tensors) -> tuple[Tensor, Tensor]:
            return task.batch(noise, constants, update.shared)

        if all(dim is None for dim in update.constant_dims.values()):  # all runs sum the same inputs
            x, targets = batch(constants)
            targets = targets.expand(len(update.runs), *targets.shape)
        else:
            x, targets = vmap(batch, (update.constant_dims,), (None, 0))(constants)
        return x.mT.unsqueeze(0), targets


class _Given:
    """Stands for the task in an update whose batches are given: what it draws are the inputs."""

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        return noise.mT, constants["targets"]


class _Updates:
    """An ensemble's updates on batches that are given."""

    def __init__(self, ensemble: EnsembleUntilLost) -> None:
        self._ensemble, self._fixed = ensemble, tree_leaves(ensemble.update.numbers)
        self._update = copy(ensemble.update)
        self._update.task, self._update.constant_dims = _Given(), {"targets": 0}  # type: ignore[assignment]
        self._code_of = _Code(self._updated, ensemble.compiled)
        self._code: dict[int, Callable[..., list[Tensor]]] = {}

    def begin(self) -> None:
        self._tensors, self._structure = tree_flatten((self._ensemble.parameters, self._ensemble.state))

    def __call__(self, batches: list[Batch]) -> None:
        if len(batches) not in self._code:
            of = tree_unflatten(self._tensors, self._structure)
            self._code[len(batches)] = self._code_of(*of, batches, self._ensemble.update.numbers)
        given = (tensor for batch in batches for tensor in batch)
        self._tensors = self._code[len(batches)](*self._tensors, *given, *self._fixed)

    def end(self) -> None:
        self._ensemble.parameters, self._ensemble.state = tree_unflatten(self._tensors, self._structure)

    def _updated(
        self, parameters: Tensors, state: State, batches: Sequence[Batch], numbers: dict
    ) -> tuple[Tensors, State]:
        for iteration, x, targets in batches:
            parameters, state = self._update(parameters, state, iteration, x, {"targets": targets}, numbers)
        return parameters, state
