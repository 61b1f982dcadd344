"""The chapters, as parameters of tests: `chapter` is each notebook, `experiment` each that trains,
`derivation` each that computes; and the built book.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
from chromium import FLAGS, NoChromium, find
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"


def notebooks() -> list[Path]:
    return sorted(path for path in BOOK.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


PARAMETER = re.compile(r"^\w+: (int|float|str|bool|list) = ", re.MULTILINE)
KEEPING = {"results", "record", "receipt"}
"""Parameters that say where something is kept."""


@cache
def parameters(path: Path) -> set[str]:
    """The names in a notebook's cell of parameters."""
    cells = nbformat.read(path, as_version=4).cells
    source = "\n".join(cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    return {line.partition("=")[0].partition(":")[0].strip() for line in source.split("\n")} - {""}


def is_experiment(path: Path) -> bool:
    """Whether a notebook trains runs that are kept."""
    return "results" in parameters(path)


def is_derivation(path: Path) -> bool:
    """Whether a notebook has parameters and keeps nothing."""
    return bool(parameters(path)) and not parameters(path) & KEEPING


KINDS = {"chapter": lambda path: True, "experiment": is_experiment, "derivation": is_derivation}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, is_one in KINDS.items():
        if name in metafunc.fixturenames:
            paths = [path for path in notebooks() if is_one(path)]
            metafunc.parametrize(
                name, paths, ids=[path.relative_to(BOOK).with_suffix("").as_posix() for path in paths]
            )


@pytest.fixture(scope="session")
def execute(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., list[nbformat.NotebookNode]]]:
    """Executes cells. One kernel for all chapters that run with other parameters: most of their time would
    go into starting a kernel each and importing the library again.
    """
    manager, client = start_new_kernel(
        startup_timeout=120,
        kernel_name="python3",
        cwd=str(tmp_path_factory.mktemp("kernel")),
        extra_arguments=["--HistoryManager.enabled=False"],  # writes each cell to a disk
    )

    def execute(cells: list[nbformat.NotebookNode], **options: Any) -> list[nbformat.NotebookNode]:
        notebook = nbformat.v4.new_notebook(cells=cells)
        executing = NotebookClient(notebook, km=manager, timeout=300, **options)
        executing.kc = client  # to connect once for each would take most of the time
        executing.execute()
        return cells

    yield execute
    client.stop_channels()
    manager.shutdown_kernel()


@pytest.fixture
def attempt(
    execute: Callable[..., list[nbformat.NotebookNode]],
) -> Callable[[Path, Path, list[dict[str, Any]]], list[list[nbformat.NotebookNode]]]:
    """Runs a chapter in a folder up to the cell that checks its parameters, for each of several sets of
    them.

    Returns the errors of that cell, for each; the names of one attempt are forgotten in the next.
    """

    def attempt(chapter: Path, folder: Path, sets: list[dict[str, Any]]) -> list[list[nbformat.NotebookNode]]:
        cells = []
        for parameters in sets:
            code = _cells(chapter, folder, parameters)
            since = next(number for number, cell in enumerate(code) if PARAMETER.search(cell.source))
            until = next(n for n, cell in enumerate(code) if n > since and "check(" in cell.source)
            asked = [*code[: min(2, since)], *code[since : until + 1]]  # without what is derived before
            before = "\n".join([*(cell.source for cell in asked[:-1]), "%xmode Minimal"])
            cells += [nbformat.v4.new_code_cell(before), asked[-1]]
        executed = execute(cells, allow_errors=True)
        errors = [[one for one in cell.outputs if one.output_type == "error"] for cell in executed]
        assert not any(errors[::2])
        return errors[1::2]

    return attempt


@pytest.fixture
def rerun(execute: Callable[..., list[nbformat.NotebookNode]]) -> Callable[..., None]:
    """Runs a chapter from another folder, with the parameters of a rerun of seconds and those that are
    given; then the book is as it was.
    """

    def rerun(chapter: Path, folder: Path, **kept: Any) -> None:
        tiny = nbformat.read(chapter, as_version=4).metadata.get("nalm", {}).get("tiny", {})
        assert tiny, 'no parameters for a tiny rerun under metadata "nalm": {"tiny": {…}}'
        parameters = tiny | kept
        assert set(parameters) <= set(papermill.inspect_notebook(chapter)), (
            "a tiny rerun sets parameters that the chapter does not have"
        )
        before = contents(BOOK)
        execute(_cells(chapter, folder, parameters))
        assert contents(BOOK) == before, "the rerun changed files of the book"

    return rerun


def contents(folder: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of the last change of every file, but for Python's own, which other tests write: whoever
    writes one changes these.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def _cells(chapter: Path, folder: Path, parameters: dict[str, Any]) -> list[nbformat.NotebookNode]:
    """The code of a chapter with parameters as papermill sets them, to be run in a folder by a kernel
    that has run others.
    """
    notebook = load_notebook_node(str(chapter))
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.outputs = []  # pictures, which would be copied
    # A reset looks through all objects for what nobody needs; what is left, imported modules above all, need
    # not be looked through again. New processes ask the main module for its spec, which is forgotten with
    # everything else.
    anew = f"%xmode Context\n%reset -f\n__import__('gc').freeze()\n__spec__ = None\n%cd -q {folder}"
    sources = [anew, *(cell.source for cell in parameterize_notebook(notebook, parameters).cells)]
    return [nbformat.v4.new_code_cell(source) for source in sources]


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the book, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("book")
    command = [
        str(Path(sys.executable).with_name("jupyter-book")),
        "build",
        str(ROOT),
        "--path-output",
        str(folder),
    ]
    environment = os.environ | {"NO_COLOR": "1"}
    build = subprocess.run(
        [*command, "-W", "-n", "--keep-going"], capture_output=True, text=True, env=environment
    )
    if build.returncode:
        said = (build.stdout + build.stderr).splitlines()
        warnings = [line for line in said if "WARNING" in line or "ERROR" in line]
        pytest.fail("The book does not build:\n" + "\n".join(warnings or said[-30:]), pytrace=False)
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        executable = find()
    except NoChromium as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()
