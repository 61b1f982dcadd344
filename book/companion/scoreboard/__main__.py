"""``make scoreboard``: write book/results/scoreboard.csv, replayed.csv and the README's table, or check
that they are current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nalm.records.folders import PUBLISHED

from companion import sealed
from companion.nau_nmu import replayed
from companion.scoreboard.board import ROOT, build
from companion.scoreboard.page import END, START, readme_block

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.scoreboard", description="Write the scoreboard."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if what is written is stale"
    )
    parser.add_argument("--results", type=Path, default=PUBLISHED, help="folder of recorded runs")
    parser.add_argument(
        "--readme", type=Path, default=ROOT / "README.md", help="file that holds the two markers"
    )
    options = parser.parse_args(arguments)
    try:
        board = build(options.results)
        fresh = {options.results / "scoreboard.csv": board.to_csv(index=False, lineterminator="\n")}
        fresh[options.results / "replayed.csv"] = replayed.recorded(options.results).to_csv(
            index=False, lineterminator="\n"
        )
        fresh[options.readme] = _with_block(options.readme, readme_block(board, options.results))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [path for path, content in fresh.items() if not _holds(path, content)]
    if options.check:
        for path in stale:
            print(f"{path.name} is stale: run `python -m companion.scoreboard`.", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        if path.suffix == ".csv":
            sealed.write_text(path, fresh[path])
        else:
            path.write_text(fresh[path], encoding="utf-8")
    print(next(line for line in readme_block(board).splitlines() if line[:2] == "**").replace("**", ""))
    return 0


def _holds(path: Path, content: str) -> bool:
    try:
        return (sealed.read_text(path) if path.suffix == ".csv" else path.read_text("utf-8")) == content
    except (OSError, ValueError):
        return False


def _with_block(readme: Path, block: str) -> str:
    content = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    if content.count(START) != 1 or content.count(END) != 1 or content.index(START) > content.index(END):
        raise ValueError(
            f"{readme.name} needs one line {START} and, below it, one line {END}; the table goes there."
        )
    return content[: content.index(START)] + block + content[content.index(END) + len(END) :]


if __name__ == "__main__":
    sys.exit(main())
