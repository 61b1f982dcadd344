"""Which ensemble trains a run."""

from __future__ import annotations

from nalm.dynamics.ensemble import NODEEnsemble
from nalm.models import NODE
from nalm.training import Ensemble, GraphedEnsemble, Run

__all__ = ["trainer_of"]


def trainer_of(run: Run, device: str = "cpu") -> type[Ensemble] | type[NODEEnsemble]:
    """The class whose objects train runs like this one on that device."""
    if isinstance(run.model, NODE):
        return NODEEnsemble
    return GraphedEnsemble if device.startswith("cuda") else Ensemble
