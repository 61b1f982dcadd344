"""Where rows come from: versions, commit, hardware, time."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from nalm.training import Log, Run

__all__ = ["is_gpu", "processor", "provenance", "surroundings"]

PACKAGES = ("nalm", "torch", "numpy")


def provenance(runs: list[Run], log: Log) -> dict[str, Any]:
    """What is stored once for all rows that were trained together; to be asked where they were trained."""
    origin = surroundings() | {
        "compiled": log.compiled,
        "device": torch.cuda.get_device_name(log.device) if log.device.startswith("cuda") else processor(),
        "runs": len(runs),
        "seconds": round(log.seconds, 2),
        "threads": log.threads,
    }
    return dict(sorted(origin.items()))


def is_gpu(device: str) -> bool:
    """Whether the device that rows were trained on is a GPU.

    >>> is_gpu("NVIDIA H200"), is_gpu("AMD EPYC")
    (True, False)
    """
    return device.startswith("NVIDIA")


def surroundings() -> dict[str, Any]:
    """Commit, date and versions: what anything that is computed now depends on besides the hardware."""
    return {
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {"python": platform.python_version()}
        | {package: _version(package) for package in PACKAGES},
    }


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of the repository that this library is used from, with ``+`` if the library was changed
    since; ``None`` where it is installed, also in somebody else's repository.
    """
    package = Path(__file__).resolve().parents[1]

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=package, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        repository, _, commit = git("rev-parse", "--show-toplevel", "--short=12", "HEAD").rpartition("\n")
        if Path(repository).resolve() != package.parent:
            return None
        return commit + ("+" if git("status", "--porcelain", "--", str(package)) else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
