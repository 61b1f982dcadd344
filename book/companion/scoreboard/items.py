"""Every figure and table of the three papers, each from the file of its experiment."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType

from companion import division, nau_nmu, npu
from companion.experiment import Experiment
from companion.experiment.errata import KINDS, Erratum
from companion.experiment.statements import Item

__all__ = ["ERRATA", "EXPERIMENTS", "ITEMS", "experiments_of"]

ROOMS = {"nau-nmu": nau_nmu, "npu": npu, "division": division}


def experiments_of(*rooms: ModuleType) -> Iterator[Experiment]:
    """The ``EXPERIMENT`` of every file of these packages that has one."""
    for room in rooms:
        for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            found = getattr(importlib.import_module(module.name), "EXPERIMENT", None)
            if isinstance(found, Experiment):
                yield found


def _in_order(item: Item) -> tuple[int, str, int]:
    """By paper, figures before tables, the appendix last."""
    if item.paper not in ROOMS:
        raise ValueError(
            f"{item.name} is an item of {item.paper!r}, but items are of {', '.join(ROOMS)}; "
            "a question of your own has none."
        )
    kind, number = item.name.split(" ")
    return list(ROOMS).index(item.paper), kind, int(number.lstrip("A")) + 100 * number.startswith("A")


def _by_place(erratum: Erratum) -> tuple[int, list[tuple[bool, str | int]]]:
    """By kind, then by place, numbers as numbers."""
    words = re.split(r"(\d+)", erratum.where)
    return list(KINDS).index(erratum.kind), [
        (word.isdigit(), int(word) if word.isdigit() else word) for word in words
    ]


EXPERIMENTS = tuple(experiments_of(*ROOMS.values()))
"""The experiments on the papers, each from its own file."""

ITEMS: list[Item] = sorted((item for one in EXPERIMENTS for item in one.items), key=_in_order)
"""All items, in the papers' order."""

ERRATA: dict[str, list[tuple[Erratum, str]]] = {
    paper: sorted(
        (
            (erratum, one.chapter)
            for one in EXPERIMENTS
            if one.chapter.startswith(f"book/{paper}/")
            for erratum in one.errata
        ),
        key=lambda found: _by_place(found[0]),
    )
    for paper in ROOMS
}
"""Paper -> its errata, each with the page that shows it."""
