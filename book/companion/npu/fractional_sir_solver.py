"""The fractional SIR model with one thing changed at a time: the settings of the text, an accurate solver,
and what an NPU has beside a RealNPU.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import FractionalSIRTask
from nalm.training import Run
from nalm.training.ode.ensemble import NODEEnsemble

from companion.experiment import Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, one_of, some_of
from companion.experiment.rows import Rows
from companion.npu.fractional_sir import MODELS, as_named, grid_of, named, once, weights_of
from companion.npu.settings import HIDDEN, PENALTIES, fsir_arm

FROZEN = (300, 1000)
"""Updates after which imaginary weights are frozen."""

POSITIVE = {f"{model}, positive": (model, {"positive": True}) for model in ("NPU", "RealNPU")}
"""Negative states are seen as zero."""

STEPS = (0.125, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Of Runge-Kutta; they divide the time of the data."""


def frozen(updates: int) -> str:
    """The name of NPUs whose imaginary weights are frozen after so many updates."""
    return f"NPU, frozen after {updates}"


def as_in_text(model: str) -> str:
    """The name of runs with the settings of the text."""
    return f"{model}, text"


def powers(p: SimpleNamespace) -> list[str]:
    """The power units among the models; there is at least one."""
    return [model for model in p.models if model != "Dense"] or ["RealNPU"]


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    return once(_asked(p))


def rows(p: SimpleNamespace) -> Rows:
    """A row for each run of the chapter, with ``count``."""
    return named(_asked(p), EXPERIMENT.rows(p))


def _asked(p: SimpleNamespace) -> list[Run]:
    """The runs of all parts of the chapter, each once; those of the authors' settings beside the others."""
    plain = as_named(p.models)
    text = {as_in_text(model): (model, {"arm": "text"}) for model in p.models}
    accurate = {model: (model, {"step": p.step}) for model in p.models}
    cold = {frozen(updates): ("NPU", {"imaginary_until": updates}) for updates in p.frozen}
    groups = (
        (plain, p.as_in_text, "euler"),
        (text, p.as_in_text, "euler"),
        (accurate, p.accurate, "rk4"),
        (plain, p.accurate, "euler"),
        (as_named(powers(p)) | cold | POSITIVE, p.detours, "euler"),
    )
    runs = [run for arms, sizes, solver in groups for run in grid_of(p, arms, sizes, solver)]
    return list({run.key: run for run in runs}.values())


def after_updates(model: str, updates: int) -> dict[str, np.ndarray]:
    """The weights of a small network after so many first-order updates; negative states are seen as zero."""
    arm = fsir_arm(model, 6, 0.1, positive=True, iterations=updates)
    (run,) = runs_of({model: arm.but(recipe=arm.recipe.but(finish=None))}, [FractionalSIRTask()], 1)
    return NODEEnsemble([run]).train().weights


def largest_imaginary(rows: pd.DataFrame) -> np.ndarray:
    """The largest imaginary weight of each row; 0 without any."""
    weights = map(weights_of, rows["weights"])
    return np.array([float(np.abs(one.get("field.0.weight_im", 0.0)).max()) for one in weights])


EXPERIMENT = Experiment(
    chapter="book/npu/fractional-sir-solver.ipynb",
    rules={name: some_of(HIDDEN) for name in ("as_in_text", "accurate", "detours")}
    | {
        "models": some_of(MODELS),
        "penalties": some_of(PENALTIES),
        "finish": at_least(1),
        "step": one_of(STEPS),
        "frozen": some_of(FROZEN),
    },
    runs=_runs,
    errata=(
        Erratum(
            "Section 4.1, optimiser",
            "description",
            "3000 steps with Adam, from the initial weights that section 3 recommends.",
            (
                "The code uses RMSProp, and a fifth of Glorot's initial weights for power units. "
                "Networks are integrated with Euler steps of 1, under which the true equations "
                "themselves fit worse than most networks."
            ),
            ("All runs with the settings of the code and of the text, and some with an accurate solver."),
            "With the settings of the text hardly a power unit fits.",
        ),
    ),
)
