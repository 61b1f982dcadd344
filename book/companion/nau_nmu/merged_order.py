"""The order in which the authors' analysis reads the rows of its logs.

It takes the first row of a run's log whose test error is below the threshold. Before that it joins all rows
with their thresholds by R's ``merge``. Where the key of that join is not in order already, ``merge`` sorts by
Shell's method, which leaves rows of the same key in another order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product

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
        keys: small whole numbers from 0 to 254.

    >>> shell_sorted([0, 0, 0, 0, 1, 0, 0, 0, 0]).tolist()
    [0, 1, 2, 3, 8, 5, 6, 7, 4]
    """
    count, gap = len(keys), 1
    while gap <= count // 9:
        gap = 3 * gap + 1
    # rows are whole in each pass: beyond the last value there are larger ones, which stay where they are
    values = np.full(count + gap, 255, dtype=np.uint8)
    values[:count] = keys
    order = np.arange(len(values), dtype=np.int32)
    while gap:
        whole = math.ceil(count / gap) * gap
        _sort_columns(*(table[:whole].reshape(-1, gap) for table in (values, order)))
        gap //= 3
    return order[:count]


def _sort_columns(values: np.ndarray, places: np.ndarray) -> None:
    """Sort each column of ``values`` in place, and move ``places`` with it; equal values stay in order.

    Values come in long runs, so most columns of a wide table are as the one before, and most rows of a
    tall one are where they belong.
    """
    height, width = values.shape
    if width > height:
        changes = np.flatnonzero((values[:, 1:] != values[:, :-1]).any(0)) + 1
        for first, last in zip([0, *changes], [*changes, width], strict=True):
            order = np.argsort(values[:, first], kind="stable")
            for table in (values, places):
                table[:, first:last] = table[order, first:last]
        return
    for rows in _unsorted(values):
        order = np.argsort(values[rows], axis=0, kind="stable")
        for table in (values, places):
            table[rows] = np.take_along_axis(table[rows], order, 0)


BLOCK = 4096
"""Values that are looked at together for what is not sorted."""


def _unsorted(values: np.ndarray) -> Iterator[slice]:
    """The rows in which each column has to be sorted, so that all of it is."""
    height, width = values.shape
    descends = np.flatnonzero(values.ravel()[width:] < values.ravel()[:-width])
    if not len(descends):
        return
    block = max(1, BLOCK // width)
    begins = np.arange(0, height, block) * width
    largest_so_far = np.maximum.accumulate(np.maximum.reduceat(values.ravel(), begins))
    smallest_from_here = np.minimum.accumulate(np.minimum.reduceat(values.ravel(), begins)[::-1])[::-1]
    # what is in a part stays in it; each block belongs to one
    part = np.append(0, np.cumsum(largest_so_far[:-1] <= smallest_from_here[1:]))
    for one in np.unique(part[descends // width // block]):
        first, last = np.searchsorted(part, [one, one + 1])
        yield slice(first * block, last * block)


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
        line: _read_line(line, np.asarray(times, dtype=float).tobytes(), layout).copy()
        for line, times in solved_at.items()
    }


@lru_cache(maxsize=256)
def _read_line(line: tuple[str, str], solved_at: bytes, layout: Layout) -> np.ndarray:
    times, seeds = np.frombuffer(solved_at), np.array(layout.seeds())
    log, row = _merged(layout)
    by_key = layout.rows().reshape(len(layout.models), len(layout.keys), layout.runs).sum((0, 2))
    ends = np.cumsum(by_key)
    start, key = layout.lines().index(line) * layout.runs, layout.keys.index(line[1])
    block = slice(ends[key] - by_key[key], ends[key])  # rows are sorted by key
    inside = (log[block] >= start) & (log[block] < start + layout.runs)
    seed, at = seeds[log[block][inside] - start], row[block][inside] * float(layout.every)
    below = at >= times[seed]  # never where it is NaN
    solved, first = np.unique(seed[below], return_index=True)
    found = np.full(layout.runs, np.nan)
    found[solved] = at[below][first]
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
    log, row = _merged(layout)
    places = np.empty(len(layout.rows()), dtype=row.dtype)
    places[log[::-1]] = np.arange(
        len(log) - 1, -1, -1, dtype=row.dtype
    )  # the last that is written stays: the first place
    by_line = (row[places] * float(layout.every)).reshape(-1, layout.runs)[:, np.argsort(layout.seeds())]
    return dict(zip(layout.lines(), by_line, strict=True))


@lru_cache(maxsize=2)  # 90 MB each; Table 5 is judged between Tables 2 and 6, which share one
def _merged(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Of each row, in the order after the sort, its log and its place in that log."""
    rows = layout.rows()
    keys = np.tile(np.repeat(np.arange(len(layout.keys), dtype=np.uint8), layout.runs), len(layout.models))
    order = shell_sorted(np.repeat(keys, rows))
    begins = (np.cumsum(rows) - rows).astype(order.dtype)
    log = np.repeat(np.arange(len(rows), dtype=np.min_scalar_type(len(rows))), rows)[order]
    return log, order - begins[log]
