"""The chapters, as parameters of tests: `chapter` is each notebook, `experiment` each that trains, `derivation` each that computes; and the built book."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"


def notebooks() -> list[Path]:
    return sorted(path for path in BOOK.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


KEEPING = {"results", "record", "receipt"}
"""Parameters that say where something is kept."""


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
            metafunc.parametrize(name, paths, ids=[path.relative_to(BOOK).with_suffix("").as_posix() for path in paths])


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the book, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("book")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(ROOT), "--path-output", str(folder)]
    environment = os.environ | {"NO_COLOR": "1"}
    build = subprocess.run([*command, "-W", "-n", "--keep-going"], capture_output=True, text=True, env=environment)
    if build.returncode:
        said = (build.stdout + build.stderr).splitlines()
        warnings = [line for line in said if "WARNING" in line or "ERROR" in line]
        pytest.fail("The book does not build:\n" + "\n".join(warnings or said[-30:]), pytrace=False)
    return folder / "_build" / "html"
