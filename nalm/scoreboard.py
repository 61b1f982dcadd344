"""The scoreboard: every figure and table of the three papers, what was published, what is measured here.

The rule behind a verdict, the same for every item:

* An item is judged when the recorded runs hold all its configurations with at least as many seeds, trained for as many
  iterations, as in the paper; until then its verdict is "not yet". Runs that were trained for longer do not count.
* Every number the paper gives for it is compared. Ours has a 95 % interval. The published one has an interval too
  where the paper gives what it takes: a count of runs for a rate (Wilson), a standard error for a mean (Student), a
  printed interval. The two agree when the intervals overlap, or when the published number lies in our interval.
* Where a figure prints no numbers, each comparison that the paper's text draws from it is checked instead.
* Its rows are "fresh", or "older than the code they depend on" (see nalm.records.code); that is shown beside the
  verdict and does not change it.
* "reproduced": everything agrees. "differs": something does not; "differs, explained" if published/items.csv holds
  an explanation for everything that does not (columns "explanation" and "explains").

Run as a module to write book/results/scoreboard.csv and the README's table, with --check to see whether they are current.
"""

from __future__ import annotations

import argparse
import html
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nalm import measures, published
from nalm.measures import Interval
from nalm.records.code import FRESH, OLDER, is_stale
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.tables import Table, text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Board", "Claim", "Comparison", "build", "load", "readme_block", "summary"]

ROOT = PUBLISHED.parents[1]
VERDICTS = ["reproduced", "differs, explained", "differs", "not yet"]
PAPERS = {
    "nau-nmu": "Neural Arithmetic Units",
    "npu": "Neural Power Units",
    "division": "Neural Division Modules",
}
COLUMNS = [
    "paper", "item", "title", "kind", "metric", "published", "ours", "agreeing", "differing", "seeds", "iterations",
    "verdict", "explanation", "runs", "run_iterations", "seconds", "device", "freshness", "chapter", "command",
]  # fmt: skip
_START, _END = "<!-- scoreboard -->", "<!-- /scoreboard -->"


@dataclass(frozen=True)
class Comparison:
    """A number measured here beside the published one, each with its interval (of no width if there is none)."""

    what: str
    ours: Interval
    published: Interval

    @property
    def agrees(self) -> bool:
        return self.ours.overlaps(self.published)

    def __str__(self) -> str:
        return text(self.ours)


@dataclass(frozen=True)
class Claim:
    """A comparison between models that the paper's text makes, with the number to show for it."""

    what: str
    agrees: bool
    shown: str = ""

    def __str__(self) -> str:
        return self.shown


@dataclass(frozen=True)
class _Judge:
    """How an item is judged: which rows belong to it, what makes a configuration, what is compared (headline first)."""

    rows: Callable[[pd.DataFrame], pd.DataFrame]
    by: tuple[str, ...]
    compare: Callable[[pd.DataFrame], Iterable[Comparison | Claim]]


def build(results: str | Path = PUBLISHED) -> pd.DataFrame:
    """One line per figure and table of the papers, computed from the recorded rows under `results`."""
    import pandas as pd

    results = Path(results)
    if not results.is_dir():
        raise ValueError(f"There is no folder of results at {results}.")
    lines = [_line(item, results) for item in published.load("items").to_dict("records")]
    return pd.DataFrame(lines, columns=COLUMNS)


def load(path: str | Path = PUBLISHED / "scoreboard.csv") -> pd.DataFrame:
    """The scoreboard as it was last written."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no scoreboard at {path}; `python -m nalm.scoreboard` writes it.")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def summary(board: pd.DataFrame) -> Table:
    """How many items of each paper have which verdict."""
    import pandas as pd

    counts = [_counts(title, board[board["paper"] == paper]) for paper, title in PAPERS.items()]
    return Table(pd.DataFrame([*counts, _counts("all", board)]), caption="Figures and tables by verdict")


def readme_block(board: pd.DataFrame) -> str:
    """The summary line and the table of the README, between its two markers."""
    judged = board[board["verdict"] != "not yet"]
    count = {verdict: int((board["verdict"] == verdict).sum()) for verdict in VERDICTS}
    lines = [
        _START,
        f"**{count['reproduced']} of the {len(board)} figures and tables are reproduced**, "
        f"{count['differs, explained']} differ for a known reason, {count['differs']} differ, "
        f"{count['not yet']} are not yet done.",
    ]
    if len(judged):
        lines += ["", "| paper | item | measured | published | here | agreeing | verdict |", "|---|---|---|---|---|---|---|"]
    for row in judged.to_dict("records"):
        place = f"[{row['item']}]({row['chapter']})" if row["chapter"] else row["item"]
        cells = [PAPERS[row["paper"]], place]
        cells += [row[name] for name in ("metric", "published", "ours", "agreeing", "verdict")]
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, _END])


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
        papers = "".join(f'<option value="{key}">{html.escape(title)}</option>' for key, title in PAPERS.items())
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
#nalm-board .reproduced::before{content:"● "}
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
    kind = "differs" if row["verdict"].startswith("differs") else row["verdict"].replace(" ", "-")
    verdict = f'<span class="verdict {kind}">{said["verdict"]}</span>'
    for more in ("explanation", "differing"):
        verdict += f"<small>{said[more]}</small>" if row[more] else ""
    metric = f"<small>{said['metric']}</small>" if row["metric"] else ""
    agreeing = f"<small>{said['agreeing']} agree</small>" if row["agreeing"] else ""
    effort = [f"{said[part]} {part}" for part in ("seeds", "iterations") if row[part]] + _cost_in_words(row)
    rerun = f"<small><code>{said['command']}</code></small>" if row["command"] else ""
    cells = [
        ("", f"{name}<small>{said['title']} ({said['kind']})</small>"),
        ("published", f"{said['published']}{metric}" if row["published"] else ""),
        ("here", f"{said['ours']}{agreeing}" if row["ours"] else ""),
        ("", verdict),
        ("runs", "".join(f"<div>{part}</div>" for part in effort) + rerun),
    ]
    tags = "".join(f'<td data-name="{title}">{cell}</td>' if title else f"<td>{cell}</td>" for title, cell in cells)
    return f'<tr data-paper="{row["paper"]}" data-verdict="{row["verdict"]}">{tags}</tr>'


def _cost_in_words(row: dict) -> list[str]:
    if not row["runs"]:
        return []
    minutes = max(1, round(int(row["seconds"]) / 60))
    million = int(row["run_iterations"]) / 1e6
    words = [f"{int(row['runs']):,} runs, {million:,.3g} million iterations", f"{minutes:,} min"]
    return [html.escape(part) for part in words + ([f"on {row['device']}"] if row["device"] else []) + [row["freshness"]]]


def _counts(title: str, part: pd.DataFrame) -> dict:
    return {"paper": title, "items": len(part)} | {
        verdict: int((part["verdict"] == verdict).sum()) for verdict in VERDICTS
    }


def _line(item: dict, results: Path) -> dict:
    item = {name: "" if isinstance(value, float) and np.isnan(value) else value for name, value in item.items()}
    line = dict.fromkeys(COLUMNS, "") | {name: item[name] for name in ("paper", "item", "title", "kind", "metric", "published")}
    line["verdict"] = "not yet"
    if item["chapter"] and (results.parents[1] / item["chapter"]).is_file():
        line |= {"chapter": item["chapter"], "command": f"papermill {item['chapter']} out.ipynb"}
    if item["seeds"]:
        line["seeds"] = f"0 of {int(item['seeds'])}"
    if item["iterations"]:
        line["iterations"] = f"0 of {int(item['iterations']):,}"
    judge = _JUDGES.get((item["paper"], item["item"]))
    if judge is None:
        return line
    store = Store(results, item["experiment"])
    rows = store.read()
    if not rows.empty:
        rows = _one_stream(judge.rows(rows[rows["iterations"] <= item["iterations"]]))
    return line if rows.empty else line | _judged(rows, judge, item, store)


def _judged(rows: pd.DataFrame, judge: _Judge, item: dict, store: Store) -> dict:
    """The part of a line that depends on the rows of an item, which is at least one."""
    iterations, seeds = int(item["iterations"]), int(item["seeds"])
    longest = int(rows["iterations"].max())
    rows = rows[rows["iterations"] == longest]
    sizes = rows.groupby(list(judge.by))["seed"].nunique()
    fewest = int(sizes.min()) if len(sizes) >= int(item["runs"]) // seeds else 0
    part = _cost(rows, store) | {
        "freshness": OLDER if is_stale(rows, store.sidecar()).any() else FRESH,
        "seeds": f"{fewest} of {seeds}",
        "iterations": f"{longest:,} of {iterations:,}",
    }
    if longest < iterations or fewest < seeds:
        return part
    compared = list(judge.compare(rows))
    agreeing = sum(one.agrees for one in compared)
    differing = [one.what for one in compared if not one.agrees]
    verdict = "differs" if differing else "reproduced"
    if differing and set(differing) <= set(str(item["explains"]).split("; ")):
        verdict, part["explanation"] = "differs, explained", item["explanation"]
    return part | {
        "ours": str(compared[0]),
        "agreeing": f"{agreeing} of {len(compared)}",
        "differing": "; ".join(differing),
        "verdict": verdict,
    }


def _one_stream(rows: pd.DataFrame) -> pd.DataFrame:
    """Runs on their own batches if there are any, else those on common batches: never a mixture."""
    own = rows[rows["stream"] == "own"]
    return rows if own.empty else own


def _cost(rows: pd.DataFrame, store: Store) -> dict:
    """What the rows cost: each holds its share of the time of its batch; the sidecar knows where batches ran."""
    batches = store.sidecar()["batches"]
    devices = {batches[batch]["device"] for batch in rows["batch"].unique() if batch in batches}
    return {
        "runs": str(len(rows)),
        "run_iterations": str(int(rows["iterations"].sum())),
        "seconds": str(round(rows["seconds"].sum())),
        "device": ", ".join(sorted(devices)),
    }


def _exactly(number: float) -> Interval:
    return Interval(number, number, number, 0)


def _rate(number: float, runs: int) -> Interval:
    solved = round(number * runs)
    return measures.success_rate([True] * solved + [False] * (runs - solved))


def _student(number: float, standard_error: float, runs: int) -> Interval:
    from scipy.stats import t

    half = t.ppf(0.975, runs - 1) * standard_error
    return Interval(number, number - half, number + half, runs)


# Division, Figure 3: the rates that the text states


def _division_rows(rows: pd.DataFrame) -> pd.DataFrame:
    models = ["Real NPU (baseline)", "Real NPU (modified)", "NRU", "NMRU"]
    stated = published.load("division_values").query("item == 'Fig 3' and model == 'NRU'")  # on all nine ranges
    return rows[rows["model"].isin(models) & rows["range"].isin(stated["range"])]


def _division_figure_3(rows: pd.DataFrame) -> Iterable[Comparison]:
    import pandas as pd

    stated = published.load("division_values").query("item == 'Fig 3' and metric == 'success rate'")
    numbers = pd.to_numeric(stated["value"], errors="coerce")
    stated = stated[numbers.notna()].assign(value=numbers).sort_values("value", kind="stable")  # the lowest leads
    for one in stated.to_dict("records"):
        part = rows[(rows["model"] == one["model"]) & (rows["range"] == one["range"])]
        yield Comparison(
            f"{one['model']} on {one['range']}", measures.success_rate(part["success"]), _rate(one["value"], 25)
        )


# Neural Arithmetic Units, Table 1


def _ten_parameter_rows(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["model"].isin(["NMU", "NAC•", "NALU"])]


def _nau_nmu_table_1(rows: pd.DataFrame) -> Iterable[Comparison]:
    # the printed intervals of the sparsity errors are symmetric, thus Student's, which were never halved
    statistics = {
        "success_rate": lambda part: measures.success_rate(part["success"]),
        "solved_at_step_median": lambda part: measures.solved_at_median(_solved(part)["solved_at"]),
        "solved_at_step_mean": lambda part: measures.solved_at(_solved(part)["solved_at"]),
        "sparsity_error_mean": lambda part: measures.mean(_solved(part)["sparsity_error"]),
    }
    table = published.load("nau_nmu_table1")
    for model in ("NMU", "NAC•", "NALU"):
        for name, statistic in statistics.items():
            one = table[(table["model"] == model) & (table["metric"] == name)].iloc[0]
            if name == "success_rate":
                printed = _rate(one["value"], 100)
            elif np.isnan(one["plus"]):
                printed = _exactly(one["value"])
            else:
                printed = Interval(one["value"], one["value"] - one["minus"], one["value"] + one["plus"], 0)
            yield Comparison(f"{model}, {name}", statistic(rows[rows["model"] == model]), printed)


def _solved(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["success"].fillna(False).astype(bool)]


# Neural Power Units, Table A2 and Figure 6

_TASKS = {"+": "test_add", "x": "test_mul", "div": "test_div", "sqrt": "test_sqrt"}
_SIMPLE_MODELS = ["RealNPU", "NPU", "NMU", "NALU", "iNALU", "Dense"]


def _simple_rows(rows: pd.DataFrame) -> pd.DataFrame:
    measures.require_columns(rows, ["arm", *_TASKS.values()])
    return rows[rows["model"].isin(_SIMPLE_MODELS) & (rows["arm"] == "code")]


def _npu_table_a2(rows: pd.DataFrame) -> Iterable[Comparison]:
    table = published.load("npu_values").query("item == 'Table A2'").set_index(["task", "model"])
    for task in ("div", "+", "x", "sqrt"):
        for model in _SIMPLE_MODELS:
            one = table.loc[(task, model)]
            ours = measures.mean(rows[rows["model"] == model][_TASKS[task]])
            yield Comparison(f"{model} on {task}", ours, _student(one["value"], one["spread"], 20))


def _npu_figure_6(rows: pd.DataFrame) -> Iterable[Claim]:
    errors = rows[list(_TASKS.values())].sum(axis=1, skipna=False).fillna(np.inf)
    best = {model: rows.loc[errors[rows["model"] == model].idxmin()] for model in _SIMPLE_MODELS}

    def better(one: str, other: str, task: str) -> Claim:
        left, right = best[one][_TASKS[task]], best[other][_TASKS[task]]
        return Claim(f"{one} better than {other} on {task}", bool(left < right), text(float(left)))

    for unit in ("RealNPU", "NPU"):
        for task in ("div", "+", "x", "sqrt"):
            for other in ("NALU", "iNALU"):
                yield better(unit, other, task)
        yield better("NMU", unit, "x")
        for task in ("div", "sqrt"):
            yield better(unit, "NMU", task)


_JUDGES = {
    ("division", "Figure 3"): _Judge(_division_rows, ("model", "range"), _division_figure_3),
    ("nau-nmu", "Table 1"): _Judge(_ten_parameter_rows, ("model",), _nau_nmu_table_1),
    ("npu", "Table A2"): _Judge(_simple_rows, ("model",), _npu_table_a2),
    ("npu", "Figure 6"): _Judge(_simple_rows, ("model",), _npu_figure_6),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m nalm.scoreboard", description="Write the scoreboard.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if what is written is stale")
    parser.add_argument("--results", type=Path, default=PUBLISHED, help="folder of recorded runs")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md", help="file that holds the two markers")
    options = parser.parse_args(arguments)
    try:
        board = build(options.results)
        fresh = {options.results / "scoreboard.csv": board.to_csv(index=False, lineterminator="\n")}
        fresh[options.readme] = _with_block(options.readme, readme_block(board))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [path for path, content in fresh.items() if not path.is_file() or path.read_text("utf-8") != content]
    if options.check:
        for path in stale:
            print(f"{path.name} is stale: run `python -m nalm.scoreboard`.", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(fresh[path], encoding="utf-8")
    print(readme_block(board).splitlines()[1].replace("**", ""))
    return 0


def _with_block(readme: Path, block: str) -> str:
    content = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    if content.count(_START) != 1 or content.count(_END) != 1 or content.index(_START) > content.index(_END):
        raise ValueError(f"{readme.name} needs one line {_START} and, below it, one line {_END}; the table goes there.")
    return content[: content.index(_START)] + block + content[content.index(_END) + len(_END) :]


if __name__ == "__main__":
    sys.exit(main())
