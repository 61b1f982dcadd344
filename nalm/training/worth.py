"""Whether a training gains from compiling. It changes no number of a row that does not say so: each batch of rows says whether it was compiled."""

from __future__ import annotations

from collections.abc import Sequence

from nalm.training.run import Run

__all__ = ["worth_compiling"]

COMPILE_FROM_ITERATIONS = 10_000
"""Compiling takes 5 to 20 s; shorter trainings are faster without."""


def worth_compiling(runs: Sequence[Run]) -> bool:
    """Whether the training of an ensemble of these runs gains from compiling.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import TenParameterTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=1_000, optimiser=Adam(lr=1e-3))
    >>> run = Run(task=TenParameterTask(), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=0)
    >>> worth_compiling([run]), worth_compiling([run.but(recipe=recipe.but(iterations=50_000))])
    (False, True)
    """
    return runs[0].recipe.iterations >= COMPILE_FROM_ITERATIONS and not runs[0].model.one_by_one
