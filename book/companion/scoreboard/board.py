"""The scoreboard as a table: one line per figure and table of the papers, computed from the recorded
rows.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from nalm.records.code import least_fresh
from nalm.records.folders import PUBLISHED
from nalm.records.provenance import is_gpu

from companion import sealed
from companion.experiment import judged
from companion.experiment.statements import Item, Judgement
from companion.recorded import Spent, reader
from companion.scoreboard.items import ITEMS
from companion.scoreboard.strength import KEPT, recorded

__all__ = ["COLUMNS", "PAPERS", "ROOT", "build", "load"]

ROOT = PUBLISHED.parents[1]
PAPERS = {
    "nau-nmu": "Neural Arithmetic Units",
    "npu": "Neural Power Units",
    "division": "Neural Division Modules",
}
"""The papers' titles by their short names."""

COLUMNS = [
    "paper", "item", "title", "kind", "metric", "published", "ours", "agreeing",
    "replay", "replay_agreeing", "seed_by_seed", "differing", "undecided",
    "seeds", "iterations", "compared", "strength", "verdict", "explanation",
    "runs", "run_iterations", "seconds", "gpu_seconds", "pace", "device", "freshness", "chapter", "command",
]  # fmt: skip


def build(results: str | Path = PUBLISHED, items: Sequence[Item] | None = None) -> pd.DataFrame:
    """One line per figure and table of the papers, or of the ``items`` given, computed from the recorded rows
    under ``results``.

    Raises:
        ValueError: there is no such folder.
    """
    results = Path(results)
    if not results.is_dir():
        raise ValueError(f"There is no folder of results at {results}.")
    read = reader(results)
    return pd.DataFrame(
        [_line(item, results, read) for item in (ITEMS if items is None else items)], columns=COLUMNS
    )


def load(path: str | Path = PUBLISHED / "scoreboard.csv") -> pd.DataFrame:
    """The scoreboard as it was last written.

    Raises:
        ValueError: there is none, or it is not what was written.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no scoreboard at {path}; `make scoreboard` writes it.")
    return pd.read_csv(io.StringIO(sealed.read_text(path)), dtype=str, keep_default_na=False)


def _line(item: Item, results: Path, read: Callable[[str], pd.DataFrame]) -> dict:
    there = bool(item.chapter) and (results.parents[1] / item.chapter).is_file()
    line = dict.fromkeys(COLUMNS, "") | {
        "paper": item.paper,
        "item": item.name,
        "title": item.title,
        "kind": item.kind,
        "metric": item.headline,
        "published": item.published,
        "compared": item.compared,
        "verdict": "open",
    }
    if there:
        line |= {"chapter": item.chapter, "command": f"make rerun CHAPTER={item.chapter}"}
    if item.kind != "experiment":
        return line | _judged(item.judge(None, read)) if there and item.statements else line
    parts = [part for part in map(read, item.experiment) if not part.empty]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    judgement = judged(item, rows, read)
    # What is counted are the rows that decide.
    used = item.select(rows) if judgement.replays is None else judgement.replays
    every = used if judgement.replay or rows.empty else item.rows(rows)
    return line | _covered(judgement, used) | _pace(every) | _judged(judgement)


def _judged(judgement: Judgement) -> dict:
    decides = judgement.decides
    differing = [one.what for one in decides.statements if not (one.agrees or one.undecided)]
    undecided = [one.what for one in decides.statements if one.undecided]
    known = {one.id or one.what for one in judgement.statements}
    explained = {name for one in judgement.item.explanations for name in one.of}
    if known and explained - known:
        item = judgement.item
        raise ValueError(
            f"{item.name} of {item.paper} explains {sorted(explained - known)[0]!r}, which it does not state."
        )
    said = {
        "verdict": decides.verdict,
        "explanation": decides.explanation,
        "differing": "; ".join(differing),
        "undecided": "; ".join(undecided),
    }
    if judgement.statements and not judgement.replays_alone:
        said |= {"ours": str(judgement.statements[0]), "agreeing": judgement.count}
    said |= {"seed_by_seed": judgement.seed_by_seed}
    if judgement.replay:
        said |= {"replay": str(decides.statements[0]), "replay_agreeing": decides.count}
    return said


def _covered(judgement: Judgement, rows: pd.DataFrame) -> dict:
    """How much of the protocol is trained, what that could have seen, and what the rows that decide cost:
    each holds its share of the time of its batch.
    """
    item = judgement.item
    part = {"strength": _strength(item) if judgement.decides.statements else ""}
    part |= {"seeds": judgement.decides.covered_seeds if item.seeds else ""}
    longest = 0 if rows.empty else int(rows["iterations"].max())
    part |= {"iterations": f"{longest:,} of {item.iterations:,}" if item.iterations else ""}
    if rows.empty:
        return part
    return part | {
        "freshness": least_fresh(rows["freshness"]),
        "runs": str(len(rows)),
        "run_iterations": str(int(rows["iterations"].sum())),
        **dict(
            zip(
                ("seconds", "gpu_seconds"),
                map(_whole, Spent.on(rows["seconds"], rows["device"])),
                strict=True,
            )
        ),
        "device": ", ".join(sorted(rows["device"].dropna().unique())),
    }


def _whole(seconds: float) -> str:
    return str(round(seconds))


def _pace(rows: pd.DataFrame) -> dict:
    """Microseconds of one core per iteration of a run, of all rows of an item that cores have trained. Runs
    that became NaN do not count: they may have taken no time.
    """
    if not rows.empty:
        rows = rows[~rows["device"].fillna("").map(is_gpu).astype(bool) & rows["nan_at"].isna()]
    if rows.empty:
        return {}
    return {"pace": f"{1e6 * rows['seconds'].sum() / rows['iterations'].sum():.6g}"}


def _strength(item: Item) -> str:
    """What its statements would see, ``"weak"`` if none of the corruptions, and how often its verdict is
    kept, if that is not settled; empty where that was not measured.
    """
    if (found := recorded().get((item.paper, item.name))) is None:
        return ""
    seen = f"sees {', '.join(found.sees)}" if found.sees else "weak"
    return (
        seen if found.kept >= KEPT else f"{seen}; {found.kept:.0%} of samples of its seeds keep the verdict"
    )
