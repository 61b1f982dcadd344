"""Which ensemble trains a run."""

from __future__ import annotations

from nalm.models import NODE, AdjointNODE, DigitSequence
from nalm.training import Ensemble, GraphedEnsemble, HagerZhangLBFGS, Run
from nalm.training.ode.adjoint import AdjointEnsemble
from nalm.training.ode.ensemble import NODEEnsemble
from nalm.training.ode.hager_zhang import HagerZhangEnsemble
from nalm.training.sequences import SequenceEnsemble
from nalm.training.side_by_side import SideBySide

__all__ = ["trainer_of"]


def trainer_of(run: Run, device: str = "cpu") -> type[Ensemble]:
    """The class whose objects train runs like this one on that device."""
    if isinstance(run.model, AdjointNODE):
        return AdjointEnsemble
    if isinstance(run.model, NODE):
        return HagerZhangEnsemble if isinstance(run.recipe.finish, HagerZhangLBFGS) else NODEEnsemble
    if isinstance(run.model, DigitSequence):
        return SideBySide if device.startswith("cuda") else SequenceEnsemble
    return GraphedEnsemble if device.startswith("cuda") else Ensemble
