"""The order in which the authors' analysis reads the rows of its logs.

It takes the first row of a run's log whose test error is below the threshold. Before that it joins all rows
with their thresholds by R's ``merge``. Where the key of that join is not in order already, ``merge`` sorts by
Shell's method, which leaves rows of the same key in another order.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

from companion import measures, published
from companion.measures import Interval

__all__ = [
    "LAYOUTS",
    "Layout",
    "first_read",
    "means_in_either_order",
    "read_in_merged_order",
    "shell_sorted",
    "table_6",
]


@dataclass(frozen=True)
class Layout:
    """In which order a file of the authors holds the logs of runs.

    They lie by model, by what thresholds are joined on, by the seed's name (0, 1, 10, 11, ...).

    Args:
        models: in the order of their names there.
        keys: operations or ranges, likewise.
        runs: seeds of each.
        logs: rows per run.
        every: iterations from one row to the next.
        lengths: rows of each run in the order of the file, where they are known.
    """

    models: tuple[str, ...]
    keys: tuple[str, ...]
    runs: int
    logs: int = 5001
    every: int = 1000
    lengths: tuple[int, ...] = ()

    def seeds(self) -> list[int]:
        """In the order of their names."""
        return sorted(range(self.runs), key=str)

    def lines(self) -> list[tuple[str, str]]:
        """Model and key of each line of runs."""
        return list(product(self.models, self.keys))

    def rows(self) -> np.ndarray:
        """Rows of each run."""
        return np.array(self.lengths or [self.logs] * (len(self.lines()) * self.runs))


LAYOUTS = {
    "Table 5": Layout(("NALU (separate)", "NALU (shared)", "Gated NAU/NMU"), ("add", "mul"), 100),
    "Figure 3": Layout(
        ("NAC•", "NALU", "NAC•,σ", "NMU", "Gated NAU/NMU", "NAC•,NMU"),
        ("U[-2,-1)", "U[-2,2)", "U[0,1)", "U[0.1,0.2)", "U[1,2)", "U[1.1,1.2)", "U[10,20)"),
        50,
    ),
}
"""Item -> how its logs lie in the authors' file."""


@cache
def table_6() -> Layout:
    """How the logs of Table 6, and so of Table 2, lie in the authors' file.

    All have 5,001 rows but 27 of NALUs.

    >>> table_6().rows().sum()
    np.int64(29876191)
    """
    models = ("Linear", "NAC+", "NAC•", "NALU", "NAC•,σ", "ReLU", "ReLU6", "NAU", "NMU", "NAC•,NMU")
    layout = Layout(models, ("add", "div", "mul", "root", "squared", "sub"), runs=100)
    rows = published.load("nau_nmu_logged_points").set_index(["model", "operation", "seed"])["logged_points"]
    return replace(
        layout, lengths=tuple(int(rows[*line, seed]) for line in layout.lines() for seed in layout.seeds())
    )


def shell_sorted(keys: Sequence[int]) -> np.ndarray:
    """The order in which Shell's sort leaves values, with the gaps 1, 4, 13, 40, ... as in R's ``merge``.

    The positions before the sort are returned, one per value.

    A pass sorts the values that are a gap apart by insertion, which keeps the order of equal ones; passes
    together do not.

    Args:
        keys: whole numbers.

    >>> shell_sorted([0, 0, 0, 0, 1, 0, 0, 0, 0]).tolist()
    [0, 1, 2, 3, 8, 5, 6, 7, 4]
    """
    pieces = _sorted(np.asarray(keys, dtype=int), np.ones(len(keys), dtype=int))
    return np.repeat(pieces.first, pieces.length) + _from_zero(pieces.length)


class _Pieces(NamedTuple):
    """A sequence of values, as pieces of the sequence before the sort: a key, which all values of a piece
    have, the position of its first value there, and how many there are.

    A file has millions of rows, and even in the midst of the sort a few thousand pieces.
    """

    key: np.ndarray
    first: np.ndarray
    length: np.ndarray

    def joined(self) -> _Pieces:
        """With those as one that follow each other."""
        follows = (self.key[1:] == self.key[:-1]) & (self.first[1:] == (self.first + self.length)[:-1])
        begins = np.flatnonzero(np.append(True, ~follows))
        return _Pieces(self.key[begins], self.first[begins], np.add.reduceat(self.length, begins))


def _sorted(keys: np.ndarray, lengths: np.ndarray) -> _Pieces:
    """A sequence after Shell's sort, in which so many values have each key."""
    if not lengths.sum():
        return _Pieces(keys[:0], lengths[:0], lengths[:0])
    pieces, gap = _Pieces(keys, np.cumsum(lengths) - lengths, lengths).joined(), 1
    while gap <= lengths.sum() // 9:
        gap = 3 * gap + 1
    while gap:
        parts = [_columns_sorted(part, gap) for part in _parts(pieces)]
        pieces = _Pieces(*map(np.concatenate, zip(*parts, strict=True))).joined()
        gap //= 3
    return pieces


def _parts(pieces: _Pieces) -> Iterator[_Pieces]:
    """Parts without a larger key than in any part behind: what is in one stays in it."""
    largest_so_far = np.maximum.accumulate(pieces.key)
    smallest_from_here = np.minimum.accumulate(pieces.key[::-1])[::-1]
    ends = np.flatnonzero(np.append(largest_so_far[:-1] <= smallest_from_here[1:], True)) + 1
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        yield _Pieces(*(each[begin:end] for each in pieces))


def _columns_sorted(pieces: _Pieces, gap: int) -> _Pieces:
    """Written in rows of so many values, each column is sorted; equal values stay in order.

    Neighbouring columns are alike where in no row a piece begins between them, and move together.
    """
    count = pieces.length.sum()
    if len(pieces.key) == 1 or gap >= count:
        return pieces
    begins = np.cumsum(pieces.length) - pieces.length
    columns = np.unique(np.append(begins % gap, [0, count % gap]))
    widths = np.diff(np.append(columns, gap))
    places = columns + np.arange(0, count, gap)[:, None]
    there = places < count  # in the last row
    piece = np.searchsorted(begins, places, side="right") - 1
    keys = np.where(there, pieces.key[piece], pieces.key.max() + 1)
    order = np.argsort(keys, axis=0, kind="stable")
    first = pieces.first[piece] + places - begins[piece]
    keys, first = (np.take_along_axis(each, order, axis=0) for each in (keys, first))
    return _Pieces(keys[there], first[there], np.broadcast_to(widths, there.shape)[there])


def _from_zero(lengths: np.ndarray) -> np.ndarray:
    """Zero, one and so on for each of some lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def read_in_merged_order(
    solved_at: Mapping[tuple[str, str], Sequence[float]], layout: Layout
) -> dict[tuple[str, str], np.ndarray]:
    """What is found for *solved at* if the first row below the threshold is taken after R's ``merge``.

    A run is taken to stay below the threshold from its first solved iteration on.

    Args:
        solved_at: model and key -> first solved iterations of all runs, NaN for those that are not solved.
            Lines of the layout that are left out have rows all the same.
        layout: of the file.

    Raises:
        ValueError: a line that the layout does not have, or another number of runs.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> read_in_merged_order({("NMU", "add"): [3000.0, 3000.0, 3000.0]}, layout)["NMU", "add"].tolist()
    [3000.0, 21000.0, 3000.0]
    """
    for line, times in solved_at.items():
        if line[0] not in layout.models or line[1] not in layout.keys or len(times) != layout.runs:
            raise ValueError(
                f"{len(times)} runs of {line} are given; the file has {layout.runs} of each of "
                f"{layout.models} and {layout.keys}."
            )
    return {
        line: _read_line(line, np.asarray(times, dtype=float), layout) for line, times in solved_at.items()
    }


def _read_line(line: tuple[str, str], times: np.ndarray, layout: Layout) -> np.ndarray:
    logs = _stretches(layout)[layout.lines().index(line) * layout.runs :]
    found = np.full(layout.runs, np.nan)
    for seed, stretches in zip(layout.seeds(), logs, strict=False):
        if not np.isnan(times[seed]):
            row = math.ceil(times[seed] / layout.every)
            below = (max(first, row) * layout.every for first, end in stretches if end > row)
            found[seed] = next(below, np.nan)
    return found


def means_in_either_order(
    line: tuple[str, str], times: Sequence[float], layout: Layout
) -> tuple[Interval, Interval]:
    """The mean of *solved at* of a line's runs, fitted as the authors do, from rows in order and after R's
    ``merge``.

    Args:
        line: model and key.
        times: first solved iterations of all its runs, NaN for those that are not solved.
        layout: of the file.

    Raises:
        ValueError: as of :func:`read_in_merged_order`.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> in_order, merged = means_in_either_order(("NMU", "add"), [3000.0, 3500.0, 4000.0], layout)
    >>> round(in_order.estimate), round(merged.estimate)
    (3523, 11001)
    """
    merged = read_in_merged_order({line: times}, layout)[line]
    in_order, late = (measures.solved_at(each, variance="sample") for each in (times, merged))
    return in_order, late


def first_read(layout: Layout) -> dict[tuple[str, str], np.ndarray]:
    """For each line, the iteration of the row of each seed's log that comes first after that sort.

    It is 0 where that is the log's own first row.

    A run that is solved before it is read as solved just there.

    >>> layout = Layout(("NAU", "NMU", "NALU"), ("add", "mul", "div"), runs=3, logs=101)
    >>> first_read(layout)["NMU", "add"].tolist()
    [0.0, 21000.0, 0.0]
    """
    first = [float(stretches[0][0] * layout.every) for stretches in _stretches(layout)]
    by_line = np.reshape(first, (-1, layout.runs))[:, np.argsort(layout.seeds())]
    return dict(zip(layout.lines(), by_line, strict=True))


@lru_cache(maxsize=16)
def _stretches(layout: Layout) -> list[list[tuple[int, int]]]:
    """Of each log, in the order after the sort, its stretches of rows, each with the row behind its last."""
    rows = layout.rows()
    keys = np.tile(np.repeat(np.arange(len(layout.keys)), layout.runs), len(layout.models))
    begins = [0, *np.cumsum(rows).tolist()]
    found: list[list[tuple[int, int]]] = [[] for _ in rows]
    _, firsts, lengths = _sorted(keys, rows)
    for first, end in zip(firsts.tolist(), (firsts + lengths).tolist(), strict=True):
        log = bisect_right(begins, first) - 1
        while first < end:
            here = min(end, begins[log + 1])
            found[log].append((first - begins[log], here - begins[log]))
            first, log = here, log + 1
    return found
