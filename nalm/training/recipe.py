"""A recipe says how one run is trained: optimiser, loss, penalties, length. It knows of no paper."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from nalm.training.losses import LOSSES
from nalm.training.optimisers import LBFGS, HagerZhangLBFGS, Optimiser
from nalm.training.penalties import Penalty
from nalm.units.checks import choose
from nalm.values import Value

__all__ = ["Recipe"]


class Recipe(Value):
    """How a run is trained.

    Args:
        iterations: number of updates. The models after 0, ``log_interval``, ... and ``iterations`` updates
            are evaluated.
        optimiser: :class:`Adam`, :class:`SGD` or :class:`RMSProp` with its learning rate.
        batch_size: fresh examples per iteration.
        log_interval: iterations between evaluations; an evaluation at iteration t sees the weights before
            update t.
        loss: ``"mse"``, ``"pcc"``, ``"mape"`` or ``"mse+pcc"``.
        penalties: terms added to the loss; at most one of each kind.
        clip_gradient_norm: largest Euclidean norm of a run's whole gradient (data loss and penalties);
            ``None`` for no clipping.
        selection: which evaluated model is reported: ``"best-validation"`` (first minimum of the validation
            error) or ``"last"``.
        finish: a second stage after the iterations, for models whose loss is the same in every iteration; see
            :class:`LBFGS` and :class:`HagerZhangLBFGS`.
        stream: ``"own"`` (each run draws its own batches), ``"common"`` (all runs of an ensemble see the same
            uniform numbers) or ``"numpy"`` (each run draws the batches that the papers' code draws for its
            seed, inputs and targets, in float64 on the host).

    Raises:
        ValueError: one sentence naming the wrong field and what is allowed.

    >>> from nalm.training.optimisers import Adam
    >>> Recipe(iterations=50_000, optimiser=Adam(lr=5e-3)).batch_size
    128
    """

    iterations: PositiveInt
    optimiser: Annotated[Optimiser, Field(discriminator="kind")]
    batch_size: PositiveInt = 128
    log_interval: PositiveInt = 1000
    loss: str = "mse"
    penalties: tuple[Annotated[Penalty, Field(discriminator="kind")], ...] = ()
    clip_gradient_norm: PositiveFloat | None = None
    finish: Annotated[LBFGS | HagerZhangLBFGS, Field(discriminator="kind")] | None = None
    selection: Literal["best-validation", "last"] = "best-validation"
    stream: Literal["own", "common", "numpy"] = "own"

    @model_validator(mode="after")
    def _consistent(self) -> Recipe:
        choose("loss", self.loss, LOSSES)
        kinds = [p.kind for p in self.penalties]
        if len(kinds) != len(set(kinds)):
            raise ValueError(f"A recipe takes at most one penalty of each kind, but got {kinds}.")
        return self

    def structure(self) -> tuple:
        """What must be equal for two runs to share an ensemble; everything else may differ per run."""
        optimiser = self.optimiser.model_copy(update={"lr": 1.0})
        clipped = self.clip_gradient_norm is not None
        return (
            self.iterations,
            optimiser,
            self.batch_size,
            self.log_interval,
            self.loss,
            clipped,
            self.finish,
            self.selection,
            self.stream,
        )
