"""The chapters, as parameters of tests: `chapter` is each notebook, `experiment` each one that trains."""

from pathlib import Path

import nbformat
import pytest

BOOK = Path(__file__).parents[2] / "book"


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
