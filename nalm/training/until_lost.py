"""An ensemble that does not work for runs that are lost.

A run is lost when all of its parameters are NaN: what an optimiser adds to NaN is NaN. Neither the updates
that are left nor another evaluation can change what is recorded of it. The doubly gated NAU/NMU is: with 100
inputs six of ten runs within 60 updates, with 150 or more all of them within three.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from nalm.training.ensemble import Ensemble
from nalm.training.stacked import Tensors

__all__ = ["EnsembleUntilLost"]


class EnsembleUntilLost(Ensemble):
    """An :class:`~nalm.training.Ensemble` that goes on with the other runs once half of them are lost, and
    skips what is left once all are. It takes the same runs and returns the same log, up to the rounding of a
    smaller ensemble.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SingleModuleTask, Uniform
    >>> from nalm.training import Adam, Recipe, Run
    >>> recipe = Recipe(iterations=10**5, optimiser=Adam(lr=1e-3), log_interval=100)
    >>> huge = Uniform(low=1e30, high=2e30)  # its products are infinite in float32
    >>> task = SingleModuleTask(operation="mul", interpolation=huge, extrapolation=huge)
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0)]
    >>> log = EnsembleUntilLost(runs, compiled=False).train()  # 100,000 updates, of which most are skipped
    >>> len(log.iterations), log.nan_at
    (1001, array([100.]))
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._evaluate_all, self.evaluate = self.evaluate, self._evaluated
        self._errors: Tensors = {}
        self._living = torch.arange(len(self.runs))  # which runs are trained
        self._others: Ensemble | None = None  # trains these, once half are lost

    def _begin(self) -> None:
        super()._begin()
        self._living, self._others = torch.arange(len(self.runs)), None

    def _advance(self, first: int, last: int) -> None:
        if self.is_whole():
            with self.watched():
                super()._advance(first, last)
        elif self._others is not None:
            self._others._advance(first, last)
            self._go_on_from(tree_map(self._with, self._position(), self._others._position()))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While all runs are updated; then those that are lost count, if they are half of them."""
        before = _lost(self.parameters)
        yield
        # seen twice, as a unit of one's own might make numbers of NaN after an update
        lost = before & _lost(self.parameters)
        if 2 * lost.sum() >= len(self.runs):
            self._living = lost.logical_not().nonzero().flatten()
            self._others = self._of(self._living) if len(self._living) else None

    def is_whole(self) -> bool:
        """Whether all runs are trained."""
        return len(self._living) == len(self.runs)

    def _of(self, living: Tensor) -> Ensemble:
        runs = [self.runs[number] for number in living]
        others = EnsembleUntilLost(runs, str(self.device), self.compiled, self.together)
        others._go_on_from(
            tree_map(lambda one: one[living] if isinstance(one, Tensor) else one, self._position())
        )
        return others

    def _with(self, every: Any, part: Any) -> Any:
        return every.index_copy(0, self._living, part) if isinstance(every, Tensor) else part

    def _evaluated(self, parameters: Tensors) -> Tensors:
        if self.is_whole():
            self._errors = self._evaluate_all(parameters)
        elif self._others is not None:
            found = self._others.evaluate({name: p[self._living] for name, p in parameters.items()})
            self._errors = {name: self._with(every, found[name]) for name, every in self._errors.items()}
        return self._errors


def _lost(parameters: Tensors) -> Tensor:
    """(runs,) whether all parameters of a run are NaN."""
    return torch.stack([p.isnan().flatten(1).all(1) for p in parameters.values()]).all(0)
