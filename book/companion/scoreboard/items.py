"""Every figure and table of the three papers, each from the file of its experiment."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from companion import division, nau_nmu, npu, published
from companion.division import judges as division_judges
from companion.experiment import Experiment
from companion.nau_nmu import judges as nau_nmu_judges
from companion.npu import judges as npu_judges
from companion.statements import Explanation, Item

__all__ = ["EXPERIMENTS", "ITEMS"]


def _experiments() -> Iterator[Experiment]:
    """The ``EXPERIMENT`` of every file that has one."""
    for paper in (nau_nmu, npu, division):
        for module in pkgutil.iter_modules(paper.__path__, f"{paper.__name__}."):
            found = getattr(importlib.import_module(module.name), "EXPERIMENT", None)
            if isinstance(found, Experiment):
                yield found


EXPERIMENTS = tuple(_experiments())
"""The experiments of all chapters, each from its own file."""


def _in_order(item: Item) -> tuple:
    kind, number = item.name.split(" ")
    return PAPERS.index(item.paper), kind, int(number.lstrip("A")) + 100 * number.startswith("A")


PAPERS = ["nau-nmu", "npu", "division"]


def _listed() -> list[Item]:
    """Items that are still kept in a table."""
    judges = division_judges.JUDGES | nau_nmu_judges.JUDGES | npu_judges.JUDGES
    found = []
    for line in published.load("items").fillna("").to_dict("records"):
        judge = judges.get((line["paper"], line["item"]))
        kinds = {"configuration": "settings", "timing": "experiment"}
        explained = (
            (Explanation(tuple(line["explains"].split("; ")), line["explanation"]),)
            if line["explanation"]
            else ()
        )
        common = dict(
            paper=line["paper"],
            name=line["item"],
            title=line["title"],
            kind=kinds.get(line["kind"], line["kind"]),
            headline=line["metric"],
            published=line["published"],
            chapter=line["chapter"],
            explanations=explained,
            seeds=int(line["seeds"] or 0),
            iterations=int(line["iterations"] or 0),
            runs=int(line["runs"] or 0),
            experiment=tuple(filter(None, line["experiment"].split("; "))),
            comparable=line["kind"] != "timing",
        )
        rows = (
            {}
            if judge is None
            else {"statements": judge}
            if callable(judge)
            else {"statements": judge.compare, "rows": judge.rows, "by": judge.by}
        )
        found.append(Item(**common, **rows))
    return found


_DEFINED = [item for experiment in EXPERIMENTS for item in experiment.items]
_NAMES = {(item.paper, item.name) for item in _DEFINED}

ITEMS: list[Item] = sorted(
    [*_DEFINED, *(item for item in _listed() if (item.paper, item.name) not in _NAMES)], key=_in_order
)
"""All items, in the papers' order."""
