"""What all figures share: how units and their variants look, matplotlib settings, the figure itself, and the
parts of legends.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as _Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter
from nalm.units.checks import nearest

__all__ = [
    "LINES",
    "UNIT_STYLES",
    "WIDTH",
    "Figure",
    "Look",
    "axis_name",
    "hollow",
    "legend",
    "legend_entry",
    "require",
    "style",
    "styles_of",
    "tick",
    "unit_style",
]

WIDTH = 7.0  # inches
PIXELS_PER_INCH = 100  # on the page; pictures hold twice as many

# colours keep a contrast of at least 3 to 1 to white, and units that meet in a figure stay apart for
# colour-blind eyes
UNIT_STYLES: dict[str, tuple[str, str]] = {
    "NAC+": ("#3B8EC2", "v"),
    "NAC+,Rz": ("#1F5F8A", "<"),
    "NAC•": ("#3B8EC2", "v"),
    "NAC•,σ": ("#CC6677", "P"),
    "NAC•,NMU": ("#117733", "X"),
    "NALU": ("#BB7700", "^"),
    "NALU (shared)": ("#BB7700", "^"),
    "NALU (separate)": ("#7A4E00", ">"),
    "G-NALU": ("#8A6D1B", "v"),
    "iNALU": ("#6E4400", "<"),
    "NAU": ("#00808A", "h"),
    "NMU": ("#332288", "s"),
    "sNMU": ("#5E4FB0", "D"),
    "Gated NAU/NMU": ("#882255", "*"),
    "MC-FC": ("#7A6A53", "p"),
    "NaiveNPU": ("#B266E0", "p"),
    "NPU": ("#AA3377", "D"),
    "NPU (no constraints)": ("#AA3377", "D"),
    "NPU (clip & reg)": ("#B266E0", "d"),
    "Real NPU": ("#009E73", "o"),
    "Real NPU (baseline)": ("#009E73", "o"),
    "Real NPU (modified)": ("#00473A", "X"),
    "NRU": ("#D55E00", "^"),
    "NMRU": ("#0072B2", "s"),
    "Linear": ("#333333", "P"),
    "ReLU": ("#999933", "d"),
    "ReLU6": ("#5C5C1F", "D"),
    "Dense": ("#333333", "P"),
    "LSTM": ("#000000", "*"),
    "exact product": ("#4C4C4C", "d"),
    "exact sum": ("#4C4C4C", "d"),
}
_SPELLINGS = {
    "RealNPU": "Real NPU",
    "INALU": "iNALU",
    "GNALU": "G-NALU",
    "SNMU": "sNMU",
    "MCFC": "MC-FC",
    "NAC": "NAC+",
    "NACMul": "NAC•",
    "GatedNAUNMU": "Gated NAU/NMU",
    "NAC•σ": "NAC•,σ",
    "NAC•NMU": "NAC•,NMU",
}
_SPARE = ["#4C4C4C", "#8A4F9E", "#A65628", "#2F6F4F"]
_MARKERS = "o^sDv<>PX*dph"  # those that look alike come last
_FILLS = ("full", "none", "bottom", "right", "top", "left")
LINES = ("-", "--", ":", "-.")

_STYLE = {
    "figure.dpi": 200,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 200,
    "axes.facecolor": "white",
    "axes.edgecolor": "#4C4C4C",
    "axes.labelcolor": "#1A1A1A",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "text.color": "#1A1A1A",
    "xtick.color": "#1A1A1A",
    "ytick.color": "#1A1A1A",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "nalm",
    "axes.prop_cycle": matplotlib.cycler(
        color=["#0072B2", "#D55E00", "#009E73", "#332288", "#BB7700", "#AA3377"]
    ),
}


@dataclass(frozen=True)
class Look:
    """How a name is drawn: variants of one unit differ in shade, marker, fill and line.

    Args:
        colour, marker: as matplotlib calls them.
        fill: a fill style of matplotlib.
        line: a line style of matplotlib.
    """

    colour: str
    marker: str
    fill: str = "full"
    line: str = "-"

    @property
    def mark(self) -> dict[str, Any]:
        """Its marker, for `Axes.plot`: what is not filled is white, so that no line shows through."""
        white = "markerfacecolor" if self.fill == "none" else "markerfacecoloralt"
        fill = "full" if self.fill == "none" else self.fill
        return {"color": self.colour, "marker": self.marker, "fillstyle": fill, white: "white"}


class Figure(_Figure):
    """A matplotlib figure that a notebook shows as a PNG of twice its nominal width, independent of any
    backend; its text are the numbers that are drawn, see :meth:`numbers`.
    """

    def numbers(self) -> str:
        """What its marks stand for, panel by panel: all lines that were given a name, as ``gid``.

        Places on an axis with names are said by these; of more than thirty marks how many there are
        and their medians.
        """
        return "\n".join(line for axis in self.axes for line in _numbers_of(axis))

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=2 * PIXELS_PER_INCH, metadata={"Software": None})
        picture = base64.b64encode(buffer.getvalue()).decode("ascii")
        width = round(self.get_figwidth() * PIXELS_PER_INCH)
        return {"image/png": picture, "text/plain": self.numbers() or repr(self)}, {
            "image/png": {"width": width}
        }


MANY = 30


def _numbers_of(axis: Axes) -> Iterator[str]:
    lines = [line for line in axis.get_lines() if line.get_gid()]
    if not lines:
        return
    yield ", ".join(filter(None, (axis.get_title(), axis.get_ylabel()))) + ":"
    names, rows = (
        {round(place): name for place, name in _names_of(one).items()} for one in (axis.xaxis, axis.yaxis)
    )
    zeros = [place for place, name in _names_of(axis.yaxis).items() if name == "0"]  # of a logarithmic axis
    for line in lines:
        x, y = (np.ma.filled(np.ma.asarray(data, float), np.nan) for data in line.get_data())
        known, y = ~np.isnan(y), np.where(np.isin(y, zeros), 0.0, y)
        if not known.any():
            continue
        if known.sum() > MANY:
            said = f"{known.sum()} marks, medians {np.median(x[known]):.3g} and {np.median(y[known]):.3g}"
        elif rows and not names and not zeros:
            pairs = zip(x[known], y[known], strict=True)
            said = "; ".join(f"{rows.get(round(at), '?')} {value:.3g}" for value, at in pairs)
        else:
            places = [names.get(round(at), "?") if names else f"{at:.3g}" for at in x[known]]
            said = "; ".join(f"{place} {value:.3g}" for place, value in zip(places, y[known], strict=True))
        yield f"  {line.get_gid()}: {said}"


def _names_of(axis: Axis) -> dict[float, str]:
    """The names of places on an axis, if it has names."""
    if isinstance(axis.get_major_locator(), FixedLocator) and isinstance(
        axis.get_major_formatter(), FuncFormatter
    ):
        return {place: axis.get_major_formatter()(place) for place in axis.get_ticklocs()}
    return {}


def style() -> AbstractContextManager[None]:
    """The book's matplotlib settings, for a with block."""
    return matplotlib.rc_context(_STYLE)


def unit_style(name: str) -> tuple[str, str]:
    """Colour and marker of a unit or of a variant of one; a name that is not listed gets a fixed spare
    colour.

    >>> unit_style("RealNPU") == unit_style("Real NPU (baseline)")
    True
    """
    name = _spelled(name)
    if name in UNIT_STYLES:
        return UNIT_STYLES[name]
    for stem in (name.split(", ")[0], name.split(" (")[0].split(", ")[0]):
        if _spelled(stem) in UNIT_STYLES:
            return UNIT_STYLES[_spelled(stem)]
    return _SPARE[sum(name.encode()) % len(_SPARE)], "o"


def styles_of(names: Sequence[str]) -> dict[str, Look]:
    """How names look that meet in a figure: as unit_style, and told apart where they would share a style.

    A unit always has one colour and one marker. Its variants get shades of its colour, and names that belong
    to no unit a sequence of colours, both in the order of the names and each with a marker of its own. Of
    the variants of one unit, and of names of none, the first is filled and has a solid line: the unit itself,
    if it is there. The second is hollow and dashed, the others are half filled and have other lines.

    >>> styles_of(["NRU", "NMRU"]) == {name: Look(*unit_style(name)) for name in ("NRU", "NMRU")}
    True
    >>> shown = styles_of(["NRU, lr 1e-1", "NRU", "no L1", "L1"])
    >>> [look.fill for look in shown.values()], [look.line for look in shown.values()]
    (['none', 'full', 'full', 'none'], ['--', '-', '-', '--'])
    """
    names = list(dict.fromkeys(names))
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault("/".join(unit_style(name)) if _unit_of(name) else "", []).append(name)
    cues, styles = _cues(names), {}
    taken = {unit_style(name)[1] for name in names if _unit_of(name)}
    markers = sorted(_MARKERS, key=taken.__contains__)
    for shared, group in groups.items():
        itself = next(
            (name for name in group if shared and _spelled(name) in UNIT_STYLES), group[0] if shared else None
        )
        variants = [name for name in group if name != itself]
        if itself is not None:
            styles[itself] = Look(*unit_style(itself), *cues[itself])
        for place, name in enumerate(variants):
            colour = (
                _shade(unit_style(name)[0], place, len(variants))
                if shared
                else _in_sequence(place, len(group))
            )
            ring = "o" if cues[name][0] == "none" else ""  # is for published values
            marker = next(one for one in markers if one != ring)
            markers.append(markers.pop(markers.index(marker)))
            styles[name] = Look(colour, marker, *cues[name])
    return {name: styles[name] for name in names}


def _spelled(name: str) -> str:
    return _SPELLINGS.get(name, name)


def _unit_of(name: str) -> str:
    """The unit that a name is a variant of; empty if it is none."""
    stem = _spelled(_spelled(name).split(" (")[0].split(", ")[0])
    return stem if stem in UNIT_STYLES or _spelled(name) in UNIT_STYLES else ""


def _cues(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Fill and line of names: for each unit itself first, then its variants in the list, then others. Those
    of the list are in its order, so that they look alike in all figures.
    """
    kinds: dict[tuple[str, str] | None, list[str]] = {}
    for name in names:
        unit = _unit_of(name).split(",")[0]
        kinds.setdefault(unit_style(unit) if unit else None, []).append(name)
    cues = {}
    order = {name: place for place, name in enumerate(UNIT_STYLES)}
    for own, kind in kinds.items():
        far = {
            name: (_spelled(name) not in UNIT_STYLES, unit_style(name) != own, order.get(_spelled(name), 0))
            for name in kind
        }
        for place, name in enumerate(sorted(kind, key=far.__getitem__)):
            cues[name] = (_FILLS[place % len(_FILLS)], LINES[place % len(LINES)])
    return cues


def _shade(colour: str, place: int, of: int) -> str:
    """Away from the unit's own colour: dark ones are mixed with white, light ones with black."""
    full, step = np.array(to_rgb(colour)), (place + 1) / of
    dark = full @ (0.2126, 0.7152, 0.0722) < 0.22
    return to_hex(full + (1 - full) * 0.45 * step if dark else full * (1 - 0.5 * step))


def _in_sequence(place: int, of: int) -> str:
    return to_hex(colormaps["viridis"](0.58 * place / max(of - 1, 1)))


def legend_entry(model: str, line: bool = False, styled: Look | None = None) -> Line2D:
    """What a legend shows of a model: its marker, and a line if it is drawn as one."""
    look = styled or styles_of([model])[model]
    return Line2D([], [], **look.mark, markersize=6, linestyle=look.line if line else "none", label=model)


def legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """A legend above the figure, in as many columns as fit."""
    longest = max(len(handle.get_label()) for handle in handles)
    columns = max(1, min(len(handles), 76 // (longest + 6)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns)


def hollow(colour: str = "#4C4C4C", size: float = 10) -> dict[str, Any]:
    """How a published number is drawn: a ring."""
    ring = {"marker": "o", "markersize": size, "markerfacecolor": "none", "markeredgecolor": colour}
    return ring | {"linestyle": "none"}


def tick(number: float, _: int | None = None) -> str:
    """A number beside an axis, as in tables.

    >>> tick(5e6), tick(0.5)
    ('5,000,000', '0.5')
    """
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:g}"


def axis_name(column: str) -> str:
    """What an axis is called that shows a column of rows."""
    return column.replace("_", " ").replace("mse", "MSE")


def require(name: str, allowed: Iterable[object], what: str) -> None:
    """Raise a ValueError of one sentence if there is nothing of that name."""
    names = [str(one) for one in allowed]
    if name not in names:
        raise ValueError(f"There is no {what} called {name!r}: {nearest(name, names)}")
