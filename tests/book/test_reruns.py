"""A chapter runs with other parameters, from any folder, into any store."""

import hashlib
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill

BOOK = Path(__file__).parents[2] / "book"


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def rerun(chapter: Path, folder: Path, **parameters: Any) -> None:
    folder.mkdir(exist_ok=True)
    papermill.execute_notebook(
        chapter,
        folder / "rerun.ipynb",
        parameters,
        kernel_name="python3",
        cwd=folder,
        progress_bar=False,
        start_timeout=120,
        execution_timeout=300,
    )


def tiny(chapter: Path) -> dict[str, Any]:
    """The parameters of a rerun of seconds, from the notebook's metadata."""
    return dict(nbformat.read(chapter, as_version=4).metadata.get("nalm", {}).get("tiny", {}))


def test_tiny_rerun(experiment: Path, tmp_path: Path) -> None:
    parameters = tiny(experiment)
    assert parameters, 'no parameters for a tiny rerun under metadata "nalm": {"tiny": {…}}'
    known = papermill.inspect_notebook(experiment)
    assert set(parameters) <= set(known), "a tiny rerun sets parameters that the chapter does not have"
    before = contents(BOOK)

    rerun(experiment, tmp_path, **parameters, results=str(tmp_path / "store"))

    tables = list((tmp_path / "store").rglob("*.csv"))
    assert tables and all(len(pd.read_csv(table)) for table in tables), "the rerun recorded no run"
    assert contents(BOOK) == before, "the rerun changed files of the book"
    assert {path.name for path in tmp_path.iterdir()} == {"rerun.ipynb", "store"}, "the rerun left files behind"


def test_tiny_rerun_of_a_derivation(derivation: Path, tmp_path: Path) -> None:
    parameters = tiny(derivation)
    assert parameters, 'no parameters for a tiny rerun under metadata "nalm": {"tiny": {…}}'
    assert set(parameters) <= set(papermill.inspect_notebook(derivation)), "a tiny rerun sets parameters that the chapter does not have"
    before = contents(BOOK)

    rerun(derivation, tmp_path, **parameters)

    assert contents(BOOK) == before, "the rerun changed files of the book"
    assert {path.name for path in tmp_path.iterdir()} == {"rerun.ipynb"}, "the rerun left files behind"


def test_every_parameter_has_a_type_and_a_comment(chapter: Path) -> None:
    for name, parameter in papermill.inspect_notebook(chapter).items():
        assert parameter["inferred_type_name"] != "None", f"{name} has no type"
        assert parameter["help"].strip(), f"{name} has no comment"
