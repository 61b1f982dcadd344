"""Whether compiling pays for itself, by an estimate of how long the same training takes eagerly and compiled.

The estimate counts updates and numbers, never the time of this machine: the same runs are always trained in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from nalm.training.run import Run

__all__ = ["worth_compiling"]

COMPILING = 20.0
"""Seconds that it takes to compile updates and evaluations, and to load the compiler, where nothing is kept."""
EAGER_UPDATE, EAGER_NUMBER = 8e-3, 40e-9
"""Seconds that an eager update takes to call its some hundred operations, and for each number that goes in."""
COMPILED_UPDATE, COMPILED_NUMBER = 30e-6, 2e-9
"""The same where the update is compiled.

All are processor seconds on a core of 2.5 GHz, """


def worth_compiling(runs: Sequence[Run]) -> bool:
    """Whether the training of runs as one ensemble gains from compiling, with nothing kept.

    An update costs something for itself and something for each number that goes in: runs times examples of a batch times inputs.

    >>> from nalm.benchmark import division_runs
    >>> [worth_compiling(division_runs(inputs=2, runs=225, iterations=iterations)) for iterations in (300, 10_000)]
    [False, True]
    """
    updates, numbers = runs[0].recipe.iterations, len(runs) * runs[0].recipe.batch_size * runs[0].task.in_features
    return updates * (EAGER_UPDATE - COMPILED_UPDATE + (EAGER_NUMBER - COMPILED_NUMBER) * numbers) > COMPILING
