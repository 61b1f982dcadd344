"""Verdicts on *Exploring the Learning Mechanisms of Neural Division Modules*.

The figures print no numbers. Compared are the rates that the text states and, one by one, the statements that it draws from a figure. Where it counts
the ranges on which one model beats another, ours is the count with the 95 % interval of what another 25 seeds would give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]


def _asked(rows: pd.DataFrame) -> pd.Series:
    """What runs on small numbers were asked; missing for all others."""
    return rows.reindex(columns=["question"])["question"]


JUDGES = {}
