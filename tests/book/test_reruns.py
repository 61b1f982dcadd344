"""A chapter runs with other parameters, from any folder, into any store, and refuses those that make no sense."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import papermill
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

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


NONSENSE = [("seeds", 0), ("seeds", "three"), ("iterations", -1), ("sedes", 3)]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    """One kernel for all refusals, as most of their time would go into starting another and importing the library again."""
    manager, client = start_new_kernel(startup_timeout=120, kernel_name="python3", cwd=str(tmp_path_factory.mktemp("kernel")))
    client.stop_channels()
    yield manager
    manager.shutdown_kernel()


def refused(chapter: Path, kernel: KernelManager, store: Path, attempts: list[dict[str, Any]]) -> list[nbformat.NotebookNode]:
    """The errors of a chapter's first cells, up to the one that checks parameters, for several sets of parameters; names are forgotten in between."""
    notebook, cells, checks = load_notebook_node(str(chapter)), [], []
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.outputs = []  # pictures, which would be copied for each attempt
    for parameters in attempts:
        given = parameterize_notebook(notebook, parameters | {"results": str(store)})
        code = [nbformat.v4.new_code_cell(cell.source) for cell in given.cells]
        until = next(number for number, cell in enumerate(code) if "check(" in cell.source)
        cells += [nbformat.v4.new_code_cell("%reset -f"), *code[: until + 1]]
        checks.append(len(cells) - 1)
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, km=kernel, timeout=300, allow_errors=True).execute()
    assert all(output.output_type != "error" for number, cell in enumerate(cells) if number not in checks for output in cell.outputs)
    return [[output for output in cells[number].outputs if output.output_type == "error"] for number in checks]


def test_nonsense_is_refused(experiment: Path, kernel: KernelManager, tmp_path: Path) -> None:
    usual = tiny(experiment)
    *errors, none = refused(experiment, kernel, tmp_path / "store", [usual | {name: value} for name, value in NONSENSE] + [usual])
    assert not none, "even good parameters are refused"
    for (name, value), (error, *_) in zip(NONSENSE, errors, strict=True):
        assert error.ename in ("ValueError", "TypeError"), f"{name} = {value}"
        assert name in error.evalue, "the sentence does not say which parameter is wrong"
        assert "\n" not in error.evalue.strip(), "the refusal is more than a sentence"
    assert not list((tmp_path / "store").rglob("*.csv")), "something was trained before the refusal"
