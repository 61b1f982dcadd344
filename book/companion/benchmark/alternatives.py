"""Ways to update that were measured and are not used, each beside what they would replace; without
evaluation.
"""

from __future__ import annotations

import torch
from nalm.training import Ensemble
from nalm.training.streams import uniforms
from torch import Tensor

from companion.benchmark.rates import Ensembles, Ready, wrapped

__all__ = ["batch_drawn_beforehand", "call_for_all", "call_for_each"]


def call_for_each(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """Updates of one ensemble after another, as the book's runs are trained."""
    return _for_each(ensembles, compiled, beforehand=False)


def batch_drawn_beforehand(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """Updates that draw nothing, as if another core had done it while the update before was computed; all of
    them get the same batch.
    """
    return _for_each(ensembles, compiled, beforehand=True)


def _for_each(ensembles: Ensembles, compiled: bool, beforehand: bool) -> Ready:
    ready = []
    for runs in ensembles:
        ensemble = Ensemble(runs, compiled=False)
        update, counter = ensemble.update, torch.arange(ensemble.recipe.iterations)
        noise = _noise(ensemble, counter[0]) if beforehand else None
        step, state = wrapped(update.__call__, compiled), (ensemble.parameters, ensemble.state)
        fixed = update.constants, update.numbers
        step.repeat(state, [(counter[0], noise)], fixed)
        ready.append((step, state, [(number, noise) for number in counter], fixed))
    return lambda: [step.repeat(state, inputs, fixed) for step, state, inputs, fixed in ready]


def call_for_all(ensembles: Ensembles, compiled: bool = True) -> Ready:
    """The updates of all ensembles in one call, which draws one batch for them; for ensembles with the same
    tasks and seeds.
    """
    members = [Ensemble(runs, compiled=False) for runs in ensembles]

    def updates(states: tuple, iteration: Tensor, fixed: tuple) -> tuple:
        noise = _noise(members[0], iteration)
        return (
            tuple(
                of.update(*state, iteration, noise, *own)
                for of, state, own in zip(members, states, fixed, strict=True)
            ),
        )

    step, state = wrapped(updates, compiled), (tuple((of.parameters, of.state) for of in members),)
    fixed = (tuple((of.update.constants, of.update.numbers) for of in members),)
    inputs = [(number,) for number in torch.arange(members[0].recipe.iterations)]
    step.repeat(state, inputs[:1], fixed)
    return lambda: step.repeat(state, inputs, fixed)


def _noise(ensemble: Ensemble, iteration: Tensor) -> Tensor:
    return uniforms(
        ensemble.update.seeds, iteration, ensemble.update.task.noise_rows(), ensemble.recipe.batch_size
    )
