"""The chapters, as parameters of tests: `chapter` is each notebook, `experiment` each one that trains; and the built book."""

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


def is_experiment(path: Path) -> bool:
    """Whether a notebook has a cell of parameters, one of which says where results are kept."""
    cells = nbformat.read(path, as_version=4).cells
    parameters = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    return any(line.partition("=")[0].partition(":")[0].strip() == "results" for line in "\n".join(parameters).split("\n"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "chapter" in metafunc.fixturenames:
        paths = notebooks()
    elif "experiment" in metafunc.fixturenames:
        paths = [path for path in notebooks() if is_experiment(path)]
    else:
        return
    name = "chapter" if "chapter" in metafunc.fixturenames else "experiment"
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
