"""An ensemble that stops working once all of its runs are lost.

A run is lost when all of its parameters are NaN: what an optimiser adds to NaN is NaN. Neither the updates
that are left nor another evaluation can change what is recorded of it. The doubly gated NAU/NMU with 150
inputs or more is lost after three updates.
"""

from __future__ import annotations

from nalm.training.ensemble import Ensemble
from nalm.training.stacked import Tensors

__all__ = ["EnsembleUntilLost"]


class EnsembleUntilLost(Ensemble):
    """An :class:`Ensemble` that skips updates and evaluations once all of its runs are lost. It takes the
    same runs and returns the same log.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SingleModuleTask, Uniform
    >>> from nalm.training import Adam, Recipe, Run
    >>> recipe = Recipe(iterations=10**6, optimiser=Adam(lr=1e-3), log_interval=1000)
    >>> huge = Uniform(low=1e30, high=2e30)  # its products are infinite in float32
    >>> task = SingleModuleTask(operation="mul", interpolation=huge, extrapolation=huge)
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0)]
    >>> log = EnsembleUntilLost(runs, compiled=False).train()  # a million updates, of which most are skipped
    >>> len(log.iterations), log.nan_at
    (1001, array([1000.]))
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._lost, self._evaluate_now = False, self.evaluate
        self._errors: Tensors = {}
        self.evaluate = self._evaluated

    def _advance(self, first: int, last: int) -> None:
        if self._lost:
            return
        before = _all_nan(self.parameters)
        super()._advance(first, last)
        # seen once, as a unit of one's own might make numbers of them after an update
        self._lost = before and _all_nan(self.parameters)

    def _evaluated(self, parameters: Tensors) -> Tensors:
        if not self._lost:
            self._errors = self._evaluate_now(parameters)
        return self._errors


def _all_nan(tensors: Tensors) -> bool:
    return all(bool(tensor.isnan().all()) for tensor in tensors.values())
