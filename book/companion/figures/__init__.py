"""Drawing for the book: one visual language for every chapter.

A unit has one colour and one marker wherever it appears. Variants of a unit are shades of its colour, and
where they meet they also differ in how markers are filled and lines are drawn: the first is filled and solid,
the second hollow and dashed, see :func:`styles_of`. What a paper printed is a ring. Figures have a white
ground; on a dark page the style sheet inverts them and keeps their hues. Of a Map, whose image has the class
``as-is``, text and frames alone are inverted. Figures are seven inches (700 pixels) wide and are written at
twice that resolution. Marks that are given a ``gid`` are said as numbers in the text of the figure, which
tests compare with rows.

No function touches pyplot or global state; each returns a Figure that notebooks show by itself.
"""

from companion.figures.changes import changes
from companion.figures.costs import bars, cost_curves
from companion.figures.lengths import over_lengths
from companion.figures.lines import courses, curves, functions
from companion.figures.maps import Map, error_maps
from companion.figures.panels import by_range
from companion.figures.runs import distribution, gate_histograms, scatter
from companion.figures.styles import UNIT_STYLES, Figure, Look, style, styles_of, unit_style

__all__ = [
    "UNIT_STYLES",
    "Figure",
    "Look",
    "Map",
    "bars",
    "by_range",
    "changes",
    "cost_curves",
    "courses",
    "curves",
    "distribution",
    "error_maps",
    "functions",
    "gate_histograms",
    "over_lengths",
    "scatter",
    "style",
    "styles_of",
    "unit_style",
]
