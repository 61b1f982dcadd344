"""The scoreboard as a page of the book and as a table of the README."""

from __future__ import annotations

import html
from pathlib import Path

import pandas as pd
from nalm.records.folders import PUBLISHED

from companion.experiment.statements import VERDICTS
from companion.experiment.tables import Table
from companion.scoreboard.board import PAPERS
from companion.scoreboard.headline import headline
from companion.scoreboard.items import ITEMS

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
    """How many items of each kind and paper have which verdict: first the experiments, which are what is
    reproduced.
    """
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
    """How many runs of the experiments that are not complete are recorded, how long they took and how long
    the others would take.

    Runs of fewer iterations than the paper's do not count as recorded, but their time is spent. Hours are
    those of one core; hours to go at the rate of what is recorded of the same item, short runs included, and
    none where nothing is.
    """
    lines = []
    needed = {(item.paper, item.name): item for item in ITEMS}
    for row in board[board["kind"] == "experiment"].to_dict("records"):
        item = needed[row["paper"], row["item"]]
        whole = _is_all(row["iterations"])
        if whole and _is_all(row["seeds"]):
            continue
        recorded = int(row["runs"] or 0) if whole else 0
        spent = to_go = float("nan")
        if row["runs"]:
            seconds, rate = int(row["seconds"]), int(row["seconds"]) / int(row["run_iterations"])
            spent = round(seconds / 3600, 1)
            to_go = round((item.runs - recorded) * item.iterations * rate / 3600)
        name = f"{PAPERS[row['paper']]}, {row['item']}"
        lines.append([name, recorded, item.runs, item.iterations, spent, to_go])
    columns = ["item", "runs recorded", "of", "iterations each", "hours spent", "hours to go"]
    return Table(pd.DataFrame(lines, columns=columns), caption="Figures and tables that are not complete yet")


def _is_all(covered: str) -> bool:
    """Whether ``"25 of 25"`` says that nothing is missing; it does where nothing is counted.

    >>> _is_all("3,880 of 388,388"), _is_all("25 of 1"), _is_all("")
    (False, True, True)
    """
    there, _, all_of_them = covered.replace(",", "").partition(" of ")
    return not covered or int(there) >= int(all_of_them)


def _plural(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def readme_block(board: pd.DataFrame, results: str | Path = PUBLISHED) -> str:
    """The state in a few lines for the README, between its two markers.

    Args:
        board: the scoreboard.
        results: the folder of recorded runs.
    """
    experiments, others = board[board["kind"] == "experiment"], board[board["kind"] != "experiment"]
    count = {verdict: int((experiments["verdict"] == verdict).sum()) for verdict in VERDICTS}
    done = {verdict: int((others["verdict"] == verdict).sum()) for verdict in VERDICTS}
    known = headline(board, results)
    lines = [
        START,
        f"{known['runs']} runs are recorded, which took {known['hours']} hours of one core. "
        f"The book lists {known['errata']} errata of the three papers.",
        "",
        f"**{count['reproduced'] + count['replayed']} of the {len(experiments)} experiments are reproduced**"
        f"{_weak(experiments)}, "
        f"{_plural(count['differs, explained'], 'differs', 'differ')} for a known reason, "
        f"{_plural(count['differs'], 'differs', 'differ')} without one, "
        f"{_plural(count['open'], 'is', 'are')} open, "
        f"{_plural(count['reproduced so far'], 'is', 'are')} reproduced so far, "
        f"{_plural(count['not comparable'], 'is', 'are')} not comparable.",
        "",
        f"Beside them {_plural(done['reproduced'], 'analytic figure is', 'analytic figures are')} "
        f"reproduced, {_plural(done['documented'], 'schematic or table is', 'schematics and tables are')} "
        "documented, and "
        f"{_plural(done['differs, explained'], 'differs', 'differ')} for a known reason. The page "
        "[Scoreboard](book/scoreboard.ipynb) lists all of them with their numbers.",
        END,
    ]
    return "\n".join(lines)


def _weak(experiments: pd.DataFrame) -> str:
    """How many of the reproduced ones would be so with corrupted rows as well."""
    done = experiments[experiments["verdict"].isin(["reproduced", "replayed"])]
    weak = int((done["strength"] == "weak").sum())
    return f" ({weak} of them weakly: their statements do not notice corrupted rows)" if weak else ""


class Board:
    """The scoreboard as a page: filters above, a card per item on narrow screens, a table on wide ones."""

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
            '<div id="nalm-board"><form class="filters">'
            f'<label>paper <select name="paper"><option value="">all</option>{papers}</select></label>'
            f'<label>verdict <select name="verdict"><option value="">all</option>{verdicts}</select></label>'
            '<label>search <input name="words" type="search" size="14"></label>'
            f'<output aria-live="polite">{len(self.board)} items</output></form>'
            '<div class="scroll" role="region" tabindex="0" aria-label="Scoreboard">'
            f'<table class="dataframe"><thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}\n</tbody></table></div></div>"
        )


_SHOWN = ["item", "published", "here", "verdict", "runs"]


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
    verdict += f"<small>undecided: {said['undecided']}</small>" if row["undecided"] else ""
    metric = f"<small>{said['metric']}</small>" if row["metric"] else ""
    agreeing = f"<small>{said['agreeing']} agree</small>" if row["agreeing"] else ""
    if row["replay"]:
        agreeing += f"<small>replay: {said['replay']}; {said['replay_agreeing']} agree</small>"
    agreeing += f"<small>seed by seed: {said['seed_by_seed']}</small>" if row["seed_by_seed"] else ""
    agreeing += f"<small>compared: {said['compared']}</small>" if row["compared"] else ""
    agreeing += f"<small>{said['strength']}</small>" if row["strength"] else ""
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
