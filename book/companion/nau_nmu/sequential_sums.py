"""Sums of handwritten digits: Figures 13 and 14 of *Neural Arithmetic Units*."""

from __future__ import annotations

from types import SimpleNamespace

from nalm.tasks.digit_images import SOURCES
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.parameters import at_least, one_of, some_of
from companion.nau_nmu.digit_runs import LENGTHS, MODELS, digit_runs
from companion.nau_nmu.digits import item

__all__ = ["EXPERIMENT"]


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    return {"nau-nmu/sequential-sums": digit_runs("sum", p.models, p.seeds, p.epochs, p.source, p.longest)}


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/sequential-sums.ipynb",
    rules={
        "models": some_of(MODELS["sum"]),
        "epochs": at_least(1),
        "longest": one_of(LENGTHS["sum"]),
        "source": one_of(SOURCES),
    },
    runs=_runs,
    items=(
        item(
            "Figure 13",
            "Sums of sequences of handwritten digits",
            headline="success rate of the NAU at length 1000",
            published="8 of 10",
        ),
        item(
            "Figure 14",
            "Sums of digit sequences, the NAU without its input regulariser",
            headline="success rate of the NAU at length 1000",
            published="4 of 10",
        ),
    ),
)
