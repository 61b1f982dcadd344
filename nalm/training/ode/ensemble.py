"""The ensemble of neural ordinary differential equations: first-order steps, then L-BFGS, for many runs at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nalm.training.compiler import compiled as compile_function
from nalm.training.ensemble import Ensemble
from nalm.training.ode.answers import Answers
from nalm.training.ode.lbfgs import minimise_together
from nalm.training.ode.rollout import Rollout
from nalm.training.run import Run
from nalm.training.stacked import Tensors, per_run

__all__ = ["NODEEnsemble"]

IMAGINARY = "weight_im"
COMPILE_FROM_ITERATIONS = 300
"""Compiling takes about 20 s."""


class NODEEnsemble(Ensemble):
    """Trains runs of one structure together whose models are :class:`nalm.models.NODE`.

    The loss, the same in every iteration, is the mean squared error over all times and entries of the state,
    plus the recipe's penalties. The gradient is that of the discrete solution: the steps of the solver are
    differentiated, not the equation. Weights are not projected. The last weights are kept. After the recipe's
    iterations its second stage (``finish``) minimises the loss with the penalties as they are at the end.

    Two things are recorded besides the errors: ``negative_updates``, the number of first-order iterations in
    which an entry of a state was negative, and ``finish_iterations``, those of the second stage.

    Args:
        runs: runs whose ``structure()`` is equal.
        device: ``"cpu"``, ``"cuda"``, ...
        compiled: compile the steps of the solver; ``None``: if the training is long enough and torch's
            compiler works here.

    Raises:
        ValueError: no runs, runs of different structure, a loss other than ``"mse"``, clipped gradients, or a
            device that is not there.
        RuntimeError: ``compiled=True`` where torch's compiler does not work.
    """

    stride = 1

    def __init__(self, runs: Sequence[Run], device: str = "cpu", compiled: bool | None = None) -> None:
        super().__init__(runs, device, compiled)
        self.selection = "last"

    def _check(self) -> None:
        if self.recipe.loss != "mse" or self.recipe.clip_gradient_norm is not None:
            raise ValueError("A NODE is trained with the loss 'mse' and without clipping of gradients.")

    def _worth_compiling(self) -> bool:
        length = self.recipe.iterations + (self.recipe.finish.iterations if self.recipe.finish else 0)
        return length >= COMPILE_FROM_ITERATIONS

    def _prepare(self) -> None:
        self.sets = self.runs[0].task.evaluation(self.runs[0].seed)
        # Only the training data are asked for often enough to pay for a compilation.
        self.rollouts = {
            name: self._rollout(s.inputs, self.compiled and name == "valid") for name, s in self.sets.items()
        }
        self.evaluate = self._errors
        self.negative = torch.zeros(len(self.runs), device=self.device)
        self.finished_after = self._unfinished()
        self.answers = Answers(self._answer)

    def _rollout(self, times: Tensor, compiled: bool) -> Rollout:
        node, wrap = self.runs[0].model, compile_function if compiled else lambda function: function
        derivative = self.model.over_runs(
            lambda p, y: self.model.apply(lambda network: network.derivative(y), p, training=True), (0, 0)
        )
        start = torch.tensor(
            node.initial_state,  # type: ignore[union-attr]
            dtype=torch.float64,
            device=self.device,
        )
        return Rollout(
            derivative,
            start,
            times[:, 0].to(self.device),
            node.method,  # type: ignore[union-attr]
            node.step,  # type: ignore[union-attr]
            wrap,
        )

    def _begin(self) -> None:
        super()._begin()
        self.finished_after = self._unfinished()

    def _unfinished(self) -> Tensor:
        return torch.zeros(len(self.runs), dtype=torch.float64)

    def losses(self, parameters: Tensors, iteration: int) -> tuple[Tensor, Tensor]:
        """Loss with penalties (runs,), and the states after all steps (steps + 1, runs, entries)."""
        at_times, states = self.rollouts["valid"](parameters, len(self.runs))
        total = (at_times - self.sets["valid"].targets.to(self.device)[:, None]).square().mean((0, 2))
        step = torch.tensor(float(iteration), device=self.device)

        def penalised(parameters: Tensors, total: Tensor, numbers: dict) -> Tensor:
            def of(model: Any) -> Tensor:
                return self.update.penalised(total, model, numbers, step)

            return self.model.apply(of, parameters, training=True)

        return self.model.over_runs(penalised, (0, 0, 0))(parameters, total, self.update.numbers), states

    def _gradients(self, parameters: Tensors, iteration: int) -> tuple[Tensor, Tensors, Tensor]:
        leaves = {name: p.detach().requires_grad_() for name, p in parameters.items()}
        losses, states = self.losses(leaves, iteration)
        gradients = dict(zip(leaves, torch.autograd.grad(losses.sum(), list(leaves.values())), strict=True))
        until = self.runs[0].model.imaginary_until  # type: ignore[union-attr]
        if until is not None and iteration >= until:
            gradients = {
                name: torch.zeros_like(g) if name.endswith(IMAGINARY) else g for name, g in gradients.items()
            }
        return losses.detach(), gradients, states.detach()

    def _advance(self, first: int, last: int) -> None:
        optimiser, lr = self.recipe.optimiser, self.update.numbers["recipe"]["lr"]
        for iteration in range(first, last):
            _, gradients, states = self._gradients(self.parameters, iteration)
            self.negative = self.negative + (states < 0).any(0).any(-1)
            number, new, new_state = torch.tensor(iteration, device=self.device), {}, {}
            for name, parameter in self.parameters.items():
                rate = per_run(lr, parameter).double()
                new[name], *slots = optimiser.update(
                    parameter, gradients[name], self.state[name], rate, number
                )
                new_state[name] = tuple(slots)
            self.parameters, self.state = new, new_state

    def _finish(self, keep: Callable[[int], None]) -> int:
        iterations, finish = self.recipe.iterations, self.recipe.finish
        if finish is None:
            return iterations

        def losses(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            keep(iterations)
            return self.answers(x)

        found, done = minimise_together(losses, self._flat(self.parameters), finish)
        self.parameters, self.finished_after = self._stacked(found), torch.from_numpy(done).double()
        return iterations + finish.iterations

    def _answer(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, gradients, _ = self._gradients(self._stacked(x), self.recipe.iterations)
        return values.cpu().numpy(), self._flat(gradients)

    def _flat(self, tensors: Tensors) -> np.ndarray:
        return torch.cat([t.flatten(1) for t in tensors.values()], 1).cpu().numpy()

    def _stacked(self, x: np.ndarray) -> Tensors:
        shapes = {name: p.shape[1:] for name, p in self.parameters.items()}
        parts = torch.from_numpy(x).to(self.device).split([shape.numel() for shape in shapes.values()], 1)
        return {
            name: part.reshape(-1, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def _position(self) -> dict[str, Any]:
        return super()._position() | {"negative": self.negative, "answers": self.answers.state()}

    def _go_on_from(self, position: dict[str, Any]) -> None:
        super()._go_on_from(position)
        self.negative = position["negative"]
        self.answers.restore(position["answers"])

    def _errors(self, parameters: Tensors) -> Tensors:
        errors = {}
        for name, rollout in self.rollouts.items():
            with torch.set_grad_enabled(name == "valid"):  # what was compiled for training serves here too
                leaves = {n: p.detach().requires_grad_() for n, p in parameters.items()}
                at_times = rollout(leaves, len(self.runs))[0].detach()
            errors[name] = (at_times - self.sets[name].targets.to(self.device)[:, None]).square().mean((0, 2))
        return errors | {"negative_updates": self.negative, "finish_iterations": self.finished_after}
