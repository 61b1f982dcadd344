"""The chapter on discovery reads the recorded searches and draws its conclusions from fewer of them as well.

It trains no runs and records no rows, so it is none of the experiments of test_reruns.py; the search itself is tested in tests/discovery.
"""

from pathlib import Path
from typing import Any

import nbformat
import papermill

BOOK = Path(__file__).parents[2] / "book"
CHAPTER = BOOK / "beyond" / "discovery.ipynb"


def rerun(folder: Path, **parameters: Any) -> None:
    tiny = nbformat.read(CHAPTER, as_version=4).metadata["nalm"]["tiny"]
    papermill.execute_notebook(
        CHAPTER,
        folder / "rerun.ipynb",
        tiny | {"record": str(folder / "store")} | parameters,
        kernel_name="python3",
        cwd=folder,
        progress_bar=False,
        start_timeout=120,
        execution_timeout=300,
    )


def test_fewer_searches_are_read(tmp_path: Path) -> None:
    before = (BOOK / "results" / "beyond" / "equations.json").read_bytes()
    rerun(tmp_path)
    assert (BOOK / "results" / "beyond" / "equations.json").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"rerun.ipynb"}, "recorded searches were made again"


def test_every_parameter_has_a_type_and_a_comment() -> None:
    for name, parameter in papermill.inspect_notebook(CHAPTER).items():
        assert parameter["inferred_type_name"] != "None" and parameter["help"].strip(), name
