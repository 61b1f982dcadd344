"""What an ensemble computes, to the last bit: run once with the code of a commit and once with the present
one.

Either some updates are made, or the tensor operations of an update and of an evaluation are listed, as the
compiler gets them, with all that they start from: where lists and tensors are the same, all updates are,
however many. A differential equation, whose steps are compiled a few at a time and whose second stage
computes with NumPy, is trained uncompiled for a few updates, and each operation is noted with its result.

``python steps.py ASKED FOUND`` reads a JSON file of what
:func:`~companion.verification.sidebyside.compare_code` asks for and writes what it found. It uses the library
that Python finds, which may be an older one, so it keeps to what all versions have.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nalm.models import NODE, DigitSequence
from nalm.training import Discretisation, Run
from nalm.training.trainers import trainer_of
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

FASTER = (1.0, 30.0)
"""Factors on the learning rate; with the larger one, weights meet their bounds within the updates."""
SEEDS = (0, 1)


def short(run: Run, updates: int) -> Run:
    """The run with so many updates; its penalties set in early enough to be seen."""

    def sooner(penalty: Any) -> Any:
        if isinstance(penalty, Discretisation):
            return penalty.but(start=updates // 4, end=updates // 2)
        return penalty.but(every=max(1, updates // 4)) if hasattr(penalty, "every") else penalty

    finish = run.recipe.finish and run.recipe.finish.but(
        iterations=min(max(1, updates // 4), run.recipe.finish.iterations)
    )
    penalties = tuple(sooner(penalty) for penalty in run.recipe.penalties)
    recipe = run.recipe.but(
        iterations=updates, log_interval=updates, selection="last", penalties=penalties, finish=finish
    )
    frozen = getattr(run.model, "imaginary_until", None) is not None
    return run.but(recipe=recipe, model=run.model.but(imaginary_until=updates // 2) if frozen else run.model)


def ensemble(run: Run, updates: int) -> list[Run]:
    """Some runs like this one, which differ in seed and learning rate."""
    shortened = short(run, updates)
    optimiser = shortened.recipe.optimiser
    return [
        shortened.but(
            seed=seed, recipe=shortened.recipe.but(optimiser=optimiser.but(lr=optimiser.lr * factor))
        )
        for seed in SEEDS
        for factor in FASTER
    ]


def steps(run: Run, updates: int, compiled: bool) -> dict[str, Any]:
    """Digests of all weights and errors of such an ensemble, and how many weights ended on a bound, -1, 0
    or 1.
    """
    trainer = trainer_of(run)
    if isinstance(run.model, DigitSequence):
        trained = trainer(ensemble(run, updates))
        # to read all images takes most of the time
        trained.evaluate.groups = [_beginning(group) for group in trained.evaluate.groups]
    elif isinstance(run.model, NODE):
        trained = trainer(ensemble(run, updates), compiled=compiled)
    else:
        # several updates in a call are the same, tests/training/test_ensemble.py
        trained = trainer(ensemble(run, updates), compiled=compiled, together=1)
        # the updates matter; to compile evaluations too would take twice as long
        trained.evaluate._errors = trained.evaluate._summed_errors
    log = trained.train()
    return {
        "digests": _digests(log),
        "on a bound": int(sum(np.isin(value, (-1, 0, 1)).sum() for value in log.weights.values())),
        "compiled": bool(log.compiled),
    }


def _digests(log: Any) -> dict[str, str]:
    values = {
        **log.weights,
        **{f"error {name}": errors for name, errors in log.errors.items()},
        "sparsity error": log.sparsity_errors,
    }
    return {
        name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        for name, value in sorted(values.items())
    }


def _beginning(group: Any) -> Any:
    examples = replace(
        group.examples, inputs=group.examples.inputs[:SEQUENCES], targets=group.examples.targets[:SEQUENCES]
    )
    return replace(group, examples=examples, targets=group.targets[:, :SEQUENCES])


def operations(run: Run, updates: int) -> dict[str, Any]:
    """Digests of the operations of an update and of evaluations, and of the tensors that they start from; of
    a differential equation those of all operations of a few updates and of what comes after them.
    """
    if isinstance(run.model, NODE):
        trained, watched = trainer_of(run)(ensemble(run, WATCHED), compiled=False), _Watched()
        with watched:
            log = trained.train()
        noted = {"operations": watched.noted.hexdigest()[:16], "number of operations": watched.number}
        return {"digests": noted | _digests(log), "on a bound": 0, "compiled": False}
    trained = trainer_of(run)(ensemble(run, updates), compiled=False)
    update, state = trained.update, (trained.parameters, trained.state)
    # the name that it had
    draws = update.draws(0, DRAWS) if hasattr(update, "draws") else map(update.host_draw, range(DRAWS))
    draws = list(draws)
    fixed = update.constants, update.numbers
    found = {
        "update": _listed(update.__call__, *state, torch.tensor(1), draws[0], *fixed),
        "start": _digest((*state, *fixed, draws)),
    }
    for group in trained.evaluate.groups:
        parameters = {name: values[group.runs] for name, values in trained.parameters.items()}
        inputs, targets = group.examples.inputs[:LISTED], group.targets[:, :LISTED]
        found[f"evaluation {group.name} {group.runs}"] = _listed(
            trained.evaluate._summed_errors, parameters, inputs, targets
        )
        found[f"examples {group.name} {group.runs}"] = _digest(
            (group.examples.inputs, group.targets, group.examples.error, group.examples.output)
        )
    return {"digests": found, "on a bound": 0, "compiled": False}


DRAWS, LISTED, SEQUENCES, WATCHED = 2, 256, 4, 4
"""Draws on the host, examples of an evaluation set whose operations are listed (all examples are compared),
sequences of digits that are evaluated, and updates of a differential equation whose operations are noted.
"""


class _Watched(TorchDispatchMode):
    """Notes each operation on tensors and its result; what makes a tensor of nothing is noted where it is
    used.
    """

    def __init__(self) -> None:
        super().__init__()
        self.noted, self.number = hashlib.sha256(), 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if any(map(_has_tensors, (*args, *(kwargs or {}).values()))):
            self.noted.update(f"{function} {_digest(result)}".encode())
            self.number += 1
        return result


def _has_tensors(argument: Any) -> bool:
    """Whether an argument of an operation is a tensor, or a list that holds one."""
    inside = argument if isinstance(argument, list | tuple) else (argument,)
    return any(isinstance(one, torch.Tensor) for one in inside)


def _listed(function: Callable, *arguments: Any) -> str:
    leaves, structure = tree_flatten(arguments)

    def of_tensors(*tensors: torch.Tensor) -> list[Any]:
        given = iter(tensors)
        return tree_flatten(
            function(
                *tree_unflatten(
                    [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], structure
                )
            )
        )

    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    graph = make_fx(lambda *given: of_tensors(*given)[0])(*tensors)
    constants = {
        node.target: getattr(graph, node.target) for node in graph.graph.nodes if node.op == "get_attr"
    }
    return _digest((graph.code, constants, [(tuple(t.shape), t.stride(), str(t.dtype)) for t in tensors]))


def _digest(values: Any) -> str:
    leaves, structure = tree_flatten(values)
    parts = [str(structure), *(_bytes(leaf) for leaf in leaves)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _bytes(leaf: Any) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return (
        f"{leaf.dtype} {tuple(leaf.shape)} "
        f"{hashlib.sha256(leaf.detach().cpu().contiguous().numpy().tobytes()).hexdigest()}"
    )


def main(asked: str, found: str) -> None:
    torch.set_num_threads(1)
    answers = []
    for number, one in enumerate(json.loads(Path(asked).read_text()), 1):
        run = Run.from_json(json.dumps(one["run"]))
        answers.append(
            steps(run, one["updates"], one["compiled"]) if one["trained"] else operations(run, one["updates"])
        )
        print(number, flush=True)  # how far it is
        Path(found).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
