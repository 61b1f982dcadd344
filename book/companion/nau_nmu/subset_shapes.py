"""Multiplication over input size, overlap and subset ratio: Figure 8 of *Neural Arithmetic Units*.

All its runs are replays: they start from the authors' initial weights.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import SubsetArithmeticTask
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Comparison, Item
from companion.experiment.tables import text
from companion.nau_nmu.drawn import measured
from companion.nau_nmu.settings import MULTIPLIERS, REPLAY, THRESHOLDS, subset_runs, usual
from companion.nau_nmu.subset_arithmetic import lines
from companion.recorded import read
from companion.replay import all_replayed

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


OF_PANEL: dict[str, tuple[Shape, ...]] = {
    "inputs": tuple(
        Shape(threshold, inputs=inputs)
        for inputs, threshold in {
            4: 7.11e-8, 10: 1.51e-5, 25: 6.14e-4, 50: 0.01003, 75: 0.0509, 100: THRESHOLDS["mul"], 125: 0.391,
            150: 0.811, 175: 1.50, 200: 2.56, 225: 4.10, 250: 6.26, 275: 9.17, 300: 12.97,
        }.items()
    ),
    "overlap": tuple(
        Shape(threshold, overlap=overlap)
        for overlap, threshold in {
            0: 0.161, 0.1: 0.160, 0.25: 0.160, 0.5: THRESHOLDS["mul"], 0.75: 0.160, 1: 0.159,
        }.items()
    ),
    "subset": tuple(
        Shape(threshold, subset=subset)
        for subset, threshold in {0.05: 0.0289, 0.1: 0.0759, 0.25: THRESHOLDS["mul"], 0.5: 0.00223}.items()
    ),
}  # fmt: skip
"""What a panel varies -> its points; each panel has the default task."""

SHAPES = tuple(shape for shapes in OF_PANEL.values() for shape in shapes)
"""The points of all three panels."""


def shape_runs(
    models: Sequence[str],
    shapes: Sequence[Shape],
    seeds: int,
    iterations: int = 15_000_000,
    stream: str = "own",
) -> list[Run]:
    """One run for each shape, model and seed, on products, each once; labelled ``inputs``, ``overlap`` and
    ``subset`` as well.

    Args:
        models: some of :data:`MODELS`.
        shapes: some of :data:`SHAPES`.
        seeds: seeds 0 to ``seeds`` - 1.
        iterations: updates at most; less where the shape has less.
        stream: ``"own"`` or ``"common"``.

    >>> (run,) = shape_runs(["NMU"], [SHAPES[-1]], seeds=1)
    >>> run.task.sizes(), run.threshold, run.recipe.iterations
    ((50, 25), 0.00223, 5000000)
    """
    found = []
    for shape in dict.fromkeys(shapes):
        task = SubsetArithmeticTask(
            operation="mul",
            inputs=shape.inputs,
            overlap_ratio=float(shape.overlap),
            subset_ratio=shape.subset,
        )
        labels = {"inputs": shape.inputs, "overlap": shape.overlap, "subset": shape.subset}
        labels = {name: f"{value:g}" for name, value in labels.items()}
        runs = subset_runs(models, ["mul"], seeds, min(iterations, shape.iterations), stream)
        found += [run.but(task=task, threshold=shape.threshold, labels=run.labels | labels) for run in runs]
    return found


PANELS = {"inputs": "input size", "overlap": "overlap ratio", "subset": "subset ratio"}
"""What a panel of Figure 8 varies -> its axis."""

DEFAULT = {"inputs": "100", "overlap": "0.5", "subset": "0.25"}

LAST_TICK = 0.010
"""Of the sparsity error over overlap ratios, as far as the ticks can be read."""


def shaped(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the columns of :data:`PANELS` as text; those without them are of the default task."""
    named = rows.reindex(columns=list(DEFAULT)).astype(float)
    return rows.assign(
        **{one: named[one].fillna(float(value)).map("{:g}".format) for one, value in DEFAULT.items()}
    )


def panel(rows: Rows, x: str) -> Rows:
    """The rows of one panel of Figure 8 in the order of its axis and its models: all but ``x`` is as in the
    default task.
    """
    part = rows.of(**{one: value for one, value in DEFAULT.items() if one != x}).frame
    order = np.lexsort([part["model"].map(MODELS.index), part[x].astype(float)])
    return Rows(part.iloc[order], rows.results)


def solved_over(rows: Rows, x: str, but: Collection[str] = ()) -> dict[str, str]:
    """When the NMUs of a panel are solved, as numbers for a page: how many of all, ``x-solved``; the mean of
    *solved at* at the first and at the last place, ``x-first-at`` and ``x-last-at``, and the places,
    ``x-first`` and ``x-last``; and whether each mean is later than the one before, ``x-order``.

    Args:
        rows: with the columns of :data:`PANELS`.
        x: what the panel varies.
        but: its places that are left out.
    """
    part = panel(rows, x).of(model="NMU").frame
    part = Rows(part[~part[x].isin(list(but))])
    means = part.solved.frame.groupby(x, sort=False)["solved_at"].mean()
    numbers = {f"{x}-solved": part.count(), f"{x}-order": NOT_RUN}
    for end, place in {"first": 0, "last": -1}.items():
        numbers[f"{x}-{end}"] = means.index[place] if len(means) else NOT_RUN
        numbers[f"{x}-{end}-at"] = f"{means.iloc[place]:,.0f}" if len(means) else NOT_RUN
    if len(means):
        numbers[f"{x}-order"] = "each" if means.is_monotonic_increasing else "not each"
    return numbers


def figure_8(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """What can be compared of the figure, which is drawn only: its default task, whose numbers Table 6 has,
    and a tick of an axis, which the sparsity errors of the default task are far from.

    No tick says where an axis ends, since some are lost in the text of the paper: above 2,000,000 iterations
    none is left over overlap ratios, and the authors' own runs of NAC• with the default task have a mean of
    3,200,000.

    Args:
        rows: with the columns of :data:`PANELS`.
    """
    every = Rows(rows)
    for one in lines(every.of(**DEFAULT).frame, {"mul": MODELS}):
        yield replace(one, what=one.what.replace("on a × b", "with the default task"))
    over = panel(every, "overlap").frame
    if over["overlap"].nunique() == len(OF_PANEL["overlap"]):
        parts = [part for _, part in over.groupby(["overlap", "model"]) if part["success"].any()]
        errors = [measured(part, ["sparsity_error"])["sparsity_error"] for part in parts]
        ends = [np.fmax(one.estimate, one.high) for one in errors]  # of one run no interval is known
        most = errors[int(np.argmax(ends))] if errors else None
        reached = bool(errors) and 1.05 * max(ends) >= LAST_TICK  # an axis is a twentieth longer
        what = f"over overlap ratios, sparsity errors or their intervals reach {LAST_TICK}"
        yield Claim(what, reached, text(most) if most else "none solved")


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    asked = {"inputs": p.inputs, "overlap": p.overlaps, "subset": p.subsets}
    shapes = [shape for x, of in OF_PANEL.items() for shape in of if getattr(shape, x) in asked[x]]
    return {REPLAY: all_replayed(shape_runs(p.models, shapes, p.seeds, p.iterations), "common")}


def _of_figure_8(rows: pd.DataFrame) -> pd.DataFrame:
    """At full length, which is not that of the default task for all of them."""
    rows = shaped(usual(rows, but=list(PANELS)))
    rows = rows[(rows["operation"] == "mul") & rows["model"].isin(MODELS) & (rows["seed"] < 50)]
    whole = {tuple(f"{getattr(one, x):g}" for x in PANELS): one.iterations for one in SHAPES}
    asked = [whole.get(shape) for shape in rows[list(PANELS)].itertuples(index=False, name=None)]
    return rows[rows["iterations"] == asked]


def recorded_at(run: Run) -> pd.DataFrame:
    """The published rows of all models at the point of Figure 8 that a run of :func:`shape_runs` is at."""
    rows = _of_figure_8(read(REPLAY))
    return rows[(rows[list(PANELS)] == [run.labels[x] for x in PANELS]).all(axis=1)]


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/subset-shapes.ipynb",
    rules={
        "models": some_of(MODELS),
        "inputs": some_of(shape.inputs for shape in OF_PANEL["inputs"]),
        "overlaps": some_of(shape.overlap for shape in OF_PANEL["overlap"]),
        "subsets": some_of(shape.subset for shape in OF_PANEL["subset"]),
    },
    runs=_runs,
    items=(
        Item(
            "nau-nmu",
            "Figure 8",
            "Multiplication over input size, overlap and subset ratio",
            "experiment",
            figure_8,
            headline="success rate of the NMU with the default task",
            published="drawn only; 98% in Table 2",
            seeds=50,
            from_seeds=10,
            runs=6600,
            updates=50 * len(MODELS) * sum(shape.iterations for shape in dict.fromkeys(SHAPES)),
            experiment=(REPLAY,),
            rows=_of_figure_8,
            by=(*PANELS, "model"),
            compared="the default task, and a tick of an axis",
        ),
    ),
    errata=(
        Erratum(
            "Appendix C.2, Figure 8",
            "description",
            r"All models are trained over $5 \cdot 10^6$ iterations.",
            "With 125 to 200 inputs it is twice as many, with 225 and more three times as many.",
            "The runs of Figure 8 are as long as the authors'.",
            "Units on large inputs have more time to learn than those on small ones.",
        ),
    ),
)
