"""A row that bears the name of another unit is noticed, even if all digests were made anew."""

import json
import shutil

import pytest
from companion import beyond
from companion.division.no_redundancy import EXPERIMENT
from companion.nau_nmu import ten_parameter
from companion.scoreboard.items import EXPERIMENTS, experiments_of
from companion.verification.names import misnamed

from nalm.records.digest import digests
from nalm.records.folders import PUBLISHED
from nalm.records.store import Store

NAME = "division/no-redundancy"
EVERY = [*EXPERIMENTS, *experiments_of(beyond)]


def copied(folder, name):
    store = Store(folder, name)
    store.rows_file.parent.mkdir(exist_ok=True)
    shutil.copy(PUBLISHED / f"{name}.csv", store.rows_file)
    shutil.copy(PUBLISHED / f"{name}.json", store.sidecar_file)
    return store


@pytest.fixture
def copy(tmp_path):
    return copied(tmp_path, NAME)


def test_published_rows_are_called_as_their_runs():
    assert misnamed(EVERY) == []


def test_rows_are_compared_with_the_runs_of_one_experiment(copy):
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


def written(store, rows):
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")


def called(store, key, column, name, right):
    """What is said of a row of the store."""
    return f"{store.experiment}: {key} is called {name!r} in the column {column}, but is {right!r}"


def test_a_model_is_noticed_in_rows_that_no_chapter_asks_for(tmp_path):
    """They are those of a queue, of replays, of statements that are no longer made, and of shorter runs."""
    expected = []
    for name, model, iterations in [
        ("beyond/tuned", "NMU", 5_000),
        ("division/further-seeds", "Real NPU (modified), PCC", 100_000),
        ("division/replay", "NRU, pow", 50_000),
        ("nau-nmu/late", "NAU", 5_000_000),
        ("nau-nmu/replay", "NMU", 5_000_000),
        ("nau-nmu/replay", "NAU", 20_000),
        ("nau-nmu/sequential-mnist", "NMU", 42_680),
    ]:
        store = Store(tmp_path, name)
        store = store if store.rows_file.exists() else copied(tmp_path, name)
        rows = store.read(checked=False)
        changed = rows.index[(rows["model"] == model) & (rows["iterations"] == iterations)][-1]
        rows.loc[changed, "model"] = "NALU"
        written(store, rows)
        expected.append(called(store, rows.loc[changed, "key"], "model", "NALU", model))
    assert sorted(misnamed(EVERY, tmp_path)) == sorted(expected)


def test_a_replay_is_called_as_the_run_that_it_replays(tmp_path):
    store, _ = (copied(tmp_path, name) for name in ("nau-nmu/replay", "nau-nmu/ten-parameter"))
    assert misnamed([ten_parameter.EXPERIMENT], tmp_path) == []
    rows = store.read()
    first, second = rows.index[rows["of"] == "nau-nmu/ten-parameter"][:2]
    key, another = rows.loc[[first, second], "key"]
    replays = rows.loc[second, "replays"]
    rows.loc[first, "range"] = "U[2,6)"
    rows.loc[second, "replays"] = rows.loc[first, "replays"]
    written(store, rows)
    assert misnamed([ten_parameter.EXPERIMENT], tmp_path) == [
        called(store, key, "range", "U[2,6)", "U[1,2)"),
        called(store, another, "replays", rows.loc[first, "replays"], replays),
    ]


def test_a_row_with_the_names_of_one_definition_has_no_label_of_another(tmp_path):
    """The same run is in Table 2, and in Figure 12 with a factor."""
    store = copied(tmp_path, "nau-nmu/replay")
    rows = store.read()
    chosen = rows[(rows["model"] == "NMU") & (rows["operation"] == "mul") & (rows["range"] == "U[1,2)")]
    key = chosen.loc[chosen["factor"].isna() & chosen["hidden"].isna(), "key"].iloc[0]
    for factor, wrong in [(10.0, []), (0.1, [f"{store.experiment}: {key}"])]:
        rows.loc[rows["key"] == key, "factor"] = factor
        written(store, rows)
        assert [one.split(" is ")[0] for one in misnamed([], tmp_path)] == wrong


def test_a_published_row_without_a_definition_is_noticed(tmp_path):
    name = "nau-nmu/ten-parameter"
    store = copied(tmp_path, name)
    keys = store.read()["key"]
    assert misnamed([], names=[name]) == [
        f"{name}: {key} has no definition, so its names cannot be compared" for key in keys
    ]
    assert misnamed([], tmp_path) == []
