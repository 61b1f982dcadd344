"""A chapter runs with other parameters, from any folder, into any store.

Three chapters keep something else than rows: what an exploration of equations found, a measurement of the
machine, a receipt.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import papermill
from companion.benchmark import MEASURES, SCALING, Measurement

BEYOND = Path(__file__).parents[2] / "book" / "beyond"


def test_tiny_rerun(experiment: Path, rerun: Callable, tmp_path: Path) -> None:
    rerun(experiment, tmp_path, results=str(tmp_path / "store"))
    tables = list((tmp_path / "store").rglob("*.csv"))
    assert tables and all(len(pd.read_csv(table)) for table in tables), "the rerun recorded no run"
    assert {path.name for path in tmp_path.iterdir()} == {"store"}, "the rerun left files behind"


def test_tiny_rerun_of_a_derivation(derivation: Path, rerun: Callable, tmp_path: Path) -> None:
    rerun(derivation, tmp_path)
    assert not list(tmp_path.iterdir()), "the rerun left files behind"


def test_fewer_searches_are_read(rerun: Callable, tmp_path: Path) -> None:
    """And conclusions drawn from them; the search itself is tested in tests/companion/test_search.py."""
    rerun(BEYOND / "discovery.ipynb", tmp_path, record=str(tmp_path / "store"))
    assert not list(tmp_path.iterdir()), "recorded searches were made again"


def test_this_machine_is_measured(rerun: Callable, tmp_path: Path) -> None:
    """Without parameters the chapter shows the recorded measurement."""
    rerun(BEYOND / "how-fast.ipynb", tmp_path, record=str(tmp_path / "measurement.json"))
    taken = Measurement.read(tmp_path / "measurement.json")
    assert set(taken.measures) == set(MEASURES) and set(taken.scaling) == set(SCALING)
    assert all(of.value > 0 for of in taken.measures.values()) and all(
        cost > 0 for pairs in taken.scaling.values() for _, cost in pairs
    )
    assert {path.name for path in tmp_path.iterdir()} == {"measurement.json"}, "the rerun left files behind"


def test_a_fresh_sample_is_confirmed(rerun: Callable, tmp_path: Path) -> None:
    """The chapter's committed outputs name the rows that were drawn when it was last run; sanitize.cfg takes
    the names of confirmed rows out of the comparison, not those of refused ones.
    """
    rerun(
        BEYOND / "verify.ipynb",
        tmp_path,
        receipt=str(tmp_path / "receipt.json"),
        experiment="division/small-numbers",
        iterations=5000,
    )
    receipt = json.loads((tmp_path / "receipt.json").read_text())
    assert receipt["verdict"] == "PASS" and receipt["sample"]["rows"] == len(receipt["rows"]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"receipt.json"}, "the rerun left files behind"


def test_every_parameter_has_a_type_and_a_comment(chapter: Path) -> None:
    for name, parameter in papermill.inspect_notebook(chapter).items():
        assert parameter["inferred_type_name"] != "None", f"{name} has no type"
        assert parameter["help"].strip(), f"{name} has no comment"
