"""A chapter runs with other parameters, from any folder, into any store."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import papermill


def test_tiny_rerun(experiment: Path, rerun: Callable, tmp_path: Path) -> None:
    rerun(experiment, tmp_path, results=str(tmp_path / "store"))
    tables = list((tmp_path / "store").rglob("*.csv"))
    assert tables and all(len(pd.read_csv(table)) for table in tables), "the rerun recorded no run"
    assert {path.name for path in tmp_path.iterdir()} == {"store"}, "the rerun left files behind"


def test_tiny_rerun_of_a_derivation(derivation: Path, rerun: Callable, tmp_path: Path) -> None:
    rerun(derivation, tmp_path)
    assert not list(tmp_path.iterdir()), "the rerun left files behind"


def test_every_parameter_has_a_type_and_a_comment(chapter: Path) -> None:
    for name, parameter in papermill.inspect_notebook(chapter).items():
        assert parameter["inferred_type_name"] != "None", f"{name} has no type"
        assert parameter["help"].strip(), f"{name} has no comment"
