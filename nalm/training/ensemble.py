"""The ensemble: many runs trained at once.

A unit's single-run code is stacked over runs with ``torch.func`` and, where the training is long enough to pay for it, compiled into one fused
update. What differs between runs (weights, seeds, ranges, learning rates, penalty numbers) is a tensor whose first dimension is the run.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.utils._pytree import tree_leaves, tree_map

from nalm.models import project_, sparsity_error
from nalm.tasks.task import EvaluationSet
from nalm.training.compiler import compiled as compile_function
from nalm.training.losses import LOSSES
from nalm.training.penalties import ActivationPenalty
from nalm.training.run import Run
from nalm.training.streams import COMMON_SEED, uniforms

__all__ = ["Ensemble", "Log", "check_device", "worth_compiling"]

Tensors = dict[str, Tensor]
COMPILE_FROM_ITERATIONS = 10_000
"""Compiling takes 10 to 30 s; shorter trainings are faster without."""
EVALUATION_NUMBERS = 2**25
"""Input numbers evaluated at once: bounds the memory of an evaluation, not its result."""


@dataclass
class Log:
    """What an ensemble reports. Arrays have one column per run.

    Args:
        iterations: (evaluations,) iteration of each evaluation.
        errors: evaluation set name -> (evaluations, runs).
        sparsity_errors: (evaluations, runs).
        selected: (runs,) index of the selected evaluation.
        weights: parameter name -> (runs, ...) at the selected evaluation.
        nan_at: (runs,) first evaluated iteration with a non-finite parameter, NaN where there is none.
        seconds: wall time, compilation included.
        device, threads, compiled: what it was trained with.
    """

    iterations: np.ndarray
    errors: dict[str, np.ndarray]
    sparsity_errors: np.ndarray
    selected: np.ndarray
    weights: dict[str, np.ndarray]
    nan_at: np.ndarray
    seconds: float
    device: str
    threads: int
    compiled: bool


@dataclass
class _Collected:
    """Evaluations collected while training."""

    iterations: list[int] = field(default_factory=list)
    errors: list[Tensors] = field(default_factory=list)
    sparsity_errors: list[Tensor] = field(default_factory=list)


class _Method(nn.Module):
    """Lets ``functional_call`` call any function of a module: ``forward(function)`` is ``function(module)``."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, function: Callable[[nn.Module], Any]) -> Any:
        return function(self.module)


def check_device(name: str) -> torch.device:
    """The device of that name, or a ``ValueError`` if this machine does not have it.

    >>> check_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"Unknown device {name!r}: allowed are 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ...") from None
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device {name!r}: allowed are 'cpu', 'cuda' and 'cuda:0', 'cuda:1', ...")
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise ValueError(f"Device {name!r} is not there: this machine has {torch.cuda.device_count()} CUDA devices; use device='cpu'.")
    return device


def worth_compiling(iterations: int) -> bool:
    """Whether a training of this length gains from ``torch.compile``, and a C++ compiler is there."""
    return iterations >= COMPILE_FROM_ITERATIONS and any(shutil.which(c) for c in ("c++", "g++", "clang++"))


class Ensemble:
    """Trains runs of one structure together.

    Args:
        runs: runs whose ``structure()`` is equal.
        device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...
        compiled: use ``torch.compile``; ``None``: if :func:`worth_compiling`.

    Raises:
        ValueError: no runs, runs of different structure, or a device that is not there.

    >>> from nalm.tasks import SingleModuleTask
    >>> from nalm.models import Stack
    >>> from nalm.training import Adam, Recipe
    >>> task = SingleModuleTask.on("U[1,2)", operation="mul")
    >>> recipe = Recipe(iterations=300, optimiser=Adam(lr=1e-2), log_interval=100)
    >>> runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed) for seed in range(3)]
    >>> log = Ensemble(runs).train()
    >>> log.errors["test"].shape, bool((log.errors["test"][-1] < log.errors["test"][0]).all())
    ((4, 3), True)
    """

    def __init__(self, runs: Sequence[Run], device: str = "cpu", compiled: bool | None = None) -> None:
        if not runs:
            raise ValueError("An ensemble needs at least one run.")
        if len({run.structure() for run in runs}) > 1:
            raise ValueError("The runs of an ensemble must have the same structure (task, model and recipe up to numbers).")
        self.runs, self.device = tuple(runs), check_device(device)
        first = self.runs[0]
        self.task, self.recipe, self.one_by_one = first.task, first.recipe, first.model.one_by_one
        self.compiled = worth_compiling(self.recipe.iterations) and not self.one_by_one if compiled is None else compiled

        modules = [_initialised(run) for run in self.runs]
        parameters, buffers = stack_module_state(modules)
        if buffers:
            raise ValueError(f"Models with buffers cannot be trained in an ensemble: {', '.join(buffers)}.")
        self.parameters = {name: p.detach().clone().to(self.device) for name, p in parameters.items()}
        self.module = _Method(modules[0].to(self.device)).train()
        self.evaluated_module = copy.deepcopy(self.module).eval()
        optimiser = self.recipe.optimiser
        self.state = {name: tuple(torch.zeros_like(p) for _ in optimiser.slots) for name, p in self.parameters.items()}

        stack = lambda dicts: {name: torch.stack([d[name] for d in dicts]).to(self.device) for name in dicts[0]}
        self.constants = stack([run.task.constants(run.seed) for run in self.runs])
        self.shared = tree_map(lambda t: t.to(self.device), self.task.shared())
        self.penalties, self.numbers = _penalties(self.runs, self.device)
        self.numbers["lr"] = {"": self._per_run([run.recipe.optimiser.lr for run in self.runs])}
        if self.recipe.clip_gradient_norm is not None:
            self.numbers["clip"] = {"": self._per_run([run.recipe.clip_gradient_norm for run in self.runs])}
        seeds = [run.seed if self.recipe.stream == "own" else COMMON_SEED for run in self.runs]
        self.seeds = torch.tensor(seeds, dtype=torch.int64, device=self.device)
        self.evaluations = self._evaluation_groups()

        self._update = compile_function(self._step) if self.compiled else self._step
        self._errors = compile_function(self._summed_errors) if self.compiled else self._summed_errors

    def train(self, progress: Callable[[int], None] = lambda iterations: None) -> Log:
        """Train all runs to the end; ``progress`` is told the number of further iterations now and then."""
        start, collected, best = time.perf_counter(), _Collected(), None
        iterations, interval = self.recipe.iterations, self.recipe.log_interval
        counter = torch.arange(iterations + 1, device=self.device)
        for iteration in range(iterations + 1):
            if iteration % interval == 0 or iteration == iterations:
                best = self._log(iteration, collected, best)
                progress(min(interval, iterations - iteration))
            if iteration < iterations:
                draw = self._host_draw(iteration)
                self.parameters, self.state = self._update(self.parameters, self.state, counter[iteration], draw, self.constants, self.numbers)
        return self._report(collected, best, time.perf_counter() - start)

    def warm_up(self) -> None:
        """Compile without training: one update and one evaluation whose results are thrown away."""
        self._all_errors()
        self._update(self.parameters, self.state, torch.tensor(0, device=self.device), self._host_draw(0), self.constants, self.numbers)

    # --- one update -----------------------------------------------------------------------------------------------------------------------

    def _step(self, parameters: Tensors, state: dict, iteration: Tensor, draw: Tensor | None, constants: Tensors, numbers: dict) -> tuple:
        noise, noise_dim = draw, 0
        if noise is None:
            seeds = self.seeds if self.recipe.stream == "own" else self.seeds[:1]
            noise = uniforms(seeds, iteration, self.task.noise_rows(), self.recipe.batch_size)
            if self.recipe.stream == "common":
                noise, noise_dim = noise[0], None
        step = iteration.to(torch.float32)
        loss = lambda *args: self._loss(*args, step)
        gradients = self._over_runs(grad(loss), (0, noise_dim, 0, 0))(parameters, noise, constants, numbers)
        if "clip" in numbers:
            gradients = _clipped(gradients, numbers["clip"][""])
        return self._updated(parameters, gradients, state, iteration, numbers["lr"][""])

    def _loss(self, parameters: Tensors, noise: Tensor, constants: Tensors, numbers: dict, step: Tensor) -> Tensor:
        x, target = self.task.batch(noise, constants, self.shared)

        def loss(model: nn.Module) -> Tensor:
            if "ActivationPenalty" in self.penalties:
                output, value = model.forward_with_activation_penalty(x)
                total = ActivationPenalty.coefficient(numbers["ActivationPenalty"], step) * value
            else:
                output, total = model(x), 0.0
            for kind, penalty in self.penalties.items():
                if kind != "ActivationPenalty":
                    total = total + penalty.coefficient(numbers[kind], step) * penalty.value(model)
            return LOSSES[self.recipe.loss](output, target) + total

        return _call(self.module, parameters, loss)

    def _updated(self, parameters: Tensors, gradients: Tensors, state: dict, iteration: Tensor, lr: Tensor) -> tuple[Tensors, dict]:
        new, new_state = {}, {}
        for name, parameter in parameters.items():
            per_run = lr.reshape(-1, *[1] * (parameter.dim() - 1))
            new[name], *slots = self.recipe.optimiser.update(parameter, gradients[name], state[name], per_run, iteration)
            new_state[name] = tuple(slots)
        return self._projected(new), new_state

    def _projected(self, parameters: Tensors) -> Tensors:
        """Constraints act entry by entry, so they take the stacked parameters as they are."""
        parameters = {name: p.clone() for name, p in parameters.items()}
        _call(self.module, parameters, project_)
        return parameters

    # --- evaluation -----------------------------------------------------------------------------------------------------------------------

    def _summed_errors(self, parameters: Tensors, inputs: Tensor, targets: Tensor) -> Tensor:
        """(runs, 2, outputs): squared and absolute errors, summed over a chunk of examples."""
        def one(parameters: Tensors, targets: Tensor) -> Tensor:
            predicted = _call(self.evaluated_module, parameters, lambda model: model(self.task.model_inputs(inputs, self.shared)))
            difference = predicted - targets
            return torch.stack([difference.square().sum(0), difference.abs().sum(0)])

        return self._over_runs(one, (0, 0))(parameters, targets)

    def _evaluation_groups(self) -> list[tuple[str, list[int], EvaluationSet, Tensor]]:
        """Runs that are evaluated on the same inputs are evaluated together."""
        groups: dict[tuple, tuple[list[int], list[EvaluationSet]]] = {}
        for index, run in enumerate(self.runs):
            for name, examples in run.task.evaluation(run.seed).items():
                indices, sets = groups.setdefault((name, id(examples.inputs)), ([], []))
                indices.append(index)
                sets.append(examples)
        moved: dict[int, Tensor] = {}
        result = []
        for (name, identity), (indices, sets) in groups.items():
            if identity not in moved:
                # Stored with the examples last: the layout that vectorises over examples when there are few inputs.
                moved[identity] = sets[0].inputs.mT.contiguous().to(self.device)
            example = EvaluationSet(moved[identity].mT, sets[0].targets, sets[0].error, sets[0].output)
            result.append((name, indices, example, torch.stack([s.targets for s in sets]).to(self.device)))
        return result

    @torch.no_grad()
    def _all_errors(self) -> Tensors:
        errors = {name: torch.empty(len(self.runs), device=self.device) for name, *_ in self.evaluations}
        for name, indices, examples, targets in self.evaluations:
            parameters = {key: p[indices] for key, p in self.parameters.items()}
            size = self.task.model_numbers_per_example(examples.inputs) * (1 if self.one_by_one else len(indices))
            count, chunk = examples.inputs.shape[0], max(1, EVALUATION_NUMBERS // size)
            parts = [slice(first, first + chunk) for first in range(0, count, chunk)]
            sums = sum(self._errors(parameters, examples.inputs[part], targets[:, part]) for part in parts)
            means = sums[:, 0 if examples.error == "mse" else 1] / count
            errors[name][indices] = means.mean(1) if examples.output is None else means[:, examples.output]
        return errors

    def _log(self, iteration: int, collected: _Collected, best: tuple | None) -> tuple:
        """Evaluate the current weights; return the best validation error so far with its index and weights."""
        errors = self._all_errors()
        with torch.no_grad():
            sparsity = self._over_runs(lambda p: _call(self.evaluated_module, p, sparsity_error), (0,))(self.parameters)
            finite = torch.stack([p.flatten(1).isfinite().all(1) for p in self.parameters.values()]).all(0)
        index = len(collected.iterations)
        collected.iterations.append(iteration)
        collected.errors.append({name: e.cpu() for name, e in errors.items()} | {"_finite": finite.cpu()})
        collected.sparsity_errors.append(sparsity.cpu())
        valid = torch.where(errors["valid"].isfinite(), errors["valid"], torch.inf)
        if best is None or self.recipe.selection == "last":
            return valid, torch.full_like(valid, index, dtype=torch.int64), {n: p.clone() for n, p in self.parameters.items()}
        best_valid, best_index, best_weights = best
        # Without any finite validation error so far, the latest weights are kept.
        better = (valid < best_valid) | best_valid.isinf()
        expand = lambda p: better.reshape(-1, *[1] * (p.dim() - 1))
        weights = {n: torch.where(expand(p), p, best_weights[n]) for n, p in self.parameters.items()}
        return torch.where(better, valid, best_valid), torch.where(better, index, best_index), weights

    def _report(self, collected: _Collected, best: tuple, seconds: float) -> Log:
        errors = {name: torch.stack([e[name] for e in collected.errors]).numpy() for name in collected.errors[0]}
        iterations, finite = np.array(collected.iterations), errors.pop("_finite")
        nan_at = np.where(finite.all(0), np.nan, iterations[finite.argmin(0)].astype(float))
        weights = {name: w.cpu().numpy() for name, w in best[2].items()}
        sparsity, selected = torch.stack(collected.sparsity_errors).numpy(), best[1].cpu().numpy()
        trained_with = (str(self.device), torch.get_num_threads(), self.compiled)
        return Log(iterations, errors, sparsity, selected, weights, nan_at, seconds, *trained_with)

    # --- helpers --------------------------------------------------------------------------------------------------------------------------

    def _per_run(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.device)

    def _host_draw(self, iteration: int) -> Tensor | None:
        draws = [run.task.host_draw(seed, iteration, self.recipe.batch_size) for run, seed in zip(self.runs, self.seeds.tolist())]
        return None if draws[0] is None else torch.stack(draws).to(self.device)

    def _over_runs(self, function: Callable, in_dims: tuple) -> Callable:
        """``vmap`` over runs, or, for models that are large by themselves, one run after another."""
        if not self.one_by_one:
            return vmap(function, in_dims)

        def mapped(*arguments: Any) -> Any:
            pick = lambda run: [a if d is None else tree_map(lambda t: t[run], a) for a, d in zip(arguments, in_dims, strict=True)]
            results = [function(*pick(run)) for run in range(len(tree_leaves(arguments[0])[0]))]
            return tree_map(lambda *tensors: torch.stack(tensors), *results)

        return mapped


def _initialised(run: Run) -> nn.Module:
    """A module whose weights depend on the run's seed alone; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return run.model.build(run.task.in_features)


def _call(module: _Method, parameters: Tensors, function: Callable[[nn.Module], Any]) -> Any:
    return functional_call(module, {f"module.{name}": p for name, p in parameters.items()}, (function,))


def _penalties(runs: Sequence[Run], device: torch.device) -> tuple[dict[str, type], dict[str, Tensors]]:
    """The kinds of penalty that any run has, and their numbers per run; a run without a kind gets it with weight 0."""
    examples = {p.kind: p for run in runs for p in run.recipe.penalties}
    numbers = {}
    for kind, example in examples.items():
        of_runs = [{p.kind: p.numbers() for p in run.recipe.penalties}.get(kind, example.numbers() | {"weight": 0.0}) for run in runs]
        numbers[kind] = {name: torch.tensor([n[name] for n in of_runs], dtype=torch.float32, device=device) for name in example.numbers()}
    return {kind: type(example) for kind, example in examples.items()}, numbers


def _clipped(gradients: Tensors, largest: Tensor) -> Tensors:
    """As ``torch.nn.utils.clip_grad_norm_``, for each run by itself."""
    norm = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
    factor = (largest / (norm + 1e-6)).clamp_max(1)
    return {name: g * factor.reshape(-1, *[1] * (g.dim() - 1)) for name, g in gradients.items()}
