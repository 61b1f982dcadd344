"""One call compares units on tasks: a table with intervals, a figure, freshness and verification.

From the shell: ``python -m nalm.study square.py:SquareUnit --seeds 10``, or ``make compare``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nalm.commands import exit_with
from nalm.extras import train as _  # noqa: F401

# isort: split
import numpy as np
import pandas as pd
from scipy.stats import binomtest
from torch import nn

from nalm.models import Stack
from nalm.models.outline import outline
from nalm.records import PUBLISHED, Verification, results_folder, run_all, verify_rows
from nalm.records.code import OLDER, Freshness, freshness_of, least_fresh
from nalm.records.store import Store
from nalm.tasks import SingleModuleTask, Task
from nalm.training import Adam, Discretisation, Recipe, Run
from nalm.units import Unit, checks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Study", "compare"]

MOST_SEEDS = 10_000
"""Runs of one kind; more of them fill the memory before any is trained."""
COLUMNS = ["operation", "range", "model", "lr"]


@dataclass(frozen=True, eq=False)
class Study:
    """What :func:`compare` found.

    Args:
        rows: a row per run, with the columns of every results file and ``operation`` and ``lr``.
        experiment, results: where they are recorded.
    """

    rows: pd.DataFrame
    experiment: str
    results: str

    def summary(self) -> pd.DataFrame:
        """A line for each task, unit and learning rate: how many of ``n`` runs solved it, that rate with its
        95% Wilson interval ``low`` to ``high``, and the median iteration at which they did. Tasks or units
        of one name are numbered in the order in which they were given.
        """
        lines = []
        for names, group in self.rows.groupby(COLUMNS, sort=False):
            solved, n = int(group["success"].sum()), len(group)
            low, high = binomtest(solved, n).proportion_ci(method="wilson")
            at = group["solved_at"][group["success"].astype(bool)].median()
            found = {"n": n, "solved": solved, "rate": solved / n, "low": low, "high": high, "solved_at": at}
            lines.append(dict(zip(COLUMNS, names, strict=True)) | found)
        return pd.DataFrame(lines)

    def best(self) -> pd.DataFrame:
        """Of :meth:`summary`, for each task and unit the learning rate that solved most, sooner if equal."""
        order = self.summary().sort_values(["rate", "solved_at"], ascending=[False, True], kind="stable")
        return order.drop_duplicates(["operation", "range", "model"]).sort_index()

    def figure(self, operation: str | None = None) -> Figure:
        """Success rates with their intervals for each task, of each unit with its best learning rate.

        Args:
            operation: only tasks with this one.

        Raises:
            ImportError: matplotlib is not installed.
            ValueError: no task with this operation.
        """
        from nalm.extras import figures as _  # noqa: F401, F811

        # isort: split
        from matplotlib.figure import Figure

        shown = self.best()
        if operation is not None:
            shown = shown[shown["operation"] == operation]
        if shown.empty:
            known = ", ".join(map(repr, self.rows["operation"].unique()))
            raise ValueError(f"There is no operation {operation!r} in this comparison; there are {known}.")
        tasks = list(dict.fromkeys(zip(shown["operation"], shown["range"], strict=True)))
        units = list(dict.fromkeys(shown["model"]))
        figure = Figure(figsize=(max(4.0, 1.2 * len(tasks)), 3.0), layout="constrained")
        axes = figure.add_subplot(ylim=(-0.03, 1.03), ylabel="success rate")
        for number, (unit, group) in enumerate(shown.groupby("model", sort=False)):
            shift = 0.6 * ((number + 0.5) / len(units) - 0.5)
            at = [tasks.index(task) + shift for task in zip(group["operation"], group["range"], strict=True)]
            ends = np.abs([group["rate"] - group["low"], group["high"] - group["rate"]])
            axes.errorbar(at, group["rate"], ends, fmt="os^Dv<>P*X"[number % 10], capsize=2, label=str(unit))
        axes.set_xticks(range(len(tasks)), ["\n".join(task) for task in tasks])
        axes.legend()
        return figure

    def freshness(self) -> Freshness:
        """Whether all rows were made with the code, the reader's own included, as it is now. A row that has
        been replaced or removed since is older.
        """
        states: set[Freshness] = set()
        found = 0
        for folder in {PUBLISHED, results_folder(self.results)}:
            store = Store(folder, self.experiment)
            rows = store.read()
            ours = rows["key"].isin(self.rows["key"]) & rows["batch"].isin(self.rows["batch"])
            states |= set(freshness_of(rows[ours], store.sidecar()))
            found += ours.sum()
        return OLDER if found < len(self.rows) else least_fresh(states)

    def verify(self, rows: int = 2, progress: bool = False) -> Verification:
        """Train some rows of this comparison, drawn at random, again and compare.

        Raises:
            ValueError: none of them are in ``results``, as all were published.
        """
        folder, keys = results_folder(self.results), set(self.rows["key"])
        return verify_rows(rows, self.experiment, folder=folder, progress=progress, key=keys)


def compare(
    units: Sequence[type[nn.Module] | str | Stack] | type[nn.Module] | str | Stack,
    tasks: Sequence[Task] | Task,
    *,
    lr: Iterable[float] | float = 1e-2,
    seeds: int = 25,
    iterations: int = 5000,
    recipe: Recipe | None = None,
    threshold: float = 1e-5,
    experiment: str = "own/compare",
    results: str = "",
    progress: bool = True,
    compiled: bool | None = None,
) -> Study:
    """Train each unit on each task with each learning rate and seed.

    What is recorded is read. Rows that are older than their code, such as those of a unit that was changed
    since, are trained again.

    Args:
        units: classes of one's own, names of units of the library, ``"folder/square.py:SquareUnit"``, or
            whole stacks.
        tasks: what they learn.
        lr: learning rates.
        seeds: seeds 0 to ``seeds`` - 1.
        iterations: updates of a run, unless a ``recipe`` says how many.
        recipe: how they are trained; without one Adam, with the units' own penalty, if they have one, growing
            from half to three quarters of the iterations. Its learning rate is replaced by ``lr``.
        threshold: test error below which a run has solved its task.
        experiment, results, progress, compiled: as :func:`nalm.records.run_all` takes them.

    Raises:
        ValueError: a unit that cannot be found or cannot be trained, a task with targets that are no finite
            numbers, or wrong numbers.
        TypeError: something else than units, tasks and numbers.

    >>> import tempfile
    >>> task = SingleModuleTask.on("U[1,2)", operation=lambda a, b: a * a + b)
    >>> study = compare(["NAU"], task, seeds=2, iterations=20, results=tempfile.mkdtemp(), progress=False)
    >>> study.summary()[["operation", "range", "model", "lr", "n", "solved"]]
       operation   range model    lr  n  solved
    0  a * a + b  U[1,2)   NAU  0.01  2       0
    """
    one_unit = isinstance(units, type | str | Stack) or not isinstance(units, Iterable)
    units = [units] if one_unit else list(units)  # type: ignore[list-item, arg-type]
    one_task = isinstance(tasks, Task | str) or not isinstance(tasks, Iterable)
    tasks = [tasks] if one_task else list(tasks)  # type: ignore[list-item, arg-type]
    for task in tasks:
        if not isinstance(task, Task):
            raise TypeError(
                "A task is a nalm.tasks.Task, as SingleModuleTask.on('U[1,2)', operation='mul'), "
                f"not {task!r}."
            )
        with np.errstate(all="ignore"):
            if not all(one.targets.isfinite().all() for one in task.evaluation(seed=0).values()):
                raise ValueError(
                    f"{getattr(task, 'operation', type(task).__name__)!r} has no finite value on part of "
                    f"{task.label()}: take another range."
                )
    # a text, and an array or tensor of one number, are no rates
    several = isinstance(lr, Iterable) and not isinstance(lr, str) and getattr(lr, "ndim", 1) != 0
    rates = [checks.number("lr", rate) for rate in (lr if several else [lr])]  # type: ignore[union-attr]
    threshold = checks.number("threshold", threshold)
    iterations, seeds = checks.positive_int("iterations", iterations), check_seeds(seeds)
    if not (recipe is None or isinstance(recipe, Recipe)):
        raise TypeError(f"A recipe is a nalm.training.Recipe, not {recipe!r}.")
    runs = []
    operations = [getattr(task, "operation", "-") for task in tasks]
    for task, operation in zip(tasks, _numbered(operations, [task.label() for task in tasks]), strict=True):
        models = [_stack(unit, task) for unit in units]
        for model, name in zip(models, _numbered([_name(model) for model in models]), strict=True):
            of_model = recipe or _recipe(model, task, iterations)
            runs += [
                Run(
                    task=task,
                    model=model,
                    recipe=of_model.but(optimiser=of_model.optimiser.but(lr=rate)),
                    seed=seed,
                    threshold=threshold,
                    labels={"model": name, "operation": operation, "lr": _text(rate)},
                )
                for rate in dict.fromkeys(rates)
                for seed in range(seeds)
            ]
    rows = run_all(runs, experiment, results=results, progress=progress, compiled=compiled, retrain=True)
    # recorded ones may have been called otherwise, in a comparison of other units
    rows = rows.assign(**pd.DataFrame([run.labels for run in runs]))
    # of a path, the place that it is now, wherever the process goes
    place = str(results) if str(results) in ("", "publish") else str(Path(results).resolve())
    return Study(rows, experiment, place)


def check_seeds(seeds: Any) -> int:
    """A number of seeds, if it is one from 1 to :data:`MOST_SEEDS`."""
    if (number := checks.positive_int("seeds", seeds)) > MOST_SEEDS:
        raise ValueError(f"seeds is {seeds}, but must be at most {MOST_SEEDS:,}.")
    return number


def _recipe(model: Stack, task: Task, iterations: int) -> Recipe:
    """How a model is trained that nobody gave a recipe for."""
    with outline():
        has_penalty = any(isinstance(part, Unit) for part in model.build(task.in_features).modules())
    start = iterations // 2
    ramp = Discretisation(weight=1.0, start=start, end=max(start + 1, 3 * iterations // 4))
    return Recipe(
        iterations=iterations,
        optimiser=Adam(lr=1e-2),
        log_interval=max(1, iterations // 50),
        penalties=(ramp,) if has_penalty else (),
    )


def _stack(unit: type[nn.Module] | str | Stack, task: Task) -> Stack:
    if not isinstance(unit, type | str | Stack):
        raise TypeError(f"A unit is a class, the name of one or a nalm.models.Stack, not {unit!r}.")
    return unit if isinstance(unit, Stack) else Stack.of(unit, task.out_features)


def _name(model: Stack) -> str:
    return "-".join(layer.unit.rpartition(":")[2] for layer in model.layers)


def _text(rate: float) -> str:
    return short if float(short := f"{rate:g}") == rate else repr(rate)


def _numbered(names: Sequence[str], beside: Sequence[str] = ()) -> list[str]:
    """The names, with a number where several are the same and so is what stands beside them.

    >>> _numbered(["NMU", "NAU", "NMU"])
    ['NMU 1', 'NAU', 'NMU 2']
    """
    pairs = list(zip(names, beside or names, strict=True))
    return [
        f"{name} {pairs[: place + 1].count(pair)}" if pairs.count(pair) > 1 else name
        for place, (name, pair) in enumerate(zip(names, pairs, strict=True))
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m nalm.study", description="Compare units on tasks with two operands."
    )
    parser.add_argument("units", nargs="+", help="FILE:CLASS, MODULE:CLASS or the name of a unit")
    parser.add_argument("--beside", nargs="*", default=["NAU", "NMU"], help="units of the library (NAU NMU)")
    parser.add_argument("--operations", nargs="+", default=["squared", "add", "mul"], help="squared add mul")
    parser.add_argument("--ranges", nargs="+", default=["U[1,2)", "U[-2,2)"], help="U[1,2) U[-2,2)")
    parser.add_argument("--lr", nargs="+", type=float, default=[1e-2], help="learning rates (0.01)")
    parser.add_argument("--iterations", type=int, default=5000, help="updates of a run (5000)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of a unit on a task (10)")
    parser.add_argument("--results", default="", help="folder of results; your own data folder if not given")
    options: Any = parser.parse_args(arguments)
    try:
        tasks = [
            SingleModuleTask.on(name, operation=operation)
            for operation in dict.fromkeys(options.operations)
            for name in dict.fromkeys(options.ranges)
        ]
        study = compare(
            list(dict.fromkeys([*options.units, *options.beside])),
            tasks,
            lr=options.lr,
            seeds=options.seeds,
            iterations=options.iterations,
            results=options.results,
        )
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(study.summary().to_string(index=False, float_format=lambda value: f"{value:.3g}"))
    print(f"The rows are {study.freshness().replace('it depends', 'they depend')}.")
    return 0


if __name__ == "__main__":
    exit_with(main)
