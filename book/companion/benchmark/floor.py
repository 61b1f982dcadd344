"""The floor: what an update cannot do without, and a function that does this and nothing else.

An update has to draw its batch, to evaluate the transcendental functions of the unit and of its derivative,
and to multiply matrices. All else (ranges, signs, gates, penalties, the optimiser, constraints, calling a
compiled function, evaluation) is left out here: no training is faster than its floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from nalm.training import Run
from nalm.training.streams import COMMON_SEED, uniforms
from torch import Tensor

__all__ = ["Needs", "drawing", "floor", "needs", "reader_floor"]


@dataclass(frozen=True)
class Needs:
    """What one update of one run has to compute.

    Args:
        random_numbers: uniform numbers; on the common stream all runs share them.
        logarithms: of the inputs.
        exponentials: of the outputs.
        cosines: likewise.
        sines: the derivatives of the cosines.
        multiply_adds: of the matrix products: outputs, gradients.
    """

    random_numbers: int
    logarithms: int = 0
    exponentials: int = 0
    cosines: int = 0
    sines: int = 0
    multiply_adds: int = 0


def needs(run: Run) -> Needs:
    """What one update of a run has to compute.

    Raises:
        ValueError: a model that is neither a Real NPU with one output nor begins with a NAU.

    >>> from companion.benchmark.workloads import division_runs
    >>> needs(division_runs(inputs=2)[0])
    Needs(random_numbers=256, logarithms=256, exponentials=128, cosines=128, sines=128, multiply_adds=1024)
    """
    inputs, batch = run.task.in_features, run.recipe.batch_size
    drawn = run.task.noise_rows() * batch
    if _is_real_npu(run):
        # Two matrix products forward, of logarithms and of phases, and one for the gradient of each.
        return Needs(drawn, inputs * batch, batch, batch, batch, 4 * inputs * batch)
    return Needs(drawn, multiply_adds=2 * _hidden(run) * inputs * batch)  # forward and gradient


def drawing(runs: Sequence[Run]) -> Callable[[Tensor], Tensor]:
    """A function of the iteration that draws the batches of runs of one structure."""
    seeds, rows, batch = _seeds(runs), runs[0].task.noise_rows(), runs[0].recipe.batch_size
    return lambda iteration: uniforms(seeds, iteration, rows, batch)


def floor(runs: Sequence[Run]) -> Callable[[Tensor], Tensor]:
    """A function of the iteration that computes what :func:`needs` counts, for runs of one structure.

    Returns:
        The function; its value has the shape of the weights' gradients.
    """
    run = runs[0]
    seeds, inputs, batch, number = _seeds(runs), run.task.in_features, run.recipe.batch_size, len(runs)
    if _is_real_npu(run):
        weight = torch.rand(number, inputs, 1)

        def real_npu(iteration: Tensor) -> Tensor:
            x = uniforms(seeds, iteration, inputs, batch)
            logs = x.log()
            size, phase = (weight * logs).sum(1, keepdim=True).exp(), (weight * x).sum(1, keepdim=True)
            return torch.stack([(size * phase.cos() * logs).sum(-1), (size * phase.sin() * x).sum(-1)])

        return real_npu
    hidden = _hidden(run)
    weight = torch.rand(number, hidden, inputs)

    def own(iteration: Tensor) -> Tensor:
        x = uniforms(seeds, iteration, inputs, batch)
        return torch.bmm(torch.bmm(weight, x), x.mT)

    def common(iteration: Tensor) -> Tensor:
        x = uniforms(seeds, iteration, inputs, batch)[0]
        return torch.mm(torch.mm(weight.flatten(0, 1), x), x.mT)

    return own if run.recipe.stream == "own" else common


READER = 2 * 576 * 25 * 20 + 3 * (64 * 500 * 50 + 800 * 500 + 500)
"""Multiply-adds per image of an update of :class:`nalm.models.DigitCNN`: for the outputs of
its layers (places · terms · maps), the gradients for their weights and, but for the first layer, for their
inputs.
"""
SIDE = 512


def reader_floor(images: int) -> Callable[[], Tensor]:
    """A function that makes as many multiply-adds as an update of the digit reader with so many images, in
    one large matrix product.

    >>> reader_floor(2)().shape
    torch.Size([50, 512])
    """
    left, right = torch.rand(round(images * READER / SIDE**2), SIDE), torch.rand(SIDE, SIDE)
    return lambda: torch.mm(left, right)


def _seeds(runs: Sequence[Run]) -> Tensor:
    return torch.tensor([run.seed for run in runs] if runs[0].recipe.stream == "own" else [COMMON_SEED])


def _is_real_npu(run: Run) -> bool:
    layers = getattr(run.model, "layers", ())
    return len(layers) == 1 and (layers[0].unit, layers[0].out_features) == ("RealNPU", 1)


def _hidden(run: Run) -> int:
    layers = getattr(run.model, "layers", ())
    if not layers or layers[0].unit != "NAU":
        raise ValueError(
            "The floor is known for a RealNPU with one output and for models that begin with a NAU only."
        )
    return layers[0].out_features
