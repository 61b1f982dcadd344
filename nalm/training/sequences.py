"""The ensemble of digit sequences, and its evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from nalm.models.digit_sequence import DigitSequenceNetwork
from nalm.training import Ensemble, Run
from nalm.training.evaluation import Evaluation
from nalm.training.stacked import Tensors

__all__ = ["SequenceEnsemble"]

IMAGES_AT_ONCE = 2_000
"""Images that are read at once: bounds the memory of an evaluation, not its result."""


class SequenceEnsemble(Ensemble):
    """An :class:`~nalm.training.Ensemble` whose evaluation reads each image once, however many sequences it
    is in.

    The test images are cut into sequences of every length that is tested, up to twenty times; what the cell
    makes of their numbers costs next to nothing.

    Args:
        runs: runs of one structure, whose model is a :class:`~nalm.models.DigitSequence`.
        device: ``"cpu"``, ``"cuda"``, ...
        compiled: not ``True``; these are never compiled.

    Raises:
        ValueError: as :class:`~nalm.training.Ensemble`, or ``compiled=True``.
    """

    def __init__(self, runs: Sequence[Run], device: str = "cpu", compiled: bool | None = None) -> None:
        if compiled:
            raise ValueError("Sequences of digits are not trained compiled; leave compiled at None.")
        super().__init__(runs, device, compiled=False, together=1)
        self.evaluate = ReadOnce(
            self.model, self.runs, self.update.shared, self.device, lambda function: function
        )


class ReadOnce(Evaluation):
    """Errors of runs on sequences, for which each image is read once."""

    @cached_property
    def needed(self) -> Tensor:
        """The images that are in any sequence."""
        return torch.cat([group.examples.inputs.flatten() for group in self.groups]).unique()

    @torch.no_grad()
    def __call__(self, parameters: Tensors) -> Tensors:
        errors = {group.name: torch.empty(self.size, device=self.device) for group in self.groups}
        for run in range(self.size):
            of_run = {name: values[run] for name, values in parameters.items()}
            numbers = self.model.apply(lambda module: self._numbers(module), of_run, training=False)
            for group in self.groups:
                if run in group.runs:
                    read, targets = numbers[group.examples.inputs], group.targets[group.runs.index(run)]
                    states = self.model.apply(
                        lambda module, read=read: module.accumulate(read), of_run, training=False
                    )
                    errors[group.name][run] = (states - targets).square().mean()
        return errors

    def _numbers(self, module: DigitSequenceNetwork) -> Tensor:
        """A number for each image of the shared table, NaN where none is needed."""
        parts = [
            module.reader(self.task.model_inputs(part, self.shared))
            for part in self.needed.split(IMAGES_AT_ONCE)
        ]
        return torch.full_like(self.shared["labels"], torch.nan, dtype=torch.float32).index_copy(
            0, self.needed, torch.cat(parts)
        )
