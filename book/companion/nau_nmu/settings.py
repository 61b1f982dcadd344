"""Settings of *Neural Arithmetic Units* (Madsen & Johansen, 2020), as its code has them.

Table 4 of the paper (models) and appendix C. Where text and code differ, these are the code's, which made
the published numbers: NAC•,NMU has a NAU as its first layer, the second layer of ReLU and ReLU6 has no
activation, and the settings of the NMU hold for every operation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd
from nalm.models import GatedStack, Layer, Stack
from nalm.tasks import Range, SubsetArithmeticTask, Uniform, UniformUnion
from nalm.training import Adam, Discretisation, Recipe, Run

from companion.experiment import Arm

THRESHOLDS = {
    "add": 1.47861742e-5,
    "sub": 1.38437045e-8,
    "mul": 0.160010659,
    "div": 4.93805490e-12,
    "root": 8.95525993e-9,
    "squared": 0.159473806,
}
"""Test errors below which a run is solved, for the default task: those the authors recorded.

Their simulation has subsets that are one input too long; :func:`companion.thresholds.nearly_perfect_mse`
takes the task's own, which makes a difference of some percent, and none for products.
"""

SIGNS = {"add": "a + b", "sub": "a − b", "mul": "a × b", "div": "a / b", "root": "√a", "squared": "a²"}
"""Operation -> how it is written."""

PENALTY_FACTORS = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
"""The factors λ̂ of the sparsity penalty in Figures 10 to 12."""

PENALTY_SWEEPS = {"add": "NAU", "sub": "NAU", "mul": "NMU"}
"""Operation -> the model whose λ̂ is varied on it: Figures 10, 11 and 12."""

MULTIPLIERS = ("NMU", "NAC•,σ", "NAC•,NMU", "NAC•", "NALU")
"""The models of Figure 3."""

REPLAY = "nau-nmu/replay"
"""The results file of the replays of this paper's runs."""

VARIED = ("factor", "hidden", "inputs", "overlap", "subset")
"""Labels of the runs of Figures 7, 8 and 10 to 12, which differ in this from those of Tables 2 and 6."""


def _uniform(low: float, high: float) -> Uniform:
    return Uniform(low=low, high=high)


RANGES: dict[str, tuple[Uniform, Range, float]] = {
    str(interpolation): (interpolation, extrapolation, threshold)
    for interpolation, extrapolation, threshold in [
        (_uniform(-2, -1), _uniform(-6, -2), 0.161),
        (_uniform(-2, 2), UniformUnion(first=_uniform(-6, -2), second=_uniform(2, 6)), 2.19e-4),
        (_uniform(0, 1), _uniform(1, 5), 0.0509),
        (_uniform(0.1, 0.2), _uniform(0.2, 2), 9.23e-4),
        (_uniform(1, 2), _uniform(2, 6), THRESHOLDS["mul"]),
        (_uniform(1.1, 1.2), _uniform(1.2, 6), 0.106),
        (_uniform(10, 20), _uniform(20, 40), 507.0),
    ]
}
"""Interpolation and extrapolation ranges of Figure 3 (appendix C.4) and the threshold on products, by the
name of the former.

But for the default range, nobody has the authors' thresholds; these are
:func:`companion.thresholds.nearly_perfect_mse`'s.
"""


def _recipes(iterations: int, stream: str) -> tuple[Recipe, Recipe, Recipe]:
    """Without a penalty, with that of the NAU, and with that of the NMU."""
    plain = Recipe(iterations=iterations, optimiser=Adam(lr=1e-3), stream=stream)
    early = plain.but(penalties=(Discretisation(weight=0.01, start=5_000, end=50_000),))
    late = plain.but(penalties=(Discretisation(weight=10.0, start=1_000_000, end=2_000_000),))
    return plain, early, late


def arms(hidden: int = 2, iterations: int = 5_000_000, stream: str = "own") -> dict[str, Arm]:
    """The models of Table 6, each of two layers, with their sparsity regularisers.

    Args:
        hidden: outputs of the first layer.
        iterations: updates; the schedules of the regularisers stay.
        stream: ``"own"`` or ``"common"``, see :class:`nalm.training.Recipe`.

    >>> list(arms())
    ['NAC•,NMU', 'NAC•,σ', 'NAC•', 'NAC+', 'Gated NAU/NMU', 'NALU', 'Linear', 'NAU', 'NMU', 'ReLU', 'ReLU6']
    >>> arms()["NAU"].recipe.penalties[0].weight
    0.01
    """
    plain, early, late = _recipes(iterations, stream)

    def exp_log(first: str, weight: str) -> Stack:
        return Stack(
            layers=(Layer(unit=first, out_features=hidden), Layer(unit="NACMul", options={"weight": weight}))
        )

    return {
        "NAC•,NMU": Arm(model=exp_log("NAU", "linear"), recipe=late),
        "NAC•,σ": Arm(model=exp_log("NAC", "sigmoid"), recipe=plain),
        "NAC•": Arm(model=Stack.of("NAC", hidden, "NACMul", 1), recipe=plain),
        "NAC+": Arm(model=Stack.of("NAC", hidden, "NAC", 1), recipe=plain),
        "Gated NAU/NMU": Arm(model=Stack.of("GatedNAUNMU", hidden, "GatedNAUNMU", 1), recipe=late),
        "NALU": Arm(model=Stack.of("NALU", hidden, "NALU", 1), recipe=plain),
        "Linear": Arm(model=Stack.of("Linear", hidden, "Linear", 1), recipe=plain),
        "NAU": Arm(model=Stack.of("NAU", hidden, "NAU", 1), recipe=early),
        "NMU": Arm(model=Stack.of("NAU", hidden, "NMU", 1), recipe=late),
        "ReLU": Arm(model=Stack.of("ReLU", hidden, "Linear", 1), recipe=plain),
        "ReLU6": Arm(model=Stack.of("ReLU6", hidden, "Linear", 1), recipe=plain),
    }


def gate_arms(iterations: int = 5_000_000, stream: str = "own") -> dict[str, Arm]:
    """The models of Table 5 and Figure 9: a gated unit, whose gate is recorded, after two sums. (In Table
    6 both layers are gated.)

    >>> [layer.unit for layer in gate_arms()["Gated NAU/NMU"].model.layers]
    ['NAU', 'GatedNAUNMU']
    """
    plain, _, late = _recipes(iterations, stream)
    separate = Layer(unit="NALU", options={"shared": False})
    return {
        "Gated NAU/NMU": Arm(model=GatedStack.of("NAU", 2, "GatedNAUNMU", 1), recipe=late),
        "NALU (separate)": Arm(
            model=GatedStack(layers=(Layer(unit="NAC", out_features=2), separate)), recipe=plain
        ),
        "NALU (shared)": Arm(model=GatedStack.of("NAC", 2, "NALU", 1), recipe=plain),
    }


def subset_runs(
    models: Sequence[str],
    operations: Sequence[str],
    seeds: int,
    iterations: int = 5_000_000,
    stream: str = "own",
) -> list[Run]:
    """One run for each operation, model and seed, on the default task (Table 3); labelled ``model`` and
    ``operation``.

    Args:
        models: names in :func:`arms`.
        operations: names in :data:`THRESHOLDS`.
        seeds: seeds 0 to ``seeds`` - 1.
        iterations: updates.
        stream: ``"own"`` or ``"common"``.

    >>> [(run.labels, run.task.inputs, run.threshold) for run in subset_runs(["NAU"], ["add"], seeds=1)]
    [({'model': 'NAU', 'operation': 'add'}, 100, 1.47861742e-05)]
    """
    return _runs(arms(iterations=iterations, stream=stream), models, operations, seeds)


def gate_runs(
    models: Sequence[str],
    operations: Sequence[str],
    seeds: int,
    iterations: int = 5_000_000,
    stream: str = "own",
) -> list[Run]:
    """As :func:`subset_runs`, of models named in :func:`gate_arms`.

    >>> runs = gate_runs(["NALU (separate)"], ["mul"], seeds=1)
    >>> [(run.labels, run.model.layers[1].options) for run in runs]
    [({'model': 'NALU (separate)', 'operation': 'mul'}, {'shared': False})]
    """
    return _runs(gate_arms(iterations, stream), models, operations, seeds)


def _runs(arms: dict[str, Arm], models: Sequence[str], operations: Sequence[str], seeds: int) -> list[Run]:
    return [
        Run(
            task=task,
            model=arms[model].model,
            recipe=arms[model].recipe,
            seed=seed,
            threshold=THRESHOLDS[operation],
            labels={"model": model, "operation": operation},
        )
        for operation in operations
        for task in [SubsetArithmeticTask(operation=operation)]
        for model in models
        for seed in range(seeds)
    ]


def penalty_runs(
    operations: Sequence[str],
    factors: Sequence[float],
    seeds: int,
    iterations: int = 5_000_000,
    stream: str = "own",
) -> list[Run]:
    """One run for each operation, factor of the sparsity penalty and seed, of the model in
    :data:`PENALTY_SWEEPS`, else as :func:`subset_runs`.

    When the penalty sets in and is in full force stays as Table 4 has it. Labelled ``factor`` as well.

    Args:
        operations: names in :data:`PENALTY_SWEEPS`.
        factors: λ̂, zero or more.
        seeds, iterations, stream: as there.

    >>> [(run.recipe.penalties[0].weight, run.labels) for run in penalty_runs(["mul"], [0.1], seeds=1)]
    [(0.1, {'model': 'NMU', 'operation': 'mul', 'factor': '0.1'})]
    """
    usual = [
        run
        for operation in operations
        for run in subset_runs([PENALTY_SWEEPS[operation]], [operation], seeds, iterations, stream)
    ]
    return [_with_factor(run, float(factor)) for factor in factors for run in usual]


def range_runs(
    models: Sequence[str], ranges: Sequence[str], seeds: int, iterations: int = 5_000_000, stream: str = "own"
) -> list[Run]:
    """One run for each range, model and seed, on products, else as :func:`subset_runs`; labelled ``range``
    as well.

    Args:
        ranges: names in :data:`RANGES`.
        models, seeds, iterations, stream: as there.

    >>> runs = range_runs(["NMU"], ["U[0,1)"], seeds=1)
    >>> [(str(run.task.extrapolation), run.threshold, run.labels["range"]) for run in runs]
    [('U[1,5)', 0.0509, 'U[0,1)')]
    """
    usual = subset_runs(models, ["mul"], seeds, iterations, stream)
    found = []
    for name in ranges:
        interpolation, extrapolation, threshold = RANGES[name]
        task = SubsetArithmeticTask(operation="mul", interpolation=interpolation, extrapolation=extrapolation)
        found += [
            run.but(task=task, threshold=threshold, labels=run.labels | {"range": name}) for run in usual
        ]
    return found


def _with_factor(run: Run, factor: float) -> Run:
    (penalty,) = run.recipe.penalties
    return run.but(
        recipe=run.recipe.but(penalties=(penalty.but(weight=factor),)),
        labels=run.labels | {"factor": f"{factor:g}"},
    )


def usual(rows: pd.DataFrame, but: Collection[str] = ()) -> pd.DataFrame:
    """The rows of Tables 1, 2 and 6: on :math:`\\mathrm U[1, 2)`, and with none of the labels :data:`VARIED`.

    Args:
        rows: of this paper.
        but: labels that they may have, or ``"range"``: any range.

    >>> ranges, factors = [None, "U[0,1)", "U[1,2)"], [None, None, "0.1"]
    >>> rows = pd.DataFrame({"seed": [0, 1, 2], "range": ranges, "factor": factors})
    >>> usual(rows)["seed"].tolist(), usual(rows, but=["factor"])["seed"].tolist()
    ([0], [0, 2])
    """
    labels = rows.reindex(columns=["range", *VARIED])
    labels["range"] = labels["range"].where(labels["range"] != "U[1,2)")
    return rows[labels.drop(columns=list(but)).isna().all(axis=1)]
