"""``make scoreboard``: write book/results/scoreboard.csv, replayed.csv and the README's table, or check
that they are current.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nalm.commands import exit_with
from nalm.records.folders import PUBLISHED

from companion.derived import stale, with_block, write
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
        fresh[options.readme] = with_block(options.readme, START, END, readme_block(board, options.results))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    old = stale(fresh)
    if options.check:
        for path in old:
            print(f"{path.name} is stale: run `python -m companion.scoreboard`.", file=sys.stderr)
        return 1 if old else 0
    for path in old:
        write(path, fresh[path])
    print(next(line for line in readme_block(board).splitlines() if line[:2] == "**").replace("**", ""))
    return 0


if __name__ == "__main__":
    exit_with(main)
