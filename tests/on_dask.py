"""Sweeps on several machines: a real Dask scheduler and two of its workers, here on this one.

Part of ``make test-fresh``: `tests/records/test_dask.py` has workers that are threads.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import own_units
import papermill
import pytest
import warm
from distributed import Client

from nalm.models import Stack
from nalm.records import Store, cluster, memoised, run_all, workers
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

BOOK = Path(__file__).parents[1] / "book"
EXPERIMENT = "demo/dask"
DASK = str(Path(sys.executable).with_name("dask"))


def runs(ensembles, iterations=60):
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    recipes = [
        Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=20) for i in range(ensembles)
    ]
    return [
        Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=s, threshold=1e-5)
        for recipe in recipes
        for s in range(2)
    ]


def ask(folder, asked, scheduler=""):
    return run_all(asked, EXPERIMENT, results=str(folder), scheduler=scheduler).drop(
        columns=["seconds", "batch"]
    )


def check_rows_and_progress(folder, scheduler, capfd):
    """All rows arrive once, and progress is shown."""
    rows = ask(folder / "cluster", runs(5), scheduler)
    shown = capfd.readouterr().err
    assert (
        all(f"{number} of 10 runs" in shown for number in (0, 2, 4, 6, 8, 10))
        and "100%" in shown
        and "run-iterations/s" in shown
    )
    assert rows.equals(ask(folder / "here", runs(5)))
    store = Store(folder / "cluster", EXPERIMENT)
    assert store.read()["key"].is_unique and len(store.read()) == 10
    assert len(store.sidecar()["batches"]) == 5 and all(
        batch["threads"] == 1 for batch in store.sidecar()["batches"].values()
    )


@pytest.fixture(autouse=True)
def one_ensemble_per_structure(monkeypatch):
    monkeypatch.setattr(memoised, "cores", lambda: 1)
    monkeypatch.setattr(cluster, "cores", lambda: 1)


def wait_until(what, seconds=60.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def kill(process):
    """The process and those that it started, as when a machine fails."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start(folder, *command):
    with open(folder / "said.txt", "a") as said:
        return subprocess.Popen(
            [DASK, *command], stdout=said, stderr=said, cwd=folder, start_new_session=True
        )


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    """A scheduler and two workers."""
    folder = tmp_path_factory.mktemp("dask")
    file = folder / "scheduler.json"
    processes = [
        start(
            folder,
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(file),
        )
    ]
    try:
        # The scheduler makes the file first and fills it afterwards.
        wait_until(lambda: file.exists() and file.read_text())
        address = json.loads(file.read_text())["address"]
        processes += [start(folder, "worker", address, "--nthreads", "1", "--no-dashboard") for _ in range(2)]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield SimpleNamespace(address=address, scheduler=processes[0], workers=processes[1:])
    finally:
        [kill(process) for process in processes if process.poll() is None]


def test_a_worker_with_the_file_of_a_unit_trains_it_and_one_without_says_so(dask, tmp_path):
    (tmp_path / "own_on_dask.py").write_text(Path(own_units.__file__).read_text())
    asked = [one.but(model=Stack.of(f"{tmp_path}/own_on_dask.py:SquareUnit", 1)) for one in runs(2)]
    with pytest.raises(ValueError, match="no module 'own_on_dask' on Python's path"):
        ask(tmp_path / "without", asked, dask.address)
    with Client(dask.address, set_as_default=False) as client:
        client.upload_file(str(tmp_path / "own_on_dask.py"))
    rows = ask(tmp_path / "cluster", asked, dask.address)
    assert rows.equals(ask(tmp_path / "here", asked)) and len(rows) == 4


def test_all_rows_arrive_once_and_progress_is_shown(dask, tmp_path, capfd):
    check_rows_and_progress(tmp_path, dask.address, capfd)


def test_workers_tell_how_far_they_are(dask, tmp_path):
    told = []
    with cluster.dask_team(dask.address) as (team, places):
        list(workers.train_ensembles([runs(1, 1000)], "cpu", tmp_path, told.append, team))
    assert places >= 2 and len(told) > 1 and sum(told) == 2000


def test_a_chapter_is_rerun_on_the_workers(dask, tmp_path):
    chapter = BOOK / "npu" / "simple-arithmetic.ipynb"
    parameters = nbformat.read(chapter, as_version=4).metadata.nalm.tiny | {
        "results": str(tmp_path / "store"),
        "scheduler": dask.address,
    }
    with Client(dask.address, set_as_default=False) as client:

        def trained():
            return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)

        before = trained()
        kernel = "warm" if warm.ADDRESS.exists() else "python3"
        papermill.execute_notebook(
            chapter,
            tmp_path / "rerun.ipynb",
            parameters,
            kernel_name=kernel,
            cwd=tmp_path,
            progress_bar=False,
        )
        batches = Store(tmp_path / "store", "npu/simple-arithmetic").sidecar()["batches"]
        # each is at least begun and ended
        assert len(batches) >= 1 and trained() >= before + 2 * len(batches)


def test_nobody_trains_what_nobody_waits_for(dask, tmp_path):
    with Client(dask.address, set_as_default=False) as client:

        def busy():
            return sum(
                len(keys)
                for keys in client.run(lambda dask_worker: list(dask_worker.state.executing)).values()
            )

        with cluster.dask_team(dask.address) as (team, _):
            team.executor.submit(workers._train_elsewhere, {0: runs(1, 4000)}, "cpu", tmp_path, team.tell)
            assert team.told.get(timeout=60)[0] == 0 and busy() == 1
        wait_until(lambda: not busy())


def test_a_killed_worker_loses_nothing(dask, tmp_path):
    def kill_in_the_middle():
        wait_until(Store(tmp_path, EXPERIMENT).rows_file.exists)
        kill(dask.workers[0])

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    rows = ask(tmp_path, runs(5, 400), dask.address)
    killer.join()
    assert dask.workers[0].returncode == -signal.SIGKILL and rows["key"].tolist() == [
        run.key for run in runs(5, 400)
    ]
    assert len(Store(tmp_path, EXPERIMENT).read()) == 10


def test_a_killed_scheduler_is_said(dask, tmp_path):
    def kill_in_the_middle():
        wait_until(Store(tmp_path, EXPERIMENT).rows_file.exists)
        kill(dask.scheduler)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    with pytest.raises(RuntimeError, match="its scheduler is gone. What was finished is recorded"):
        ask(tmp_path, runs(4, 400), dask.address)
    killer.join()
    assert 2 <= len(Store(tmp_path, EXPERIMENT).read()) < 8
