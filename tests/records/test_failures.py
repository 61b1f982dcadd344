"""A full disk, a folder that is read only, two sweeps at once: no row is lost or doubled, and one sentence
says what is the matter.
"""

import os
import shutil
import sys
import tempfile
import textwrap
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from forked import PROCESSES

from nalm.models import Stack
from nalm.records import Store, groups, memoised, run_all
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Checkpoint, Ensemble, Recipe, Run

EXPERIMENT = "demo/failures"
# whose processes need not import torch each by themselves
FULL = Path("/dev/full")  # every write to it fails because there is no space left


def runs(ensembles, iterations=40):
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    recipes = [
        Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=10) for i in range(ensembles)
    ]
    return [
        Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=s, threshold=1e-5)
        for recipe in recipes
        for s in range(2)
    ]


def ask(folder, asked):
    return run_all(asked, EXPERIMENT, results=str(folder), progress=False)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def one_ensemble_per_structure(monkeypatch):
    monkeypatch.setattr(memoised, "cores", lambda: 1)


@pytest.fixture
def trained(monkeypatch):
    """The ensembles that were trained."""
    seen, train = [], Ensemble.train
    monkeypatch.setattr(
        Ensemble, "train", lambda self, *arguments: seen.append(self) or train(self, *arguments)
    )
    return seen


@contextmanager
def read_only(folder):
    """Nobody may write to the folder, not even root."""
    user = os.geteuid()
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if user == 0:
            os.seteuid(0)
        for path in folders:
            path.chmod(0o755)


@pytest.fixture
def folder():
    """A folder that other users may look at, which those of pytest are not."""
    path = Path(tempfile.mkdtemp(prefix="nalm-"))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("recorded", [False, True], ids=["empty", "with rows"])
def test_a_read_only_folder_is_noticed_before_training_and_still_read(
    folder, tmp_path, trained, recorded, monkeypatch
):
    # root's checkout may lie where others cannot look
    monkeypatch.setattr(memoised, "PUBLISHED", folder / "published")
    ask(tmp_path, runs(1))  # as may its packages: what is imported late is imported now
    known = ask(folder, runs(1)) if recorded else None
    before, already = contents(folder), len(trained)
    with read_only(folder):
        with pytest.raises(OSError, match=r"failures\.csv cannot be written \(Permission denied\)"):
            ask(folder, runs(2))
        assert not recorded or ask(folder, runs(1)).equals(known)
    assert len(trained) == already and contents(folder) == before


def test_a_full_disk_is_noticed_before_training(tmp_path, trained):
    ask(tmp_path, runs(1))
    before, store = contents(tmp_path), Store(tmp_path, EXPERIMENT)
    os.symlink(FULL, store.rows_file.with_name(f".{store.rows_file.name}.new"))
    with pytest.raises(OSError, match=r"failures\.csv cannot be written \(No space left on device\)"):
        ask(tmp_path, runs(2))
    assert len(trained) == 1 and contents(tmp_path) == before


@pytest.mark.parametrize("file", ["csv", "json"])
def test_a_disk_that_becomes_full_loses_nothing_recorded(tmp_path, monkeypatch, trained, file):
    store, train = Store(tmp_path, EXPERIMENT), memoised.train_ensembles

    def filling(*arguments):
        for number, done in enumerate(train(*arguments)):
            if number == 1:
                os.symlink(FULL, store.rows_file.with_name(f".failures.{file}.new"))
            yield done

    with monkeypatch.context() as context:
        context.setattr(memoised, "train_ensembles", filling)
        with pytest.raises(
            OSError, match=r"No space left on device\): what it holds is unharmed, new rows were not added"
        ) as caught:
            ask(tmp_path, runs(3))
    assert "\n" not in str(caught.value) and len(store.read()) == 2 and len(trained) == 2
    assert len(ask(tmp_path, runs(3))) == 6 and store.read()["key"].is_unique and len(trained) == 4


def test_a_checkpoint_that_cannot_be_written_keeps_the_one_before(tmp_path):
    said = []
    checkpoint = Checkpoint(tmp_path / "some.pt", every=0, warn=said.append)
    checkpoint.write({"iteration": 1})
    for _ in range(2):
        os.symlink(FULL, tmp_path / f".some.pt.{os.getpid()}")
        checkpoint.write({"iteration": 2})
    assert (
        len(said) == 1 and "some.pt cannot be written (No space left on device); training goes on" in said[0]
    )
    assert checkpoint.read() == {"iteration": 1} and os.listdir(tmp_path) == ["some.pt"]
    checkpoint.write({"iteration": 3})
    assert checkpoint.read() == {"iteration": 3}
    (tmp_path / ".some.pt.0").touch()  # of a process that was killed while it wrote
    (tmp_path / f".some.pt.{os.getppid()}").touch()  # of one that still writes
    checkpoint.remove()
    assert os.listdir(tmp_path) == [f".some.pt.{os.getppid()}"]


def test_another_file_is_not_taken_for_a_checkpoint(tmp_path):
    for number, content in enumerate(({"weight": torch.ones(1)}, torch.ones(2))):
        torch.save(content, file := tmp_path / f"{number}.pt")
        file.chmod(0o644)
        before = file.read_bytes()
        with pytest.raises(ValueError, match="pt is no checkpoint of an ensemble: name another file"):
            Ensemble(runs(1)).train(checkpoint=Checkpoint(str(file), every=0))
        assert file.read_bytes() == before


def test_a_file_that_others_may_write_is_neither_read_nor_written(tmp_path):
    (file := tmp_path / "some.pt").write_text("theirs")
    file.chmod(0o664)
    why = f"{file} belongs to another user, or others may write it: name another file, or make it yours alone"
    with pytest.raises(ValueError, match=why):
        Ensemble(runs(1)).train(checkpoint=Checkpoint(file, every=0))
    assert file.read_text() == "theirs"


def test_a_training_goes_on_without_its_checkpoint(tmp_path, monkeypatch):
    expected = ask(tmp_path / "whole", runs(1))
    monkeypatch.setattr(groups, "CHECKPOINT_SECONDS", 0.0)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / ".checkpoints").touch()
    with pytest.warns(
        UserWarning, match="cannot be written .*; training goes on, but would start anew"
    ) as said:
        rows = ask(tmp_path, runs(1))
    assert len(said) == 1 and rows["weights"].equals(expected["weights"])


def test_a_repaired_disk_is_used_without_further_ado(tmp_path):
    with warnings.catch_warnings(action="error"):
        assert len(ask(tmp_path, runs(2))) == 4


SWEEP = """
    import sys
    from nalm.models import Stack
    from nalm.records import run_all
    from nalm.tasks import SingleModuleTask
    from nalm.training import Adam, Recipe, Run

    task = SingleModuleTask.on("U[1,2)", operation="mul")
    recipes = [Recipe(iterations=60 + i, optimiser=Adam(lr=1e-2)) for i in range(12)]  # one ensemble each
    first = Run(task=task, model=Stack.of("NMU", 1), recipe=recipes[0], seed=0, threshold=1e-5)
    runs = [first.but(recipe=recipe, seed=seed) for recipe in recipes for seed in range(2)]
    rows = run_all(runs, "demo/together", results=sys.argv[1])
    assert rows["key"].tolist() == [run.key for run in runs]
    assert "distributed" not in sys.modules, "Dask was imported without need"
"""


def sweep(folder):
    sys.argv = ["-c", str(folder)]
    exec(textwrap.dedent(SWEEP), {"__name__": "__main__"})


def test_two_sweeps_on_one_store_lose_and_double_nothing(tmp_path):
    both = [PROCESSES.Process(target=sweep, args=(tmp_path,)) for _ in range(2)]
    [process.start() for process in both]
    [process.join() for process in both]
    assert [process.exitcode for process in both] == [0, 0]
    rows = Store(tmp_path, "demo/together").read()
    assert len(rows) == 24 and rows["key"].is_unique
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".csv", ".json", ".lock"}
