"""What a reader's first line costs."""

import json
import subprocess
import sys
from functools import cache

MEASURE = """
import json, sys, time, torch
HEAVY = "pandas", "scipy", "matplotlib", "statsmodels", "torchvision"
heavy = lambda: [name for name in HEAVY if name in sys.modules]
start = time.perf_counter()
import nalm
seconds, with_nalm = time.perf_counter() - start, heavy()
import companion.measures
print(json.dumps({"seconds": seconds, "nalm": with_nalm, "measures": heavy()}))
"""


@cache
def measured(number: int) -> dict:
    """What the imports of a process took and loaded, beyond torch."""
    return json.loads(
        subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    )


def test_importing_nalm_leaves_heavy_packages_out():
    assert measured(1)["nalm"] == []


def test_importing_the_measures_loads_no_statistics_package():
    assert measured(1)["measures"] == []


def test_importing_nalm_costs_at_most_a_second_beyond_torch():
    # something else may have kept the processor busy
    assert measured(1)["seconds"] < 1 or measured(2)["seconds"] < 1
