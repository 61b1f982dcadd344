"""The scoreboard as a table: one line per figure and table of the papers, computed from the recorded rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from nalm.records.code import freshness_of, least_fresh
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store

from companion import published
from companion.division import judges as division
from companion.nau_nmu import judges as nau_nmu
from companion.npu import judges as npu
from companion.rules import Claim, Comparison, Judge

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "PAPERS", "ROOT", "VERDICTS", "build", "load"]

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

JUDGES = division.JUDGES | nau_nmu.JUDGES | npu.JUDGES


def build(results: str | Path = PUBLISHED) -> pd.DataFrame:
    """One line per figure and table of the papers, computed from the recorded rows under `results`."""
    import pandas as pd

    results = Path(results)
    if not results.is_dir():
        raise ValueError(f"There is no folder of results at {results}.")
    read = cache(lambda experiment: _read(results, experiment))
    lines = [_line(item, results, read) for item in published.load("items").to_dict("records")]
    return pd.DataFrame(lines, columns=COLUMNS)


def load(path: str | Path = PUBLISHED / "scoreboard.csv") -> pd.DataFrame:
    """The scoreboard as it was last written."""
    import pandas as pd

    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no scoreboard at {path}; `python -m companion.scoreboard` writes it.")
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _line(item: dict, results: Path, read: Callable[[str], pd.DataFrame]) -> dict:
    item = {
        name: "" if isinstance(value, float) and np.isnan(value) else value for name, value in item.items()
    }
    line = dict.fromkeys(COLUMNS, "") | {
        name: item[name] for name in ("paper", "item", "title", "kind", "metric", "published")
    }
    line["verdict"] = "not yet"
    if item["chapter"] and (results.parents[1] / item["chapter"]).is_file():
        line |= {"chapter": item["chapter"], "command": f"papermill {item['chapter']} out.ipynb"}
    if item["seeds"]:
        line["seeds"] = f"0 of {int(item['seeds'])}"
    if item["iterations"]:
        line["iterations"] = f"0 of {int(item['iterations']):,}"
    judge = JUDGES.get((item["paper"], item["item"]))
    if judge is None:
        return line
    if not isinstance(judge, Judge):
        return line | _verdict(judge(), item) if line["chapter"] else line
    rows = _rows(item, judge, read)
    return line if rows.empty else line | _judged(rows, judge, item)


def _read(results: Path, experiment: str) -> pd.DataFrame:
    """The rows of an experiment, each with its freshness and where it was trained."""
    store = Store(results, experiment)
    rows = store.read()
    if rows.empty:
        return rows
    sidecar = store.sidecar()
    devices = {name: batch["device"] for name, batch in sidecar["batches"].items()}
    return rows.assign(freshness=freshness_of(rows, sidecar), device=rows["batch"].map(devices))


def _rows(item: dict, judge: Judge, read: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The rows that an item is judged by: of one length if the item has one, and never own and common batches together."""
    import pandas as pd

    parts = [part for part in map(read, item["experiment"].split("; ")) if not part.empty]
    if not parts:
        return pd.DataFrame()
    rows = pd.concat(parts, ignore_index=True)
    if item["iterations"]:
        rows = rows[rows["iterations"] <= item["iterations"]]
    rows = judge.rows(rows)
    own = rows[rows["stream"] == "own"]
    rows = rows if own.empty else own
    return rows[rows["iterations"] == rows["iterations"].max()] if item["iterations"] else rows


def _judged(rows: pd.DataFrame, judge: Judge, item: dict) -> dict:
    """The part of a line that depends on the rows of an item, which is at least one."""
    seeds = int(item["seeds"])
    sizes = rows.groupby(list(judge.by))["seed"].nunique()
    fewest = int(sizes.min()) if len(sizes) >= int(item["runs"]) // seeds else 0
    part = _cost(rows) | {"freshness": least_fresh(rows["freshness"]), "seeds": f"{fewest} of {seeds}"}
    if item["iterations"]:
        longest = int(rows["iterations"].max())
        part["iterations"] = f"{longest:,} of {int(item['iterations']):,}"
        if longest < item["iterations"]:
            return part
    return part if fewest < seeds else part | _verdict(judge.compare(rows), item)


def _verdict(comparisons: Iterable[Comparison | Claim], item: dict) -> dict:
    compared = list(comparisons)
    agreeing = sum(one.agrees for one in compared)
    differing = [one.what for one in compared if not one.agrees]
    explained = bool(differing) and set(differing) <= set(str(item["explains"]).split("; "))
    return {
        "ours": str(compared[0]),
        "agreeing": f"{agreeing} of {len(compared)}",
        "differing": "; ".join(differing),
        "verdict": "reproduced" if not differing else "differs, explained" if explained else "differs",
        "explanation": item["explanation"] if explained else "",
    }


def _cost(rows: pd.DataFrame) -> dict:
    """What the rows cost: each holds its share of the time of its batch."""
    return {
        "runs": str(len(rows)),
        "run_iterations": str(int(rows["iterations"].sum())),
        "seconds": str(round(rows["seconds"].sum())),
        "device": ", ".join(sorted(rows["device"].dropna().unique())),
    }
