"""Decided at the start: what the initial weights say of a run of the NMU. It is not in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
from nalm.models import Stack
from nalm.training import Run

from companion.experiment import Experiment
from companion.experiment.parameters import above, at_least, one_of
from companion.experiment.rows import Rows
from companion.figures import Figure, functions
from companion.nau_nmu import settings as nau_nmu
from companion.replay import replayed

PACE = "nau-nmu/pace"
BROAD, QUICK = "U[10,20)", "U[0.1,0.2)"


def wider_runs(
    scales: Sequence[float], seeds: int, iterations: int = 5_000_000, stream: str = "own"
) -> list[Run]:
    """The NMU on products with initial weights of its first layer times a scale; labelled ``scale`` as
    well.

    A seed draws the same weights for all scales.

    Args:
        scales: factors on the initial weights of the NAU.
        seeds: seeds 0 to ``seeds`` - 1.
        iterations: updates.
        stream: ``"own"`` or ``"common"``.

    >>> [run.model.build(100)[0].init_scale for run in wider_runs([1.0, 2.0], seeds=1)]
    [1.0, 2.0]
    """
    usual = nau_nmu.subset_runs(["NMU"], ["mul"], seeds, iterations, stream)
    return [_wider(run, float(scale)) for scale in scales for run in usual]


def _wider(run: Run, scale: float) -> Run:
    first, second = run.model.layers
    if scale != 1:  # with 1, the run is that of Table 2
        first = first.but(options={"init_scale": scale})
    return run.but(model=Stack(layers=(first, second)), labels=run.labels | {"scale": f"{scale:g}"})


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Of other chapters; further seeds, own batches and a wider start; with the authors' initial weights."""
    short = min(p.iterations, 1_200_000)
    further = nau_nmu.range_runs(["NMU"], [QUICK], p.further, short, p.stream)[p.seeds :]
    own = nau_nmu.range_runs(["NMU"], [QUICK], p.seeds, short, "own")
    known = nau_nmu.range_runs(["NMU"], [QUICK], p.seeds, short)
    batches = "common" if p.stream == "common" else "numpy"
    return {
        "nau-nmu/arithmetic": nau_nmu.subset_runs(["NMU"], ["mul"], p.table_seeds, p.iterations, p.stream),
        "nau-nmu/penalty": nau_nmu.penalty_runs(["mul"], [0.0], p.seeds, p.iterations, p.stream),
        "nau-nmu/ranges": nau_nmu.range_runs(["NMU"], [BROAD, QUICK], p.seeds, p.iterations, p.stream),
        PACE: further + own + wider_runs([p.scale], p.seeds, p.iterations, p.stream),
        nau_nmu.REPLAY: [replayed(run, batches) for run in known],
    }


def parts(rows: Rows, p: SimpleNamespace) -> dict[str, Rows]:
    """The rows of the page, by the names that it has for them."""
    pace = rows.of(experiment=PACE, range=QUICK)
    return {
        "Table 2": rows.of(experiment="nau-nmu/arithmetic"),
        "no penalty": rows.of(experiment="nau-nmu/penalty"),
        f"on {BROAD}": rows.of(experiment="nau-nmu/ranges", range=BROAD),
        "known": rows.of(experiment="nau-nmu/ranges", range=QUICK),
        "predicted": pace.of(seed=range(p.seeds, p.further)),
        "own inputs": pace.of(seed=range(p.seeds), stream="own"),
        "wider": rows.of(experiment=PACE, range="U[1,2)"),
        "as the authors start": rows.of(experiment=nau_nmu.REPLAY),
    }


def parting(leans: Sequence[float]) -> Figure:
    """Two units that start at the mean of both sums, and part as Eq. {eq}`parting-error` drives them along
    ``e``.

    With :math:`\\delta = s e` the error is :math:`\\mathrm{Var}(\\Delta^2) (1 - s^2)^2 / 16`, so gradient
    descent has :math:`\\tau s' = s (1 - s^2)`; the lean is :math:`26 s`, for as many inputs belong to one sum
    alone.
    """
    times = np.linspace(0, 8, 400)
    panels = {}
    for lean in leans:
        s = 1 / np.sqrt(1 + ((26 / lean) ** 2 - 1) * np.exp(-2 * times))
        panels[f"lean {lean:g}"] = {"first unit": (times, s), "second unit": (times, -s)}
    limits = {"yticks": [-1, 0, 1], "yticklabels": ["sum $b$", "mean $m$", "sum $a$"]}
    return functions(panels, xlabel="time, in units of τ", ylabel="", **limits)


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/start.ipynb",
    rules={
        "stream": one_of(["common", "own"]),
        "table_seeds": at_least(1),
        "further": at_least(1),
        "scale": above(0),
    },
    runs=_runs,
)
