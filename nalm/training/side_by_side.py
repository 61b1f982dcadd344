"""Digit sequences on a CUDA device: the runs of an ensemble side by side.

A network of this size leaves most of a large device idle, so the networks of all runs are stacked, as small
models are, with each layer as one product of the runs' matrices; an update and an evaluation are recorded as
CUDA graphs and replayed; and all parameters of a run are updated as one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from nalm.models.digit_sequence import DigitCNN, DigitSequenceNetwork
from nalm.training import graphed
from nalm.training.compiler import Eager
from nalm.training.graphed import GraphedEnsemble
from nalm.training.run import Run
from nalm.training.sequences import ReadOnce
from nalm.training.stacked import StackedModel, Tensors, per_run
from nalm.training.update import State, Update

__all__ = ["SideBySide"]


class SideBySide(GraphedEnsemble):
    """The :class:`~nalm.training.sequences.SequenceEnsemble` of a CUDA device. It takes the same runs and
    returns the same log, up to rounding.

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
        self.model = _Stacked(self.model)
        self.update = update = _InPlace(self.model, self.runs, self.device)
        self._update, self._kept = Eager(update.__call__), update.kept
        self._fixed = self.update.constants, self.update.numbers
        self.evaluate = _Replayed(self.model, self.runs, self.update.shared, self.device)


class _Stacked(StackedModel):
    """The same models, stacked: their parameters have the same names in a network of parts that can be."""

    def __init__(self, model: StackedModel) -> None:
        vars(self).update(vars(model))
        self.one_by_one = False
        network = self._method.module
        assert isinstance(network, DigitSequenceNetwork)
        network.reader = _Reader()
        if isinstance(network.cell, nn.LSTMCell):
            network.cell = _LSTMCell(1, 1)


class _Reader(DigitCNN):
    """The same numbers by products of matrices, of which a CUDA device takes those of all runs at once."""

    def forward(self, images: Tensor) -> Tensor:
        count = images[..., 0, 0].numel()
        chunk = CHUNK if count % CHUNK == 0 else count
        maps = images.reshape(-1, 1, chunk, 28, 28)
        for layer in (self.first, self.second):
            maps = functional.max_pool2d(_convolved(maps, layer.weight).flatten(0, 1), 2).unflatten(
                0, (-1, layer.out_channels)
            )
            maps = torch.relu(maps + layer.bias.view(-1, 1, 1, 1))  # type: ignore[union-attr]
        return self.head(maps.transpose(1, 2).flatten(2)).reshape(images.shape[:-2])


CHUNK = 16
"""Images whose windows are one matrix: of all of a batch it would be too long a one for the gradient of the
weights, whose few numbers keep only as many multiprocessors busy as there are matrices.
"""


def _convolved(maps: Tensor, weight: Tensor) -> Tensor:
    """(chunks, maps in, images, height, width) -> (chunks, maps out, images, height - 4, width - 4)."""
    windows = _Windows.apply(maps)
    chunks, *_, images, height, width = windows.shape
    product = torch.bmm(weight.flatten(1).expand(chunks, -1, -1), windows.flatten(4).flatten(1, 3))
    return product.unflatten(2, (images, height, width))


class _Windows(torch.autograd.Function):
    """The windows of 5x5 numbers: (chunks, maps, images, height, width) -> (chunks, maps, 5, 5, images,
    height - 4, width - 4). Their gradient is summed in the order in which it lies in memory.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(maps: Tensor) -> Tensor:
        return maps.unfold(3, 5, 1).unfold(4, 5, 1).movedim((5, 6), (2, 3)).contiguous()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _summed(_summed(gradient, 3, -1), 2, -2)


def _summed(gradient: Tensor, windows: int, along: int) -> Tensor:
    """Of windows along a dimension, whose numbers are those of dimension ``windows``."""
    parts = gradient.unbind(windows)
    shape = list(parts[0].shape)
    shape[along] += 4
    total = gradient.new_zeros(shape)
    for first, part in enumerate(parts):
        total.narrow(along, first, part.shape[along]).add_(part)
    return total


class _LSTMCell(nn.LSTMCell):
    """By its equations, of which PyTorch's kernel for CUDA devices has no stacked version."""

    def forward(self, number: Tensor, before: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        assert before is not None
        state, memory = before
        gates = functional.linear(number, self.weight_ih, self.bias_ih) + functional.linear(
            state, self.weight_hh, self.bias_hh
        )
        taken, kept, new, given = gates.chunk(4, -1)
        memory = torch.sigmoid(kept) * memory + torch.sigmoid(taken) * torch.tanh(new)
        return torch.sigmoid(given) * torch.tanh(memory), memory


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
    """The evaluation of all runs, recorded once and replayed: sequences of all lengths at the same time, as a
    cell's steps take longer to launch than to compute.
    """

    def __init__(
        self, model: StackedModel, runs: tuple[Run, ...], shared: Tensors, device: torch.device
    ) -> None:
        super().__init__(model, runs, shared, device, lambda function: function)
        sequences = [one for group in self.groups for one in group.examples.inputs]
        self._sequences = pad_sequence(sequences, batch_first=True, padding_value=int(self.needed[0]))
        self._replay: Callable[[], None] | None = None

    @torch.no_grad()
    def __call__(self, parameters: Tensors) -> Tensors:
        if self._replay is None:
            self._of = {name: values.clone() for name, values in parameters.items()}
            self._replay = graphed.captured(self._evaluate, self.device)
        for name, values in parameters.items():
            self._of[name].copy_(values)
        self._replay()
        return {name: errors.clone() for name, errors in self._errors_of.items()}

    def _evaluate(self) -> None:
        def read(module: DigitSequenceNetwork) -> Tensor:
            return module.accumulate(self._numbers(module)[self._sequences])

        states = self.model.over_runs(lambda of: self.model.apply(read, of, training=False), (0,))(self._of)
        counts = [len(group.examples.inputs) for group in self.groups]
        self._errors_of = {
            # digit sequences are evaluated on the same images whatever the seed
            group.name: (of_group[..., : group.targets.shape[-1]] - group.targets).square().mean((1, 2))
            for group, of_group in zip(self.groups, states.split(counts, 1), strict=True)
        }
