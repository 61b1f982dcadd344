"""One update of all runs of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.func import grad

from nalm.training.losses import LOSSES
from nalm.training.numpy_stream import NumPyStream
from nalm.training.penalties import ActivationPenalty
from nalm.training.run import Run
from nalm.training.stacked import StackedModel, Tensors, per_run
from nalm.training.streams import COMMON_SEED, uniforms
from nalm.training.trial import couples_runs
from nalm.units import project_

__all__ = ["Update"]

State = dict[str, tuple[Tensor, ...]]


class Update:
    """Draws a batch for each run, takes the gradient of loss and penalties, and updates and constrains the
    parameters.

    What differs between the runs (seeds, ranges, learning rates, penalty numbers) is a tensor whose first
    dimension is the run.

    Args:
        model: the stacked model.
        runs: runs of one structure.
        device: where it runs.
    """

    def __init__(self, model: StackedModel, runs: tuple[Run, ...], device: torch.device) -> None:
        self.model, self.runs, self.task, self.recipe = model, runs, runs[0].task, runs[0].recipe
        self.constants, self.constant_dims = _stacked([run.task.constants(run.seed) for run in runs], device)
        self.shared = {name: t.to(device) for name, t in self.task.shared().items()}
        self.penalties, self.numbers = _penalties(runs, device)
        self.numbers["recipe"] = {
            "lr": torch.tensor([run.recipe.optimiser.lr for run in runs], device=device),
            "clip": torch.tensor([run.recipe.clip_gradient_norm or torch.inf for run in runs], device=device),
        }
        self.coupled = couples_runs(runs[0])
        self.own_stream = self.recipe.stream != "common"
        self.numpy = NumPyStream(runs, device) if self.recipe.stream == "numpy" else None
        seeds = [run.seed for run in runs] if self.own_stream else [COMMON_SEED]
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=device)

    def initial_state(self) -> State:
        """The optimiser's state before the first update."""
        slots = self.recipe.optimiser.slots
        return {name: tuple(torch.zeros_like(p) for _ in slots) for name, p in self.model.parameters.items()}

    def draws(self, first: int, last: int) -> Iterator[Tensor | None]:
        """What is drawn on the host for updates ``first`` to ``last - 1``, stacked over runs; ``None`` where
        it is nothing.
        """
        return (
            map(self._host_draw, range(first, last))
            if self.numpy is None
            else self.numpy.between(first, last)
        )

    def _host_draw(self, iteration: int) -> Tensor | None:
        # on the common stream all draws are the same
        seeds = [run.seed if self.own_stream else COMMON_SEED for run in self.runs]
        draws = [self.task.host_draw(seed, iteration, self.recipe.batch_size) for seed in seeds]
        return None if draws[0] is None else torch.stack(draws).to(self.seeds.device)  # type: ignore[arg-type]

    def __call__(
        self,
        parameters: Tensors,
        state: State,
        iteration: Tensor,
        draw: Tensor | None,
        constants: Tensors,
        numbers: dict,
    ) -> tuple:
        """Parameters and state after update number ``iteration``; a pure function, to be compiled."""
        noise = (
            uniforms(self.seeds, iteration, self.task.noise_rows(), self.recipe.batch_size)
            if draw is None
            else draw
        )
        noise, noise_dim = (noise, 0) if self.own_stream else (noise[0], None)
        step = iteration.to(torch.float32)
        gradient = self.model.over_runs(grad(self._loss), (0, noise_dim, self.constant_dims, 0, None))
        gradients = gradient(parameters, noise, constants, numbers, step)
        if self.recipe.clip_gradient_norm is not None:
            gradients = _clipped(gradients, numbers["recipe"]["clip"])
        return self._updated(parameters, gradients, state, iteration, numbers["recipe"]["lr"])

    def _loss(
        self, parameters: Tensors, noise: Tensor, constants: Tensors, numbers: dict, step: Tensor
    ) -> Tensor:
        if self.numpy is None:
            x, target = self.task.batch(noise, constants, self.shared)
        else:
            x, target = noise[: self.task.in_features].mT, noise[self.task.in_features :].mT

        def loss(model: Any) -> Tensor:
            if ActivationPenalty in self.penalties:
                output, activation_penalty = model.forward_with_activation_penalty(x)
            else:
                output, activation_penalty = model(x), None
            total = LOSSES[self.recipe.loss](output, target)
            return self.penalised(total, model, numbers, step, activation_penalty)

        return self.model.apply(loss, parameters, training=True)

    def penalised(
        self, total: Tensor, model: Any, numbers: dict, step: Tensor, activation_penalty: Tensor | None = None
    ) -> Tensor:
        """The data loss ``total`` of one run plus its penalties in iteration ``step``."""
        for penalty in self.penalties:
            value = activation_penalty if penalty is ActivationPenalty else penalty.value(model)
            total = total + penalty.coefficient(numbers[penalty.__name__], step) * value
        return total

    def _updated(
        self, parameters: Tensors, gradients: Tensors, state: State, iteration: Tensor, lr: Tensor
    ) -> tuple[Tensors, State]:
        new, new_state = {}, {}
        for name, parameter in parameters.items():
            rate = per_run(lr, parameter)
            new[name], *slots = self.recipe.optimiser.update(
                parameter, gradients[name], state[name], rate, iteration
            )
            new_state[name] = tuple(slots)
        # most constraints act entry by entry, so they take the stacked parameters
        projected = self.model.over_runs(self._projected, (0,)) if self.coupled else self._projected
        return projected({name: p.clone() for name, p in new.items()}), new_state

    def _projected(self, parameters: Tensors) -> Tensors:
        self.model.apply(project_, parameters, training=True)
        return parameters


def _stacked(constants: list[Tensors], device: torch.device) -> tuple[Tensors, dict[str, int | None]]:
    """Constants stacked over runs, and the dimension to map over: none where all runs have the same, so that
    what depends on it is shared.
    """
    stacked = {name: torch.stack([c[name] for c in constants]).to(device) for name in constants[0]}
    equal = {name: bool((values == values[0]).all()) for name, values in stacked.items()}
    return {name: v[0] if equal[name] else v for name, v in stacked.items()}, {
        name: None if equal[name] else 0 for name in stacked
    }


def _penalties(runs: tuple[Run, ...], device: torch.device) -> tuple[list[Any], dict[str, Tensors]]:
    """The kinds of penalty that any run has, and their numbers per run; a run without a kind gets it with
    weight 0.
    """
    examples = {p.kind: p for run in runs for p in run.recipe.penalties}
    numbers = {}  # type: dict[str, Tensors]
    for kind, example in examples.items():
        of_runs = [
            {p.kind: p.numbers() for p in run.recipe.penalties}.get(kind, example.numbers() | {"weight": 0.0})
            for run in runs
        ]
        numbers[kind] = {
            name: torch.tensor([n[name] for n in of_runs], dtype=torch.float32, device=device)
            for name in example.numbers()
        }
    return [type(example) for example in examples.values()], numbers


def _clipped(gradients: Tensors, largest: Tensor) -> Tensors:
    """As ``torch.nn.utils.clip_grad_norm_``, for each run by itself."""
    norm = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()  # type: ignore[union-attr]
    factor = (largest / (norm + 1e-6)).clamp_max(1)
    return {name: g * per_run(factor, g) for name, g in gradients.items()}
