"""Multiplication over input size, overlap and subset ratio: Figure 8. Of it only the default task is trained
yet, which each of its panels has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.statements import Item
from companion.nau_nmu.settings import MULTIPLIERS, THRESHOLDS, subset_runs

MODELS = (*MULTIPLIERS, "Gated NAU/NMU")
"""The lines of each panel."""


@dataclass(frozen=True)
class Shape:
    """A point of Figure 8: a task, as :class:`nalm.tasks.SubsetArithmeticTask` has it, and its threshold.

    Args:
        threshold: the authors' simulation repeated, in which subsets are one input too long. That is what
            decided the published success rates; the task's own subsets give 0.15 to 2.1 times as much, and
            nearly the same with 50 inputs or more of which a quarter is used.
    """

    threshold: float
    inputs: int = 100
    overlap: float = 0.5
    subset: float = 0.25

    @property
    def iterations(self) -> int:
        """Five million updates, twice as many from 125 inputs on and three times as many from 225 on."""
        return 5_000_000 * (1 + (self.inputs >= 125) + (self.inputs >= 225))


SHAPES = (
    *(
        Shape(threshold, inputs=inputs)
        for inputs, threshold in {
            4: 7.11e-8, 10: 1.51e-5, 25: 6.14e-4, 50: 0.01003, 75: 0.0509, 100: THRESHOLDS["mul"], 125: 0.391,
            150: 0.811, 175: 1.50, 200: 2.56, 225: 4.10, 250: 6.26, 275: 9.17, 300: 12.97,
        }.items()
    ),
    *(
        Shape(threshold, overlap=overlap)
        for overlap, threshold in {
            0: 0.161, 0.1: 0.160, 0.25: 0.160, 0.5: THRESHOLDS["mul"], 0.75: 0.160, 1: 0.159,
        }.items()
    ),
    *(
        Shape(threshold, subset=subset)
        for subset, threshold in {0.05: 0.0289, 0.1: 0.0759, 0.25: THRESHOLDS["mul"], 0.5: 0.00223}.items()
    ),
)  # fmt: skip
"""The points of the three panels; each panel has the default task."""


def shape_runs(
    models: Sequence[str], shapes: Sequence[Shape], seeds: int, iterations: int = 0, stream: str = "own"
) -> list[Run]:
    """One run for each shape, model and seed, on products, each once; labelled ``inputs``, ``overlap`` and
    ``subset`` as well.

    Args:
        models: some of :data:`MODELS`.
        shapes: some of :data:`SHAPES`.
        seeds: seeds 0 to ``seeds`` - 1.
        iterations: updates, or 0 for those of the shape.
        stream: ``"own"`` or ``"common"``.

    >>> (run,) = shape_runs(["NMU"], [SHAPES[-1]], seeds=1)
    >>> run.task.sizes(), run.threshold, run.recipe.iterations
    ((50, 25), 0.00223, 5000000)
    """
    return [
        _shaped(run, shape)
        for shape in dict.fromkeys(shapes)
        for run in subset_runs(models, ["mul"], seeds, iterations or shape.iterations, stream)
    ]


def _shaped(run: Run, shape: Shape) -> Run:
    labels = {"inputs": shape.inputs, "overlap": shape.overlap, "subset": shape.subset}
    return run.but(
        task=run.task.but(inputs=shape.inputs, overlap_ratio=float(shape.overlap), subset_ratio=shape.subset),
        threshold=shape.threshold,
        labels=run.labels | {name: f"{value:g}" for name, value in labels.items()},
    )


def _default(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the default task."""
    return rows[(rows["operation"] == "mul") & rows["model"].isin(MODELS) & (rows["seed"] < 50)]


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
            experiment=("nau-nmu/arithmetic",),
            rows=_default,
        ),
    ),
)
