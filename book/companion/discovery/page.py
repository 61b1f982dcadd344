"""The fractional SIR model found from its data: by the search, and by sparse regression (SINDy)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pysindy
import torch
from matplotlib.lines import Line2D
from nalm.tasks import FractionalSIRTask, fractional_sir
from nalm.training import Run
from scipy.integrate import solve_ivp

from companion import measures
from companion.discovery import PowerSystem, discover_all, refit
from companion.figures import Figure, courses, style
from companion.figures.styles import WIDTH, legend
from companion.npu.settings import EXACT_FSIR, fsir_arm

__all__ = [
    "NUMBERS",
    "TRUE",
    "found_by",
    "numbers_found",
    "recovered",
    "refitted",
    "regressions",
    "searches",
    "step",
]

TRUE = PowerSystem.of(EXACT_FSIR)
NUMBERS = [
    "S in r, κ",
    "I in r, γ",
    "dS, r",
    "dI, r",
    "I exponent",
    "dI, I",
    "dR, I",
    "R exponent",
    "dS, R",
    "dR, R",
]
"""The ten numbers of the true system, in its order."""


def criterion(error: float, numbers: float, count: int = 39 * 3) -> float:
    """The Bayesian information criterion of a system that was fitted to 39 states of three numbers."""
    return count * np.log(error + 1e-9) + numbers * np.log(count)


def _runs(p: SimpleNamespace) -> Iterator[Run]:
    """Single starts differ from draw to draw."""
    arm = fsir_arm("NPU", p.hidden, 0.0)
    for noise, starts in zip(p.noises, p.starts, strict=True):
        for draw in range(p.draws if noise else 1):
            task = FractionalSIRTask(noise=noise, noise_seed=draw)
            labels = {"noise": f"{noise:.0%}", "draw": str(draw)}
            for start in range(starts):
                seed = (draw + start) % max(p.draws, starts)
                yield Run(task=task, model=arm.model, recipe=arm.recipe, seed=seed, labels=labels)


def searches(p: SimpleNamespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All searches, and the one on each data set that the criterion chooses.

    ``aligned`` are the ten numbers of a system that has the true form, ``level`` is the noise as a number.

    Raises:
        AssertionError: the code of the search has changed since they were recorded.
    """
    runs = list(_runs(p))
    found = discover_all(runs, results=p.record)
    assert found["fresh"].all(), "The code of the search has changed since these were recorded."
    found["criterion"] = criterion(found["error"], found["numbers"])
    found["aligned"] = found["weights"].map(_aligned)
    found["level"] = [run.task.noise for run in runs]
    return found, found.loc[found.groupby(["noise", "draw"], sort=False)["criterion"].idxmin()]


def _aligned(weights: str) -> np.ndarray | None:
    """The ten numbers in the order of the truth: units for S and I, for I, and for R."""
    system = PowerSystem.of(json.loads(weights))
    units = system.numbers[system.free.any(1)]
    for order in map(list, permutations(range(3))):
        if len(units) == 3 and ((units[order] != 0) == TRUE.free).all():
            return units[order][TRUE.free]
    return None


def step(found: pd.DataFrame) -> Figure:
    """The error of each search on the first data set of its noise, over how many numbers are left."""
    first = found[found["draw"] == "0"]
    with style():
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        axes = figure.subplots(1, first["noise"].nunique(), sharey=True, squeeze=False)[0]
        for axis, (noise, group) in zip(axes, first.groupby("noise", sort=False), strict=True):
            for path, chosen in zip(group["path"], group["numbers"], strict=True):
                sizes, errors = zip(*sorted((size, error) for size, error in path if size <= 20), strict=True)
                axis.plot(sizes, errors, "-", color="#0072B2", linewidth=1, alpha=0.7)
                axis.plot(chosen, dict(path)[chosen], "o", color="#D55E00", markersize=6)
            axis.axvline(TRUE.size, color="#1A1A1A", linestyle="--", linewidth=1)
            axis.set(title=f"noise {noise}", xlabel="numbers left", yscale="log", xlim=(20.5, 6.5))
        axes[0].set_ylabel("error")
        names = {
            "a search": {"color": "#0072B2"},
            "chosen": {"color": "#D55E00", "marker": "o", "linestyle": "none"},
        }
        names["true form"] = {"color": "#1A1A1A", "linestyle": "--"}
        legend(figure, [Line2D([], [], **look, label=name) for name, look in names.items()])
    return figure


def recovered(chosen: pd.DataFrame, noise: str, further: int = 3) -> Figure:
    """The system that was chosen on the first data set of a noise, and the true one, for some times as long
    as there are data.
    """
    one = chosen[(chosen["noise"] == noise) & (chosen["draw"] == "0")].iloc[0]
    times, states = _data(one["level"], 0)
    longer = np.linspace(times[0], further * times[-1], 40 * further)
    clean = _data(0.0, 0)[1]
    systems = {"true": TRUE, f"found at noise {noise}": PowerSystem.of(json.loads(one["weights"]))}
    solved = {name: system.solve(longer, clean) for name, system in systems.items()}
    lines = {name: (longer, way[0]) for name, way in solved.items() if way is not None}
    return courses(lines, ["S", "I", "R"], (times, states))


def numbers_found(found: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the chosen systems of the true form; of all starts where there is one data set."""
    table = pd.DataFrame({"number": NUMBERS, "truth": TRUE.numbers[TRUE.free]})
    for noise, group in found.groupby("noise", sort=False):
        several = group["draw"].nunique() > 1
        picked = chosen[chosen["noise"] == noise] if several else group
        hits = list(picked["aligned"].dropna())
        means = [measures.mean(values) for values in zip(*hits, strict=True)] if len(hits) > 1 else None
        what = f"{len(hits)} of {len(picked)} {'data sets' if several else 'starts'}"
        table[f"noise {noise} ({what})"] = means or (list(hits[0]) if hits else "–")
    return table


def _data(noise: float, draw: int) -> tuple[np.ndarray, np.ndarray]:
    data = FractionalSIRTask(noise=noise, noise_seed=draw).shared()
    return data["times"][:, 0].numpy(), data["states"].numpy()


def refitted(found: pd.DataFrame, chosen: pd.DataFrame) -> pd.DataFrame:
    """What was chosen, against the true form fitted to the same data; errors are medians over data sets."""
    lines = []
    for noise, group in chosen.groupby("noise", sort=False):
        fits = [refit(TRUE, *_data(row.level, int(row.draw))) for row in group.itertuples()]
        own = [criterion(fit.error, fit.system.size) for fit in fits]
        better = int(np.less(own, group["criterion"] - 1).sum())
        starts = found[found["noise"] == noise]["aligned"]
        line = {
            "noise": noise,
            "starts that end at the true form": f"{starts.notna().sum()} of {len(starts)}",
            "data sets with the true form chosen": f"{group['aligned'].notna().sum()} of {len(group)}",
            "error of the true form": np.median([fit.error for fit in fits]),
            "error of the chosen form": group["error"].median(),
            "true form has the better criterion": f"{better} of {len(group)}",
        }
        lines.append(line)
    return pd.DataFrame(lines)


LIBRARIES: dict[str, tuple[Callable, int]] = {
    "polynomials, degree 2": (lambda x: x, 2),
    "polynomials, degree 3": (lambda x: x, 3),
    "products of two roots": (np.sqrt, 2),
}
"""What numbers are made to before they are multiplied, and the degree of the products."""
THRESHOLDS = [0.0, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1]
RIDGE = 1e-8
"""S + I + R is constant, so the functions of a library depend on each other. Without a penalty on their
coefficients, however small, the rounding of the processor decides which of them are kept.
"""


def regressions(noises: list[float]) -> pd.DataFrame:
    """SINDy on the first data set of each noise: of each library the model with the lowest criterion.

    Without noise, the products of roots are also given the true derivatives.
    """
    kinds = [
        pysindy.FiniteDifference(),
        pysindy.SmoothedFiniteDifference(),
        pysindy.SINDyDerivative(kind="spline", s=1e-2),
    ]
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for noise in noises:
            times, states = _data(noise, draw=0)
            slopes = [kind._differentiate(states, times) for kind in kinds]
            asked = [(name, *library, slopes) for name, library in LIBRARIES.items()]
            if not noise:
                true = fractional_sir(torch.tensor(0.0), torch.from_numpy(states)).numpy()
                asked.append(("products of two roots, true derivatives", np.sqrt, 2, [true]))
            for name, *how in asked:
                lines.append({"noise": f"{noise:.0%}", "library": name} | _identified(times, states, *how))
    return pd.DataFrame(lines)


def _identified(
    times: np.ndarray, states: np.ndarray, transform: Callable, degree: int, slopes: list[np.ndarray]
) -> dict[str, float]:
    """The number of terms and the error of the simulated course; nothing where no model has one."""
    library = pysindy.PolynomialLibrary(degree=degree)
    functions = np.asarray(library.fit_transform(transform(np.maximum(states, 0))))
    best, lowest = {"numbers": "–", "error": "no course"}, np.inf
    for slope in slopes:
        for threshold in THRESHOLDS:
            coefficients = pysindy.STLSQ(threshold=threshold, alpha=RIDGE).fit(functions, slope).coef_
            course = _course(coefficients, library.powers_, transform, times, states)
            if course is None:
                continue
            error = float(np.mean((((course - states) / states.std(0))[1:]) ** 2))
            terms = int((coefficients != 0).sum())
            if criterion(error, terms) < lowest:
                best, lowest = {"numbers": terms, "error": error}, criterion(error, terms)
    return best


def _course(
    coefficients: np.ndarray, powers: np.ndarray, transform: Callable, times: np.ndarray, states: np.ndarray
) -> np.ndarray | None:
    def slope(_: float, x: np.ndarray) -> np.ndarray:
        return coefficients @ np.prod(transform(np.maximum(x, 0)) ** powers, 1)

    span = 0, times[-1]
    solved = solve_ivp(slope, span, states[0], t_eval=times, max_step=5, rtol=1e-5, method="LSODA")
    return solved.y.T if solved.status == 0 and np.isfinite(solved.y).all() else None


def found_by(found: pd.DataFrame, chosen: pd.DataFrame, sindy: pd.DataFrame) -> pd.DataFrame:
    """The search beside SINDy, on the first data set of each noise."""
    lines = []
    for noise, group in found[found["draw"] == "0"].groupby("noise", sort=False):
        own = chosen[(chosen["noise"] == noise) & (chosen["draw"] == "0")].iloc[0]
        starts = "start" if len(group) == 1 else "starts"
        method = f"NPU search, best of {len(group)} {starts}"
        lines.append({"noise": noise, "method": method} | own[["numbers", "error"]].to_dict())
        for one in sindy[sindy["noise"] == noise].to_dict("records"):
            line = {"noise": noise, "method": f"SINDy, {one['library']}"}
            lines.append(line | {"numbers": one["numbers"], "error": one["error"]})
    return pd.DataFrame(lines)
