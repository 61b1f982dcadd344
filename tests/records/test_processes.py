"""Processes of one's own do not outlive the one that asked for them, wherever they come from."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import forked
import pytest

import nalm

PARENT = """
    import multiprocessing, os, sys, time
    from nalm.records.processes import own_processes

    if __name__ == "__main__":
        with own_processes(1, print, (), multiprocessing.get_context(sys.argv[1])) as executor:
            print(executor.submit(os.getpid).result(), flush=True)
            executor.submit(time.sleep, 120)
            time.sleep(120)
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_they_end_with_a_killed_parent(start, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    with open(tmp_path / "err", "w") as said:
        parent = forked.Popen(
            [sys.executable, str(script), start],
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(nalm.__file__).parents[1])},
            cwd=tmp_path,
        )
    child = next(int(line) for line in parent.stdout if line.strip())
    parent.kill()
    until = time.monotonic() + 15
    while os.path.exists(f"/proc/{child}") and time.monotonic() < until:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{child}")
