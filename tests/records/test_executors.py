"""Any executor trains the same rows; what fails is said, and what did not fail is recorded."""

import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from nalm.models import Stack
from nalm.records import Store, memoised, run_all, workers
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Ensemble, Recipe, Run

EXPERIMENT = "demo/executors"


def runs(ensembles=3, seeds=2, iterations=60):
    """Runs of that many structures."""
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    recipes = [Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=20) for i in range(ensembles)]
    return [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=s, threshold=1e-5) for recipe in recipes for s in range(seeds)]


def ask(folder, asked, **how):
    return run_all(asked, EXPERIMENT, results=str(folder), **how).drop(columns=["seconds", "batch"])


@pytest.fixture(autouse=True)
def one_ensemble_per_structure(monkeypatch):
    monkeypatch.setattr(memoised, "cores", lambda: 1)


class Elsewhere(Executor):
    """Trains nothing: every task is lost."""

    def submit(self, *_, **__):
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


def test_threads_give_the_same_rows(tmp_path):
    expected = ask(tmp_path / "here", runs(6, 3))
    with ThreadPoolExecutor(4) as executor:
        assert ask(tmp_path / "threads", runs(6, 3), executor=executor).equals(expected)


def test_processes_give_the_same_rows_and_a_killed_one_loses_none(tmp_path, capfd):
    expected = ask(tmp_path / "here", runs())
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        assert ask(tmp_path / "there", runs(), executor=executor).equals(expected)
        shown = capfd.readouterr().err
        assert "2 of 6 runs" in shown and "6 of 6 runs" in shown and "run-iterations/s" in shown
        os.kill(executor.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(RuntimeError, match="killed from outside.*What was finished is recorded"):
            ask(tmp_path / "there", runs(4), executor=executor)
    store = Store(tmp_path / "there", EXPERIMENT)
    assert len(store.read()) == 6
    ask(tmp_path / "there", runs(4))
    assert store.read()["key"].is_unique and len(store.read()) == 8


def test_as_many_ensembles_as_the_executor_has_places(tmp_path):
    with ThreadPoolExecutor(4) as executor:
        ask(tmp_path, runs(1, 8), executor=executor)
    assert Store(tmp_path, EXPERIMENT).read()["batch"].nunique() == 4


def test_a_failing_ensemble_does_not_keep_others_from_being_recorded(tmp_path, monkeypatch):
    train = Ensemble.train

    def failing(self, *arguments):
        if self.recipe.iterations == 60:
            raise ArithmeticError("This ensemble fails.")
        return train(self, *arguments)

    monkeypatch.setattr(Ensemble, "train", failing)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ArithmeticError, match="This ensemble fails"):
        ask(tmp_path, runs(), executor=executor)
    assert len(Store(tmp_path, EXPERIMENT).read()) == 4


def test_a_lost_executor_is_said(tmp_path):
    with pytest.raises(RuntimeError, match="Trainings were cancelled"):
        ask(tmp_path, runs(), executor=Elsewhere())


def test_an_executor_and_a_scheduler_are_refused(tmp_path):
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="not both"):
        ask(tmp_path, runs(), executor=executor, scheduler="tcp://127.0.0.1:8786")


def test_a_sweep_that_is_given_up_stops_its_workers(tmp_path, monkeypatch):
    told, stopped = queue.SimpleQueue(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        sweep = workers.train_ensembles([runs(1), runs(1, iterations=80)], "cpu", tmp_path, print, workers.Team(executor, stop=stopped.set))
        assert next(sweep)[0] == runs(1) and not stopped.is_set()
        sweep.close()
    assert stopped.is_set()
    monkeypatch.setattr(workers, "_parent", (told, stopped), raising=False)
    with pytest.raises(RuntimeError, match="Nobody waits"):
        workers._tell_parent((0, 1))
    assert told.empty()


PARENT = """
    import os, time
    from nalm.records.workers import _own_processes

    if __name__ == "__main__":
        with _own_processes(1) as team:
            print(team.executor.submit(os.getpid).result(), flush=True)
            time.sleep(120)
"""


def test_own_processes_end_with_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=60)  # until the pipe is closed, which the child holds as well
    assert parent.returncode == -signal.SIGKILL and child != parent.pid
