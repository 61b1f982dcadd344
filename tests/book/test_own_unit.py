"""The chapter on a unit of one's own: its twenty lines, and what an edit does to its rows."""

from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

CHAPTER = Path(__file__).parents[2] / "book" / "beyond" / "own-unit.ipynb"


@pytest.fixture(scope="module")
def cells() -> dict[str, NotebookNode]:
    return {cell.id: cell for cell in nbformat.read(CHAPTER, as_version=4).cells}


def said(cell: NotebookNode) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def test_its_twenty_lines_are_twenty(cells: dict[str, NotebookNode]) -> None:
    lines = [line for name in ("unit", "compare") for line in cells[name].source.splitlines()]
    assert sum(bool(line.strip()) for line in lines) == 20 and "twenty lines" in cells["title"].source


def test_an_edit_makes_its_rows_older(cells: dict[str, NotebookNode]) -> None:
    assert [said(cells[name]).strip() for name in ("fresh", "edit")] == [
        "fresh",
        "older than the code it depends on",
    ]
    assert said(cells["again"]).strip() == "trained again: SquareUnit - now fresh"


def test_each_wrong_unit_is_refused_in_a_sentence(cells: dict[str, NotebookNode]) -> None:
    names = [
        line.split()[1].partition("(")[0] for line in cells["refused"].source.splitlines() if "class " in line
    ]
    assert [line.split()[0] for line in said(cells["sentences"]).splitlines()] == names
