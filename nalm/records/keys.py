"""The keys of many runs."""

from __future__ import annotations

from collections.abc import Sequence

from nalm.training.run import Run

__all__ = ["keys_of"]


def keys_of(runs: Sequence[Run]) -> list[str]:
    """The key of each run. The seeds of an arm share its values, so their configuration is written out and
    hashed once.

    >>> from nalm.models import Stack
    >>> from nalm.tasks import TenParameterTask
    >>> from nalm.training import Adam, Recipe
    >>> recipe = Recipe(iterations=1000, optimiser=Adam(lr=1e-3))
    >>> one = Run(task=TenParameterTask(), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=0)
    >>> keys_of([one, one.but(seed=7)]) == [one.key, one.but(seed=7).key]
    True
    """
    arms: dict[tuple, str] = {}
    keys = []
    for run in runs:
        arm = (id(run.task), id(run.model), id(run.recipe), run.threshold)
        if arm not in arms:
            arms[arm] = run.configuration_key
        keys.append(f"{arms[arm]}-{run.seed}")
    return keys
