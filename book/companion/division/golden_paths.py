"""``python -m companion.division.golden_paths``: record the errors that golden weights leave in the Real NPU
without epsilon on every code path of Intel's MKL, on a processor of Intel's with AVX-512.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence

import pandas as pd
from nalm.commands import exit_with

from companion import sealed
from companion.division.golden import PATHS, PATHS_FILE
from companion.division.small_numbers import without_epsilon


def measured() -> pd.DataFrame:
    """Each path in a process of its own, as MKL chooses once.

    Raises:
        ValueError: two paths give the same, as MKL takes another where a processor lacks the asked one.
    """
    found = []
    for path in PATHS:
        told = subprocess.run(
            [sys.executable, "-m", "companion.division.golden_paths", "--here"],
            env=os.environ | {"MKL_CBWR": path},
            capture_output=True,
            text=True,
            check=True,
        )
        lines = pd.read_csv(io.StringIO(told.stdout))
        found.append(lines.assign(path=path)[["path", *lines.columns]])
    if len({tuple(one["error"]) for one in found}) < len(PATHS):
        raise ValueError(
            f"This processor does not have the paths {', '.join(PATHS)}: take one of Intel's with AVX-512."
        )
    return pd.concat(found)


def main(arguments: Sequence[str] | None = None) -> int:
    if (sys.argv[1:] if arguments is None else list(arguments)) == ["--here"]:
        print(without_epsilon().to_csv(index=False), end="")
        return 0
    try:
        sealed.write_text(PATHS_FILE, measured().to_csv(index=False, lineterminator="\n"))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    exit_with(main)
