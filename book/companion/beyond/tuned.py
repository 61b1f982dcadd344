"""All units tuned alike: the same number of run-iterations is spent on the recipe of each.

Successive halving with 2 inputs: many settings are trained for short, and the best ones for longer. A setting
is a learning rate, an optimiser, a penalty and an initial distribution. It is judged by its validation error
on all ranges, never by the test. The one that is left is trained anew with other seeds.

What comes next follows from the rows that are recorded, so a search can stop and go on at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from nalm.records.keys import keys_of
from nalm.training import L1, SGD, Adam, Discretisation, Run
from nalm.units.nac import NACInit
from nalm.units.nau import NAUInit, NMUInit
from nalm.units.npu import NPUInit
from scipy.stats import rankdata

from companion import thresholds
from companion.beyond.leaderboard import ITERATIONS, OPERATIONS, TUNED, UNITS, arms, expresses, tasks
from companion.experiment import Arm
from companion.recorded import read

__all__ = [
    "RESULTS",
    "RUNGS",
    "Setting",
    "all_runs",
    "budget",
    "chosen",
    "final_runs",
    "part",
    "recorded",
    "rung_runs",
    "settings",
]

RESULTS = "beyond/tuned"


class Rung(NamedTuple):
    """So many settings are trained for so many iterations."""

    settings: int
    iterations: int


RUNGS = (Rung(settings=16, iterations=5_000), Rung(settings=4, iterations=20_000))
SEARCH_SEEDS, FRESH_SEEDS = range(1000, 1002), range(2000, 2025)
"""Seeds of the search, and those with which the setting that is left is trained."""

OPTIMISERS = {"Adam": Adam, "SGD": SGD}
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
WEIGHTS = {Discretisation: (0.0, 0.01, 0.1, 1.0, 10.0), L1: (0.0, 1e-7, 1e-5, 1e-3)}
"""Kind of a penalty -> its weights; of a growing L1 the end, a hundred times its start."""
INITS: dict[str, Any] = {
    "NAC": NACInit,
    "NALU": NACInit,
    "GNALU": NACInit,
    "INALU": NACInit,
    "NAU": NAUInit,
    "NMU": NMUInit,
    "SNMU": NMUInit,
    "NaiveNPU": NPUInit,
    "NPU": NPUInit,
    "RealNPU": NPUInit,
}
"""Class of a unit -> its initial distributions. The others have one."""


class Setting(NamedTuple):
    """What is tuned; as text, what the label ``setting`` of its runs says."""

    optimiser: str
    lr: float
    weight: float
    init: str

    def __str__(self) -> str:
        return f"{self.optimiser} {self.lr:g}, penalty {self.weight:g}{self.init and ', ' + self.init}"


def settings(unit: str, operation: str) -> list[Setting]:
    """The settings that are tried first: drawn from all that the unit has, the same in every search.

    Its penalty is that of its published recipe, with another weight; one without has none here either.

    >>> [str(setting) for setting in settings("NMU", "mul")][:2]
    ['SGD 0.0003, penalty 1, nmu', 'Adam 0.0001, penalty 1, uniform']
    """
    arm = arms(operation, inputs=2)[unit]
    weights = WEIGHTS[type(arm.recipe.penalties[-1])] if arm.recipe.penalties else (0.0,)
    inits = get_args(INITS.get(arm.model.layers[0].unit)) or ("",)
    every = [Setting(*one) for one in product(OPTIMISERS, RATES, weights, inits)]
    drawn = np.random.RandomState(0).permutation(len(every))
    return [every[place] for place in drawn[: RUNGS[0].settings]]


def tuned(unit: str, operation: str, inputs: int, setting: Setting, iterations: int) -> Arm:
    """A unit with this setting. Schedules of penalties scale with the iterations."""
    published = arms(operation, inputs)[unit]
    layer, recipe = published.model.layers[0], published.recipe
    penalties = [one.but(every=iterations // 5) for one in recipe.penalties[:-1] if isinstance(one, L1)]
    if setting.weight and isinstance(recipe.penalties[-1], Discretisation):
        start, end = round(0.4 * iterations), round(0.7 * iterations)
        penalties.append(Discretisation(weight=setting.weight, start=start, end=end))
    elif setting.weight:
        penalties.append(L1(start=setting.weight / 100, end=setting.weight, every=iterations // 5))
    options = layer.options | ({"init": setting.init} if setting.init else {})
    return Arm(
        model=published.model.but(layers=(layer.but(options=options),)),
        recipe=recipe.but(
            iterations=iterations,
            optimiser=OPTIMISERS[setting.optimiser](lr=setting.lr),
            penalties=tuple(penalties),
        ),
    )


def rung_runs(unit: str, operation: str, rung: int, rows: pd.DataFrame) -> list[Run]:
    """The runs of a rung; none while those of the rung before are not all recorded.

    Args:
        unit, operation: whose recipe is tuned.
        rung: its place in ``RUNGS``.
        rows: what is recorded of the search.

    >>> len(rung_runs("NMU", "mul", 0, pd.DataFrame())), rung_runs("NMU", "mul", 1, pd.DataFrame())
    (288, [])
    """
    return list(_rung_runs(unit, operation, rung, rows)[0])


def _rung_runs(unit: str, operation: str, rung: int, rows: pd.DataFrame) -> tuple[tuple[Run, ...], list[str]]:
    """With their keys."""
    return _runs(
        unit,
        operation,
        2,
        tuple(settings(unit, operation) if rung == 0 else _best(unit, operation, rung - 1, rows)),
        RUNGS[rung].iterations,
        SEARCH_SEEDS,
        f"{TUNED}, rung {rung + 1}",
    )


def chosen(unit: str, operation: str, rows: pd.DataFrame) -> Setting | None:
    """The setting that is left at the end of the search, ``None`` while it is not recorded in full."""
    return next(iter(_best(unit, operation, len(RUNGS) - 1, rows)), None)


def final_runs(unit: str, operation: str, inputs: int, rows: pd.DataFrame) -> list[Run]:
    """The runs that count, with the chosen setting and fresh seeds; none while there is no such setting."""
    setting = chosen(unit, operation, rows)
    left = (setting,) if setting else ()
    return list(_runs(unit, operation, inputs, left, ITERATIONS[inputs], FRESH_SEEDS, TUNED)[0])


def all_runs(stage: int | None, inputs: int, rows: pd.DataFrame) -> list[Run]:
    """The runs of all units and operations: of a rung, or with ``stage=None`` those that count."""
    return [
        run
        for operation in OPERATIONS
        for unit in UNITS
        if expresses(unit, operation, inputs)
        for run in (
            final_runs(unit, operation, inputs, rows)
            if stage is None
            else rung_runs(unit, operation, stage, rows)
        )
    ]


def recorded() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The recorded rows with the chosen settings, and those of the search."""
    rows = read(RESULTS)
    if rows.empty:
        return rows, rows
    counts = rows["arm"] == TUNED
    return rows[counts], rows[~counts]


def part(rows: pd.DataFrame, p: SimpleNamespace) -> pd.DataFrame:
    """The rows that the parameters of the page ask for; of seeds the first.

    Args:
        rows: with the chosen settings.
        p: parameters ``units``, ``operations``, ``inputs``, ``ranges``, ``seeds`` and ``iterations``.
    """
    if rows.empty:
        return rows
    rows = rows[rows["iterations"] == (p.iterations or rows["inputs"].astype(int).map(ITERATIONS))]
    asked = {"model": p.units, "operation": p.operations, "inputs": p.inputs, "range": p.ranges}
    here = [rows[column].isin(values) for column, values in asked.items()]
    return rows[np.all([*here, rows["seed"].isin(FRESH_SEEDS[: p.seeds])], axis=0)]


def budget(operation: str) -> int:
    """Run-iterations of the search for one unit, the same for all.

    >>> f"{budget('mul'):,}"
    '2,880,000'
    """
    each = sum(rung.settings * rung.iterations for rung in RUNGS)
    return each * len(tasks(operation, 2)) * len(SEARCH_SEEDS)


def _best(unit: str, operation: str, rung: int, rows: pd.DataFrame) -> list[Setting]:
    """The settings that go on from a rung, best first; none while it is not recorded in full.

    By the mean of their ranks on the ranges. Within a range validation errors are compared as they are: to
    divide them by the variance of its targets changes no rank.
    """
    runs, keys = _rung_runs(unit, operation, rung, rows)
    if not runs or rows.empty:
        return []
    places = pd.Index(rows["key"]).get_indexer(keys)
    if (places < 0).any():
        return []
    tried = list(dict.fromkeys(run.labels["setting"] for run in runs))
    errors = rows["valid_mse"].to_numpy(dtype=float)[places].reshape(len(tried), -1, len(SEARCH_SEEDS))
    means = np.where(np.isnan(errors), np.inf, errors).mean(axis=2)  # a run that diverged is the last
    order = rankdata(means, axis=0).mean(axis=1).argsort(kind="stable")
    named = {str(setting): setting for setting in settings(unit, operation)}
    left = RUNGS[rung + 1].settings if rung + 1 < len(RUNGS) else 1
    return [named[tried[place]] for place in order[:left]]


@cache  # a rung is asked for by those after it, and has thousands of configurations
def _runs(
    unit: str, operation: str, inputs: int, of: tuple[Setting, ...], iterations: int, seeds: range, arm: str
) -> tuple[tuple[Run, ...], list[str]]:
    def runs() -> Iterator[Run]:
        every = tasks(operation, inputs).values()
        for setting in of:
            labels = {"model": unit, "operation": operation, "inputs": str(inputs), "arm": arm}
            made = tuned(unit, operation, inputs, setting, iterations)
            for task, seed in product(every, seeds):
                yield Run(
                    task=task,
                    model=made.model,
                    recipe=made.recipe,
                    seed=seed,
                    threshold=thresholds.FIXED,
                    labels=labels | {"setting": str(setting)},
                )

    found = tuple(runs())
    return found, keys_of(found)
