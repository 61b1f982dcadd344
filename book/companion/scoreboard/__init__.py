"""The scoreboard: every figure and table of the three papers, what was published, what is measured here.

The rule behind a verdict, the same for every item:

* An item is judged when the recorded runs hold all its configurations with at least as many seeds, trained for as many
  iterations, as in the paper; until then its verdict is "not yet". Runs that were trained for longer do not count.
* Every number the paper gives for it is compared. Ours has a 95 % interval. The published one has an interval too
  where the paper gives what it takes: a count of runs for a rate (Wilson), a standard error for a mean (Student), a
  printed interval. The two agree when the intervals overlap, or when the published number lies in our interval.
  Median test errors of one model that differ by powers of ten from run to run (npu Table 1) also agree within a
  factor of three.
* Where a figure prints no numbers, each comparison that the paper's text draws from it is checked instead.
* Its rows are "fresh", or "older than the code they depend on" (see nalm.records.code); that is shown beside the
  verdict and does not change it.
* "reproduced": everything agrees. "differs": something does not; "differs, explained" if published/items.csv holds
  an explanation for everything that does not (columns "explanation" and "explains").

A table of settings, or an analytic figure, is judged by what the library itself says, once its chapter exists.

Run as a module to write book/results/scoreboard.csv and the README's table, with --check to see whether they are current.
"""

from companion.rules import Claim, Comparison
from companion.scoreboard.board import PAPERS, VERDICTS, build, load
from companion.scoreboard.page import Board, missing, readme_block, summary

__all__ = [
    "PAPERS",
    "VERDICTS",
    "Board",
    "Claim",
    "Comparison",
    "build",
    "load",
    "missing",
    "readme_block",
    "summary",
]
