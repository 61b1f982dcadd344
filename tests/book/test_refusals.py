"""Parameters that make no sense are refused in a sentence, before anything is trained or written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

BOOK = Path(__file__).parents[2] / "book"
NONSENSE = [("seeds", 0), ("seeds", "three"), ("iterations", -1), ("sedes", 3)]
"""For all chapters that train runs."""

OTHERS = {
    "verify": [
        ("rows", 0),
        ("rows", "two"),
        ("experiment", "division/none"),
        ("iterations", 0),
        ("seconds", 0),
        ("sample", -2),
        ("device", "cuda:99"),
        ("seeds", 3),
    ],
    "how-fast": [("runs", 0), ("share", 0), ("share", "all"), ("processes", -1), ("seeds", 3)],
    "discovery": [("starts", [0, 1]), ("seeds", 3)],
}


def refuses(
    attempt: Callable, chapter: Path, folder: Path, nonsense: list[tuple[str, Any]], **kept: str
) -> None:
    usual = nbformat.read(chapter, as_version=4).metadata["nalm"]["tiny"] | kept
    *found, none = attempt(chapter, folder, [usual | {name: value} for name, value in nonsense] + [usual])
    assert not none, "even good parameters are refused"
    for (name, value), (error, *_) in zip(nonsense, found, strict=True):
        assert error.ename in ("ValueError", "TypeError"), f"{name} = {value}"
        assert name in error.evalue.lower(), "the sentence does not say which parameter is wrong"
        assert "\n" not in error.evalue.strip(), "the refusal is more than a sentence"
    assert not list(folder.iterdir()), "something was trained or written before the refusal"


def test_an_experiment(experiment: Path, attempt: Callable, tmp_path: Path) -> None:
    refuses(attempt, experiment, tmp_path, NONSENSE, results=str(tmp_path / "store"))


def test_a_derivation(derivation: Path, attempt: Callable, tmp_path: Path) -> None:
    first = next(iter(papermill.inspect_notebook(derivation)))
    refuses(attempt, derivation, tmp_path, [(first, 0), (first, "three"), ("sedes", 3)])


@pytest.mark.parametrize("name", OTHERS)
def test_a_chapter_that_records_something_else(name: str, attempt: Callable, tmp_path: Path) -> None:
    kept = {"verify": "receipt"}.get(name, "record")
    refuses(
        attempt, BOOK / "beyond" / f"{name}.ipynb", tmp_path, OTHERS[name], **{kept: str(tmp_path / "kept")}
    )
