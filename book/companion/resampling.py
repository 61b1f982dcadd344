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
    rows = _quickly_taken(rows.reset_index(drop=True))
    shared, configuration = list(shared), list(configuration)
    place = rows.groupby(configuration, dropna=False).ngroup() if configuration else pd.Series(0, rows.index)
    strata: dict[tuple, list[np.ndarray]] = {}
    for _, members in rows.groupby(shared, sort=False, dropna=False).indices.items():
        strata.setdefault(tuple(sorted(place[members])), []).append(members)
    groups = [np.stack(alike) for alike in strata.values()]
    first = np.concatenate([np.repeat(alike[:, 0], alike.shape[1]) for alike in groups])
    names = {column: rows[column].to_numpy()[first] for column in shared}
    generator = np.random.default_rng(seed)
    while True:
        drawn = [alike[generator.integers(len(alike), size=len(alike))].ravel() for alike in groups]
        sample = rows.take(np.concatenate(drawn))
        sample.index = pd.RangeIndex(len(sample))
        yield sample.assign(**names)


def _quickly_taken(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with text as objects, all columns of which are taken at once."""
    texts = [name for name, dtype in rows.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return rows.astype(dict.fromkeys(texts, object)).copy()
