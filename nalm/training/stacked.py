"""A module's single-run code, applied to the stacked parameters of many runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils._pytree import tree_leaves, tree_map

from nalm.training.run import Run

__all__ = ["StackedModel", "at", "per_run"]

Tensors = dict[str, Tensor]


class _Method(nn.Module):
    """Lets ``functional_call`` call any function of a module: ``forward(function)`` calls it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, function: Callable[[nn.Module], Any]) -> Any:
        return function(self.module)


class StackedModel:
    """The models of several runs: one module whose code is shared, and parameters stacked over runs.

    Args:
        runs: runs of one structure.
        device: where the parameters lie.

    Attributes:
        parameters: initial parameters, name -> (runs, ...).
        one_by_one: map over runs in a loop instead of with ``vmap``; for models that are large by themselves.
    """

    def __init__(self, runs: tuple[Run, ...], device: torch.device) -> None:
        modules = [_initialised(run) for run in runs]
        parameters, buffers = stack_module_state(modules)
        if buffers:
            raise ValueError(f"Models with buffers cannot be trained in an ensemble: {', '.join(buffers)}.")
        self.parameters = {name: p.detach().clone().to(device) for name, p in parameters.items()}
        self.one_by_one = runs[0].model.one_by_one
        self._method = _Method(modules[0].to(device))

    def apply(self, function: Callable[..., Any], parameters: Tensors, training: bool) -> Any:
        """``function`` of the module with these parameters, of one run or, if elementwise, of all."""
        self._method.train(training)
        return functional_call(
            self._method, {f"module.{name}": p for name, p in parameters.items()}, (function,)
        )

    def over_runs(self, function: Callable, in_dims: tuple) -> Callable:
        """``function`` of one run, mapped over the first dimension of the arguments whose entry of
        ``in_dims`` is 0, as ``vmap`` takes them.
        """
        if not self.one_by_one:
            return vmap(function, in_dims)

        def mapped(*arguments: Any) -> Any:
            def of(run: int) -> list:
                return [at(a, d, run) for a, d in zip(arguments, in_dims, strict=True)]

            results = [function(*of(run)) for run in range(len(tree_leaves(arguments[0])[0]))]
            return tree_map(lambda *tensors: torch.stack(tensors), *results)

        return mapped


def at(argument: Any, dims: Any, run: int) -> Any:
    """The argument of one run, as ``in_dims`` of ``vmap`` says which of its parts are stacked over runs."""
    if isinstance(dims, dict):
        return {name: at(argument[name], dims[name], run) for name in argument}
    return argument if dims is None else tree_map(lambda t: t[run], argument)


def per_run(values: Tensor, like: Tensor) -> Tensor:
    """(runs,) values, shaped to broadcast against a tensor (runs, ...)."""
    return values.reshape(-1, *[1] * (like.dim() - 1))


def _initialised(run: Run) -> nn.Module:
    """A module whose weights depend on the run's seed alone; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return run.model.build(run.task.in_features)
