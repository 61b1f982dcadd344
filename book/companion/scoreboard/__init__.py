"""The scoreboard: every figure and table of the three papers, what was published, what is measured here.

How a verdict comes about is in :mod:`companion.experiment.statements`; each item stands in the file of its
experiment. An experiment is judged when the recorded rows hold all its configurations; runs that were
trained for longer than the paper's do not count. Schematics, settings and analytic figures are judged
once their chapter exists. Rows are "fresh", "confirmed" or "older than the code they depend on" (see
:func:`nalm.records.freshness`); that is shown beside the verdict and does not change it.

``make scoreboard`` writes book/results/scoreboard.csv and the README's lines; ``python -m
companion.scoreboard --check`` fails if they are out of date.
"""

from companion.experiment.statements import VERDICTS, Claim, Comparison
from companion.scoreboard.board import PAPERS, build, load
from companion.scoreboard.headline import headline
from companion.scoreboard.items import ERRATA, EXPERIMENTS, ITEMS
from companion.scoreboard.page import Board, anchor, missing, readme_block, summary

__all__ = [
    "ERRATA",
    "EXPERIMENTS",
    "ITEMS",
    "PAPERS",
    "VERDICTS",
    "Board",
    "Claim",
    "Comparison",
    "anchor",
    "build",
    "headline",
    "load",
    "missing",
    "readme_block",
    "summary",
]
