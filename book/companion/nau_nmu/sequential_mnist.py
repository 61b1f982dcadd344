"""Products of handwritten digits: Figures 4 and 15 of *Neural Arithmetic Units*."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nalm.tasks.digit_images import SOURCES
from nalm.training import Run

from companion.experiment import Experiment
from companion.nau_nmu.digit_runs import MODELS, digit_runs
from companion.nau_nmu.digits import item
from companion.parameters import at_least, one_of, some_of

__all__ = ["EXPERIMENT"]


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    asked = digit_runs("product", p.models, p.seeds, p.epochs, p.source, p.longest)
    return {"nau-nmu/sequential-mnist": asked}


def _at_most_twenty(parameter: str, value: Any) -> Any:
    if value > 20:
        raise ValueError(
            f"Parameter {parameter!r} is {value}, but must be at most 20: longer products overflow."
        )
    return at_least(1)(parameter, value)


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/sequential-mnist.ipynb",
    rules={
        "models": some_of(MODELS["product"]),
        "epochs": at_least(1),
        "longest": _at_most_twenty,
        "source": one_of(SOURCES),
    },
    runs=_runs,
    items=(
        item(
            "Figure 4",
            "Products of sequences of handwritten digits",
            headline="success rate of the NMU at length 20",
            published="8 of 10",
        ),
        item(
            "Figure 15",
            "Products of digit sequences without the input regulariser",
            headline="success rate of the NMU at length 20",
            published="8 of 10",
        ),
    ),
)
