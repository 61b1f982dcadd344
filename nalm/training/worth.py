"""Whether compiling pays for itself: an estimate of how long the same training takes eagerly and compiled.

It counts updates and the numbers that they draw, and never asks the clock, so the same ensemble is trained
in the same way on every machine. How fast a machine is hardly matters, as it compiles and trains at the same
pace.
"""

from __future__ import annotations

from collections.abc import Sequence

from nalm.training.run import Run

__all__ = ["worth_compiling"]

COMPILING = 36.0
EAGER_UPDATE, EAGER_NUMBER = 7e-3, 45e-9
COMPILED_UPDATE, COMPILED_NUMBER = 0.1e-3, 6e-9
"""Seconds that compiling takes where nothing is kept; that an update takes for its some hundred operations,
and for each number that it draws.

Processor seconds, measured together on two busy cores of an AMD EPYC (Zen 3) with torch 2.12.1, evaluations
included: 1, 25 and 225 runs of division with two inputs, 1 and 50 runs of subset arithmetic with 100.
"""


def worth_compiling(runs: Sequence[Run]) -> bool:
    """Whether runs that are trained together on a CPU are sooner done if they are compiled, with nothing
    kept.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import SubsetArithmeticTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=3000, optimiser=Adam(lr=1e-3))
    >>> task, model = SubsetArithmeticTask(operation="mul", inputs=100), Stack.of("NAU", 2, "NMU", 1)
    >>> runs = [Run(task=task, model=model, recipe=recipe, seed=seed) for seed in range(50)]
    >>> worth_compiling(runs), worth_compiling(runs[:1])
    (True, False)
    """
    recipe = runs[0].recipe
    numbers = runs[0].task.noise_rows() * recipe.batch_size * (1 if recipe.stream == "common" else len(runs))
    saved = EAGER_UPDATE - COMPILED_UPDATE + (EAGER_NUMBER - COMPILED_NUMBER) * numbers
    # these are large, and never compiled
    return recipe.iterations * saved > COMPILING and not runs[0].model.one_by_one
