"""Rows of another folder are taken up whole or not at all."""

import json
import subprocess

import pytest
from companion.verification.sidebyside import library_at
from companion.verification.take import main, take_rows

from nalm.models import Stack
from nalm.records import Store, code, freshness, run_all
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

EXPERIMENT = "demo/take"
FRESH, OLDER = "fresh", "older than the code it depends on"
TASK = SingleModuleTask.on("U[1,2)", operation="mul")
RECIPE = Recipe(iterations=4, optimiser=Adam(lr=1e-2), log_interval=2)


def record(folder, seeds, unit="NMU"):
    runs = [
        Run(
            task=TASK,
            model=Stack.of(unit, 1),
            recipe=RECIPE,
            seed=seed,
            threshold=1e-5,
            labels={"model": unit},
        )
        for seed in seeds
    ]
    run_all(runs, EXPERIMENT, results=str(folder), progress=False)
    return Store(folder, EXPERIMENT)


@pytest.fixture
def there(tmp_path):
    return record(tmp_path / "there", range(3))


@pytest.fixture
def here(tmp_path):
    return Store(tmp_path / "here", EXPERIMENT)


def take(there, here, **options):
    return [
        str(one) for one in take_rows(there.rows_file.parents[1], folder=here.rows_file.parents[1], **options)
    ]


def edit(store, change):
    sidecar = store.sidecar()
    change(sidecar)
    store.sidecar_file.write_text(json.dumps(sidecar))


def test_rows_come_with_their_provenance_and_come_once(there, here):
    record(here.rows_file.parents[1], [2, 7])
    edit(there, lambda sidecar: sidecar["configurations"].update(unused={}))
    assert take(there, here) == [
        "demo/take: 2 new rows, 1 known, 0 in place of older ones; 0 older than the code"
    ]
    (configuration,) = here.sidecar()["configurations"]  # that of the rows
    assert set(here.read()["key"].str.partition("-")[0]) == {configuration}
    assert sorted(here.read()["seed"]) == [0, 1, 2, 7] and here.damaged() == []
    assert freshness(EXPERIMENT, here.rows_file.parents[1]) == FRESH
    before = here.rows_file.read_bytes(), here.sidecar_file.read_bytes()
    assert take(there, here) == [
        "demo/take: 0 new rows, 3 known, 0 in place of older ones; 0 older than the code"
    ]
    assert (here.rows_file.read_bytes(), here.sidecar_file.read_bytes()) == before


def test_all_of_it_or_nothing(there, here, capsys):
    store = record(here.rows_file.parents[1], [1])
    text = store.rows_file.read_text()
    value = repr(float(store.read().loc[0, "test_mse"]))
    store.rows_file.write_text(text.replace(value, "0.5"))
    edit(store, lambda sidecar: next(iter(sidecar["batches"].values())).pop("digest"))
    before = store.rows_file.read_bytes()
    for replace_older in (False, True):  # the row here is not older
        with pytest.raises(
            ValueError,
            match=rf"demo/take: {store.read().loc[0, 'key']} has other results here \(test_mse 0.5\)",
        ):
            take(there, here, replace_older=replace_older)
    assert main([str(there.rows_file.parents[1]), "--folder", str(here.rows_file.parents[1])]) == 2
    assert "Nothing was taken." in capsys.readouterr().err
    assert main([str(there.rows_file), "--folder", str(here.rows_file.parents[1])]) == 2
    assert store.rows_file.read_bytes() == before


@pytest.mark.parametrize("column", ["test_mse", "seed", "model", "weights"])
def test_a_changed_row_is_noticed(there, here, column):
    rows = there.read()
    changed = {
        "test_mse": rows.loc[1, "test_mse"] * (1 + 1e-15),
        "seed": 8,
        "model": "NAU",
        "weights": rows.loc[0, "weights"],
    }
    rows.loc[1, column] = changed[column]
    there.rows_file.write_text(rows.to_csv(index=False))
    with pytest.raises(
        ValueError,
        match=f"demo/take: the rows of batch {rows.loc[1, 'batch']} are not those that were recorded",
    ):
        take(there, here)
    assert not here.rows_file.exists()


def test_a_row_with_the_key_of_another_run_is_noticed(there, here):
    rows = there.read()
    rows.loc[0, "key"] = "0123456789ab-0"
    there.rows_file.write_text(rows.to_csv(index=False))
    edit(there, lambda sidecar: [batch.pop("digest") for batch in sidecar["batches"].values()])
    with pytest.raises(
        ValueError, match="demo/take: the row 0123456789ab-0 cannot be taken: its configuration is not stored"
    ):
        take(there, here)


def test_code_that_was_named_otherwise_is_worked_out_from_its_commit(there, here, tmp_path):
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=code.PACKAGE, capture_output=True, text=True, check=True
    ).stdout.strip()

    def as_before(sidecar):
        for batch in sidecar["batches"].values():
            batch.update(code="0123456789ab", commit=commit)

    edit(there, as_before)
    take(there, here)
    run = Run(task=TASK, model=Stack.of("NMU", 1), recipe=RECIPE, seed=0, threshold=1e-5)
    with_commit = code.sources_in(library_at(commit, tmp_path) / "nalm")
    assert {batch["code"] for batch in here.sidecar()["batches"].values()} == {code.code(run, with_commit)}

    edit(there, lambda sidecar: [batch.update(commit=f"{commit}+") for batch in sidecar["batches"].values()])
    with pytest.raises(ValueError, match=r"batch \w+ was trained with code that is in no commit"):
        take(there, here)
    edit(there, lambda sidecar: [batch.update(commit="0" * 40) for batch in sidecar["batches"].values()])
    with pytest.raises(ValueError, match="There is no library at commit '0000"):
        take(there, here)


def test_older_rows_give_way_where_that_is_asked_for(there, here):
    store = record(here.rows_file.parents[1], [0, 5])
    rows = store.read()
    rows.loc[0, "test_mse"] = 0.5
    store.rows_file.write_text(rows.to_csv(index=False))

    def outdated(sidecar):
        for batch in sidecar["batches"].values():
            del batch["digest"]
            batch["code"] = "0" * 16

    edit(store, outdated)
    with pytest.raises(ValueError, match="has other results here"):
        take(there, here)
    fresh = there.sidecar_file.read_bytes()
    edit(there, outdated)
    with pytest.raises(ValueError, match="has other results here"):
        take(there, here, replace_older=True)  # by one that is older too
    there.sidecar_file.write_bytes(fresh)
    assert take(there, here, replace_older=True) == [
        "demo/take: 2 new rows, 0 known, 1 in place of older ones; 0 older than the code"
    ]
    found = here.read()
    assert sorted(found["seed"]) == [0, 1, 2, 5] and 0.5 not in set(found["test_mse"])
    assert code.freshness_of(found, here.sidecar()).value_counts().to_dict() == {FRESH: 3, OLDER: 1}
    assert here.damaged() == [] and all("digest" in batch for batch in here.sidecar()["batches"].values())


def test_nothing_of_any_experiment_is_taken_if_one_is_damaged(there, here):
    folder = there.rows_file.parents[1]
    run = Run(task=TASK, model=Stack.of("NMU", 1), recipe=RECIPE, seed=0, threshold=1e-5)
    run_all([run], "demo/zzz", results=str(folder), progress=False)
    damaged = Store(folder, "demo/zzz").rows_file
    damaged.write_text(damaged.read_text().replace("U[1,2)", "U[1,3)"))
    with pytest.raises(ValueError, match="demo/zzz: the rows of batch"):
        take(there, here)
    assert not here.rows_file.exists()


def test_rows_that_are_older_than_the_code_are_counted(there, here):
    edit(there, lambda sidecar: [batch.update(code="0" * 16) for batch in sidecar["batches"].values()])
    assert take(there, here) == [
        "demo/take: 3 new rows, 0 known, 0 in place of older ones; 3 older than the code"
    ]
