"""Tables for the book: the same text on every run, readable in light and dark pages, scrolling inside
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from numbers import Integral, Real

import numpy as np
import pandas as pd

from companion.measures import Interval, Spread

__all__ = ["NOT_RUN", "Table", "about", "text", "within"]

NOT_RUN = "not run"

_STYLE = (
    "<style>.nalm-box{overflow-x:auto;max-width:100%}"
    ".nalm-box table.nalm-table{display:table;width:auto;margin:0;font-variant-numeric:tabular-nums}"
    ".nalm-table th,.nalm-table td{padding:.25rem .6rem;text-align:left;white-space:nowrap}"
    ".nalm-table .number{text-align:right}.nalm-whole{white-space:nowrap}"
    ".nalm-caption{margin:1rem 0 .25rem;font-size:.9em;color:var(--pst-color-text-muted,inherit)}"
    ".nalm-fold summary{cursor:pointer;padding:.25rem 0}</style>"
)

_WRAP = "<style>.nalm-box table.nalm-wrap td{white-space:normal;min-width:7rem;vertical-align:top}</style>"


class Table:
    """Lines that show themselves as an accessible HTML table, or as plain text; no index, no random ids.

    Args:
        lines: a data frame, its columns, or one mapping or sequence per line; no line at all says "not run".
        caption: what is shown.
        columns: their names, where lines are sequences; which of them, where they are mappings.
        digits: of numbers, see :func:`text`. Cells may also be words, Interval or Spread.
        wrap: long cells take several lines, for tables of sentences; without it each row is one line.
        folded: only these words are shown until a reader unfolds the table, for lines that few will read.

    >>> Table([{"unit": "NRU", "rate": 0.64}, {"unit": "NMRU", "rate": 1.0}])
    unit  rate
    NRU   0.64
    NMRU  1
    >>> Table([["a line"]], folded="The line")._repr_html_().count("<summary>The line</summary>")
    1
    >>> ["nalm-wrap" in Table([["a long sentence"]], wrap=wrap)._repr_html_() for wrap in (True, False)]
    [True, False]
    """

    def __init__(
        self,
        lines: pd.DataFrame | Mapping[str, Sequence] | Iterable[Mapping | Sequence],
        caption: str = "",
        columns: Sequence[str] | None = None,
        digits: int = 3,
        wrap: bool = False,
        folded: str = "",
    ):
        if not isinstance(lines, (pd.DataFrame, Mapping)):
            lines = list(lines) or [[NOT_RUN]]
            columns = columns if lines != [[NOT_RUN]] else [""]
        self.frame = pd.DataFrame(lines, columns=columns)
        self.caption, self.digits, self.wrap, self.folded = caption, digits, wrap, folded

    def _cells(self) -> list[list[str]]:
        return [
            [text(cell, self.digits) for cell in row] for row in self.frame.itertuples(index=False, name=None)
        ]

    def __repr__(self) -> str:
        rows = [[str(column) for column in self.frame.columns], *self._cells()]
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join(([self.caption] if self.caption else []) + lines)

    def _repr_html_(self) -> str:
        numeric = [_is_numeric(self.frame.iloc[:, place]) for place in range(self.frame.shape[1])]
        align = [' class="number"' if flag else "" for flag in numeric]
        # above the box, so that it takes the width of the page, whatever that of the table
        caption = f'<p class="nalm-caption">{escape(self.caption)}</p>' if self.caption else ""
        head = "".join(
            f'<th scope="col"{how}>{escape(str(column))}</th>' if column else "<td></td>"
            for column, how in zip(self.frame.columns, align, strict=True)
        )
        body = "\n".join(
            "<tr>"
            + "".join(
                f"<td{how}>{_unbroken(escape(cell))}</td>" for cell, how in zip(row, align, strict=True)
            )
            + "</tr>"
            for row in self._cells()
        )
        label = escape(self.caption or self.folded or "table", quote=True)
        style, kind = (_STYLE + _WRAP, " nalm-wrap") if self.wrap else (_STYLE, "")
        table = (
            f'{caption}<div class="nalm-box" role="region" tabindex="0" aria-label="{label}">'
            f'<table class="dataframe nalm-table{kind}"><thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody></table></div>"
        )
        if self.folded:
            opener = f"<summary>{escape(self.folded)}</summary>"
            table = f'<details class="nalm-fold">{opener}\n{table}</details>'
        return style + table


def _unbroken(cell: str) -> str:
    """Numbers with a negative exponent, at whose hyphen no line ends."""
    return re.sub(r"[\d.,]*\de-\d+", r'<span class="nalm-whole">\g<0></span>', cell)


def about(number: object) -> str:
    """A number whose digits depend on how the processor rounds, as at the end of many updates of a training.

    The tests do not compare it; the cell that shows it asserts what the page says of it.

    >>> about("37%")
    '≈37%'
    """
    return f"≈{number}"


def within(share: float) -> str:
    """The whole per cent that a share is within.

    >>> within(0.0741), within(0.12), within(0.0)
    ('8%', '12%', '0%')
    """
    return f"{np.ceil(round(100 * share, 6)):.0f}%"


def text(value: object, digits: int = 3) -> str:
    """One value as short text.

    >>> text(0.123456), text(1614000.0), text(12345678.0), text(50000), text(1e-7), text(float("inf"))
    ('0.123', '1,610,000', '1.23e+07', '50,000', '1e-07', '∞')
    >>> text(285.4, 2), text(True), text(None), text(float("nan"))
    ('285', 'yes', '–', '–')
    >>> text(Interval(0.64, 0.44518, 0.79752, 25))
    '0.64 [0.445, 0.798]'
    >>> text(Spread(0.08, 0.021, 20))
    '0.080 ± 0.021'
    """
    if isinstance(value, Interval):
        if np.isnan(value.low) or np.isnan(value.high) or value.low == value.high:  # nothing to be unsure of
            return text(value.estimate, digits)
        return f"{text(value.estimate, digits)} [{text(value.low, digits)}, {text(value.high, digits)}]"
    if isinstance(value, Spread):
        return _with_spread(value, digits)
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        number = float(value)
        if np.isnan(number):
            return "–"
        if np.isinf(number):
            return "∞" if number > 0 else "−∞"
        rounded = float(f"{number:.{max(digits, 3)}g}")
        if 1000 <= abs(rounded) < 1e7:
            return f"{rounded:,.0f}"
        if abs(rounded) < 1000:  # its whole part is written in full
            digits = max(digits, 3 if abs(number) >= 99.5 else 2 if abs(number) >= 9.5 else 1)
        return f"{number:.{digits}g}"
    return "–" if value is None else str(value)


def _with_spread(value: Spread, digits: int) -> str:
    """Both numbers down to the second digit of the spread, as measurements are written: 11.434 ± 0.034."""
    if np.isinf(value.estimate):
        return text(value.estimate)
    decimals = 1 - int(np.floor(np.log10(value.spread))) if 0 < value.spread < np.inf else -1
    if not 0 <= decimals <= 6:
        return f"{text(value.estimate, digits)} ± {text(value.spread, digits)}"
    return f"{value.estimate:.{decimals}f} ± {value.spread:.{decimals}f}"


def _is_numeric(column: pd.Series) -> bool:
    return all(
        isinstance(cell, (Real, Interval, Spread)) and not isinstance(cell, (bool, np.bool_))
        for cell in column
        if cell is not None
    )
