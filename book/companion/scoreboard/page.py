"""The scoreboard as a page of the book and as a table of the README."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from nalm.records.folders import PUBLISHED

from companion.experiment.statements import VERDICTS, Item
from companion.experiment.tables import Table
from companion.scoreboard.board import PAPERS
from companion.scoreboard.headline import headline
from companion.scoreboard.items import ITEMS

__all__ = ["END", "START", "Board", "anchor", "missing", "readme_block", "summary"]

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
    those of one core; hours to go at the pace of what cores have trained for the same item, short runs
    included, and none where they have not.
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
            spent = round(int(row["seconds"]) / 3600, 1)
            if row["pace"]:
                updates = (
                    item.updates - int(row["run_iterations"])
                    if item.updates
                    else (item.runs - recorded) * item.iterations
                )
                to_go = round(updates * float(row["pace"]) / 3.6e9)
        name = f"{PAPERS[row['paper']]}, {row['item']}"
        each = item.iterations or f"{item.updates / item.runs:,.0f} in the mean"
        lines.append([name, recorded, item.runs, each, spent, to_go])
    columns = ["item", "runs recorded", "of", "iterations each", "hours spent", "hours to go"]
    return Table(pd.DataFrame(lines, columns=columns), caption="Figures and tables that are not complete yet")


def _is_all(covered: str) -> bool:
    """Whether ``"25 of 25"`` says that nothing is missing; it does where nothing is counted.

    >>> _is_all("3,880 of 388,388"), _is_all("1 to 5 of 5"), _is_all("25 of 1"), _is_all("")
    (False, False, True, True)
    """
    there, _, all_of_them = covered.replace(",", "").partition(" of ")
    return not covered or int(there.partition(" ")[0]) >= int(all_of_them)


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
        f"{known['runs']} runs are recorded, which took {known['hours']} hours of one core"
        f"{'' if known['gpu_hours'] == '0.0' else ' and ' + known['gpu_hours'] + ' of a GPU'}. "
        f"The book lists {known['errata']} errata of the three papers.",
        "",
        f"**{count['reproduced'] + count['replayed']} of the {len(experiments)} experiments are reproduced**"
        f"{_weak(experiments)}, "
        f"{_plural(count['differs, explained'], 'differs', 'differ')} for a known reason, "
        f"{_plural(count['differs'], 'differs', 'differ')} without one, "
        f"{_plural(count['open'], 'is', 'are') if count['open'] else 'none is'} open, "
        f"{_plural(count['reproduced so far'], 'is', 'are')} reproduced with fewer seeds or iterations, "
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
    weak = int(done["strength"].str.startswith("weak").sum())
    return f" ({weak} of them weakly: their statements do not notice corrupted rows)" if weak else ""


class Board:
    """The scoreboard as a page: filters above, a line per figure and table that unfolds."""

    def __init__(self, board: pd.DataFrame):
        self.board = board

    def __repr__(self) -> str:
        shown = self.board[["paper", "item", "published", "ours", "verdict"]]
        return repr(Table(shown))

    def _repr_html_(self) -> str:
        groups = [
            _group(title, PAPERS[paper], [line for line in self.board.to_dict("records") if fits(line)])
            for kind, title in KINDS.items()
            for paper in PAPERS
            for fits in [lambda line, which=(kind, paper): (line["kind"], line["paper"]) == which]
        ]
        # The script shows the filters: without it they would do nothing.
        return (
            '<div id="nalm-board"><form class="filters" hidden>'
            + _choice("paper", PAPERS)
            + _choice("kind", KINDS)
            + _choice("verdict", {one: one for one in VERDICTS if one in set(self.board["verdict"])})
            + '<label>search <input name="words" type="search" size="14"></label>'
            f'<output aria-live="polite">{len(self.board)} items</output></form>\n'
            + "\n".join(group for group in groups if group)
            + "</div>"
        )


def anchor(item: str) -> str:
    """What its place in a chapter is called.

    >>> anchor("Figure 21")
    'paper-figure-21'
    """
    return f"paper-{item.lower().replace(' ', '-')}"


def _choice(name: str, options: Mapping[str, str]) -> str:
    said = "".join(f'<option value="{key}">{html.escape(title)}</option>' for key, title in options.items())
    return f'<label>{name} <select name="{name}"><option value="">all</option>{said}</select></label>'


def _group(kind: str, paper: str, lines: list[dict]) -> str:
    if not lines:
        return ""
    listed = "\n".join(_unfolding(line) for line in lines)
    return f"<section><h3>{html.escape(f'{paper}: {kind}')}</h3>\n<ul>\n{listed}\n</ul></section>"


def _unfolding(line: dict) -> str:
    """One line of the list, with everything that is known of the item behind it."""
    said = {name: html.escape(value) for name, value in line.items()}
    sign = line["verdict"].replace(",", "").split(" ")[0]
    share = _trained(line)
    parts = {
        "published": f"{said['published']} ({said['metric']})" if line["published"] else "",
        "here": said["ours"] and f"{said['ours']}; {said['agreeing']} statements agree",
        "replay": said["replay"] and f"{said['replay']}; {said['replay_agreeing']} statements agree",
        "seed by seed": said["seed_by_seed"],
        "differs in": said["differing"],
        "undecided": said["undecided"],
        "compared": said["compared"],
        "strength": said["strength"],
        "seeds": said["seeds"],
        "iterations": said["iterations"],
        "runs": "; ".join(_cost_in_words(line)),
        "rows": ", ".join(
            f'<a href="../results/{name}.csv.gz">{name}</a>'
            for name in dict.fromkeys([*_item(line).experiment, *_replays(line)])
            if line["runs"]
        ),
        "draw again": line["command"] and f"<code>{said['command']}</code>",
    }
    facts = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in parts.items() if value)
    bar = (
        "" if share is None else f'<progress value="{share:.3f}" aria-label="trained">{share:.1%}</progress>'
    )
    where = '<span class="shown"></span>'
    if line["chapter"]:
        page = Path(line["chapter"]).relative_to("book").with_suffix(".html").as_posix()
        where = (
            f'<a class="shown" href="{page}#{anchor(line["item"])}" '
            f'aria-label="{PAPERS[line["paper"]]}, {said["item"]}, in its chapter">shown</a>'
        )
    return (
        f'<li data-paper="{line["paper"]}" data-kind="{line["kind"]}" data-verdict="{line["verdict"]}">'
        f'<details><summary><span class="verdict {sign}">{said["verdict"]}</span> '
        f"<strong>{said['item']}</strong> <span>{said['title']}</span> "
        f'<span class="count">{said["replay_agreeing"] or said["agreeing"]}{bar}</span></summary>'
        f"<p>{html.escape(_reason(line, share))}</p><dl>{facts}</dl></details>{where}</li>"
    )


def _reason(line: dict, share: float | None) -> str:
    """Why the verdict is what it is, in words."""
    verdict, agreeing = line["verdict"], line["replay_agreeing"] or line["agreeing"]
    if verdict == "differs, explained":
        return line["explanation"]
    if verdict == "open" and not agreeing:
        so_far = "" if share is None else f": {share:.1%} of the iterations that it takes are"
        return f"Not all of its configurations are trained at the paper's length{so_far}."
    if verdict == "documented":
        return f"Nothing is trained for it; its chapter states what it says. {agreeing} statements agree."
    if verdict == "not comparable":
        return "Its numbers depend on the machine. They are shown beside each other and not judged."
    differing = bool(line["differing"])
    doubt = "" if differing or not line["undecided"] else " Other seeds could show the undecided ones."
    lack = " No experiment shows why for all that differ." if differing else ""
    so_far = f" {line['seeds']} seeds are trained." if verdict == "reproduced so far" else ""
    by = "In the authors' draws, " if line["replay_agreeing"] else ""
    why = f" {line['explanation']}" if line["explanation"] else ""
    return f"{by}{agreeing} statements agree.{doubt}{lack}{so_far}{why}"


def _replays(line: dict) -> list[str]:
    """The results file of the replays by which an item is judged, if it is."""
    return [f"{line['paper']}/replay"] if line["replay"] else []


def _item(line: dict) -> Item:
    return next(item for item in ITEMS if (item.paper, item.name) == (line["paper"], line["item"]))


def _trained(line: dict) -> float | None:
    """Which share of the iterations of its protocol is recorded, for an item that is not complete and whose
    runs all have one length.
    """
    item = _item(line)
    if line["verdict"] not in ("open", "reproduced so far") or not item.runs * item.iterations:
        return None
    return min(0.999, int(line["run_iterations"] or 0) / (item.runs * item.iterations))


def _cost_in_words(row: dict) -> list[str]:
    if not row["runs"]:
        return []
    million = int(row["run_iterations"]) / 1e6
    words = [f"{int(row['runs']):,}, of {million:,.3g} million iterations"]
    for column, of in {"seconds": "one core", "gpu_seconds": "a GPU"}.items():
        if int(row[column] or 0):
            words.append(f"{max(1, round(int(row[column]) / 60)):,} min of {of}")
    return [
        html.escape(part)
        for part in words + ([f"on {row['device']}"] if row["device"] else []) + [row["freshness"]]
    ]


def _counts(group: str, title: str, part: pd.DataFrame) -> dict:
    counts = {verdict: int((part["verdict"] == verdict).sum()) for verdict in VERDICTS}
    return {"kind": group, "paper": title, "items": len(part)} | counts
