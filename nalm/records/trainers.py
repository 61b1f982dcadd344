"""Which ensemble trains a run."""

from __future__ import annotations

from nalm.dynamics.ensemble import NODEEnsemble
from nalm.models import NODE
from nalm.training import Ensemble, Run

__all__ = ["trainer_of"]


def trainer_of(run: Run) -> type[Ensemble] | type[NODEEnsemble]:
    """The class whose objects train runs like this one."""
    return NODEEnsemble if isinstance(run.model, NODE) else Ensemble
