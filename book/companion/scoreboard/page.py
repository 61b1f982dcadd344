"""The scoreboard as a page of the book and as a table of the README."""

from __future__ import annotations

import html
from pathlib import Path

import pandas as pd

from companion.scoreboard.board import PAPERS
from companion.scoreboard.items import ITEMS
from companion.statements import VERDICTS
from companion.tables import Table

__all__ = ["END", "START", "Board", "missing", "readme_block", "summary"]

START, END = "<!-- scoreboard -->", "<!-- /scoreboard -->"


KINDS = {
    "experiment": "experiments",
    "analytic": "analytic figures",
    "settings": "settings",
    "schematic": "schematics",
}
"""Kind of an item -> the name of its group."""


def summary(board: pd.DataFrame) -> Table:
    """How many items of each kind and paper have which verdict: first the experiments, which are what is reproduced."""
    lines = []
    for kind, group in KINDS.items():
        part = board[board["kind"] == kind]
        lines += [_counts(group, title, part[part["paper"] == paper]) for paper, title in PAPERS.items()]
        lines.append(_counts(group, "all", part))
    frame = pd.DataFrame([line for line in lines if line["items"]])
    return Table(
        frame[[name for name in frame if name not in VERDICTS or frame[name].any()]],
        caption="Figures and tables by verdict",
    )


def missing(board: pd.DataFrame) -> Table:
    """How many runs of the open experiments are recorded, and how long the others would take.

    Runs of fewer iterations than the paper's do not count. Hours are those of one core at the rate of what is recorded of the same item, short runs
    included; none where nothing is.
    """
    lines = []
    needed = {(item.paper, item.name): item for item in ITEMS}
    for row in board[board["verdict"].isin(["open", "reproduced so far"])].to_dict("records"):
        item = needed[row["paper"], row["item"]]
        short = row["iterations"] and not row["iterations"].startswith(f"{item.iterations:,} of")
        recorded = 0 if short else int(row["runs"] or 0)
        hours = float("nan")
        if row["runs"]:
            rate = int(row["seconds"]) / int(row["run_iterations"])
            hours = round((item.runs - recorded) * item.iterations * rate / 3600)
        lines.append([f"{PAPERS[row['paper']]}, {row['item']}", recorded, item.runs, item.iterations, hours])
    columns = ["item", "runs recorded", "of", "iterations each", "hours to go"]
    return Table(pd.DataFrame(lines, columns=columns), caption="Figures and tables that are not trained yet")


def _plural(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def readme_block(board: pd.DataFrame) -> str:
    """The state in a few lines for the README, between its two markers."""
    experiments, others = board[board["kind"] == "experiment"], board[board["kind"] != "experiment"]
    count = {verdict: int((experiments["verdict"] == verdict).sum()) for verdict in VERDICTS}
    done = {verdict: int((others["verdict"] == verdict).sum()) for verdict in VERDICTS}
    lines = [
        START,
        f"**{count['reproduced'] + count['replayed']} of the {len(experiments)} experiments are reproduced**, "
        f"{_plural(count['differs, explained'], 'differs', 'differ')} for a known reason, "
        f"{_plural(count['differs'], 'differs', 'differ')} without one, {_plural(count['open'], 'is', 'are')} open, "
        f"{_plural(count['reproduced so far'], 'is', 'are')} reproduced so far, "
        f"{_plural(count['not comparable'], 'is', 'are')} not comparable.",
        "",
        f"Beside them {_plural(done['reproduced'], 'analytic figure is', 'analytic figures are')} reproduced, "
        f"{_plural(done['documented'], 'schematic or table of settings is', 'schematics and tables of settings are')} documented, and "
        f"{_plural(done['differs, explained'], 'differs', 'differ')} for a known reason. The page "
        "[Scoreboard](book/scoreboard.ipynb) lists all of them with their numbers.",
        END,
    ]
    return "\n".join(lines)


class Board:
    """The whole scoreboard as a page: filters above, a card per item on narrow screens, a table on wide ones."""

    def __init__(self, board: pd.DataFrame):
        self.board = board

    def __repr__(self) -> str:
        shown = self.board[["paper", "item", "published", "ours", "verdict"]]
        return repr(Table(shown))

    def _repr_html_(self) -> str:
        rows = "\n".join(_html_row(row) for row in self.board.to_dict("records"))
        head = "".join(f'<th scope="col">{name}</th>' for name in _SHOWN)
        papers = "".join(
            f'<option value="{key}">{html.escape(title)}</option>' for key, title in PAPERS.items()
        )
        verdicts = "".join(f"<option>{verdict}</option>" for verdict in VERDICTS)
        return (
            f'<style>{_CSS}</style><div id="nalm-board"><form class="filters">'
            f'<label>paper <select name="paper"><option value="">all</option>{papers}</select></label>'
            f'<label>verdict <select name="verdict"><option value="">all</option>{verdicts}</select></label>'
            '<label>search <input name="words" type="search" size="14"></label>'
            f'<output aria-live="polite">{len(self.board)} items</output></form>'
            '<div class="scroll" role="region" tabindex="0" aria-label="Scoreboard">'
            f'<table class="dataframe"><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div></div>'
            f"<script>{_SCRIPT}</script>"
        )


_SHOWN = ["item", "published", "here", "verdict", "runs"]
_CSS = """
#nalm-board .filters{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;margin:0 0 .75rem}
#nalm-board .scroll{overflow-x:auto;max-width:100%}
#nalm-board table{display:table;margin:0;font-size:.85em;font-variant-numeric:tabular-nums;width:100%}
#nalm-board th,#nalm-board td{padding:.35rem .5rem;text-align:left;vertical-align:top}
#nalm-board table.dataframe{table-layout:fixed;min-width:42rem}
#nalm-board th:nth-child(1){width:26%}#nalm-board th:nth-child(2){width:21%}#nalm-board th:nth-child(3){width:14%}
#nalm-board td{overflow-wrap:anywhere}
#nalm-board small{display:block;font-size:.93em;opacity:.85}
#nalm-board .verdict{white-space:nowrap;font-weight:600}
#nalm-board .verdict::before{content:"○ "}
#nalm-board .reproduced::before,#nalm-board .replayed::before,#nalm-board .documented::before{content:"● "}
#nalm-board .differs::before{content:"◐ "}
#nalm-board code{font-size:.9em}
#nalm-board tr[hidden]{display:none}
@media(max-width:768px){
#nalm-board thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
#nalm-board table.dataframe,#nalm-board tbody,#nalm-board tr:not([hidden]),#nalm-board td{display:block;border:0}
#nalm-board tr:not([hidden]){padding:.5rem 0;border-bottom:1px solid var(--pst-color-border,#c9c9c9)}
#nalm-board td{padding:.1rem .5rem;overflow-wrap:anywhere}
#nalm-board td:empty{display:none}
#nalm-board td[data-name]::before{content:attr(data-name) ": ";opacity:.85}
#nalm-board table.dataframe{min-width:0}
#nalm-board td>div,#nalm-board td>small{display:inline;margin:0 .4em 0 0}
#nalm-board td>small{margin-left:.4em}
#nalm-board td:first-child>small{display:block;margin-left:0}
}
""".strip()
_SCRIPT = """
(()=>{const board=document.getElementById("nalm-board"),form=board.querySelector("form");
const rows=[...board.querySelectorAll("tbody tr")];
const show=()=>{const words=form.words.value.toLowerCase().split(/\\s+/);let count=0;
for(const row of rows){const fits=(!form.paper.value||row.dataset.paper===form.paper.value)
&&(!form.verdict.value||row.dataset.verdict===form.verdict.value)
&&words.every(word=>row.textContent.toLowerCase().includes(word));row.hidden=!fits;count+=fits}
form.querySelector("output").textContent=count+(count===1?" item":" items")};
form.addEventListener("input",show);form.addEventListener("submit",event=>event.preventDefault())})()
""".strip()


def _html_row(row: dict) -> str:
    said = {name: html.escape(str(value), quote=True) for name, value in row.items()}
    name = f"{PAPERS[row['paper']]}, {said['item']}"
    if row["chapter"]:
        page = Path(row["chapter"]).relative_to("book").with_suffix(".html").as_posix()
        name = f'<a href="{html.escape(page, quote=True)}">{name}</a>'
    kind = row["verdict"].replace(",", "").split(" ")[0]
    verdict = f'<span class="verdict {kind}">{said["verdict"]}</span>'
    for more in ("explanation", "differing"):
        verdict += f"<small>{said[more]}</small>" if row[more] else ""
    metric = f"<small>{said['metric']}</small>" if row["metric"] else ""
    agreeing = f"<small>{said['agreeing']} agree</small>" if row["agreeing"] else ""
    agreeing += f"<small>compared: {said['compared']}</small>" if row["compared"] else ""
    effort = [f"{said[part]} {part}" for part in ("seeds", "iterations") if row[part]] + _cost_in_words(row)
    rerun = f"<small><code>{said['command']}</code></small>" if row["command"] else ""
    cells = [
        ("", f"{name}<small>{said['title']} ({said['kind']})</small>"),
        ("published", f"{said['published']}{metric}" if row["published"] else ""),
        ("here", f"{said['ours']}{agreeing}" if row["ours"] else ""),
        ("", verdict),
        ("runs", "".join(f"<div>{part}</div>" for part in effort) + rerun),
    ]
    tags = "".join(
        f'<td data-name="{title}">{cell}</td>' if title else f"<td>{cell}</td>" for title, cell in cells
    )
    return f'<tr data-paper="{row["paper"]}" data-verdict="{row["verdict"]}">{tags}</tr>'


def _cost_in_words(row: dict) -> list[str]:
    if not row["runs"]:
        return []
    minutes = max(1, round(int(row["seconds"]) / 60))
    million = int(row["run_iterations"]) / 1e6
    words = [f"{int(row['runs']):,} runs, {million:,.3g} million iterations", f"{minutes:,} min"]
    return [
        html.escape(part)
        for part in words + ([f"on {row['device']}"] if row["device"] else []) + [row["freshness"]]
    ]


def _counts(group: str, title: str, part: pd.DataFrame) -> dict:
    counts = {verdict: int((part["verdict"] == verdict).sum()) for verdict in VERDICTS}
    return {"kind": group, "paper": title, "items": len(part)} | counts
