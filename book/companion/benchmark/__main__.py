"""``make bench``: a line per measure, ``name: value unit``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

from nalm.commands import exit_with
from nalm.records.verification import can_be_written
from nalm.units.checks import choose

from companion.benchmark.measurement import measure_machine
from companion.benchmark.measures import FURTHER, MEASURES, SCALING, Size


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for; ends with a sentence and status 2 if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure how fast runs are trained on this machine, about four minutes in all.",
    )
    parser.add_argument(
        "measures", nargs="*", help=f"some of {', '.join(MEASURES | FURTHER)}; all by default"
    )
    parser.add_argument("--runs", type=int, default=Size.runs, help="at most so many runs per measure")
    parser.add_argument(
        "--share",
        type=float,
        default=Size.share,
        help="measure for this share of the usual number of updates (default 1)",
    )
    parser.add_argument(
        "--processes", type=int, help="processes that train side by side (default: one per core)"
    )
    parser.add_argument("--eager", action="store_true", help="do without a compiler")
    parser.add_argument(
        "--record", default="", help="measure what the book shows, and write it to this JSON file"
    )
    asked = parser.parse_args(arguments)
    try:
        names = [choose("measure", name, MEASURES | FURTHER) for name in asked.measures] or list(
            MEASURES if asked.record else MEASURES | FURTHER
        )
        processes = {} if asked.processes is None else {"processes": asked.processes}
        size = Size(runs=asked.runs, share=asked.share, compiled=not asked.eager, **processes)
        if asked.record:
            can_be_written(asked.record, "record")
    except (ValueError, OSError) as error:
        parser.error(str(error))
    measurement = measure_machine(
        names, SCALING if asked.record else (), size, tell=partial(print, flush=True)
    )
    if asked.record:
        measurement.write(asked.record)


if __name__ == "__main__":
    exit_with(main)
