"""Verify published rows from the command line: ``python -m companion.verification.__main__``, or
``make verify``.

The exit code is 0 if all rows are confirmed, 1 if one is not, and 2 if what was asked for makes no sense.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection
from pathlib import Path

from nalm.commands import exit_with
from nalm.records.folders import PUBLISHED
from nalm.records.verification import can_be_written, experiments, verify_rows
from nalm.units.checks import choose

from companion import beyond
from companion.scoreboard.items import EXPERIMENTS, experiments_of
from companion.sealed import SEALED, broken
from companion.verification.confirmation import confirm
from companion.verification.names import misnamed

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.verification.__main__",
        description="Train published rows again and compare.",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=5,
        help="how many rows are drawn (5); 0 compares digests and names of all, and trains nothing",
    )
    parser.add_argument(
        "--experiment",
        action="append",
        default=[],
        help="draw from this experiment, e.g. division/no-redundancy; may be repeated",
    )
    parser.add_argument("--seed", type=int, help="of the sample; a fresh one if not given")
    parser.add_argument(
        "--iterations", type=int, help="draw only rows that were trained for at most so many updates"
    )
    parser.add_argument(
        "--seconds", type=float, help="draw only rows whose ensemble took at most so many seconds"
    )
    parser.add_argument("--key", default="", help="verify the row of this key, e.g. 17842e9e5060-3")
    parser.add_argument(
        "--stale", action="store_true", help="draw rows that are older than the code they depend on first"
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="draw ROWS ensembles of each older code; if all their rows are the same, note it",
    )
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--folder", type=Path, default=PUBLISHED, help="folder of results; the published ones if not given"
    )
    parser.add_argument(
        "--receipt", default="", help="where the receipt is written; your own data folder if not given"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = parser.parse_args(arguments)
    try:
        if options.rows and not options.confirm:
            can_be_written(options.receipt)
        if options.confirm:
            return _confirm(options)
        outcome = verify_rows(
            rows=options.rows,
            experiment=options.experiment,
            seed=options.seed,
            iterations=options.iterations,
            seconds=options.seconds,
            key=options.key,
            stale_first=options.stale,
            device=options.device,
            folder=options.folder,
            progress=not options.quiet,
        )
        print(outcome)
        drawn = {one.experiment for one in outcome.rows}
        right = [outcome.passed, _named(options.folder, drawn)]
        if options.rows:
            print(f"Receipt: {outcome.write(options.receipt)}")
        else:
            right.append(_sealed(options.folder))
    except (ValueError, RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return int(not all(right))


def _named(folder: Path, names: Collection[str]) -> bool:
    """Says which rows, of these results files or of all, bear another name than their experiment gives."""
    found = misnamed([*EXPERIMENTS, *experiments_of(beyond)], folder, names)
    for one in found:
        print(f"FAIL {one}")
    print(f"{'FAIL' if found else 'PASS'}: {len(found)} rows bear another name than their run.")
    return not found


def _sealed(folder: Path) -> bool:
    """Says which other files are not what was recorded."""
    found = broken(folder)
    for one in found:
        print(f"FAIL {one}")
    print(f"{'FAIL' if found else 'PASS'}: {len(found)} of {len(SEALED)} other files are damaged.")
    return not found


def _confirm(options: argparse.Namespace) -> int:
    failed, found = False, 0
    names = "iterations", "seconds", "stale", "device", "key", "receipt"
    others = {name: getattr(options, name) for name in names}
    if ignored := [f"--{name}" for name, value in others.items() if value not in (None, False, "", "cpu")]:
        raise ValueError(
            f"--confirm draws from all older rows and trains on this CPU; leave out {', '.join(ignored)}."
        )
    if not experiments(options.folder):
        raise ValueError(f"There are no results in {options.folder}.")
    for name in [
        choose("experiment", name, experiments(options.folder)) for name in options.experiment
    ] or experiments(options.folder):
        for outcome in confirm(name, options.rows, options.seed, options.folder, not options.quiet):
            print(outcome, flush=True)
            failed |= not outcome.passed
            found += 1
    if not found:
        print("No rows are older than the code they depend on.")
    return int(failed)


if __name__ == "__main__":
    exit_with(main)
