"""The book in a few numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nalm.records.folders import PUBLISHED

from companion.scoreboard.board import load
from companion.scoreboard.items import ERRATA

__all__ = ["headline"]


def headline(board: pd.DataFrame | None = None, results: str | Path = PUBLISHED) -> dict[str, str]:
    """What the landing page and the README begin with, as text: how many ``runs`` are recorded, the
    ``hours`` of one core that they took, how many ``experiments`` the papers have, how many of these are
    ``reproduced`` and ``explained`` (differ for a known reason), and how many ``errata`` were found.

    Args:
        board: the scoreboard; by default as it was last written.
        results: the folder of recorded runs.
    """
    board = load() if board is None else board
    verdicts = board.loc[board["kind"] == "experiment", "verdict"]
    seconds = [pd.read_csv(file, usecols=["seconds"])["seconds"] for file in Path(results).glob("*/*.csv")]
    return {
        "runs": f"{sum(map(len, seconds)):,}",
        "hours": f"{sum(part.sum() for part in seconds) / 3600:,.0f}",
        "experiments": f"{len(verdicts)}",
        "reproduced": f"{verdicts.isin(['replayed', 'reproduced']).sum()}",
        "explained": f"{(verdicts == 'differs, explained').sum()}",
        "errata": f"{sum(map(len, ERRATA.values()))}",
    }
