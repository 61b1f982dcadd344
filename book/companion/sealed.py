"""Files of results that are not rows: discoveries, timings, the scoreboard. Each holds, or has beside it, the
SHA-256 of its content, which every reader compares.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from nalm.records.folders import PUBLISHED

__all__ = ["broken", "read_json", "read_text", "write_json", "write_text"]

SEAL = "sha256"
SEALED = (
    "beyond/equations.json",
    "beyond/how-fast.json",
    "golden-paths.csv",
    "leaderboard.csv",
    "replayed.csv",
    "scoreboard.csv",
    "strength.csv",
)
"""The book's, in its folder of results."""


def write_json(path: str | Path, content: dict[str, Any]) -> None:
    """Write a file that holds its own digest, as a whole: whoever is killed leaves what was there."""
    _replace(Path(path), json.dumps(content | {SEAL: _digest(json.dumps(content))}, indent=1) + "\n")


def read_json(path: str | Path) -> dict[str, Any]:
    """What :func:`write_json` wrote.

    Raises:
        ValueError: it is not what was written. Outside of the book's results, a file without a digest is
            read: the library kept none before version 0.2.
        OSError: it cannot be read.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digest = content.pop(SEAL, None)
    except (ValueError, TypeError, AttributeError):
        raise _damaged(path) from None
    if digest != _digest(json.dumps(content)) and (digest or path.is_relative_to(PUBLISHED)):
        raise _damaged(path)
    return content


def write_text(path: str | Path, text: str) -> None:
    """Write a file, and beside it its digest, as ``sha256sum --check`` reads it."""
    path = Path(path)
    _replace(path, text)
    _replace(_beside(path), f"{_digest(text)}  {path.name}\n")


def read_text(path: str | Path) -> str:
    """What :func:`write_text` wrote.

    Raises:
        ValueError: it is not what was written.
        OSError: it, or its digest, cannot be read.
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    if _beside(path).read_text(encoding="utf-8").split() != [_digest(text), path.name]:
        raise _damaged(path)
    return text


def broken(folder: str | Path = PUBLISHED) -> list[str]:
    """A sentence for each sealed file under ``folder`` that is not what was written."""
    found = []
    for file in map(Path(folder).joinpath, SEALED):
        try:
            if file.exists():
                (read_json if file.suffix == ".json" else read_text)(file)
        except (ValueError, OSError) as error:
            found.append(str(error))
    return found


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{SEAL}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _damaged(path: Path) -> ValueError:
    return ValueError(
        f"{path} is not what was recorded: its content and its SHA-256 do not fit together. Restore it, or "
        "remove it to record it anew."
    )
