"""Drawing for the book: one visual language for every chapter.

A unit has one colour and one marker wherever it appears; variants of a unit are shades of its colour. What
was measured here is drawn solid, what a paper printed is drawn as a hollow ring. Figures have a white ground;
on a dark page the style sheet inverts them and keeps their hues, but for maps, whose images have the class
``as-is``. They are seven inches (700 pixels) wide and are written at twice that resolution. Marks that are
given a ``gid`` are said as numbers in the text of the figure, which tests compare with rows.

No function touches pyplot or global state; each returns a Figure that notebooks show by itself.
"""

from companion.figures.changes import changes
from companion.figures.costs import bars, cost_curves
from companion.figures.lengths import over_lengths
from companion.figures.lines import courses, curves, functions
from companion.figures.maps import error_maps
from companion.figures.panels import by_range
from companion.figures.runs import distribution, gate_histograms, scatter
from companion.figures.styles import UNIT_STYLES, Figure, style, styles_of, unit_style

__all__ = [
    "UNIT_STYLES",
    "Figure",
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
