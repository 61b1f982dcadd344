"""The fractional SIR model: Figures 4 and 5, Table A1 of *Neural Power Units*."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch
from nalm.models import NODE, Layer
from nalm.tasks import FractionalSIRTask
from nalm.training import Run

from companion import measures, published
from companion.experiment import Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import at_least, some_of, some_or_none_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Comparison, Explanation, Item, Read, above
from companion.experiment.tables import text
from companion.measures import Interval
from companion.npu.settings import EXACT_FSIR, HIDDEN, PENALTIES, fsir_arm, layers_of

MODELS = ("NPU", "RealNPU", "Dense")
TERMS = ("r, with exponents of S and I of 0.4 to 0.7", "I, with an exponent of 0.8 to 1.2", "a power of R")
"""The hidden units of the RealNPU of Figure 5."""

SOLVERS = {"euler": "Euler", "rk4": "Runge-Kutta, order 4"}

Arms = Mapping[str, tuple[str, dict[str, Any]]]
"""Name -> model and settings of :func:`companion.npu.settings.fsir_arm`."""

LIMITS = (0.1, 1.0)
"""The mean squared errors below which the runs of Figure 4 are counted."""


def stopped(model: str, limit: int) -> str:
    """The name of runs whose L-BFGS may take so many iterations."""
    return f"{model}, at most {limit} of L-BFGS"


AUTHORS = {"gradient": "adjoint", "line_search": "hager-zhang"}
"""What the authors' libraries do: DiffEqFlux 1.10 and Optim 0.21, with its 1000 iterations of L-BFGS."""


def as_authors(model: str) -> str:
    """The name of runs with the authors' gradient and line search."""
    return f"{model}, authors' gradient"


def authors_runs() -> list[Run]:
    """Those of Figure 4."""
    p = SimpleNamespace(seeds=5, iterations=3000, finish=1000, penalties=PENALTIES)
    return grid_of(p, _authors_arms(MODELS), HIDDEN, "euler")


def _authors_arms(models: Iterable[str]) -> Arms:
    return {as_authors(model): (model, AUTHORS) for model in models}


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    return once(_asked(p))


def once(asked: Iterable[Run]) -> dict[str, list[Run]]:
    """Results file -> the runs, each once, under the first of its names."""
    runs: dict[str, Run] = {}
    for run in asked:
        runs.setdefault(run.key, run)
    return {"npu/fractional-sir": list(runs.values())}


def rows(p: SimpleNamespace) -> Rows:
    """A row for each run of the chapter under each of its names, with ``count``.

    A run has two names where two of the limits of L-BFGS are equal.
    """
    return named(_asked(p), EXPERIMENT.rows(p))


def named(asked: Sequence[Run], found: Rows) -> Rows:
    """The row of each run under the name by which it is asked for, with ``count``."""
    frame = found.frame.set_index("key", drop=False).loc[[run.key for run in asked]].reset_index(drop=True)
    return Rows(counted(frame.assign(model=[run.labels["model"] for run in asked])), found.results)


def _asked(p: SimpleNamespace) -> list[Run]:
    """The runs of all parts of the chapter, each once per name."""
    first_order = {f"{model}, first-order only": (model, {"finish": 1}) for model in p.models}
    short = {
        stopped(model, limit): (model, {"finish": limit})
        for limit in (p.early, p.later)
        for model in p.models
    }
    groups = (
        (as_named(p.models), p.hidden),
        (first_order, p.first_order),
        (short, p.stopped),
        (_authors_arms(p.models), p.authors),
    )
    runs = [run for arms, sizes in groups for run in grid_of(p, arms, sizes, "euler")]
    return list({(run.key, run.labels["model"]): run for run in runs}.values())


def as_named(models: Iterable[str]) -> Arms:
    """Models with nothing changed."""
    return {model: (model, {}) for model in models}


def grid_of(p: SimpleNamespace, arms: Arms, sizes: Iterable[int], solver: str) -> list[Run]:
    """Each arm with each size, penalty and seed."""
    found = []
    for (name, (model, options)), size, penalty in product(arms.items(), sizes, p.penalties):
        options = {"finish": p.finish} | options
        arm = fsir_arm(model, size, penalty, solver, iterations=p.iterations, **options)
        labels = {"solver": solver, "hidden": str(size), "penalty": f"{penalty:g}"}
        runs = runs_of({name: arm}, [FractionalSIRTask()], p.seeds)
        found += [run.but(labels=run.labels | labels) for run in runs]
    return found


def network(model: NODE, weights: Mapping[str, Any]) -> torch.nn.Module:
    """A neural differential equation with these weights."""
    built = model.build(in_features=1)
    arrays = {name: torch.tensor(values, dtype=torch.float64) for name, values in weights.items()}
    built.load_state_dict(arrays)
    return built


@cache
def exact(method: str, step: float) -> torch.nn.Module:
    """The true equations as a RealNPU and a NAU, integrated by a solver.

    >>> exact("euler", 1.0)(torch.zeros(1, 1, dtype=torch.float64)).tolist()
    [[100.0, 0.01, 0.0]]
    """
    nau = Layer(unit="NAU", out_features=3, options={"clamp": "none"})
    layers = (Layer(unit="RealNPU", out_features=3), nau)
    start = (100.0, 0.01, 0.0)
    model = NODE(layers=layers, initial_state=start, method=method, step=step)
    return network(model, EXACT_FSIR)


def true_error(method: str, step: float) -> float:
    """The mean squared error of the true equations under a solver."""
    data = FractionalSIRTask().shared()
    return float((exact(method, step)(data["times"]).detach() - data["states"]).square().mean())


def trained(row: pd.Series, step: float = 0.5) -> torch.nn.Module:
    """The network of a row; ``step``: of Runge-Kutta."""
    arm = fsir_arm(row["model"], int(row["hidden"]), float(row["penalty"]), row["solver"], step=step)
    return network(arm.model, weights_of(row["weights"]))


def printed_runs(kind: str = "run") -> pd.DataFrame:
    """The points of Figure 4, left: ``model``, ``count`` of parameters above 0.001, ``valid_mse``.

    ``kind``: ``"published_front_line"`` for the corners of its lines.
    """
    names = {"n_params_abs_gt_0.001": "count", "train_mse": "valid_mse"}
    return published.load("npu_pareto").query("kind == @kind").rename(columns=names)


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``count``, the number of parameters above 0.001."""
    found = [
        sum(int((np.abs(values) > 0.001).sum()) for values in weights_of(row).values())
        for row in rows["weights"]
    ]
    kept = rows.get("parameters_above_0.001", np.nan)
    return rows.assign(count=np.where(rows["weights"].notna(), found, kept))


def weights_of(text: str | float) -> dict[str, np.ndarray]:
    """The weights of a row; none where it has none."""
    if not isinstance(text, str):
        return {}
    return {name: np.asarray(values) for name, values in json.loads(text).items()}


def share(rows: pd.DataFrame, model: str, limit: float, name: str = "") -> Comparison:
    """The share of runs of a model below an MSE, beside the published one.

    ``name``: of the arm, where it is not the model's.
    """
    theirs = printed_runs()
    part = rows[rows["model"] == (name or model)]
    printed = theirs[theirs["model"] == model]["valid_mse"] < limit
    what = f"{model}: runs with an MSE below {text(limit)}"
    rates = fitted(part, limit), measures.success_rate(printed)
    return Comparison(what, *rates, family=len(MODELS) * len(LIMITS))


def fitted(rows: pd.DataFrame, limit: float) -> measures.Interval:
    """The share of runs below an MSE. Those of one hidden size and seed start from the same weights."""
    starts = rows["hidden"].astype(str) + " " + rows["seed"].astype(str)
    return measures.success_rate(rows["valid_mse"] < limit, seeds=starts)


def terms(rows: pd.DataFrame) -> np.ndarray:
    """Which of :data:`TERMS` the RealNPU of each row has as a hidden unit that counts, ``(rows, 3)``."""
    found = []
    for row in rows["weights"]:
        weights = weights_of(row)
        used = np.abs(weights["field.1.weight"]).max(0) > 0.005
        s, i, r = weights["field.0.weight"][used].T
        no_s, no_r = np.abs(s) < 0.1, np.abs(r) < 0.1
        transmission = (s > 0.4) & (s < 0.7) & (i > 0.4) & (i < 0.7) & no_r
        recovery = no_s & (i > 0.8) & (i < 1.2) & no_r
        found.append([transmission.any(), recovery.any(), (no_s & (np.abs(i) < 0.1) & (r > 0.1)).any()])
    return np.array(found, dtype=bool).reshape(-1, len(TERMS))


def drawn_weights() -> dict[str, list]:
    """The weights that Figure 5 prints; it has no gates, which are taken as open."""
    values = published.load("npu_values").query("item == 'Fig 5'").set_index("metric")["value"]
    units, states = range(1, 7), ("S", "I", "R")
    exponents = [
        [float(values[f"RealNPU exponent hidden {unit} <- {state}"]) for state in states] for unit in units
    ]
    sums = [[float(values[f"NAU weight d{state} <- hidden {unit}"]) for unit in units] for state in states]
    return {"field.0.weight": exponents, "field.0.gate": [1.0] * 3, "field.1.weight": sums}


def front(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs that no other beats in both error and number of parameters."""
    return rows[measures.nondominated(rows["count"], rows["valid_mse"])]


def listed(rows: pd.DataFrame) -> str:
    """Numbers of parameters and the lowest MSE of each below 1, as a phrase."""
    best = rows[rows["valid_mse"] < 1].sort_values(["count", "valid_mse"]).drop_duplicates("count")
    pairs = zip(best["count"], best["valid_mse"], strict=True)
    return ", ".join(f"{int(count)}: {text(error, 2)}" for count, error in pairs) or "none"


def _rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The 300 runs that are integrated as the authors did."""
    measures.require_columns(rows, ["solver", "hidden", "penalty", "weights"])
    return counted(rows[rows["model"].isin(MODELS) & (rows["solver"] == "euler")])


def _real(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of the RealNPU."""
    return _rows(rows[rows["model"] == "RealNPU"])


def _figure_4(rows: pd.DataFrame) -> Iterable[Comparison | Claim]:
    for model, limit in product(MODELS, LIMITS):
        yield share(rows, model, limit)
    ours = {model: rows[rows["model"] == model] for model in MODELS}
    lowest = {model: part["valid_mse"].min() for model, part in ours.items()}
    shown = f"{text(lowest['NPU'])} against {text(lowest['Dense'])}"
    yield Claim("the NPU reaches a lower MSE than Dense", lowest["NPU"] < lowest["Dense"], shown)
    fewest = {model: part[part["valid_mse"] < 0.1]["count"].min() for model, part in ours.items()}
    what = "the NPU reaches an MSE below 0.1 with fewer parameters than Dense"
    shown = f"{text(float(fewest['NPU']))} against {text(float(fewest['Dense']))}"
    yield Claim(what, fewest["NPU"] < fewest["Dense"], shown)
    middle = {model: part["valid_mse"].median() for model, part in ours.items()}
    shown = f"{text(middle['RealNPU'])} against {text(middle['NPU'])}"
    yield Claim("the RealNPU is mostly worse than the NPU (median)", middle["RealNPU"] > middle["NPU"], shown)
    sparse = (ours["RealNPU"]["valid_mse"] < 0.1) & (ours["RealNPU"]["count"] < 20)
    what = "a few RealNPUs are good and sparse (below 0.1, fewer than 20 parameters)"
    yield Claim(what, 0 < int(sparse.sum()) < 50, Rows(ours["RealNPU"]).share(sparse))


def _figure_5(rows: pd.DataFrame) -> Iterable[Claim]:
    """Whether a RealNPU that fits has the drawn form. The authors chose theirs by eye."""
    fitting = Rows(rows[(rows["valid_mse"] < 0.1) & rows["weights"].notna()])
    found = terms(fitting.frame)
    for what, which in zip(TERMS, found.T, strict=True):
        yield Claim(f"a unit for {what}", bool(which.any()), fitting.share(which))
    together = found.all(1)
    yield Claim("all three in one RealNPU", bool(together.any()), fitting.share(together))


_TABLE_A1 = {
    "NPU": ("NPU(3, 6)", "NAU(6, 3)"),
    "RealNPU": ("RealNPU(3, 6)", "NAU(6, 3)"),  # printed: a second row of the NPU
    "Dense": ("Dense(2, 6)", "Dense(6, 6)", "Dense(6, 3)"),
}


def _table_a1() -> Iterable[Claim]:
    for name, layers in _TABLE_A1.items():
        ours = layers_of(fsir_arm(name, 6, 0.0).model.build(1).field)
        yield Claim(f"{name}: {', '.join(layers)}", ours == layers, ", ".join(ours), id=name)


def _with_theirs(read: Read) -> list[Comparison]:
    """The shares of runs with the authors' gradient and line search; nothing until all are run."""
    rows = read("npu/fractional-sir")
    theirs = [as_authors(model) for model in MODELS]
    if rows["model"].isin(theirs).sum() < len(authors_runs()):
        return []
    return [share(rows, model, limit, as_authors(model)) for model, limit in product(MODELS, LIMITS)]


def _said_of_theirs(read: Read) -> str:
    shares = _with_theirs(read)
    agree = f"{sum(one.agrees for one in shares)} of {len(shares)}" if shares else NOT_RUN
    return (
        "The authors' gradient is that of a continuous adjoint, and their L-BFGS ends with the first line "
        "search, of Hager and Zhang's kind, that fails; here it is the gradient of the discrete solution and "
        "SciPy's L-BFGS-B. Shares of runs that agree with the published ones if both are as theirs: "
        f"{agree}."
    )


def _by_theirs(read: Read) -> dict[str, Interval]:
    """By how much the shares of runs are above those with the authors' gradient and line search."""
    rows, theirs = read("npu/fractional-sir"), {one.what: one.ours for one in _with_theirs(read)}
    rows = rows[rows["solver"] == "euler"]
    unknown = Interval(np.nan, np.nan, np.nan, 0)
    return {
        what: above(share(rows, model, limit).ours.estimate, theirs.get(what, unknown))
        for what, (model, limit) in zip(_SHARES, product(MODELS, LIMITS), strict=True)
    }


_item = partial(
    Item,
    "npu",
    kind="experiment",
    seeds=5,
    iterations=3000,
    experiment=("npu/fractional-sir",),
    rows=_rows,
    by=("model", "hidden", "penalty"),
    shared=("hidden", "seed"),
)
_SHARES = tuple(f"{model}: runs with an MSE below {text(limit)}" for model, limit in product(MODELS, LIMITS))
_GRIDS = ("hidden", "first_order", "stopped")


def _second_best(read: Read) -> str:
    points = (
        published.load("npu_pareto").query("model == 'RealNPU' and kind == 'run'")["train_mse"].nsmallest(2)
    )
    best, second = (text(float(error)) for error in points)
    return f"It has the second lowest error of the paper's RealNPUs: {second}, and the best has {best}."


EXPERIMENT = Experiment(
    chapter="book/npu/fractional-sir.ipynb",
    rules={name: at_least(1) for name in ("iterations", "finish", "early", "later")}
    | {name: some_of(HIDDEN) for name in _GRIDS}
    | {"models": some_of(MODELS), "penalties": some_of(PENALTIES), "authors": some_or_none_of(HIDDEN)},
    runs=_runs,
    items=(
        Item(
            "npu",
            "Table A1",
            "Models of the fractional SIR task",
            "settings",
            _table_a1,
            explanations=(
                Explanation(
                    ("Dense",),
                    "The dense network is printed with two inputs; the state has three entries, and three "
                    "inputs are in the authors' code.",
                ),
            ),
        ),
        _item(
            "Figure 4",
            "Fractional SIR model: error against number of parameters",
            statements=_figure_4,
            headline="runs of the NPU with a training MSE below 0.1",
            published="46 of 100",
            runs=300,
            explanations=(Explanation(_SHARES, _said_of_theirs, _by_theirs),),
        ),
        _item(
            "Figure 5",
            "Weights of a RealNPU fitted to the fractional SIR model",
            statements=_figure_5,
            headline="RealNPUs that fit and have a unit for r",
            published="1 of 1, the one drawn",
            runs=100,
            rows=_real,
        ),
    ),
    errata=(
        Erratum(
            "Equation 19",
            "misprint",
            r"The last entry of the matrix is $\eta$.",
            (
                r"It is $-\eta$: columns add up to zero, as nobody is born or dies (Equation 16 has "
                "it right)."
            ),
            "The corrected network computes the right-hand side of the system.",
            "Nothing; the code has the right sign.",
        ),
        Erratum(
            "Section 4.1, learned exponents",
            "misprint",
            r"$\kappa = 0.57$ and $\gamma = 0.62$.",
            (
                r"Figure 5 and the definition of $\kappa$ and $\gamma$ have them the other way "
                "round."
            ),
            "The printed weights are written as a formula.",
            "Nothing; both are to be one half.",
        ),
        Erratum(
            "Section 4.1, constant hidden units",
            "claim",
            "Three hidden units are irrelevant: the relevance gate returns 1.",
            (
                "A unit is constant where its row of exponents is zero. The gate acts on inputs, "
                "which all units share."
            ),
            "Learned networks are written as formulas, gates included.",
            "The explanation, not the equation that is read off.",
        ),
        Erratum(
            "Section 4.1, coefficients",
            "claim",
            r"$\alpha, \beta, \eta$ are not far off from the truth.",
            (
                r"$\alpha$ and $\beta$ are about twice as large, the weights of $R$ more than ten times, "
                "and the weights are read without the gates, which are not printed. With open gates the "
                "printed network does not fit the data."
            ),
            ("The error of the printed weights with open gates, and with the gates that our networks learn."),
            "The system is recovered in kind, not in numbers.",
        ),
        Erratum(
            "Figure 5, caption",
            "claim",
            "The best RealNPU.",
            _second_best,
            "The points of the paper's Figure 4.",
            "Nothing of substance.",
        ),
        Erratum(
            "Figure 4, Pareto fronts",
            "evaluation",
            "The lines are Pareto fronts.",
            (
                "They are corners of a convex hull, cut by hand. Points that others beat in both "
                "respects lie on them."
            ),
            "The drawn lines beside the true fronts of the same points.",
            "The true fronts bear the paper's statements out.",
        ),
        Erratum(
            "Table A1",
            "misprint",
            "The dense network has two inputs, and the NPU stands there twice.",
            "It has three, and the second NPU is the RealNPU.",
            "The printed lines beside the networks of the runs.",
            "Nothing.",
        ),
    ),
)
