"""Multiplication over input size, overlap and subset ratio: Figure 8. Nothing of it is trained yet."""

from companion.experiment import Experiment
from companion.statements import Item

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    chapter="",  # it has none yet
    runs=lambda p: {},
    items=(
        Item(
            "nau-nmu",
            "Figure 8",
            "Multiplication over input size, overlap and subset ratio",
            "experiment",
            headline="success rates",
            published="drawn only",
            seeds=50,
            iterations=5_000_000,
            runs=7200,
        ),
    ),
)
