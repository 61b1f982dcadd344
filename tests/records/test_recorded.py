"""The runs behind recorded rows: each is checked, and the seeds of a configuration share its values."""

import json

import pytest

from nalm.models import Stack
from nalm.records import Store, recorded_runs, run_all
from nalm.records.digest import digests
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

EXPERIMENT = "demo/recorded"


@pytest.fixture
def store(tmp_path):
    recipe = Recipe(iterations=2, optimiser=Adam(lr=1e-2), log_interval=2)
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed) for seed in (0, 7)]
    run_all(runs, EXPERIMENT, str(tmp_path), progress=False)
    return Store(tmp_path, EXPERIMENT)


def test_they_are_those_that_were_trained(store, tmp_path):
    first, second = recorded_runs(EXPERIMENT, ("range", "seed"), folder=tmp_path)
    assert [first.key, second.key] == store.read()["key"].tolist()
    assert [first.labels["seed"], second.labels["seed"]] == ["0", "7"]
    assert first.task is second.task and first.model is second.model and first.recipe is second.recipe


@pytest.mark.parametrize("seed", ["07", "-7", "seven", "4294967296"])
def test_a_key_that_is_not_that_of_its_run_is_refused(store, tmp_path, seed):
    """Also if a row of the same configuration was right."""
    rows = store.read()
    rows.loc[1, "key"] = f"{rows.loc[1, 'key'].rpartition('-')[0]}-{seed}"
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    sidecar = store.sidecar()
    for batch, digest in digests(store.read(checked=False)).items():
        sidecar["batches"][batch]["digest"] = digest
    store.sidecar_file.write_text(json.dumps(sidecar))
    with pytest.raises(ValueError, match="stored"):
        recorded_runs(EXPERIMENT, folder=tmp_path)
