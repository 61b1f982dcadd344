"""The batches that the papers' code draws with NumPy, for many runs at once.

A generator of NumPy only goes forward, so unlike the batches of :mod:`nalm.training.streams` these are no
function of the iteration: they are drawn in order, on the host, and a checkpoint holds the states of the
generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nalm.training.run import Run

__all__ = ["NumPyStream"]

BLOCK, NUMBERS = 64, 2**24
"""Iterations that are drawn at once, and the most numbers: a call of NumPy takes as long as some hundred
numbers.
"""


class NumPyStream:
    """Successive batches of several runs of one structure, each drawn by the task from a generator of the
    run's own.

    Args:
        runs: runs of one structure whose tasks have such batches.
        device: where the batches are put.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.training import Adam, Recipe
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul").but(targets="float64")
    >>> recipe = Recipe(iterations=100, optimiser=Adam(lr=1e-2), stream="numpy")
    >>> run = Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0)
    >>> stream = NumPyStream([run.but(seed=seed) for seed in range(3)])
    >>> first, second = stream.between(0, 2)
    >>> first.shape, bool((next(stream.between(1, 2)) == second).all())
    (torch.Size([3, 3, 128]), True)
    """

    def __init__(self, runs: Sequence[Run], device: torch.device | str = "cpu") -> None:
        self._runs, self._device, self._size = runs, device, runs[0].recipe.batch_size
        task = runs[0].task
        self._block = max(
            1, min(BLOCK, NUMBERS // (len(runs) * (task.in_features + task.out_features) * self._size))
        )
        self._start()

    def between(self, first: int, last: int) -> Iterator[Tensor]:
        """(runs, inputs + targets, examples) float32 for iterations ``first`` to ``last - 1``; to go back is
        to draw everything again.
        """
        if first < self._iteration:
            self._start()
        while self._iteration < first:
            self._drawn(first)
        while self._iteration < last:
            yield from self._drawn(last)

    def state(self) -> dict[str, Any]:
        """The iteration of the next batch and the generators' states; :meth:`restore` takes them back."""
        _, words, positions, *_ = zip(*(generator.get_state() for generator in self._generators), strict=True)
        return {
            "iteration": self._iteration,
            "words": torch.from_numpy(np.stack(words).astype(np.int64)),
            "positions": torch.tensor(positions),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._iteration = state["iteration"]
        for generator, words, position in zip(
            self._generators, state["words"].numpy(), state["positions"].tolist(), strict=True
        ):
            generator.set_state(("MT19937", words.astype(np.uint32), position))

    def _start(self) -> None:
        # A run with this stream has an OperandTask.
        self._iteration, self._generators = 0, [run.task.generator(run.seed) for run in self._runs]  # type: ignore[attr-defined]

    def _drawn(self, until: int) -> tuple[Tensor, ...]:
        count = min(self._block, until - self._iteration)
        each = zip(self._runs, self._generators, strict=True)
        drawn = np.stack(
            [run.task.draw(generator, run.seed, count, self._size) for run, generator in each],  # type: ignore[attr-defined]
            1,
        )
        self._iteration += count
        return torch.from_numpy(drawn).to(self._device).unbind(0)
