"""The chapter on speed measures this machine when asked to, and otherwise shows the recorded measurement.

It records no rows, so it is none of the experiments of test_reruns.py.
"""

from collections.abc import Callable
from pathlib import Path

from companion.benchmark import MEASURES, SCALING, Measurement

CHAPTER = Path(__file__).parents[2] / "book" / "beyond" / "how-fast.ipynb"


def test_measures_this_machine(rerun: Callable, tmp_path: Path) -> None:
    rerun(CHAPTER, tmp_path, record=str(tmp_path / "measurement.json"))
    taken = Measurement.read(tmp_path / "measurement.json")
    assert set(taken.measures) == set(MEASURES) and set(taken.scaling) == set(SCALING)
    assert all(of.value > 0 for of in taken.measures.values()) and all(
        cost > 0 for pairs in taken.scaling.values() for _, cost in pairs
    )
    assert {path.name for path in tmp_path.iterdir()} == {"measurement.json"}, "the rerun left files behind"
