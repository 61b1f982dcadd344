"""Rows as other seeds would have given them: drawn again, with replacement, as seeds are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

__all__ = ["drawn_again"]


def drawn_again(
    rows: pd.DataFrame,
    configuration: Sequence[str] = (),
    shared: Sequence[str] = ("seed",),
    seed: int | None = 0,
) -> Iterator[pd.DataFrame]:
    """Samples of the rows without end, each of as many seeds per configuration as there are.

    Runs of one seed share their initial weights or batches, and stay together. Seeds of which other
    configurations are trained are drawn apart, so no configuration gets more runs than it has.

    Args:
        rows: one per run.
        configuration: the columns that make a configuration; without any, all runs are of one.
        shared: the columns that runs which are not independent have in common.
        seed: of the draws.

    >>> rows = pd.DataFrame({"model": list("aabb"), "seed": [0, 1, 0, 1], "success": [1, 0, 1, 0]})
    >>> sample = next(drawn_again(rows, ["model"]))
    >>> len(sample), sample.groupby("seed")["success"].nunique().tolist(), sorted(sample["seed"])
    (4, [1, 1], [0, 0, 1, 1])
    """
    rows = rows.reset_index(drop=True)
    shared, configuration = list(shared), list(configuration)
    place = rows.groupby(configuration, dropna=False).ngroup() if configuration else pd.Series(0, rows.index)
    strata: dict[tuple, list[np.ndarray]] = {}
    for _, members in rows.groupby(shared, sort=False, dropna=False).indices.items():
        strata.setdefault(tuple(sorted(place[members])), []).append(members)
    generator = np.random.default_rng(seed)
    while True:
        taken, named = [], []
        for groups in strata.values():
            for own, drawn in zip(groups, generator.integers(len(groups), size=len(groups)), strict=True):
                taken.append(groups[drawn])
                named.append(np.repeat(own[0], len(groups[drawn])))
        sample = rows.take(np.concatenate(taken))
        sample.index = pd.RangeIndex(len(sample))
        names = np.concatenate(named)
        for column in shared:
            sample[column] = rows[column].to_numpy()[names]
        yield sample
