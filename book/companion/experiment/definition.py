"""An experiment, defined once: its parameters, its runs, the items of the paper that it decides. Chapter,
scoreboard and tests use the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Annotated, Any

import pandas as pd
from nalm.models import AnyModel
from nalm.records import run_all
from nalm.tasks import Task
from nalm.training import Recipe, Run
from nalm.values import Value
from pydantic import Field

from companion.experiment import parameters
from companion.experiment.errata import Erratum
from companion.experiment.rows import Rows
from companion.experiment.statements import Item, Judgement, Read, Statements, Which, every
from companion.recorded import read
from companion.replay import in_place

__all__ = ["Arm", "Experiment", "judged", "replays_of", "runs_of"]


class Arm(Value):
    """What is compared in a figure: a model and how it is trained.

    >>> from companion.division import settings as division
    >>> nmru = division.arms(inputs=2)["NMRU"]
    >>> nmru.but(recipe=nmru.recipe.but(loss="pcc")).recipe.loss
    'pcc'
    """

    model: Annotated[AnyModel, Field(discriminator="kind")]
    recipe: Recipe


def runs_of(
    arms: Mapping[str, Arm],
    tasks: Iterable[Task] | Mapping[str, Task],
    seeds: int,
    threshold: float | None = None,
) -> list[Run]:
    """One run for each arm, task and seed.

    Args:
        arms: by name; the name is the label ``model`` of their runs.
        tasks: if they are named, the name is the label ``range``; else the task says its range.
        seeds: seeds 0 to ``seeds`` - 1.
        threshold: test error below which a run is solved.

    >>> from companion.division import settings as division
    >>> from nalm.tasks import SingleModuleTask
    >>> task = SingleModuleTask.on("U[1,2)", operation="div")
    >>> [(run.labels, run.seed) for run in runs_of({"NRU": division.arms(inputs=2)["NRU"]}, [task], seeds=2)]
    [({'model': 'NRU'}, 0), ({'model': 'NRU'}, 1)]
    """
    named = (
        [({"range": name}, task) for name, task in tasks.items()]
        if isinstance(tasks, Mapping)
        else [({}, task) for task in tasks]
    )
    return [
        Run(
            task=task,
            model=arm.model,
            recipe=arm.recipe,
            seed=seed,
            threshold=threshold,
            labels={"model": name} | label,
        )
        for name, arm in arms.items()
        for label, task in named
        for seed in range(seeds)
    ]


@dataclass(frozen=True)
class Experiment:
    """What a chapter asks for and what the scoreboard judges.

    Args:
        chapter: its page, ``"book/division/losses.ipynb"``.
        runs: the chapter's parameters -> results file -> the runs that are kept there.
        items: the figures and tables that it shows, in the page's order.
        rules: parameter -> what it may be, see :mod:`companion.experiment.parameters`.
        also: other results files, whose recorded rows count as well: a run of two figures is trained once.
        errata: what the chapter shows to be wrong in its paper.

    A chapter is rerun with other parameters, so an item is judged there by the rows that there are: where
    a configuration is missing, it is "not run".
    """

    chapter: str
    runs: Callable[[SimpleNamespace], Mapping[str, Sequence[Run]]]
    items: tuple[Item, ...] = ()
    rules: Mapping[str, parameters.Rule] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    errata: tuple[Erratum, ...] = ()

    def __post_init__(self) -> None:
        own = tuple(item if item.chapter else replace(item, chapter=self.chapter) for item in self.items)
        object.__setattr__(self, "items", own)

    def check(self, namespace: dict[str, Any]) -> SimpleNamespace:
        """The parameters of the chapter, checked before anything trains; ``namespace`` is ``globals()``.

        Raises:
            ValueError, TypeError: what :func:`companion.experiment.parameters.check` refuses.
        """
        return parameters.check(namespace, **self.rules)

    def rows(self, p: SimpleNamespace) -> Rows:
        """A row for each run that the parameters ask for: recorded rows are read, missing ones are
        trained.

        A page with the parameter ``train`` trains them only if that is true, or ``fresh``: then published
        rows are left out of account.
        """
        if missing := {"results", "device"} - vars(p).keys():
            raise ValueError(f"{self.chapter} trains, so it needs the parameter {min(missing)!r}.")
        fresh = getattr(p, "fresh", False)
        how = {
            "scheduler": getattr(p, "scheduler", ""),
            "train": getattr(p, "train", True) or fresh,
            "also": self.also,
            "fresh": fresh,
        }
        asked = self.runs(p)
        parts = [
            run_all(list(runs), name, p.results, p.device, **how) for name, runs in asked.items() if runs
        ]
        return Rows(pd.concat(parts, ignore_index=True), p.results)

    def item(self, name: str) -> Item:
        """The figure or table of this name.

        Raises:
            KeyError: it is none of this experiment.
        """
        return next((item for item in self.items if item.name == name), None) or self._unknown(name)

    def _unknown(self, name: str) -> Item:
        raise KeyError(
            f"{self.chapter} has no item {name!r}; it has {', '.join(item.name for item in self.items)}."
        )

    def statements(self, rows: Rows | None = None, *names: str) -> Statements:
        """What the items state beside these rows, as a table; all items of the experiment if none are named.

        Items of which nothing is trained need no rows.

        Raises:
            ValueError: the experiment has no items.
        """
        if not self.items:
            raise ValueError(f"{self.chapter} has no items, so it states nothing of a paper.")
        items = [self.item(name) for name in names] or self.items
        frame = None if rows is None else rows.frame
        return Statements([judged(item, frame, read) for item in items])

    def so_far(self, rows: Rows, name: str, part: Which = every, shown: Which = every) -> Statements:
        """As :meth:`statements` of one item; while it is not run in full, what can be compared already.

        Args:
            rows: of this experiment.
            name: of the item.
            part: which statements are meant while it is not.
            shown: which of these are shown; all are counted.
        """
        item = self.item(name)
        return Statements([_with_replay(item.judge_so_far(rows.frame, part, read), rows.frame, read)], shown)


def judged(item: Item, rows: pd.DataFrame | None, read: Read) -> Judgement:
    """What an item states beside the rows, and beside :func:`replays_of` it.

    Args:
        item: a figure or table.
        rows: of its experiments; not needed where nothing is trained.
        read: recorded rows by experiment.
    """
    found = item.judge(rows, read)
    return found if rows is None else _with_replay(found, rows, read)


def replays_of(item: Item, rows: pd.DataFrame, read: Read) -> pd.DataFrame:
    """The replays by which an item is judged: those of all its rows, or else the recorded ones, if it names
    any and they have more seeds of each configuration.

    Args:
        item: a figure or table.
        rows: of its experiments.
        read: recorded rows by experiment.
    """
    again = in_place(item.select(rows), read)
    if again.empty and item.replays and item.whole(recorded := read(item.replays)) > item.whole(rows):
        again = item.select(recorded)
    return again


def _with_replay(found: Judgement, rows: pd.DataFrame, read: Read) -> Judgement:
    item = found.item
    if item.kind != "experiment" or not (found.statements or item.replays):
        return found
    again = replays_of(item, rows, read)
    replay = None if again.empty else item.judge(again, read)
    if not replay or not replay.statements:
        return found
    own = item.select(rows)
    alone = "experiment" in own and set(own["experiment"]) == {f"{item.paper}/replay"}
    return replace(found, replay=replay, replays=again, replays_alone=alone)
