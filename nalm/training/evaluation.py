"""The errors of all runs of an ensemble on their evaluation sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nalm.tasks.task import EvaluationSet
from nalm.training.run import Run
from nalm.training.stacked import StackedModel, Tensors

__all__ = ["Evaluation"]

NUMBERS_AT_ONCE = 2**25
"""Input numbers evaluated at once: bounds the memory of an evaluation, not its result."""


@dataclass(frozen=True)
class _Group:
    """Runs that are evaluated on the same inputs."""

    name: str
    runs: list[int]
    examples: EvaluationSet
    targets: Tensor  # (runs, examples, outputs)


class Evaluation:
    """Evaluates stacked parameters.

    Args:
        model: the stacked model.
        runs: runs of one structure.
        shared: the task's shared tables.
        device: where it runs.
        wrap: compiles the inner function, or leaves it.
    """

    def __init__(
        self,
        model: StackedModel,
        runs: tuple[Run, ...],
        shared: Tensors,
        device: torch.device,
        wrap: Callable,
    ) -> None:
        self.model, self.task, self.shared, self.device, self.size = (
            model,
            runs[0].task,
            shared,
            device,
            len(runs),
        )
        self.groups = _groups(runs, device)
        self._errors = wrap(self._summed_errors)

    @torch.no_grad()
    def __call__(self, parameters: Tensors) -> Tensors:
        """Evaluation set name -> (runs,) errors."""
        errors = {group.name: torch.empty(self.size, device=self.device) for group in self.groups}
        for group in self.groups:
            of_group = {name: p[group.runs] for name, p in parameters.items()}
            inputs, count = group.examples.inputs, group.examples.inputs.shape[0]
            size = self.task.model_numbers_per_example(inputs) * (
                1 if self.model.one_by_one else len(group.runs)
            )
            chunk = max(1, NUMBERS_AT_ONCE // size)
            parts = [slice(first, first + chunk) for first in range(0, count, chunk)]
            sums = sum(self._errors(of_group, inputs[part], group.targets[:, part]) for part in parts)
            means = sums[:, 0 if group.examples.error == "mse" else 1] / count
            output = group.examples.output
            errors[group.name][group.runs] = means.mean(1) if output is None else means[:, output]
        return errors

    def _summed_errors(self, parameters: Tensors, inputs: Tensor, targets: Tensor) -> Tensor:
        """(runs, 2, outputs): squared and absolute errors, summed over a chunk of examples."""

        def one(parameters: Tensors, targets: Tensor) -> Tensor:
            x = self.task.model_inputs(inputs, self.shared)
            difference = self.model.apply(lambda module: module(x), parameters, training=False) - targets
            return torch.stack([difference.square().sum(0), difference.abs().sum(0)])

        return self.model.over_runs(one, (0, 0))(parameters, targets)


def _groups(runs: tuple[Run, ...], device: torch.device) -> list[_Group]:
    sets: dict[tuple[str, int], list[tuple[int, EvaluationSet]]] = {}
    for index, run in enumerate(runs):
        for name, examples in run.task.evaluation(run.seed).items():
            sets.setdefault((name, id(examples.inputs)), []).append((index, examples))
    moved: dict[int, Tensor] = {}
    groups = []
    for (name, identity), members in sets.items():
        indices, examples = [index for index, _ in members], members[0][1]
        if identity not in moved:
            # Stored with the examples last: the layout that vectorises over examples when there are few
            # inputs.
            moved[identity] = examples.inputs.mT.contiguous().to(device)
        targets = torch.stack([e.targets for _, e in members]).to(device)
        groups.append(
            _Group(
                name,
                indices,
                EvaluationSet(moved[identity].mT, targets[0], examples.error, examples.output),
                targets,
            )
        )
    return groups
