"""The row of a run, from a log whose numbers are known, and the commit that is recorded with it."""

import json
import subprocess

import numpy as np
import pytest

from nalm.models import DigitSequence, Layer, Stack
from nalm.records import provenance
from nalm.records.row import _weights, first_below, first_solved, record_lows, row_of
from nalm.tasks import DigitSequenceTask, SingleModuleTask
from nalm.training import Adam, Log, Recipe, Run

RECIPE = Recipe(iterations=20, optimiser=Adam(lr=1e-2), log_interval=10)
RUN = Run(
    task=SingleModuleTask.on("U[1,2)", operation="mul"),
    model=Stack.of("NMU", 1),
    recipe=RECIPE,
    seed=3,
    threshold=0.25,
)


def row(last, run=RUN, **weights):
    """The row of the second of two runs, whose test error ends at a number."""
    log = Log(
        iterations=np.array([0, 10, 20]),
        errors={
            "valid": np.array([[9.0, 3.0], [9.0, 2.0], [9.0, 1.0]]),
            "test": np.array([[9.0, 3.0], [9.0, 0.5], [9.0, last]]),
        },
        sparsity_errors=np.array([[9.0, 0.3], [9.0, 0.2], [9.0, 0.1]]),
        selected=np.array([0, 2]),
        weights={"0.weight": np.array([[[9.0, 9.0]], [[1.0, 0.5]]])} | weights,
        nan_at=np.array([np.nan, np.nan]),
        seconds=3.0,
        device="cpu",
        threads=1,
        compiled=False,
    )
    return row_of(run, 1, log, "demo/row", "one")


@pytest.mark.parametrize(
    ("last", "success", "solved_at"),
    [(0.2, True, 20), (0.25, False, np.nan), (0.3, False, np.nan), (np.nan, False, np.nan)],
)
def test_success_is_below_the_threshold_and_not_at_it(last, success, solved_at):
    found = row(last)
    assert found["success"] == success and found["success"] is not None
    np.testing.assert_equal(float(found["solved_at"]), float(solved_at))


def test_two_hundred_weights_are_kept_and_more_are_counted():
    assert json.loads(_weights({"w": np.zeros(200)})["weights"]) == {"w": [0.0] * 200}
    assert _weights({"w": np.full(201, 0.05)}) == {
        "weights": None, "parameters": 201, "parameters_above_0.001": 201, "parameters_above_0.01": 201
    }  # fmt: skip


def test_without_a_threshold_there_is_no_success():
    found = row(0.2, RUN.but(threshold=None))
    assert found["success"] is None and np.isnan(found["solved_at"])


def test_a_row_holds_the_selected_evaluation_of_its_own_run():
    found = row(0.2)
    expected = {
        "key": RUN.key,
        "experiment": "demo/row",
        "paper": "demo",
        "model": "NMU",
        "range": "U[1,2)",
        "seed": 3,
        "iterations": 20,
        "valid_mse": 1.0,
        "test_mse": 0.2,
        "sparsity_error": 0.1,
        "selected_at": 20,
        "seconds": 1.5,
        "batch": "one",
        "weights": '{"0.weight":[[1.0,0.5]]}',
    }
    assert {name: found[name] for name in expected} == expected


def test_of_a_reader_of_digits_the_weights_of_its_cell_are_kept():
    reader = DigitSequence(cell=Layer(unit="NMU"))
    run = RUN.but(task=DigitSequenceTask(operation="product", source="sklearn"), model=reader)
    found = row(0.2, run, **{"cell.weight": np.array([[9.0], [0.5]]), "reader.bias": np.ones((2, 1))})
    assert json.loads(found["weights"]) == {"cell.weight": [0.5]}


def test_first_solved_is_strict_and_ignores_missing_values():
    steps = [0, 1000, 2000, 3000]
    errors = np.array([[1.0, 1e-5, 1e-6, 1.0], [np.nan, np.nan, np.nan, np.nan], [1e-9, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(first_solved(steps, errors, 1e-5), [2000.0, np.nan, 0.0])
    np.testing.assert_array_equal(first_solved(steps, errors[:2], [2e-5, 1.0]), [1000.0, np.nan])
    with pytest.raises(ValueError, match="last axis of test_mse"):
        first_solved([0, 1000], errors, 1e-5)


def test_a_low_is_lower_than_all_before_and_below_is_strict():
    steps, errors = np.arange(0, 70, 10), np.array([np.nan, 4.0, np.inf, 4.0, 2.0, np.nan, 3.0])
    assert record_lows(steps, errors) == [(10, 4.0), (40, 2.0)]
    assert record_lows(steps[:2], np.array([np.inf, np.nan])) == []
    found = [first_below([(10, 4.0), (40, 2.0)], threshold) for threshold in (5.0, 4.0, 2.0)]
    np.testing.assert_array_equal(found, [10.0, 40.0, np.nan])


def test_the_commit_is_that_of_the_librarys_own_repository(tmp_path, monkeypatch):
    """Installed in somebody's project, it has none."""
    installed = tmp_path / "venv" / "nalm" / "records"
    installed.mkdir(parents=True)
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(provenance, "__file__", str(installed / "provenance.py"))
    assert provenance._commit() is None
    (tmp_path / "nalm" / "records").mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "nalm" / "records" / "provenance.py"))
    assert len(provenance._commit()) == 12
    (tmp_path / "nalm" / "changed.py").touch()
    assert provenance._commit().endswith("+")


def test_where_a_row_comes_from_says_how_it_was_trained():
    log = Log(
        iterations=np.array([0]),
        errors={},
        sparsity_errors=np.zeros((1, 1)),
        selected=np.array([0]),
        weights={},
        nan_at=np.array([np.nan]),
        seconds=1.2345,
        device="cpu",
        threads=2,
        compiled=True,
    )
    origin = provenance.provenance([RUN, RUN], log)
    assert (origin["compiled"], origin["threads"], origin["runs"], origin["seconds"]) == (True, 2, 2, 1.23)


def test_a_parameter_at_a_threshold_does_not_count():
    values = np.array([0.01] * 100 + [0.02] * 101)
    assert _weights({"0.weight": values})["parameters_above_0.01"] == 101


def test_an_error_without_iterations_is_refused():
    with pytest.raises(ValueError, match="must hold one error per logged iteration"):
        first_solved([0], np.float64(1.0), threshold=0.5)
