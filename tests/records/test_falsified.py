"""Rows that were changed by hand are noticed: those whose digests were left as they were, at once and
whatever was changed; those whose digests were made anew, when they are trained again.
"""

import json

import numpy as np
import pandas as pd
import pytest

from nalm.models import Stack
from nalm.records import Store, run_all, verify_rows
from nalm.records.digest import digests
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

pytestmark = pytest.mark.usefixtures("each_sample_is_trained_once")
EXPERIMENT = "demo/falsified"


def run(unit, seed, place="U[1,2)"):
    task = SingleModuleTask.on(place, operation="mul")
    recipe = Recipe(iterations=60, optimiser=Adam(lr=1e-2), log_interval=5)
    return Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=seed, threshold=1.0)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("honest")
    asked = [run(unit, seed) for unit in ("NMU", "NAC") for seed in range(3)]
    run_all(asked, EXPERIMENT, str(folder), progress=False)
    return Store(folder, EXPERIMENT)


@pytest.fixture
def store(honest, tmp_path):
    """A copy, to be falsified."""
    copy = Store(tmp_path, EXPERIMENT)
    copy.rows_file.parent.mkdir()
    copy.rows_file.write_bytes(honest.rows_file.read_bytes())
    copy.sidecar_file.write_bytes(honest.sidecar_file.read_bytes())
    return copy


def put(column, value):
    def edit(rows):
        rows.loc[0, column] = value(rows.loc[0, column]) if callable(value) else value
        return rows

    return edit


def scaled(factor):
    return lambda value: value * factor


def shifted_weights(by):
    def shift(text):
        weights = json.loads(text)
        return json.dumps({name: (np.array(w) + by).tolist() for name, w in weights.items()})

    return shift


def swapped(column):
    def edit(rows):
        values = rows[column].copy()
        rows.loc[[0, 1], column] = values[[1, 0]].to_numpy()
        return rows

    return edit


def renamed(rows):
    """The two units bear each other's name."""
    return rows.assign(model=rows["model"].map({"NMU": "NAC", "NAC": "NMU"}))


EDITS = {
    "success flipped": put("success", lambda value: not value),
    "success emptied": put("success", None),
    "solved later": put("solved_at", scaled(2)),
    "solved at emptied": put("solved_at", None),
    "selected earlier": put("selected_at", 10),
    "nan at": put("nan_at", 10),
    "test error halved": put("test_mse", scaled(0.5)),
    "test error × 1.24": put("test_mse", scaled(1.24)),
    "test error negative": put("test_mse", -1.0),
    "validation error × 3": put("valid_mse", scaled(3)),
    "sparsity error × 10": put("sparsity_error", scaled(10)),
    "weights + 0.03": put("weights", shifted_weights(0.03)),
    "weights + 1e-6": put("weights", shifted_weights(1e-6)),
    "weights emptied": put("weights", None),
    "seed": put("seed", 17),
    "iterations": put("iterations", 1000),
    "threshold": put("threshold", 2.0),
    "stream": put("stream", "common"),
    "task": put("task", "TenParameterTask"),
    "paper": put("paper", "npu"),
    "model": put("model", "NRU"),
    "range": put("range", "U[-2,2)"),
    "seconds": put("seconds", scaled(2)),
    "two keys": swapped("key"),
    "two seeds' errors": swapped("test_mse"),
    "two seeds' weights": swapped("weights"),
    "all names": renamed,
    "a row more": lambda rows: pd.concat([rows, rows.iloc[:1].assign(key="0" * 12 + "-0")]),
}
"""What a hand may do to rows."""

BEYOND_TRAINING = {"seconds", "weights + 1e-6", "test error × 1.24"}
"""What training again does not tell: how long it took, and what rounding may change."""


def falsified(store, edit, forged):
    """Rows edited by hand; a forger makes the digests and the number of rows anew."""
    rows = edit(store.read().astype(object))
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    if forged:
        sidecar = store.sidecar()
        for batch, digest in digests(store.read(checked=False)).items():
            sidecar["batches"][batch]["digest"] = digest
        store.sidecar_file.write_text(json.dumps(sidecar | {"rows": len(rows)}))
    return store.rows_file.parents[1]


def test_honest_rows_pass(honest):
    folder = honest.rows_file.parents[1]
    assert verify_rows(0, folder=folder).passed and verify_rows(9, folder=folder, progress=False).passed


@pytest.mark.parametrize("name", EDITS)
def test_rows_that_are_not_as_they_were_recorded_are_not_read(store, name):
    folder = falsified(store, EDITS[name], forged=False)
    outcome = verify_rows(0, folder=folder)
    assert not outcome.passed and "are not as they were recorded" in str(outcome)
    with pytest.raises(ValueError, match="not as they were recorded|lost rows"):
        run_all([run("NMU", 0)], EXPERIMENT, str(folder), progress=False)


def test_a_lost_row_is_noticed_even_if_the_number_of_rows_is_adapted(store):
    rows = store.read()
    rows[1:].to_csv(store.rows_file, index=False, lineterminator="\n")
    with pytest.raises(ValueError, match="lost rows"):
        store.read()
    store.sidecar_file.write_text(json.dumps(store.sidecar() | {"rows": len(rows) - 1}))
    with pytest.raises(ValueError, match="not as they were recorded"):
        store.read()


def test_a_lost_batch_is_noticed_even_if_the_number_of_rows_is_adapted(store):
    rows = store.read()
    left = rows[rows["batch"] != rows["batch"][0]]
    left.to_csv(store.rows_file, index=False, lineterminator="\n")
    store.sidecar_file.write_text(json.dumps(store.sidecar() | {"rows": len(left)}))
    with pytest.raises(ValueError, match="not as they were recorded"):
        store.read()


@pytest.mark.parametrize("name", [name for name in EDITS if name not in BEYOND_TRAINING])
def test_forged_rows_fail_when_they_are_trained_again(store, name):
    folder = falsified(store, EDITS[name], forged=True)
    assert verify_rows(0, folder=folder).passed  # digests alone say nothing of a forger
    assert not verify_rows(9, folder=folder, progress=False).passed


@pytest.mark.parametrize("cell", ["abc", "[" * 3000, "{}", "1e999"])
@pytest.mark.parametrize("column", ["solved_at", "weights", "sparsity_error", "threshold"])
def test_a_cell_that_makes_no_sense_fails_its_row_only(store, column, cell):
    folder = falsified(store, put(column, cell), forged=True)
    outcome = verify_rows(9, folder=folder, progress=False)
    assert sum(row.passed for row in outcome.rows) == 5 and not outcome.passed
