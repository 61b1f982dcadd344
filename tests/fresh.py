"""The README's two commands as on a bare machine: ``make test-fresh``.

The committed state is cloned into an empty folder, and ``make book`` and ``make test`` run there with an
empty home, without ``NALM_MNIST`` and without a Chromium on ``PATH``: each folder of it that holds one is
replaced by links to everything else in it. What Debian has installed stays installed, so where playwright
cannot download its own, ``make test`` finds Debian's package where Debian puts it.

``python tests/fresh.py book test-units`` runs other commands of ``make`` in the same way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chromium import NAMES

ROOT = Path(__file__).resolve().parents[1]
KEPT = ("LANG", "LC_ALL", "TERM", "TMPDIR", "CI")
"""Of the environment. What says how packages are fetched is kept as well."""
PACKAGES = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_", "REQUESTS_CA_BUNDLE")


def bare(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The environment of a user who has just come to this machine; what it needs is made in a folder."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in KEPT or name.upper().startswith(PACKAGES)
    }
    home = folder / "home"
    home.mkdir()
    return kept | {"HOME": str(home), "PATH": without_chromium(environment["PATH"], folder)}


def without_chromium(path: str, folder: Path) -> str:
    """A ``PATH`` of the same programs, but for every Chromium."""
    return os.pathsep.join(
        str(_without(Path(one), folder / f"bin{number}"))
        for number, one in enumerate(path.split(os.pathsep))
        if one
    )


def _without(programs: Path, copy: Path) -> Path:
    if not any((programs / name).exists() for name in NAMES):
        return programs
    copy.mkdir()
    for program in programs.iterdir():
        if program.name not in NAMES:
            (copy / program.name).symlink_to(program)
    return copy


def main(commands: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="nalm-fresh-") as name:
        folder = Path(name).resolve()
        environment, clone = bare(dict(os.environ), folder), folder / "nalm"
        subprocess.run(["git", "clone", "--quiet", ROOT.as_uri(), clone], env=environment, check=True)
        took = {}
        for command in commands:
            start = time.monotonic()
            ended = subprocess.run(["make", command, f"PYTHON={sys.executable}"], cwd=clone, env=environment)
            took[command] = time.monotonic() - start
            if ended.returncode:
                sys.exit(f"On a bare machine 'make {command}' fails, after {took[command]:.0f} s.")
        changed = subprocess.run(
            ["git", "status", "--porcelain"],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        if changed:
            sys.exit(f"On a bare machine the commands change what is committed:\n{changed}")
    print(
        "On a bare machine: "
        + ", ".join(f"make {command} passes in {seconds:.0f} s" for command, seconds in took.items())
    )


if __name__ == "__main__":
    main(sys.argv[1:] or ["book", "test"])
