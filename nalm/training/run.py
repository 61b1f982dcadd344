"""A run is a value: a task, a model, a recipe and a seed. It has one canonical form and one key."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, PositiveFloat, model_validator

from nalm.models import AnyModel
from nalm.tasks import AnyTask
from nalm.tasks.arithmetic import OperandTask
from nalm.training.recipe import Recipe
from nalm.values import Value

__all__ = ["Run"]


def _plain(number: Any) -> Any:
    """Seeds of ``np.arange`` are seeds."""
    return number.item() if isinstance(number, np.integer) else number


class Run(Value):
    """Everything that determines the result of one training.

    Args:
        task: what is learned.
        model: what learns it.
        recipe: how it is trained.
        seed: of the initial weights, the batches and the task's random choices; in [0, 2**32).
        threshold: a test error below it is a success, positive; ``None`` where the experiment knows no
            success.
        labels: columns of the row that name the run in tables and figures; they do not enter the key.

    Raises:
        ValueError: a wrong field, or the stream ``"numpy"`` with a task that has no such batches.

    >>> from nalm.tasks import TenParameterTask
    >>> from nalm.models import Stack
    >>> from nalm.training import Adam
    >>> recipe = Recipe(iterations=1000, optimiser=Adam(lr=1e-3))
    >>> run = Run(task=TenParameterTask(), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=0)
    >>> run.key == run.model_copy(update={"labels": {"model": "NMU"}}).key
    True
    """

    task: AnyTask
    model: Annotated[AnyModel, Field(discriminator="kind")]
    recipe: Recipe
    seed: Annotated[int, BeforeValidator(_plain)] = Field(ge=0, lt=2**32)
    threshold: PositiveFloat | None = None
    labels: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_its_stream(self) -> Run:
        if self.recipe.stream == "numpy" and not (
            isinstance(self.task, OperandTask) and self.task.targets == "float64"
        ):
            raise ValueError(
                "The stream 'numpy' has its targets in float64: it takes tasks on two operands with "
                f"targets='float64', not {self.task!r}."
            )
        return self

    @property
    def configuration(self) -> str:
        """The canonical form of everything but the seed and the labels: equal for the seeds of one experiment
        arm.
        """
        return self.model_copy(update={"seed": 0, "labels": {}}).canonical()

    @property
    def full_configuration(self) -> dict[str, Any]:
        """The configuration with all defaults written out, without seed and labels: what is stored with the
        rows.
        """
        return self.model_dump(mode="json", exclude={"seed", "labels"})

    @property
    def configuration_key(self) -> str:
        """Twelve hexadecimal digits that identify the configuration."""
        return hashlib.sha256(self.configuration.encode()).hexdigest()[:12]

    @property
    def key(self) -> str:
        """What a recorded run is found by: the configuration's key and the seed."""
        return f"{self.configuration_key}-{self.seed}"

    def structure(self) -> tuple:
        """Runs of equal structure can be trained in one ensemble."""
        return (self.task.structure(), self.model.canonical(), self.recipe.structure())
