"""Products of handwritten digits: Figures 4 and 15 of *Neural Arithmetic Units*."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from nalm.tasks.digit_images import SOURCES
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, one_of, some_of
from companion.nau_nmu.digit_runs import MODELS, digit_runs
from companion.nau_nmu.digits import item

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
    errata=(
        Erratum(
            "Figure 15, caption",
            "misprint",
            "The ability of each model to learn the arithmetic operation of addition.",
            "The figure is of products, as its section says.",
            "The section's task, and that of Figure 4.",
            "Nothing.",
        ),
        Erratum(
            "Section 4.2, digits",
            "description",
            "Sequences of MNIST digits.",
            (
                "The digit 0 is left out of the products; sequences are fixed groups of images, of "
                "which only the order is shuffled."
            ),
            "The task is built as the code has it, and its test sets are counted.",
            "Errors and rates are those of nine digits.",
        ),
        Erratum(
            "Section 4.2, success criterion",
            "evaluation",
            "The upper 1% confidence interval of a baseline with a correct unit.",
            (
                "Student's quantile is taken at 8 degrees of freedom for any number of baseline "
                "runs. On products there are seven, of ten: three that failed were left out by "
                "hand."
            ),
            "The authors' rule, written out.",
            "The thresholds of Figures 4 and 15 are a little too low.",
        ),
        Erratum(
            "Section 4.2, first state",
            "evaluation",
            "All models learn the same cumulative product.",
            (
                "The first state is 1 for the NMU and the NACs, but 0 for NALU and LSTM. From 0, "
                "exact weights of a NALU multiply by $10^{-7}$. The LSTM has one hidden number, "
                "which lies in $(-1, 1)$, and is read without an output layer."
            ),
            "The output of exact weights from both states.",
            "Figures 4 and 15 compare NALU and LSTM at a disadvantage that is not theirs.",
        ),
        Erratum(
            "Section 4.2, $R_z$ of NAC•,NMU",
            "description",
            "The penalty of the NMU is applied to NAC•,NMU as well.",
            (
                "It is applied to logarithms and draws their mean to 1, though the number that "
                "changes no product has the logarithm 0."
            ),
            "The penalty along all readers that are right with a wrong weight, for both units.",
            ("The penalty of NAC•,NMU is weak, so Figure 4 compares two penalties as well as two units."),
        ),
    ),
)
