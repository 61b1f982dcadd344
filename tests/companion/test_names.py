"""A row that bears the name of another unit is noticed, even if all digests were made anew."""

import json
import shutil

import pytest
from companion.division.no_redundancy import EXPERIMENT
from companion.verification.names import misnamed

from nalm.records.digest import digests
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store

NAME = "division/no-redundancy"


def copied(folder, name):
    store = Store(folder, name)
    store.rows_file.parent.mkdir(exist_ok=True)
    shutil.copy(PUBLISHED / f"{name}.csv", store.rows_file)
    shutil.copy(PUBLISHED / f"{name}.json", store.sidecar_file)
    return store


@pytest.fixture
def copy(tmp_path):
    return copied(tmp_path, NAME)


def test_published_rows_are_called_as_their_runs(copy):
    assert misnamed([EXPERIMENT], copy.rows_file.parents[1]) == []


@pytest.mark.parametrize(
    ("column", "one", "other"),
    [
        ("model", "NRU", "NMRU"),
        ("model", "Real NPU (modified)", "Real NPU"),
        ("model", "NMRU", None),
        ("range", "U[-2,2)", "U[1,2)"),
        ("seed", 3, 4),
    ],
)
def test_swapped_names_are_noticed(copy, column, one, other):
    rows = copy.read()
    swapped = {one: other, other: one}
    rows[column] = rows[column].map(lambda name: swapped.get(name, name))
    rows.to_csv(copy.rows_file, index=False, lineterminator="\n")
    sidecar = copy.sidecar()
    for batch, digest in digests(copy.read(checked=False)).items():
        sidecar["batches"][batch]["digest"] = digest
    for names in sidecar["names"].values():
        if column in names:
            names[column] = swapped.get(names[column], names[column])
    copy.sidecar_file.write_text(json.dumps(sidecar))
    assert copy.damaged() == []
    found = misnamed([EXPERIMENT], copy.rows_file.parents[1])
    assert len(found) == rows[column].isin([one, other]).sum() and f"in the column {column}" in found[0]


def test_a_replay_is_called_as_the_run_that_it_replays(tmp_path):
    store, _ = (copied(tmp_path, name) for name in ("nau-nmu/replay", "nau-nmu/ten-parameter"))
    assert misnamed([], tmp_path) == []
    rows = store.read()
    changed = rows.index[rows["of"] == "nau-nmu/ten-parameter"][0]
    rows.loc[changed, "range"] = "U[2,6)"
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    assert misnamed([], tmp_path) == [
        f"nau-nmu/replay: {rows.loc[changed, 'key']} is called 'U[2,6)' in the column range, but is 'U[1,2)'"
    ]
