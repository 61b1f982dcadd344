"""What the chapter on solver and imaginary weights says: its tables and the numbers of its text.

``every`` are all runs of the chapter, ``tested`` those that it compares in its last section.
"""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np

from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.tables import Table, text
from companion.npu.fractional_sir import SOLVERS, fitted, share, true_error
from companion.npu.fractional_sir_page import (
    EARLY,
    SHORT,
    Numbers,
    grid,
    how_many_fit,
    lowest_mse,
    middle,
    published_fits,
    sizes_said,
)
from companion.npu.fractional_sir_solver import (
    FROZEN,
    POSITIVE,
    as_in_text,
    frozen,
    largest_imaginary,
    powers,
)


def with_text(every: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """How many runs fit with the settings of the text, those of the code, and as published."""
    of_text, of_code = grid(every, p, p.as_in_text, tail=as_in_text("")), grid(every, p, p.as_in_text)
    lines, numbers = [], published_fits()
    for name, model in SHORT.items():
        arms = {"code": of_code.of(model=model), "text": of_text.of(model=as_in_text(model))}
        numbers |= {
            f"{name}_text": how_many_fit(arms["text"]),
            f"{name}_text_lowest": lowest_mse(arms["text"]),
        }
        if model in p.models:
            line = {"model": model, "published, all h": share(of_code.frame, model, 0.1).published}
            for arm, group in arms.items():
                line[f"settings of the {arm}"] = fitted(group.frame, 0.1)
            line |= {f"median MSE, {arm}": middle(group.frame["valid_mse"]) for arm, group in arms.items()}
            lines.append(line)
    caption = f"Share of runs with a training MSE below 0.1, h = {sizes_said(p.as_in_text)}"
    return Table(lines, caption), numbers


def by_solver(every: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """Runs under both solvers, and the error of the true equations under the accurate one."""
    both, lines = {solver: grid(every, p, p.accurate, solver) for solver in SOLVERS}, []
    numbers = {"true_rk4": text(true_error("rk4", p.step), 1)}
    for model, (solver, name) in product(p.models, SOLVERS.items()):
        group = both[solver].of(model=model).frame
        line = {"model": model, "solver": name, "runs": len(group)}
        line["MSE below 0.1"] = fitted(group, 0.1)
        line |= {"median MSE": middle(group["valid_mse"]), "lowest MSE": group["valid_mse"].min()}
        lines.append(line | {"lowest MSE on [200, 400]": group["test_mse"].min()})
    for name, model in SHORT.items():
        numbers |= {f"{name}_{solver}": how_many_fit(both[solver].of(model=model)) for solver in SOLVERS}
        group = both["rk4"].of(model=model)
        numbers |= {
            f"{name}_rk4_lowest": lowest_mse(group),
            f"{name}_rk4_free": lowest_mse(group.of(penalty="0")),
        }
        numbers[f"{name}_rk4_stuck"] = group.share(group.frame["finish_iterations"] < EARLY)
    return Table(lines, f"The solver's part, h = {sizes_said(p.accurate)}, all penalties"), numbers


def detours(tested: Rows, p: SimpleNamespace) -> tuple[Table, Numbers]:
    """Imaginary weights that are frozen, and negative states that are seen as zero."""
    lines = []
    for name in [*powers(p), *map(frozen, p.frozen), *POSITIVE]:
        group = tested.of(model=name).frame
        line = {"arm": name, "runs": len(group)}
        line["MSE below 0.1"] = fitted(group, 0.1)
        line["median MSE"] = middle(group["valid_mse"])
        full = (group["finish_iterations"] >= p.finish).sum()
        line[f"all {p.finish:,} iterations of L-BFGS"] = int(full)
        line["updates with a negative state"] = group["negative_updates"].median() / p.iterations
        lines.append(line | {"largest imaginary weight": np.median(largest_imaginary(group))})
    arms = {"free": "NPU", "real_free": "RealNPU"}
    arms |= {str(updates): frozen(updates) for updates in FROZEN}
    arms |= {"npu_positive": "NPU, positive", "real_positive": "RealNPU, positive"}
    numbers = {f"detour_{name}": how_many_fit(tested.of(model=arm)) for name, arm in arms.items()}
    for name in ("free", "real_free", "real_positive"):
        group = tested.of(model=arms[name]).frame
        negative = f"{group['negative_updates'].median() / p.iterations:.0%}"
        numbers[f"negative_{name}"] = negative if len(group) else NOT_RUN
    numbers["detour_hidden"] = sizes_said(p.detours)
    return Table(lines, "Medians over the runs; updates as a share of the first-order ones"), numbers
