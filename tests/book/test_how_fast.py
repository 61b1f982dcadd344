"""The chapter on speed measures this machine when asked to, and otherwise shows the recorded measurement.

It records no rows, so it is none of the experiments of test_reruns.py.
"""

from pathlib import Path
from typing import Any

import nbformat
import papermill

from nalm.benchmark import MEASURES, SCALING, Measurement

BOOK = Path(__file__).parents[2] / "book"
CHAPTER = BOOK / "beyond" / "how-fast.ipynb"


def rerun(folder: Path, **parameters: Any) -> None:
    tiny = nbformat.read(CHAPTER, as_version=4).metadata["nalm"]["tiny"]
    papermill.execute_notebook(
        CHAPTER,
        folder / "rerun.ipynb",
        tiny | {"record": str(folder / "measurement.json")} | parameters,
        kernel_name="python3",
        cwd=folder,
        progress_bar=False,
        start_timeout=120,
        execution_timeout=300,
    )


def test_measures_this_machine(tmp_path: Path) -> None:
    before = (BOOK / "results" / "beyond" / "how-fast.json").read_bytes()
    rerun(tmp_path)
    taken = Measurement.read(tmp_path / "measurement.json")
    assert set(taken.measures) == set(MEASURES) and set(taken.scaling) == set(SCALING)
    assert all(of.value > 0 for of in taken.measures.values()) and all(cost > 0 for pairs in taken.scaling.values() for _, cost in pairs)
    assert (BOOK / "results" / "beyond" / "how-fast.json").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"rerun.ipynb", "measurement.json"}, "the rerun left files behind"


def test_every_parameter_has_a_type_and_a_comment() -> None:
    for name, parameter in papermill.inspect_notebook(CHAPTER).items():
        assert parameter["inferred_type_name"] != "None" and parameter["help"].strip(), name
