"""What ``make lint`` looks for: unused and wrong names, layout, types; and what the workflows run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_nothing_is_found(command):
    ended = subprocess.run([sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_actions_are_pinned_by_commit():
    """A tag can be moved to other code."""
    used = [
        line.partition("uses:")[2].partition("#")[0].strip()
        for workflow in (ROOT / ".github" / "workflows").iterdir()
        for line in workflow.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert used and not [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)]
