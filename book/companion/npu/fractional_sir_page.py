"""What the chapter on the fractional SIR model says beside its statements: tables, figures, formulas, and the
numbers of its text; the next chapter draws with the same functions.

``every`` are all runs of a chapter, ``main`` those with the authors' solver and the settings of their code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import sympy as sp
import torch
from IPython.display import Markdown, Math, display
from nalm.records.keys import keys_of

from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.tables import Table, text
from companion.figures import Figure, courses, scatter
from companion.npu.formulas import latex
from companion.npu.fractional_sir import (
    LIMITS,
    MODELS,
    SOLVERS,
    as_authors,
    authors_runs,
    drawn_weights,
    front,
    listed,
    network,
    printed_runs,
    share,
    stopped,
    terms,
    true_error,
)
from companion.npu.settings import HIDDEN, fsir_arm
from companion.recorded import read

NAMES = ["S", "I", "R"]
SHORT = {"npu": "NPU", "real": "RealNPU", "dense": "Dense"}
EARLY = 100  # iterations of L-BFGS
Numbers = dict[str, object]


def grid(
    every: Rows, p: SimpleNamespace, sizes: Iterable[int], solver: str = "euler", tail: str = ""
) -> Rows:
    """The runs of all models with these sizes; ``tail`` of their names says what was changed."""
    models = [model + tail for model in p.models]
    return every.of(model=models, hidden=[str(size) for size in sizes], solver=solver)


def of_sizes(main: Rows, sizes: Iterable[int]) -> Rows:
    """The runs with so many hidden units."""
    return main.of(hidden=[str(size) for size in sizes])


def sizes_said(sizes: Iterable[int]) -> str:
    """Hidden units as a phrase."""
    return ", ".join(map(str, sizes))


def how_many_fit(rows: Rows) -> str:
    """How many runs have a training MSE below 0.1."""
    return rows.share(rows.frame["valid_mse"] < 0.1)


def lowest_mse(rows: Rows) -> str:
    """The lowest training MSE."""
    return rows.middle("valid_mse", 2, pd.Series.min)


def solvers() -> tuple[Table, Numbers]:
    """How well the true equations fit the data under each solver."""
    places = (("euler", 1.0), ("rk4", 1.0), ("rk4", 0.5))
    lines = [[SOLVERS[method], step, true_error(method, step)] for method, step in places]
    columns = ["solver", "step", "MSE of the true equations"]
    table = Table(lines, "The true equations under two solvers", columns=columns)
    return table, {"true_euler": true_error("euler", 1.0)}


def built() -> Table:
    """The models, and their number of parameters as a formula.

    Raises:
        AssertionError: the formula does not count the parameters of a model that is built.
    """
    h, lines = sp.Symbol("h"), []
    for model, layers, formula in (
        ("NPU", "NPU(3, h), NAU(h, 3)", 9 * h + 3),
        ("RealNPU", "RealNPU(3, h), NAU(h, 3)", 6 * h + 3),
        ("Dense", "Dense(3, h), Dense(h, h), Dense(h, 3)", h**2 + 8 * h + 3),
    ):
        networks = [fsir_arm(model, size, 0.0).model.build(1).parameters() for size in HIDDEN]
        counts = [sum(weights.numel() for weights in parameters) for parameters in networks]
        assert counts == [formula.subs(h, size) for size in HIDDEN]
        said = str(formula).replace("**2", "²").replace("*", "")
        lines.append([model, layers, said, counts[0], counts[-1]])
    columns = ["model", "layers", "parameters", "at h = 6", "at h = 20"]
    return Table(lines, "Models of the fractional SIR task (Table A1)", columns=columns)


def fits(main: Rows) -> Numbers:
    """How many runs fit, ours and the published ones, and our lowest errors."""
    numbers = published_fits()
    for name, model in SHORT.items():
        ours = main.of(model=model)
        numbers |= {f"{name}_ok": how_many_fit(ours), f"{name}_lowest": lowest_mse(ours)}
    return numbers


def middle(errors: pd.Series) -> float:
    """Their median; runs that ended without a number are the worst."""
    return float(errors.fillna(np.inf).median())


def published_fits() -> Numbers:
    """How many of the published runs fit."""
    theirs = Rows(printed_runs())
    return {f"{name}_published": how_many_fit(theirs.of(model=model)) for name, model in SHORT.items()}


def errors(main: Rows, p: SimpleNamespace) -> Table:
    """The training errors of all runs, published and ours."""
    measured = {
        "median MSE": middle,
        "lowest MSE": pd.Series.min,
        "above 10⁴": lambda found: int((~(found <= 1e4)).sum()),
    }
    lines = []
    for model in p.models:
        theirs, ours = (Rows(part).of(model=model).frame for part in (printed_runs(), main.frame))
        line = {"model": model}
        for name, what in measured.items():
            line |= {
                f"{name}, published": what(theirs["valid_mse"]),
                f"{name}, ours": what(ours["valid_mse"]),
            }
        lines.append(line)
    return Table(lines, "Training MSE of all runs")


def stuck(main: Rows, p: SimpleNamespace) -> Table:
    """How many iterations L-BFGS took."""
    lines = []
    for model in p.models:
        group = main.of(model=model).frame
        early, full = group["finish_iterations"] < EARLY, group["finish_iterations"] >= p.finish
        line = {"model": model, "runs": len(group), f"all {p.finish:,} iterations": int(full.sum())}
        line[f"fewer than {EARLY}"] = int(early.sum())
        lines.append(line | {"of these, MSE below 0.1": int((group[early]["valid_mse"] < 0.1).sum())})
    return Table(lines, "How far L-BFGS went before its line search found no lower point")


def without_lbfgs(every: Rows, main: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """How many runs fit after first-order updates alone."""
    without = grid(every, p, p.first_order, tail=", first-order only")
    same, lines = of_sizes(main, p.first_order), []
    for model in p.models:
        alone = share(without.frame, model, 0.1, f"{model}, first-order only")
        line = {"model": model, "first-order only": alone.ours, "published, all h": alone.published}
        lines.append(line | {"with L-BFGS": share(same.frame, model, 0.1).ours})
    numbers = {
        f"{name}_first": how_many_fit(without.of(model=f"{model}, first-order only"))
        for name, model in SHORT.items()
    }
    caption = f"Share of runs with a training MSE below 0.1, h = {sizes_said(p.first_order)}"
    return Table(lines, caption), numbers


def as_the_authors(every: Rows, main: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """How many runs fit with the authors' gradient and line search, and what becomes of their L-BFGS."""
    theirs, lines, agreeing, closer = grid(every, p, p.authors, tail=as_authors("")), [], [], 0
    for model, limit in product(p.models, LIMITS):
        ours, adjoint = (
            share(main.frame, model, limit),
            share(theirs.frame, model, limit, as_authors(model)),
        )
        line = {"model": model, "runs with an MSE below": text(limit), "ours": ours.ours}
        lines.append(line | {"as the authors": adjoint.ours, "published": ours.published})
        agreeing.append(adjoint.agrees)
        far, near = (abs(one.ours.estimate - one.published.estimate) for one in (ours, adjoint))
        closer += near < far
    caption = "Share of runs below a training MSE, with our gradient and L-BFGS and with the authors'"
    if not len(theirs):
        asked = set(keys_of(authors_runs()))
        recorded = len(asked.intersection(read("npu/fractional-sir")["key"]))
        said = f"{recorded} of these {len(asked)} runs are recorded so far; the table waits for all of them"
        return Table([]), {"authors": said, "authors_closer": NOT_RUN, "authors_dense": NOT_RUN}
    ends = [theirs.of(model=as_authors(model)) for model in p.models]
    iterations, undone = (
        ", ".join(f"{what(one)} in the {model}" for model, one in zip(p.models, ends, strict=True))
        for what in (
            lambda one: one.whole("finish_iterations", pd.Series.median),
            lambda one: one.share(one.frame["finish_iterations"] == 0),
        )
    )
    said = (
        f"Shares that agree with the published ones: {sum(agreeing)} of {len(agreeing)}. Iterations of "
        f"L-BFGS, medians: {iterations}. Runs in which an error undoes it: {undone}"
    )
    dense = theirs.of(model=as_authors("Dense"))
    return Table(lines, caption), {
        "authors": said,
        "authors_closer": f"{closer} of {len(agreeing)}",
        "authors_dense": dense.share(dense.frame["valid_mse"] < LIMITS[0]),
    }


def cut_short(every: Rows, main: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """How many runs fit if L-BFGS may take fewer iterations."""
    limits = {"early": p.early, "later": p.later, "all": p.finish}
    cut = {name: grid(every, p, p.stopped, tail=stopped("", limit)) for name, limit in limits.items()}
    cut["all"] = of_sizes(main, p.stopped)

    def arm(model: str, name: str) -> str:
        return model if name == "all" else stopped(model, limits[name])

    lines, agreeing = [], {name: [] for name in limits}
    for model, limit in product(p.models, (0.1, 1.0)):
        shares = {name: share(cut[name].frame, model, limit, arm(model, name)) for name in limits}
        line = {"model": model, "runs with an MSE below": text(limit)}
        line |= {f"at most {limits[name]:,}": one.ours for name, one in shares.items()}
        lines.append(line | {"published": shares["all"].published})
        for name, one in shares.items():
            agreeing[name].append(one.agrees)
    fitting = Rows(main.of(model="RealNPU").frame.query("valid_mse < 0.1"))
    numbers = {f"agree_{name}": f"{sum(which)} of {len(which)}" for name, which in agreeing.items()}
    numbers |= {"early": str(p.early), "later": str(p.later)}
    numbers["real_fewest"] = fitting.whole("finish_iterations", pd.Series.min)
    for when, (name, model) in product(("early", "later"), SHORT.items()):
        numbers[f"{name}_{when}"] = how_many_fit(cut[when].of(model=arm(model, when)))
    caption = "Share of runs below a training MSE, by how many iterations L-BFGS may take, h = "
    return Table(lines, caption + sizes_said(p.stopped)), numbers


def over_parameters(
    arms: Mapping[str, pd.DataFrame],
    levels: Mapping[str, float],
    level_name: str,
    lowest: Mapping[str, float],
    published: pd.DataFrame | None = None,
) -> Figure:
    """Figure 4: the error of each run over its number of parameters, a panel per arm.

    Args:
        arms: name -> runs with ``count``.
        levels: name -> the error of the true equations, called ``level_name``.
        lowest: name -> the lower end of the axis.
        published: the published runs, in the first panel.
    """
    if published is not None:
        published = published.assign(arm=next(iter(arms)))
    return scatter(
        pd.concat([frame.assign(arm=name) for name, frame in arms.items()]),
        x="count",
        y="valid_mse",
        row="arm",
        published=published,
        limits={name: (low, 1e4) for name, low in lowest.items()},
        levels=levels,
        level_name=level_name,
        xlabel="parameters above 0.001",
        ylabel="MSE",
    )


def fronts(main: Rows) -> tuple[Table, Numbers]:
    """The drawn lines of Figure 4, and the fronts of the published runs and of ours."""
    lines, corners, theirs = [], printed_runs("published_front_line"), printed_runs()
    for model in [one for one in MODELS if one in set(main.frame["model"])]:
        drawn, printed, ours = (part[part["model"] == model] for part in (corners, theirs, main.frame))
        lines.append([model, "as drawn", listed(drawn)])
        lines.append([model, "published runs", listed(front(printed))])
        lines.append([model, "our runs", listed(front(ours))])
    dense = front(main.of(model="Dense").frame).query("valid_mse < 1").drop_duplicates("count")
    powers = main.of(model=["NPU", "RealNPU"]).frame
    beaten = [
        ((powers["count"] <= size) & (powers["valid_mse"] < error)).any()
        for size, error in zip(dense["count"], dense["valid_mse"], strict=True)
    ]
    caption = "The lines of Figure 4, and the runs that no other of their model beats (MSE below 1)"
    columns = ["model", "front", "parameters: MSE"]
    table = Table(lines, caption, columns, wrap=True, folded="The lines and the fronts, point by point")
    return table, {"beaten": f"{Rows(dense).share(beaten)} networks on the dense front"}


def over_time(
    networks: Mapping[str, torch.nn.Module], until: float, data: Mapping[str, torch.Tensor]
) -> Figure:
    """The states that networks predict, and the data."""
    times = torch.linspace(0.0, until, 401, dtype=torch.float64)[:, None]
    lines = {name: (times[:, 0], one(times).detach().numpy()) for name, one in networks.items()}
    panels = ["S, susceptible", "I, infectious", "R, recovered"]
    return courses(lines, panels, points=(data["times"][:, 0], data["states"].numpy()))


def formula(title: str, weights: Mapping[str, Any]) -> None:
    """Show the equations that a network has learned."""
    display(Markdown(title), Math(latex(weights, NAMES, digits=2)))


def run_formula(row: pd.Series, title: str, counted: bool = False) -> None:
    """Show those of a run; ``counted``: with its number of parameters."""
    where = f"h = {row['hidden']}, penalty {row['penalty']}, seed {row['seed']}"
    more = f", {int(row['count'])} parameters" if counted else ""
    formula(f"{title}, {where} (MSE {text(row['valid_mse'], 2)}{more}):", json.loads(row["weights"]))


def small_ones(main: Rows) -> tuple[Rows, Numbers]:
    """The RealNPUs with an MSE below 0.1 and fewer than 20 parameters, the best first; what they have."""
    real = main.of(model="RealNPU").frame
    small = Rows(real.query("valid_mse < 0.1 and count < 20").sort_values("valid_mse"))
    counts = dict(zip(("r", "i", "power"), terms(small.frame).sum(0), strict=True))
    gates = dict(zip(NAMES, _gates(small), strict=True))
    return small, (
        {"sparse_real": str(len(small))}
        | {f"sparse_{name}": str(count) for name, count in counts.items()}
        | {f"gate_{name.lower()}": text(float(gate), 2) for name, gate in gates.items()}
    )


def _gates(small: Rows) -> np.ndarray:
    return np.median(small.weights("field.0.gate"), 0) if len(small) else np.full(3, np.nan)


def drawn_formula(small: Rows, data: Mapping[str, torch.Tensor]) -> Numbers:
    """Show the equations of the paper's Figure 5; their errors with open gates and with those of our runs."""
    drawn, found = drawn_weights(), {}
    for name, opened in {"open": np.ones(3), "ours": _gates(small)}.items():
        model = network(fsir_arm("RealNPU", 6, 1.0).model, drawn | {"field.0.gate": opened})
        found[f"printed_{name}"] = text((model(data["times"]) - data["states"]).square().mean().item())
    said = f"its MSE is 0.035; that of this formula, with open gates, {found['printed_open']}"
    formula(f"The RealNPU in the paper's Figure 5 ({said}):", drawn)
    return found
