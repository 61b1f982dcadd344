"""What some updates make of some ensembles, to the last bit: run once with the code of a commit and once with the present one.

``python steps.py ASKED FOUND`` reads a JSON file of what :func:`~nalm.records.sidebyside.compare_code` asks for and writes what it found. It uses the library
that Python finds, which may be an older one, so it keeps to what all versions have.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nalm.models import NODE, DigitSequence
from nalm.records.trainers import trainer_of
from nalm.training import Discretisation, Run

FASTER = (1.0, 30.0)
"""Factors on the learning rate; with the larger one, weights meet their bounds within the updates."""
SEEDS = (0, 1)


def short(run: Run, updates: int) -> Run:
    """The run with so many updates; its penalties set in early enough to be seen."""

    def sooner(penalty: Any) -> Any:
        if isinstance(penalty, Discretisation):
            return penalty.but(start=updates // 4, end=updates // 2)
        return penalty.but(every=max(1, updates // 4)) if hasattr(penalty, "every") else penalty

    finish = run.recipe.finish and run.recipe.finish.but(iterations=min(max(1, updates // 4), run.recipe.finish.iterations))
    penalties = tuple(sooner(penalty) for penalty in run.recipe.penalties)
    recipe = run.recipe.but(iterations=updates, log_interval=updates, selection="last", penalties=penalties, finish=finish)
    return run.but(recipe=recipe)


def ensemble(run: Run, updates: int) -> list[Run]:
    """Some runs like this one, which differ in seed and learning rate."""
    shortened = short(run, updates)
    optimiser = shortened.recipe.optimiser
    return [
        shortened.but(seed=seed, recipe=shortened.recipe.but(optimiser=optimiser.but(lr=optimiser.lr * factor))) for seed in SEEDS for factor in FASTER
    ]


def steps(run: Run, updates: int, compiled: bool) -> dict[str, Any]:
    """Digests of all weights and errors of such an ensemble, and how many weights ended on a bound, -1, 0 or 1."""
    trainer = trainer_of(run)
    if isinstance(run.model, DigitSequence):
        trained = trainer(ensemble(run, updates))
    elif isinstance(run.model, NODE):
        trained = trainer(ensemble(run, updates), compiled=compiled)
    else:
        trained = trainer(ensemble(run, updates), compiled=compiled, together=1)  # several updates in a call are the same, tests/training/test_ensemble.py
        trained.evaluate._errors = trained.evaluate._summed_errors  # the updates matter; to compile evaluations too would take twice as long
    log = trained.train()
    values = {**log.weights, **{f"error {name}": errors for name, errors in log.errors.items()}, "sparsity error": log.sparsity_errors}
    return {
        "digests": {name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16] for name, value in sorted(values.items())},
        "on a bound": int(sum(np.isin(value, (-1, 0, 1)).sum() for value in log.weights.values())),
        "compiled": bool(log.compiled),
    }


def main(asked: str, found: str) -> None:
    torch.set_num_threads(1)
    answers = []
    for number, one in enumerate(json.loads(Path(asked).read_text()), 1):
        answers.append(steps(Run.from_json(json.dumps(one["run"])), one["updates"], one["compiled"]))
        print(number, flush=True)  # how far it is
        Path(found).write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
