"""Division of two inputs by four units: Figures 3 and 10, Tables 1 and 4."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import Adam, Run
from scipy.integrate import solve_ivp

from companion import measures, thresholds
from companion.division import settings
from companion.division.compared import (
    MIXED,
    MODIFIED,
    NEGATIVE,
    POSITIVE,
    REAL_NPU,
    UNITS,
    Compared,
    experiment_item,
    higher,
    of,
    stated,
    success,
    when_solved,
)
from companion.division.states import draw_starts, initial
from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Item
from companion.experiment.tables import Table, text
from companion.figures import Figure, Map, style

SECOND, CLIPPED = f"{MODIFIED}, second draw", f"{MODIFIED}, clipped gradient"
FIGURE_3 = [REAL_NPU, *UNITS]
SLOWER = {"NRU, lr 1e-1": 1e-1, "NRU, lr 1e-2": 1e-2, "NRU, lr 1e-3": 1e-3}
FIGURE_10 = ["NRU", *SLOWER]
LARGE = ["U[-20,-10)", "U[10,20)"]

MIDDLES = {name: abs(trained.low + trained.high) / 2 for name, (trained, _) in UNIFORM_RANGES.items()}
"""Training range -> the size of the number in its middle; 0 for the one of mixed signs."""


def arms(iterations: int | None = None) -> dict[str, Arm]:
    """All models of the chapter. The last two are trained on U[-2,2) only."""
    units = settings.arms(inputs=2, iterations=iterations)
    nru, modified = units["NRU"], units[MODIFIED]
    slower = {name: nru.but(recipe=nru.recipe.but(optimiser=Adam(lr=rate))) for name, rate in SLOWER.items()}
    return (
        units
        | slower
        | {
            SECOND: modified.but(model=modified.model.but(draws=2)),
            CLIPPED: modified.but(recipe=modified.recipe.but(clip_gradient_norm=1.0)),
        }
    )


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    every = {name: arm for name, arm in arms(p.iterations).items() if name in p.models}
    variants = {name: every.pop(name) for name in (SECOND, CLIPPED) if name in every}
    tasks = {name: SingleModuleTask.on(name, operation="div") for name in UNIFORM_RANGES}
    asked = runs_of(
        {name: every[name] for name in p.models if name in every},
        [tasks[place] for place in p.ranges],
        p.seeds,
        thresholds.FIXED,
    )
    return {"division/no-redundancy": asked + runs_of(variants, [tasks[MIXED]], p.seeds, thresholds.FIXED)}


def with_starts(rows: Rows) -> Rows:
    """The rows with the two weights from which each run started, ``start_a`` and ``start_b``."""
    units, runs = arms(), zip(rows.frame["model"], rows.frame["seed"], strict=True)
    a, b = np.reshape([initial(units[model].model, 2, [seed]) for model, seed in runs], (-1, 2)).T
    return Rows(rows.frame.assign(start_a=a, start_b=b), rows.results)


def figure_starts(parts: Mapping[str, Rows]) -> Figure:
    """Initial weights of the first two parts, which have ``start_a`` and ``start_b``, solved and failed."""
    with style():
        figure = Figure(figsize=(7, 3.7), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (name, part) in zip(axes, parts.items(), strict=False):
            starts, won = part.frame[["start_a", "start_b"]].to_numpy(), part.success.to_numpy()
            draw_starts(axis, starts, won, lambda W_a, W_b: W_a > W_b)
            axis.set(xlabel="initial $W_a$")
            axis.set_title(f"{name}: {part.count()}  (● solved  × failed)", fontsize="medium")
        axes[0].set_ylabel("initial $W_b$")
    return figure


def walls(rows: Rows) -> tuple[Table, dict[str, object]]:
    """Which runs of the NRU on negative ranges pass the wall at zero."""
    runs = with_starts(rows.of(model=FIGURE_10, range=NEGATIVE)).frame
    starts = runs[["start_a", "start_b"]].to_numpy()
    ends = np.reshape(Rows(runs).weights("0.weight"), (-1, 2))
    won, right = runs["success"].astype(bool), (starts[:, 0] > 0) & (starts[:, 1] < 0)
    kinds = {
        "solved": won,
        "starts with W_a > 0 > W_b": right,
        "of them from W_a > 0 > W_b": right & won,
        "a weight passed 0": (np.sign(ends) != np.sign(starts)).any(1),
        "failed with a weight at the wall": ~won & (np.abs(ends) < 0.006).any(1),
    }
    counts = runs[["model", "range"]].assign(**kinds).groupby(["model", "range"], sort=False).sum()
    last = FIGURE_10[-1]
    slowest = Rows(runs.assign(fits=won == right)).of(model=last)
    numbers = {
        "wall_fits": slowest.share(slowest.frame["fits"]),
        "nru_slow": rows.count(model=last),
        "nru_slow_positive": rows.count(model=last, range=POSITIVE),
        "nru_slow_mixed": rows.count(model=last, range=MIXED),
    }
    table = Table(counts.reset_index(), folded="The NRU on negative ranges: who passes the wall")
    return table, numbers


def _uphill(_time: float, weights: np.ndarray) -> np.ndarray:
    """The gradient of Eq. {eq}`eq-agreement` with open gates, but for a factor."""
    angles = np.pi * weights
    return np.sin(angles) - np.sin(angles.sum())


def saddle() -> Figure:
    """The mean agreement in sign of a Real NPU with open gates on U[-2,2), over its two weights, with the
    paths on which its gradient leads from small weights.
    """
    at = np.linspace(-1.25, 1.25, 126)
    alpha, beta = np.meshgrid(np.pi * at, np.pi * at)
    agreement = (1 - np.cos(alpha) - np.cos(beta) + np.cos(alpha + beta)) / 4
    starts = 0.25 * np.array([(np.cos(turn), np.sin(turn)) for turn in np.arange(8) * np.pi / 4 + 0.2])
    with style():
        figure = Map(figsize=(4.6, 3.9), layout="constrained")
        axis = figure.subplots()
        axis.grid(False)
        filled = axis.contourf(at, at, agreement, np.linspace(-0.2, 1, 13), cmap="Greens")
        for start in starts:
            way = solve_ivp(_uphill, (0, 20), start, max_step=0.1).y
            axis.plot(*way, color="black", linewidth=0.9)
        axis.plot(*starts.T, "o", color="black", markersize=3.5)
        axis.plot([-1.25, 1.25], [-1.25, 1.25], "--", color="black", linewidth=0.9)
        for place, name in (((1, -1), "a/b"), ((-1, 1), "b/a")):
            axis.plot(*place, "*", color="white", markersize=15, markeredgecolor="black")
            axis.annotate(f"${name}$", place, (0, 12), textcoords="offset points", ha="center", color="white")
        axis.set(xlabel="$W_a$", ylabel="$W_b$", aspect="equal")
        figure.colorbar(filled, ax=axis, label="agreement in sign, $C$", ticks=[0, 0.5, 1])
    return figure


def _figure_3(rows: pd.DataFrame) -> Compared:
    yield partial(stated, rows, "Fig 3")
    rates = [success(rows, REAL_NPU, [place]).estimate for place in UNIFORM_RANGES if place != "U[1,2)"]
    yield Claim(
        "the baseline struggles on every range but U[1,2)",
        max(rates) < 1,
        f"{text(min(rates))} to {text(max(rates))}",
    )
    lowest = min(success(rows, MODIFIED, [place]).estimate for place in UNIFORM_RANGES if place != MIXED)
    yield Claim(f"only {MIXED} is left for the modified Real NPU", lowest == 1, f"{text(lowest)} elsewhere")
    others = [place for place in UNIFORM_RANGES if place not in LARGE]
    before, elsewhere, after = (
        [_sparsity(rows, model, place) for place in places]
        for model, places in ((REAL_NPU, LARGE), (REAL_NPU, others), (MODIFIED, LARGE))
    )
    yield Claim(
        "the baseline's sparsity error is largest on the larger ranges",
        min(before) > np.nanmax(elsewhere),
        f"{text(min(before), 2)} or more, elsewhere at most {text(np.nanmax(elsewhere), 2)}",
    )
    yield Claim(
        "the modifications lower it there", max(after) < min(before), f"{text(max(after), 2)} at most"
    )


def _sparsity(rows: pd.DataFrame, model: str, place: str) -> float:
    errors = when_solved(rows, model, [place], "sparsity_error")
    return measures.sparsity_error(errors, ends=False).estimate


def _figure_10(rows: pd.DataFrame) -> Compared:
    yield partial(stated, rows, "Fig 10", {"NRU lr 1": "NRU"})
    for faster, slower in pairwise(FIGURE_10):
        yield higher(rows, faster, slower, f"{slower}: worse than with the next larger rate")


TABLE_1 = {
    "U[-20,-10)": "U[-40,-20)",
    "U[-2,-1)": "U[-6,-2)",
    "U[-1.2,-1.1)": "U[-6.1,-1.2)",
    "U[-0.2,-0.1)": "U[-2,-0.2)",
    "U[-2,2)": "U[-6,-2)|U[2,6)",
    "U[0.1,0.2)": "U[0.2,2)",
    "U[1,2)": "U[2,6)",
    "U[1.1,1.2)": "U[1.2,6)",
    "U[10,20)": "U[20,40)",
}
"""Training and test ranges as they are printed."""


def _table_1() -> Compared:
    for trained, tested in TABLE_1.items():
        ours = str(UNIFORM_RANGES[trained][1])
        yield Claim(trained, ours == tested, ours)


TABLE_4 = {
    "layers": (1, 1),
    "input size": (2, 10),
    "total iterations": (50_000, 100_000),
    "train samples per batch": (128, 128),
    "validation samples": (10_000, 10_000),
    "test samples": (10_000, 10_000),
    "optimiser": ("Adam", "Adam"),
    "λ̂ of NRU and NMRU": (10, 10),
    "λ̂ of the modified Real NPU": (1, 1),
}
"""Without and with redundant inputs, as printed; its seeds, 25, are counted with the rows of each figure.
"""


def _table_4() -> Compared:
    found = [_parameters(inputs) for inputs in (2, 10)]
    for name, printed in TABLE_4.items():
        ours = [sorted(values[name]) for values in found]
        shown = ", ".join("/".join(map(text, values)) for values in ours)
        yield Claim(name, ours == [[value] for value in printed], shown)


def _parameters(inputs: int) -> dict[str, set]:
    """What all four units have, by the names of Table 4."""
    every = settings.arms(inputs)
    recipes = [arm.recipe for arm in every.values()]
    data = SingleModuleTask.on("U[1,2)", operation="div", inputs=inputs).evaluation(seed=0)

    def pull(*names: str) -> set:
        penalties = [one for name in names for one in every[name].recipe.penalties]
        return {one.weight for one in penalties if one.kind == "Discretisation"}

    return {
        "layers": {len(arm.model.layers) for arm in every.values()},
        "input size": {data["valid"].inputs.shape[1]},
        "total iterations": {recipe.iterations for recipe in recipes},
        "train samples per batch": {recipe.batch_size for recipe in recipes},
        "validation samples": {len(data["valid"].targets)},
        "test samples": {len(data["test"].targets)},
        "optimiser": {
            "Adam" if recipe.optimiser == Adam(lr=recipe.optimiser.lr) else "another" for recipe in recipes
        },
        "λ̂ of NRU and NMRU": pull("NRU", "NMRU"),
        "λ̂ of the modified Real NPU": pull(MODIFIED),
    }


_item = partial(experiment_item, iterations=50_000, runs=900, experiment=("division/no-redundancy",))

EXPERIMENT = Experiment(
    chapter="book/division/no-redundancy.ipynb",
    rules={"models": some_of([*FIGURE_3, *SLOWER, SECOND, CLIPPED]), "ranges": some_of(UNIFORM_RANGES)},
    runs=_runs,
    items=(
        Item("division", "Table 1", "Uniform ranges", "settings", _table_1),
        Item(
            "division",
            "Table 4",
            "Parameters shared by all units",
            "settings",
            _table_4,
            compared="8 of 9 parameters",
        ),
        _item(
            "Figure 3",
            "Division without redundant inputs",
            statements=_figure_3,
            headline=f"success rate of the modified Real NPU on {MIXED}",
            published="0.64",
            rows=of(*FIGURE_3),
            compared="20 of 36 success rates",
        ),
        _item(
            "Figure 10",
            "Learning rates of the NRU",
            statements=_figure_10,
            headline="success rate with learning rate 1, every range",
            published="1.0",
            rows=of(*FIGURE_10),
            compared="9 of 36 success rates",
        ),
    ),
    errata=(
        Erratum(
            "Section 4, sparsity error",
            "evaluation",
            "The mean sparsity error and its interval come from a beta distribution.",
            (
                "The likelihood takes an error that ends at 0.5 for a number of [0, 1], as that of "
                "Madsen and Johansen does, whose statistics the authors' code has. A fitted mean is"
                " half of the true one."
            ),
            "{func}`companion.measures.sparsity_error`, on both scales.",
            ("Drawn sparsity errors are half as large as they should be, except where the fit fails."),
        ),
        Erratum(
            "Section 5, discretisation",
            "description",
            "Weights are pulled to {-1, 0, 1}.",
            (
                "The code pulls the weights of the Real NPU to {-1, 1}; a weight of 0 costs as much"
                " as it can. Appendix H says so for Figure 16."
            ),
            ("Both penalties are trained with redundant inputs ({doc}`/book/division/redundancy-variants`)."),
            "Without redundant inputs nothing; with them it decides how an input is left out.",
        ),
        Erratum(
            "Section 5, clipping",
            "misprint",
            "After an update gate values can be out of the range [-1, 1].",
            "Out of [0, 1], to which gates are clipped.",
            "The repairs are run as the code has them.",
            "Nothing.",
        ),
    ),
)
