"""The ensemble of neural ordinary differential equations: first-order steps, then L-BFGS, for many runs at
once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from nalm.training.checkpoint import Checkpoint
from nalm.training.compiler import compiled as compile_function
from nalm.training.compiler import is_compiled
from nalm.training.ensemble import check_device
from nalm.training.log import Journal, Log
from nalm.training.ode.answers import Answers
from nalm.training.ode.lbfgs import minimise_together
from nalm.training.ode.rollout import Rollout
from nalm.training.run import Run
from nalm.training.stacked import StackedModel, Tensors, per_run
from nalm.training.update import Update
from nalm.units import sparsity_error

__all__ = ["NODEEnsemble"]

IMAGINARY = "weight_im"
COMPILE_FROM_ITERATIONS = 300
"""Compiling takes about 20 s."""


class NODEEnsemble:
    """Trains runs of one structure together whose models are :class:`nalm.models.NODE`.

    The loss, the same in every iteration, is the mean squared error over all times and entries of the state,
    plus the recipe's penalties. The gradient is that of the discrete solution: the steps of the solver are
    differentiated, not the equation. The last weights are kept. After the recipe's iterations its second
    stage (``finish``) minimises the loss with the penalties as they are at the end.

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

    def __init__(self, runs: Sequence[Run], device: str = "cpu", compiled: bool | None = None) -> None:
        if not runs:
            raise ValueError("An ensemble needs at least one run.")
        if len({run.structure() for run in runs}) > 1:
            raise ValueError(
                "The runs of an ensemble must have the same structure (task, model and recipe up to numbers)."
            )
        self.runs, self.device, self.recipe = tuple(runs), check_device(device), runs[0].recipe
        if self.recipe.loss != "mse" or self.recipe.clip_gradient_norm is not None:
            raise ValueError("A NODE is trained with the loss 'mse' and without clipping of gradients.")
        length = self.recipe.iterations + (self.recipe.finish.iterations if self.recipe.finish else 0)
        self.compiled = is_compiled(compiled, length >= COMPILE_FROM_ITERATIONS, self.device)
        self.model = StackedModel(self.runs, self.device)
        self.update = Update(self.model, self.runs, self.device)  # for its penalties and their numbers
        self.parameters, self.state = self.model.parameters, self.update.initial_state()
        self.sets = self.runs[0].task.evaluation(self.runs[0].seed)
        # Only the training data are asked for often enough to pay for a compilation.
        self.rollouts = {
            name: self._rollout(s.inputs, self.compiled and name == "valid") for name, s in self.sets.items()
        }
        self.negative = torch.zeros(len(runs), device=self.device)
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

    def train(
        self, progress: Callable[[int], None] = lambda iterations: None, checkpoint: Checkpoint | None = None
    ) -> Log:
        """Train all runs to the end.

        Args:
            progress: is told the number of further iterations now and then.
            checkpoint: where the training is kept from time to time, and taken up again if it was
                interrupted.

        Returns:
            The log. It is the same whether or not the training was interrupted.
        """
        start, journal = time.perf_counter(), Journal("last")
        first, seconds = self._restore(checkpoint, journal)
        iterations, interval = self.recipe.iterations, self.recipe.log_interval
        progress(min(math.ceil(first / interval) * interval, iterations))

        def keep(iteration: int) -> None:
            if checkpoint is not None and checkpoint.due():
                checkpoint.write(self._content(iteration, journal, seconds + time.perf_counter() - start))

        done = np.zeros(len(self.runs))
        for iteration in range(first, iterations):
            keep(iteration)
            if iteration % interval == 0:
                self._log(iteration, journal, done)
                progress(min(interval, iterations - iteration))
            self._step(iteration)
        if self.recipe.finish is not None:
            done = self._finish(lambda: keep(self.recipe.iterations))
            iterations += self.recipe.finish.iterations
        self._log(iterations, journal, done)
        return journal.log(seconds + time.perf_counter() - start, str(self.device), self.compiled)

    def losses(self, parameters: Tensors, iteration: int) -> tuple[Tensor, Tensor]:
        """Loss with penalties (runs,), and the states after all steps (steps + 1, runs, entries)."""
        at_times, states = self.rollouts["valid"](parameters, len(self.runs))
        total = (at_times - self.sets["valid"].targets.to(self.device)[:, None]).square().mean((0, 2))
        step = torch.tensor(float(iteration), device=self.device)
        for penalty in self.update.penalties:
            value = self.model.over_runs(
                lambda p, penalty=penalty: self.model.apply(penalty.value, p, training=True), (0,)
            )
            total = total + penalty.coefficient(self.update.numbers[penalty.__name__], step) * value(
                parameters
            )
        return total, states

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

    def _step(self, iteration: int) -> None:
        _, gradients, states = self._gradients(self.parameters, iteration)
        self.negative += (states < 0).any(0).any(-1)
        number, lr = torch.tensor(iteration, device=self.device), self.update.numbers["recipe"]["lr"]
        for name, parameter in self.parameters.items():
            new, *slots = self.recipe.optimiser.update(
                parameter, gradients[name], self.state[name], per_run(lr, parameter).double(), number
            )
            self.parameters[name], self.state[name] = new, tuple(slots)

    def _finish(self, keep: Callable[[], None]) -> np.ndarray:
        def losses(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            keep()
            return self.answers(x)

        found, iterations = minimise_together(
            losses,
            self._flat(self.parameters),
            self.recipe.finish,  # type: ignore[arg-type]
        )
        self.parameters = self._stacked(found)
        return iterations

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

    def _content(self, iteration: int, journal: Journal, seconds: float) -> dict[str, Any]:
        return {
            "runs": [run.canonical() for run in self.runs],
            "iteration": iteration,
            "seconds": seconds,
            "parameters": self.parameters,
            "state": self.state,
            "negative": self.negative,
            "answers": self.answers.state(),
            "journal": journal.state(),
        }

    def _restore(self, checkpoint: Checkpoint | None, journal: Journal) -> tuple[int, float]:
        """The iteration and the seconds to go on from: those of the checkpoint if it is of these runs, else
        zero.
        """
        content = checkpoint and checkpoint.read()
        if not content or content["runs"] != [run.canonical() for run in self.runs]:
            return 0, 0.0
        content = tree_map(lambda t: t.to(self.device) if isinstance(t, Tensor) else t, content)
        self.parameters, self.negative = content["parameters"], content["negative"]
        self.state = {name: tuple(slots) for name, slots in content["state"].items()}
        self.answers.restore(content["answers"])
        journal.restore(content["journal"])
        return content["iteration"], content["seconds"]

    def _log(self, iteration: int, journal: Journal, finish_iterations: np.ndarray) -> None:
        errors = {}
        for name, rollout in self.rollouts.items():
            with torch.set_grad_enabled(name == "valid"):  # what was compiled for training serves here too
                at_times = rollout(
                    {n: p.detach().requires_grad_() for n, p in self.parameters.items()}, len(self.runs)
                )[0].detach()
            errors[name] = (at_times - self.sets[name].targets.to(self.device)[:, None]).square().mean((0, 2))
        errors |= {
            "negative_updates": self.negative.clone(),
            "finish_iterations": torch.from_numpy(finish_iterations).double(),
        }
        sparsity = self.model.over_runs(lambda p: self.model.apply(sparsity_error, p, training=False), (0,))
        with torch.no_grad():
            journal.add(iteration, errors, sparsity(self.parameters), self.parameters)
