"""A run of more updates goes on from the kept state of a shorter one, to the same row."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from nalm.models import DigitSequence, Layer, Stack
from nalm.records import Store, run_all
from nalm.records.groups import checkpoint_of
from nalm.records.lengths import shorter, state_of
from nalm.tasks import DigitSequenceTask, SingleModuleTask
from nalm.training import ActivationPenalty, Adam, Discretisation, Recipe, Run
from nalm.training.checkpoint import Checkpoint
from nalm.training.sequences import SequenceEnsemble

NAME = "demo/lengths"
TASK = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1, 2))
RECIPE = Recipe(
    iterations=10,
    optimiser=Adam(lr=1e-3),
    batch_size=16,
    log_interval=2,
    penalties=(Discretisation(weight=10.0, start=2, end=8), ActivationPenalty(weight=1.0)),
)


def run(iterations: int, seed: int = 0) -> Run:
    model = DigitSequence(cell=Layer(unit="NMU"))
    return Run(task=TASK, model=model, recipe=RECIPE.but(iterations=iterations), seed=seed)


def ask(asked, folder, **how):
    return run_all(asked, NAME, results=str(folder), progress=False, **how)


@pytest.fixture
def updates(monkeypatch):
    """The updates that were made, by the number of the first."""
    made, advance = [], SequenceEnsemble._advance

    def counted(ensemble, first, last):
        made.extend(range(first, last))
        advance(ensemble, first, last)

    monkeypatch.setattr(SequenceEnsemble, "_advance", counted)
    return made


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return ask([run(10)], tmp_path_factory.mktemp("whole"))


def same(rows, others):
    """Whether all that was found is the same to the last bit."""
    columns = [column for column in others if column not in ("seconds", "batch")]
    return rows[columns].equals(others[columns])


def folder_of(results):
    return Store(results, NAME).rows_file.parent


def test_a_short_run_is_the_beginning_of_a_long_one():
    short, long = SequenceEnsemble([run(4)]).train(), SequenceEnsemble([run(10)]).train()
    assert short.iterations.tolist() == long.iterations[:3].tolist() == [0, 2, 4]
    for name, errors in short.errors.items():
        np.testing.assert_array_equal(errors, long.errors[name][:3])


def test_no_row_stands_for_a_longer_run(tmp_path):
    ask([run(4)], tmp_path)
    assert run(4).key != run(10).key
    with pytest.raises(ValueError, match="None of the 1 runs"):
        ask([run(10)], tmp_path, train=False)


def test_a_longer_training_goes_on_from_the_kept_state(tmp_path, updates, whole):
    ask([run(4)], tmp_path, keep_states=True)
    assert state_of(run(4), folder_of(tmp_path)).read()["iteration"] == 4
    rows = ask([run(10)], tmp_path, keep_states=True)
    assert updates == list(range(10))
    assert same(rows, whole) and rows["seconds"].item() > 0
    assert [file.name for file in folder_of(tmp_path).glob(".checkpoints/*")] == [f"{run(10).key}.pt"]
    assert Store(tmp_path, NAME).read()["iterations"].tolist() == [4, 10]


def test_an_interrupted_continuation_goes_on(tmp_path, updates, whole, monkeypatch):
    ask([run(4)], tmp_path, keep_states=True)
    write = Checkpoint.write

    def killed(checkpoint, content):
        write(checkpoint, content)
        if len(updates) == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        ask([run(10)], tmp_path, keep_states=True)
    monkeypatch.setattr(Checkpoint, "write", write)
    rows = ask([run(10)], tmp_path, keep_states=True)
    assert updates == list(range(10)) and same(rows, whole)


@pytest.mark.parametrize("why", ["lost", "damaged", "no row", "older", "another code"])
def test_without_a_state_it_starts_again(why, tmp_path, updates, whole):
    ask([run(4)], tmp_path, keep_states=True)
    store, state = Store(tmp_path, NAME), state_of(run(4), folder_of(tmp_path))
    if why == "lost":
        state.remove()
    elif why == "damaged":
        damaged = bytearray(state.path.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        state.path.write_bytes(damaged)
    elif why == "no row":
        store.rows_file.unlink(), store.sidecar_file.unlink()
    elif why == "another code":  # made the state, and its row has been trained again since
        state.write(state.read() | {"code": "another"})
    else:
        sidecar = json.loads(store.sidecar_file.read_text())
        for batch in sidecar["batches"].values():
            batch["code"] = "another"
        store.sidecar_file.write_text(json.dumps(sidecar))
    rows = ask([run(10)], tmp_path)
    assert updates == [*range(4), *range(10)] and same(rows, whole)


def test_nothing_is_kept_unasked_nor_of_another_seed(tmp_path, updates):
    ask([run(4)], tmp_path)
    assert not list(folder_of(tmp_path).glob(".checkpoints/*"))
    ask([run(4, seed=1)], tmp_path, keep_states=True)
    ask([run(6, seed=2)], tmp_path)
    assert updates == [*range(4), *range(4), *range(6)]


def test_what_does_not_end_with_an_evaluation_is_not_gone_on_from(tmp_path):
    ask([run(5)], tmp_path, keep_states=True)
    assert not list(folder_of(tmp_path).glob(".checkpoints/*"))
    assert [one.recipe.iterations for one in shorter(run(5))] == [4, 2]


def test_a_shorter_state_stays_until_a_longer_one_is_there(tmp_path, updates, whole, monkeypatch):
    ask([run(4)], tmp_path, keep_states=True)
    ask([run(5)], tmp_path, keep_states=True)  # ends without an evaluation
    kept, replace = state_of(run(4), folder_of(tmp_path)).path, os.replace

    def full(source, target):
        if Path(target).parent == kept.parent and Path(target).name.startswith(run(8).key):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match="cannot be written"):
        ask([run(8)], tmp_path, keep_states=True)
    monkeypatch.undo()
    assert [file.name for file in kept.parent.glob("*.pt")] == [kept.name]


def test_runs_that_share_an_ensemble_have_no_states(tmp_path):
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    runs = [
        Run(task=task, model=Stack.of("NMU", 1), recipe=RECIPE.but(penalties=()), seed=seed, threshold=1e-5)
        for seed in range(2)
    ]
    assert not list(shorter(runs[0]))
    ask(runs, tmp_path, keep_states=True)
    assert not checkpoint_of(runs, folder_of(tmp_path)).path.exists()
    assert not list(folder_of(tmp_path).glob(".checkpoints/*.pt"))


def test_runs_are_trained_in_the_order_in_which_they_are_asked_for(tmp_path):
    asked = [run(2, 0), run(4, 0), run(2, 1), run(4, 1)]
    ask(asked, tmp_path)
    rows = Store(tmp_path, NAME).read()
    assert rows[["iterations", "seed"]].to_numpy().tolist() == [[2, 0], [4, 0], [2, 1], [4, 1]]
