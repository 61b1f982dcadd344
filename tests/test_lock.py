"""What is installed is what was locked: every package by version and hash, from wherever it comes."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WANTED = (ROOT / "requirements.in").read_text(encoding="utf-8")
LOCKED = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_every_package_has_a_version_and_hashes():
    packages = LOCKED.replace(" \\\n", " ").splitlines()
    assert len(packages) > 100
    assert not [line for line in packages if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)]


def test_no_address_of_an_index():
    assert not re.search(r"https?:|--(extra-)?index|--find-links", LOCKED + WANTED)


def test_what_is_wanted_is_locked():
    assert pins(WANTED).items() <= pins(LOCKED).items()


def test_it_fits_together():
    """What is installed has what it needs."""
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True)
