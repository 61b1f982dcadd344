"""The chapter on discovery reads the recorded searches and draws its conclusions from fewer of them as
well.

It trains no runs and records no rows, so it is none of the experiments of test_reruns.py; the search
itself is tested in tests/discovery.
"""

from collections.abc import Callable
from pathlib import Path

CHAPTER = Path(__file__).parents[2] / "book" / "beyond" / "discovery.ipynb"


def test_fewer_searches_are_read(rerun: Callable, tmp_path: Path) -> None:
    rerun(CHAPTER, tmp_path, record=str(tmp_path / "store"))
    assert not list(tmp_path.iterdir()), "recorded searches were made again"
