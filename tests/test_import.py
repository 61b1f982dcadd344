"""What a reader's first line costs."""

import subprocess
import sys

MEASURE = "import time, torch; start = time.perf_counter(); import nalm; print(time.perf_counter() - start)"


def test_importing_nalm_costs_at_most_a_second_beyond_torch():
    seconds = min(float(subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout) for _ in range(2))
    assert seconds < 1


def test_importing_nalm_leaves_heavy_packages_out():
    script = "import sys, nalm; print([m for m in ('pandas', 'scipy', 'matplotlib', 'statsmodels', 'torchvision') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
