"""From what a figure compares to the runs it needs: arms on tasks, with seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from nalm.models import AnyModel
from nalm.tasks import Task
from nalm.training import Recipe, Run
from nalm.values import Value
from pydantic import Field

__all__ = ["Arm", "runs_of"]


class Arm(Value):
    """What is compared in a figure: a model and how it is trained.

    >>> from companion.division import settings as division
    >>> nmru = division.arms(inputs=2)["NMRU"]
    >>> nmru.but(recipe=nmru.recipe.but(loss="pcc")).recipe.loss
    'pcc'
    """

    model: Annotated[AnyModel, Field(discriminator="kind")]
    recipe: Recipe


def runs_of(
    arms: Mapping[str, Arm],
    tasks: Iterable[Task] | Mapping[str, Task],
    seeds: int,
    threshold: float | None = None,
) -> list[Run]:
    """One run for each arm, task and seed.

    Args:
        arms: by name; the name is the label ``model`` of their runs.
        tasks: if they are named, the name is the label ``range``; else the task says its range.
        seeds: seeds 0 to ``seeds`` - 1.
        threshold: test error below which a run is solved.

    >>> from companion.division import settings as division
    >>> from nalm.tasks import SingleModuleTask
    >>> task = SingleModuleTask.on("U[1,2)", operation="div")
    >>> [(run.labels, run.seed) for run in runs_of({"NRU": division.arms(inputs=2)["NRU"]}, [task], seeds=2)]
    [({'model': 'NRU'}, 0), ({'model': 'NRU'}, 1)]
    """
    named = (
        [({"range": name}, task) for name, task in tasks.items()]
        if isinstance(tasks, Mapping)
        else [({}, task) for task in tasks]
    )
    return [
        Run(
            task=task,
            model=arm.model,
            recipe=arm.recipe,
            seed=seed,
            threshold=threshold,
            labels={"model": name} | label,
        )
        for name, arm in arms.items()
        for label, task in named
        for seed in range(seeds)
    ]
