"""``make execute``: a chapter runs with its own parameters, and its outputs are written into it, as they are
committed: without times, and what is printed in one piece.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

__all__ = ["execute"]

HOURS = 3600
ELSEWHERE = "rows come from"
"""What a chapter says of rows that are not the book's."""


def execute(chapter: Path, timeout: int = 10 * HOURS) -> None:
    """Run a chapter and write its outputs into it.

    Args:
        chapter: the notebook.
        timeout: of a cell, in seconds.

    Raises:
        ValueError: a cell failed, rows are not all the book's, or somebody has edited the chapter meanwhile;
            the file is as it was.
    """
    before = chapter.read_bytes()
    try:
        notebook = nbformat.reads(before.decode(), as_version=4)
    except Exception as error:  # of JSON, of the format, of its older versions
        raise ValueError(f"{chapter} is no notebook ({type(error).__name__}).") from None
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(chapter.parent)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise ValueError(f"{chapter}: {error.ename}: {error.evalue}") from None
    said = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    if any(ELSEWHERE in text for text in said):
        raise ValueError(
            f"{chapter} was not written, as some of its rows are your own: first train them with "
            f'make rerun CHAPTER={chapter} ARGS="-p results publish".'
        )
    if chapter.read_bytes() != before:
        raise ValueError(f"{chapter} was not written, as it was edited while it ran: run it again.")
    nbformat.write(notebook, chapter)


if __name__ == "__main__":
    try:
        for chapter in sys.argv[1:]:
            execute(Path(chapter))
    except (ValueError, OSError) as failure:
        print(failure, file=sys.stderr)
        sys.exit(1)
