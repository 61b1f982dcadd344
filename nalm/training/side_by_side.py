"""Digit sequences on a CUDA device: the runs of an ensemble side by side.

A network of this size leaves most of a large device idle, so the updates of all runs are branches of one CUDA
graph, all parameters of a run are updated as one vector, and the evaluation, whose cells take thousands of
steps, is replayed as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from nalm.training import graphed
from nalm.training.checkpoint import Checkpoint
from nalm.training.compiler import Eager
from nalm.training.graphed import GraphedEnsemble
from nalm.training.log import Log
from nalm.training.run import Run
from nalm.training.sequences import ReadOnce
from nalm.training.stacked import StackedModel, Tensors, at, per_run
from nalm.training.update import State, Update

__all__ = ["SideBySide"]


class SideBySide(GraphedEnsemble):
    """The :class:`~nalm.training.sequences.SequenceEnsemble` of a CUDA device. It takes the same runs and
    returns the same log, up to rounding.

    Convolutions are those that give the same result every time, and in float32: cuDNN would otherwise take
    TF32, with ten bits of mantissa.

    Args:
        runs: runs of one structure, whose model is a :class:`~nalm.models.DigitSequence`.
        device: ``"cuda"``, ``"cuda:1"``, ...
        compiled: not ``True``; these are never compiled.

    Raises:
        ValueError: as :class:`~nalm.training.Ensemble`, or ``compiled=True``.
    """

    def __init__(self, runs: Sequence[Run], device: str = "cuda", compiled: bool | None = None) -> None:
        if compiled:
            raise ValueError("Sequences of digits are not trained compiled; leave compiled at None.")
        super().__init__(runs, device, compiled=False)
        self.model = _OnStreams(self.model, self.device)
        self.update = update = _InPlace(self.model, self.runs, self.device)
        self._update, self._kept = Eager(update.__call__), update.kept
        self._fixed = self.update.constants, self.update.numbers
        self.evaluate = _Replayed(self.model, self.runs, self.update.shared, self.device)

    def train(
        self, progress: Callable[[int], None] = lambda iterations: None, checkpoint: Checkpoint | None = None
    ) -> Log:
        """As :meth:`nalm.training.Ensemble.train`."""
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            return super().train(progress, checkpoint)


class _OnStreams(StackedModel):
    """The same models, each run on a CUDA stream of its own."""

    def __init__(self, model: StackedModel, device: torch.device) -> None:
        vars(self).update(vars(model))
        runs = len(next(iter(self.parameters.values())))
        self._streams = [torch.cuda.Stream(device) for _ in range(runs)] if device.type == "cuda" else []

    def over_runs(self, function: Callable, in_dims: tuple) -> Callable:
        if not self._streams:
            return super().over_runs(function, in_dims)

        def mapped(*arguments: Any) -> Any:
            joined, results = torch.cuda.current_stream(), []
            for run, stream in enumerate(self._streams):
                stream.wait_stream(joined)
                with torch.cuda.stream(stream):
                    results.append(
                        function(*(at(a, d, run) for a, d in zip(arguments, in_dims, strict=True)))
                    )
            for stream in self._streams:
                joined.wait_stream(stream)
            return tree_map(lambda *tensors: torch.stack(tensors), *results)

        return mapped


class _InPlace(Update):
    """The same update, which writes what follows where it read what was. All parameters of a run are one
    vector there, and each slot of the optimiser's state another; the update reads their parts.
    """

    def __init__(self, model: StackedModel, runs: tuple[Run, ...], device: torch.device) -> None:
        super().__init__(model, runs, device)
        state = self.initial_state()
        slots = zip(*(state[name] for name in model.parameters), strict=True)
        self._vectors = [_vectors(of) for of in (model.parameters.values(), *slots)]
        parts = [_parts(vectors, model.parameters) for vectors in self._vectors]
        self.kept: tuple[Tensors, State] = (
            parts[0],
            {name: tuple(slot[name] for slot in parts[1:]) for name in model.parameters},
        )

    def _updated(
        self, parameters: Tensors, gradients: Tensors, state: State, iteration: Tensor, lr: Tensor
    ) -> tuple[Tensors, State]:
        values, *slots = self._vectors
        gradient = _vectors(gradients[name] for name in parameters)
        following = self.recipe.optimiser.update(
            values, gradient, tuple(slots), per_run(lr, values), iteration
        )
        for vectors, new in zip(self._vectors, following, strict=True):
            vectors.copy_(new)
        self._projected(self.kept[0])
        return self.kept


def _vectors(tensors: Iterable[Tensor]) -> Tensor:
    """(runs, numbers): all numbers of each run."""
    return torch.cat([tensor.flatten(1) for tensor in tensors], 1)


def _parts(vectors: Tensor, like: Tensors) -> Tensors:
    """The parts of vectors, as views, named and shaped as these tensors."""
    parts = vectors.split([tensor[0].numel() for tensor in like.values()], 1)
    return {name: part.view(tensor.shape) for (name, tensor), part in zip(like.items(), parts, strict=True)}


class _Replayed(ReadOnce):
    """The evaluation of one run, recorded once and replayed for each."""

    def __init__(
        self, model: StackedModel, runs: tuple[Run, ...], shared: Tensors, device: torch.device
    ) -> None:
        # digit sequences are evaluated on the same images whatever the seed
        super().__init__(model, runs[:1], shared, device, lambda function: function)
        self._replay: Callable[[], None] | None = None

    @torch.no_grad()
    def __call__(self, parameters: Tensors) -> Tensors:
        if self._replay is None:
            self._of = {name: values[:1].clone() for name, values in parameters.items()}
            self._replay = graphed.captured(self._evaluate, self.device)
        errors = []
        for run in range(len(next(iter(parameters.values())))):
            for name, values in parameters.items():
                self._of[name].copy_(values[run : run + 1])
            self._replay()
            errors.append(tree_map(torch.clone, self._errors))
        return tree_map(lambda *of_runs: torch.cat(of_runs), *errors)

    def _evaluate(self) -> None:
        self._errors = super().__call__(self._of)
