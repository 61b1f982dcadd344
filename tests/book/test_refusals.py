"""Parameters that make no sense are refused in a sentence, before anything is trained or written.

All attempts share a kernel, as most of their time would go into starting another one and importing the library again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

BOOK = Path(__file__).parents[2] / "book"
NONSENSE = [("seeds", 0), ("seeds", "three"), ("iterations", -1), ("sedes", 3)]
"""For all chapters that train runs."""

OTHERS = {
    "verify": [
        ("rows", 0), ("rows", "two"), ("experiment", "division/none"), ("iterations", 0), ("seconds", 0), ("sample", -2), ("device", "cuda:99"),
        ("seeds", 3),
    ],
    "how-fast": [("runs", 0), ("share", 0), ("share", "all"), ("processes", -1), ("seeds", 3)],
    "discovery": [("starts", [0, 1]), ("seeds", 3)],
}  # fmt: skip


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    manager, client = start_new_kernel(startup_timeout=120, kernel_name="python3", cwd=str(tmp_path_factory.mktemp("kernel")))
    client.stop_channels()
    yield manager
    manager.shutdown_kernel()


def errors(chapter: Path, kernel: KernelManager, attempts: list[dict[str, Any]]) -> list[list[nbformat.NotebookNode]]:
    """For each of several sets of parameters the errors of the cell that checks them; names are forgotten in between."""
    notebook, cells, checks = load_notebook_node(str(chapter)), [], []
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.outputs = []  # pictures, which would be copied for each attempt
    for parameters in attempts:
        given = parameterize_notebook(notebook, parameters)
        code = [nbformat.v4.new_code_cell(cell.source) for cell in given.cells]
        until = next(number for number, cell in enumerate(code) if "check(" in cell.source)
        cells += [nbformat.v4.new_code_cell("%reset -f"), *code[: until + 1]]
        checks.append(len(cells) - 1)
    NotebookClient(nbformat.v4.new_notebook(cells=cells), km=kernel, timeout=300, allow_errors=True).execute()
    assert all(output.output_type != "error" for number, cell in enumerate(cells) if number not in checks for output in cell.outputs)
    return [[output for output in cells[number].outputs if output.output_type == "error"] for number in checks]


def refuses(chapter: Path, kernel: KernelManager, nonsense: list[tuple[str, Any]], **kept: str) -> None:
    usual = nbformat.read(chapter, as_version=4).metadata["nalm"]["tiny"] | kept
    *found, none = errors(chapter, kernel, [usual | {name: value} for name, value in nonsense] + [usual])
    assert not none, "even good parameters are refused"
    for (name, value), (error, *_) in zip(nonsense, found, strict=True):
        assert error.ename in ("ValueError", "TypeError"), f"{name} = {value}"
        assert name in error.evalue.lower(), "the sentence does not say which parameter is wrong"
        assert "\n" not in error.evalue.strip(), "the refusal is more than a sentence"


def test_an_experiment(experiment: Path, kernel: KernelManager, tmp_path: Path) -> None:
    refuses(experiment, kernel, NONSENSE, results=str(tmp_path / "store"))
    assert not list(tmp_path.rglob("*.csv")), "something was trained before the refusal"


def test_a_derivation(derivation: Path, kernel: KernelManager) -> None:
    first = next(iter(papermill.inspect_notebook(derivation)))
    refuses(derivation, kernel, [(first, 0), (first, "three"), ("sedes", 3)])


@pytest.mark.parametrize("name", OTHERS)
def test_a_chapter_that_records_something_else(name: str, kernel: KernelManager, tmp_path: Path) -> None:
    kept = {"verify": "receipt"}.get(name, "record")
    refuses(BOOK / "beyond" / f"{name}.ipynb", kernel, OTHERS[name], **{kept: str(tmp_path / "kept")})
    assert not list(tmp_path.iterdir()), "something was written before the refusal"
