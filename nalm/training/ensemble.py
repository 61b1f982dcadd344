"""The ensemble: many runs trained at once.

A unit's single-run code is stacked over runs with ``torch.func`` and, where the training is long enough to
pay for it, compiled into one fused update.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch.utils._pytree import tree_map

from nalm.training.checkpoint import Checkpoint
from nalm.training.compiler import Compiled, Eager, is_compiled
from nalm.training.evaluation import Evaluation
from nalm.training.log import Journal, Log
from nalm.training.run import Run
from nalm.training.stacked import StackedModel, Tensors
from nalm.training.trial import try_units
from nalm.training.update import Update
from nalm.training.worth import worth_compiling
from nalm.units import sparsity_error
from nalm.units.checks import positive_int

__all__ = ["Ensemble", "check_device"]

TOGETHER, TOGETHER_FROM_ITERATIONS = 4, 400_000
"""Updates in one compiled call, and from how many iterations on: four take some seconds more to compile and
save some 20 µs per update.
"""


def check_device(name: str) -> torch.device:
    """The device of that name, or a ``ValueError`` if this machine does not have it.

    >>> check_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device {name!r}: allowed are 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ...")
    if device.type == "cuda" and (
        not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()
    ):
        raise ValueError(
            f"Device {name!r} is not there: this machine has {torch.cuda.device_count()} CUDA devices; "
            "use device='cpu'."
        )
    return device


class Ensemble:
    """Trains runs of one structure together.

    Args:
        runs: runs whose ``structure()`` is equal.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
        compiled: compile updates and evaluations; ``None``: if :func:`worth_compiling` and torch's compiler
            works here, else there is one warning.
        together: updates in one compiled call; ``None``: four, if the training is long enough to pay for
            compiling them.

    Raises:
        TypeError: something that is no run, a ``compiled`` that is no flag, or no whole number ``together``.
        ValueError: no runs, runs of different structure, a recipe with a second stage, a unit that
            :func:`~nalm.training.trial.try_units` refuses, a device that is not there, or a ``together``
            below 1.
        RuntimeError: ``compiled=True`` where torch's compiler does not work.

    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.models import Stack
    >>> from nalm.training import Adam, Recipe
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul")
    >>> recipe = Recipe(iterations=300, optimiser=Adam(lr=1e-2), log_interval=100)
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed) for seed in range(3)]
    >>> log = Ensemble(runs).train()
    >>> log.errors["test"].shape, bool((log.errors["test"][-1] < log.errors["test"][0]).all())
    ((4, 3), True)
    """

    stride: ClassVar[int | None] = None
    """Updates between two occasions to write a checkpoint; ``None``: those between two evaluations."""

    def __init__(
        self,
        runs: Sequence[Run],
        device: str = "cpu",
        compiled: bool | None = None,
        together: int | None = None,
    ) -> None:
        if not runs:
            raise ValueError("An ensemble needs at least one run.")
        if others := [one for one in runs if not isinstance(one, Run)]:
            raise TypeError(
                f"An ensemble takes a list of runs, but one of these is of type {type(others[0]).__name__}."
            )
        if len({run.structure() for run in runs}) > 1:
            raise ValueError(
                "The runs of an ensemble must have the same structure (task, model and recipe up to numbers)."
            )
        self.runs, self.device, self.recipe = tuple(runs), check_device(device), runs[0].recipe
        self._check()
        try_units(runs[0])
        self.selection: str = self.recipe.selection
        self.model = StackedModel(self.runs, self.device)
        self.compiled = is_compiled(compiled, self._worth_compiling(), self.device)
        if together is None:
            together = TOGETHER if self.recipe.iterations >= TOGETHER_FROM_ITERATIONS else 1
        self.together = positive_int("together", together)
        self.update = Update(self.model, self.runs, self.device)
        self.parameters, self.state = self.model.parameters, self.update.initial_state()
        self._start: dict[str, Any] | None = None
        self._prepare()

    def _check(self) -> None:
        """Refuse recipes that runs of this kind do not have."""
        if self.recipe.finish is not None:
            raise ValueError(
                "A second stage (finish) needs a loss that is the same in every iteration, "
                "but these runs draw a new batch in each."
            )

    def _worth_compiling(self) -> bool:
        return worth_compiling(self.runs)

    def _prepare(self) -> None:
        """Make what evaluates and what updates."""
        wrap, update = Compiled if self.compiled else Eager, self.update.__call__
        self.evaluate: Callable[[Tensors], Tensors] = Evaluation(
            self.model, self.runs, self.update.shared, self.device, wrap
        )
        self._update = Compiled(update, self.together) if self.compiled else Eager(update)
        self._counter = torch.arange(self.recipe.iterations, device=self.device)

    def train(
        self, progress: Callable[[int], None] = lambda iterations: None, checkpoint: Checkpoint | None = None
    ) -> Log:
        """Train all runs from their initial weights to the end, however often this is called.

        Args:
            progress: is told the number of further iterations now and then.
            checkpoint: where the training is kept from time to time, and taken up again if it was
                interrupted.

        Returns:
            The log. It is the same whether or not the training was interrupted.
        """
        start, journal = time.perf_counter(), Journal(self.selection)
        self._begin()
        first, seconds = self._restore(checkpoint, journal)

        def keep(iteration: int) -> None:
            if checkpoint is not None and checkpoint.due():
                checkpoint.write(self._content(iteration, journal, seconds + time.perf_counter() - start))

        progress(first)
        iterations, interval = self.recipe.iterations, self.recipe.log_interval
        for iteration in range(first, iterations, stride := self.stride or interval):
            keep(iteration)
            if iteration % interval == 0:
                self._log(iteration, journal)
            following = min(iteration + stride, iterations)
            progress(following - iteration)
            self._advance(iteration, following)
        keep(iterations)
        self._log(self._finish(keep), journal)
        return journal.log(seconds + time.perf_counter() - start, str(self.device), self.compiled)

    def _begin(self) -> None:
        """Keep where the first training begins, or go back there."""
        if self._start is None:
            self._start = self._position()
        self._go_on_from(self._start)

    def warm_up(self) -> None:
        """Compile without training: an evaluation and the updates of one call; results are thrown away."""
        before = self._position()
        self.evaluate(self.parameters)
        self._advance(0, min(self.together, self.recipe.iterations))
        self._go_on_from(before)

    def _advance(self, first: int, last: int) -> None:
        """Updates number ``first`` to ``last - 1``."""
        update = self.update
        inputs = zip(self._counter[first:last], update.draws(first, last), strict=True)
        self.parameters, self.state = self._update.repeat(
            (self.parameters, self.state), inputs, (update.constants, update.numbers)
        )

    def _finish(self, keep: Callable[[int], None]) -> int:
        """What comes after the recipe's iterations; the number of the last iteration.

        Args:
            keep: writes a checkpoint of this iteration if one is due.
        """
        return self.recipe.iterations

    @torch.no_grad()
    def _log(self, iteration: int, journal: Journal) -> None:
        def sparsity(parameters: Tensors) -> torch.Tensor:
            return self.model.apply(sparsity_error, parameters, training=False)

        journal.add(
            iteration,
            self.evaluate(self.parameters),
            self.model.over_runs(sparsity, (0,))(self.parameters),
            self.parameters,
        )

    def _position(self) -> dict[str, Any]:
        """What the training goes on from; :meth:`_go_on_from` takes it back."""
        stream = self.update.numpy and self.update.numpy.state()
        return {"parameters": self.parameters, "state": self.state, "stream": stream}

    def _go_on_from(self, position: dict[str, Any]) -> None:
        self.parameters = position["parameters"]
        self.state = {name: tuple(slots) for name, slots in position["state"].items()}
        if self.update.numpy:
            self.update.numpy.restore(position["stream"])

    def _asked(self) -> dict[str, Any]:
        """What is trained, and with what."""
        runs = [run.canonical() for run in self.runs]
        return {"runs": runs, "device": self.device.type, "compiled": self.compiled}

    def _content(self, iteration: int, journal: Journal, seconds: float) -> dict[str, Any]:
        return {
            **self._asked(),
            "iteration": iteration,
            "seconds": seconds,
            "journal": journal.state(),
            **self._position(),
        }

    def _restore(self, checkpoint: Checkpoint | None, journal: Journal) -> tuple[int, float]:
        """The iteration and the seconds to go on from: those of the checkpoint if it is of these runs, else
        zero. Other devices and other code round otherwise, so one that was written with them does not count.
        """
        asked = self._asked()
        if checkpoint is None or not (content := checkpoint.read()) or content["runs"] != asked["runs"]:
            return 0, 0.0
        if {name: content.get(name) for name in asked} != asked:
            checkpoint.warn(
                f"The checkpoint {checkpoint.path} was written on another device, or with compiled code "
                "where this training has none or the other way round; training starts anew."
            )
            return 0, 0.0
        content = tree_map(lambda t: t.to(self.device) if isinstance(t, torch.Tensor) else t, content)
        self._go_on_from(content)
        journal.restore(content["journal"])
        return content["iteration"], content["seconds"]
