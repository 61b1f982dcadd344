"""Settings of the sequences of handwritten digits in *Neural Arithmetic Units* (Madsen & Johansen, 2020),
as its code has them.

Section 4.2 and appendix D of the paper. The text gives neither the weights of the penalties, nor batch,
learning rate, epochs, initial states or the size of the LSTM.
"""

from __future__ import annotations

from collections.abc import Sequence

from nalm.models import DigitSequence, Layer
from nalm.tasks import DigitSequenceTask
from nalm.training import ActivationPenalty, Adam, Discretisation, Recipe, Run
from nalm.units.checks import choose

from companion.experiment import Arm

__all__ = ["EPOCHS", "HORIZON", "ITERATIONS", "LENGTHS", "MODELS", "digit_arms", "digit_runs", "digit_task"]

LENGTHS = {"product": tuple(range(1, 21)), "sum": (1, 10, *range(100, 1001, 100))}
"""Operation -> how many digits test sequences have."""

TRAINED_ON = {"product": 2, "sum": 10}
"""Operation -> how many digits training and validation sequences have."""

EPOCHS = 1001
"""Passes over the training sequences."""

ITERATIONS = {"product": 388_388, "sum": 86_086}
"""Operation -> the updates of so many epochs of MNIST."""

HORIZON = 110
"""Epochs that are trained first, and from which on the figures are judged: the NMU's drawn means of *solved
at* lie at 26 to 110 of them. A run of 1,001 epochs goes on from there (:mod:`nalm.records.lengths`).
"""

MODELS = {
    "product": (
        "NMU",
        "NMU, no R_z",
        "NAC•,NMU",
        "NAC•,NMU, no R_z",
        "NAC•,σ",
        "NAC•",
        "NALU",
        "LSTM",
        "exact product",
    ),
    "sum": ("NAU", "NAU, no R_z", "NAC+,Rz", "NAC+", "NALU", "LSTM", "exact sum"),
}
"""Operation -> the models of Figures 4 and 15 (products) and 13 and 14 (sums), and the reference runs that
their threshold comes from.
"""

_R_Z = ActivationPenalty(weight=1.0)
_SPARSE = Discretisation(
    weight=10.0, start=10_000, end=100_000
)  # after the last update on sums, whose penalty ends at 8.5


def digit_task(operation: str, source: str = "mnist", longest: int | None = None) -> DigitSequenceTask:
    """The task of an operation, tested on sequences of up to ``longest`` digits; ``None``: of all
    :data:`LENGTHS`.

    Raises:
        ValueError: an operation other than ``"product"`` and ``"sum"``.

    >>> digit_task("sum", longest=100).test_lengths
    (1, 10, 100)
    """
    choose("operation", operation, list(LENGTHS))
    lengths = tuple(length for length in LENGTHS[operation] if longest is None or length <= longest)
    return DigitSequenceTask(
        operation=operation, length=TRAINED_ON[operation], test_lengths=lengths, source=source
    )


def digit_arms(operation: str, iterations: int, log_interval: int) -> dict[str, Arm]:
    """The models of an operation by name, as in :data:`MODELS`.

    A NALU and the LSTM start from 0 on products as well, from where exact weights would multiply by 0. R_z
    of the NAC•,NMU is taken of logarithms.

    Args:
        operation: ``"product"`` or ``"sum"``.
        iterations: updates; the schedule of the sparsity penalty stays.
        log_interval: updates between evaluations.

    >>> digit_arms("product", 100, 10)["NALU"].model.initial_state
    0.0
    >>> digit_arms("sum", 100, 10)["NAC+,Rz"].recipe.penalties
    (ActivationPenalty(kind='ActivationPenalty', weight=1.0),)
    """
    plain = Recipe(iterations=iterations, optimiser=Adam(lr=1e-3), batch_size=64, log_interval=log_interval)

    def arm(cell: Layer | str | None, start: float, *penalties: ActivationPenalty | Discretisation) -> Arm:
        return Arm(model=DigitSequence(cell=cell, initial_state=start), recipe=plain.but(penalties=penalties))

    def exp_log(weight: str) -> Layer:
        return Layer(unit="NACMul", options={"weight": weight})

    both = {"NALU": arm(Layer(unit="NALU"), 0.0), "LSTM": arm("LSTM", 0.0)}
    if operation == "sum":
        return {
            "NAU": arm(Layer(unit="NAU"), 0.0, _SPARSE, _R_Z),
            "NAU, no R_z": arm(Layer(unit="NAU"), 0.0, _SPARSE),
            "NAC+,Rz": arm(Layer(unit="NAC"), 0.0, _R_Z),
            "NAC+": arm(Layer(unit="NAC"), 0.0),
            **both,
            "exact sum": arm(None, 0.0),
        }
    return {
        "NMU": arm(Layer(unit="NMU"), 1.0, _SPARSE, _R_Z),
        "NMU, no R_z": arm(Layer(unit="NMU"), 1.0, _SPARSE),
        "NAC•,NMU": arm(exp_log("linear"), 1.0, _SPARSE, _R_Z),
        "NAC•,NMU, no R_z": arm(exp_log("linear"), 1.0, _SPARSE),
        "NAC•,σ": arm(exp_log("sigmoid"), 1.0),
        "NAC•": arm(Layer(unit="NACMul"), 1.0),
        **both,
        "exact product": arm(None, 1.0),
    }


def digit_runs(
    operation: str,
    models: Sequence[str],
    seeds: int,
    epochs: int = EPOCHS,
    source: str = "mnist",
    longest: int | None = None,
) -> list[Run]:
    """One run for each model and seed, evaluated every five epochs and at the end; labelled ``model``.

    The runs have no threshold: that comes from the reference runs, the exact product or sum
    (:mod:`companion.nau_nmu.digits`).

    Args:
        operation: ``"product"`` or ``"sum"``.
        models: names in :data:`MODELS`.
        seeds: seeds 0 to ``seeds`` - 1.
        epochs: passes over the training sequences.
        source: ``"mnist"`` or ``"sklearn"``.
        longest: as of :func:`digit_task`.

    >>> run, = digit_runs("product", ["NMU"], seeds=1, epochs=10, source="sklearn")
    >>> run.recipe.iterations, run.recipe.log_interval, run.labels
    (100, 50, {'model': 'NMU'})
    """
    task = digit_task(operation, source, longest)
    per_epoch = task.steps_per_epoch(batch_size=64)
    arms = digit_arms(operation, iterations=epochs * per_epoch, log_interval=5 * per_epoch)
    return [
        Run(task=task, model=arms[model].model, recipe=arms[model].recipe, seed=seed, labels={"model": model})
        for model in models
        for seed in range(seeds)
    ]
