"""The book in a few numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nalm.records.folders import PUBLISHED

from companion.recorded import spent
from companion.scoreboard.board import load
from companion.scoreboard.items import ERRATA

__all__ = ["headline"]


def headline(board: pd.DataFrame | None = None, results: str | Path = PUBLISHED) -> dict[str, str]:
    """What the landing page and the README begin with, as text: how many ``runs`` are recorded, the
    ``hours`` of one core and ``gpu_hours`` of a GPU that they took, how many ``experiments`` the papers have,
    how many of these are ``reproduced`` and ``explained`` (differ for a known reason), and how many
    ``errata`` were found.

    Args:
        board: the scoreboard; by default as it was last written.
        results: the folder of recorded runs.
    """
    board = load() if board is None else board
    verdicts = board.loc[board["kind"] == "experiment", "verdict"]
    files = sorted(Path(results).glob("*/*.csv"))
    took = [spent(f"{file.parent.name}/{file.stem}", Path(results)) for file in files]
    return {
        "runs": f"{sum(len(pd.read_csv(file, usecols=['seed'])) for file in files):,}",
        "hours": f"{sum(one.core for one in took) / 3600:,.0f}",
        "gpu_hours": f"{sum(one.gpu for one in took) / 3600:,.1f}",
        "experiments": f"{len(verdicts)}",
        "reproduced": f"{verdicts.isin(['replayed', 'reproduced']).sum()}",
        "explained": f"{(verdicts == 'differs, explained').sum()}",
        "errata": f"{sum(map(len, ERRATA.values()))}",
    }
