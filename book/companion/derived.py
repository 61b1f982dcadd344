"""Files that are written from recorded rows, and whether they are as they would be written now: sealed
tables, and blocks of a page between two markers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from companion import sealed

__all__ = ["stale", "with_block", "write"]


def with_block(page: Path, start: str, end: str, block: str) -> str:
    """The text of a page with another block between its two markers; the block brings them along.

    Raises:
        ValueError: the page lacks a marker, or has them more than once or in the wrong order.
    """
    content = page.read_text(encoding="utf-8") if page.is_file() else ""
    if content.count(start) != 1 or content.count(end) != 1 or content.index(start) > content.index(end):
        raise ValueError(
            f"{page.name} needs one line {start} and, below it, one line {end}; the table goes there."
        )
    return content[: content.index(start)] + block + content[content.index(end) + len(end) :]


def stale(files: Mapping[Path, str]) -> list[Path]:
    """Those that do not have the content which they would be written with."""
    return [path for path, content in files.items() if not _has(path, content)]


def write(path: Path, content: str) -> None:
    """A table is sealed."""
    if path.suffix == ".csv":
        sealed.write_text(path, content)
    else:
        path.write_text(content, encoding="utf-8")


def _has(path: Path, content: str) -> bool:
    try:
        return (sealed.read_text(path) if path.suffix == ".csv" else path.read_text("utf-8")) == content
    except (OSError, ValueError):
        return False
