"""Training: recipes, random streams, optimisers, and the ensemble that trains many runs at once."""

from nalm.extras import train as _  # noqa: F401
from nalm.training.checkpoint import Checkpoint
from nalm.training.ensemble import Ensemble, check_device
from nalm.training.graphed import GraphedEnsemble
from nalm.training.log import Log
from nalm.training.optimisers import LBFGS, SGD, Adam, HagerZhangLBFGS, RMSProp
from nalm.training.penalties import L1, ActivationPenalty, Discretisation, Norms
from nalm.training.recipe import Recipe
from nalm.training.run import Run
from nalm.training.worth import worth_compiling

__all__ = [
    "L1",
    "LBFGS",
    "SGD",
    "ActivationPenalty",
    "Adam",
    "Checkpoint",
    "Discretisation",
    "Ensemble",
    "GraphedEnsemble",
    "HagerZhangLBFGS",
    "Log",
    "Norms",
    "RMSProp",
    "Recipe",
    "Run",
    "check_device",
    "worth_compiling",
]
