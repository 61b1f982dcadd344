"""``run_all(compiled=...)`` reaches whoever trains, and the rows say what was done."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from companion.nau_nmu.digit_runs import digit_arms, digit_task

from nalm.models import Stack
from nalm.records import Store, memoised, run_all, workers
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run, compiler, worth

EXPERIMENT = "demo/compiled"
BROKEN = "torch 9.9 does not compile here (OSError: the disk is full)"


def runs(iterations=20):
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=1e-2), log_interval=iterations)
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    return [
        Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed, threshold=1e-5)
        for seed in range(2)
    ]


def recorded(folder, asked, progress=False, **how):
    """Whether the rows say that they were trained compiled."""
    rows = run_all(asked, EXPERIMENT, results=str(folder), progress=progress, **how)
    batches = Store(folder, EXPERIMENT).sidecar()["batches"]
    (compiled,) = {batches[batch]["compiled"] for batch in rows["batch"]}
    return compiled


@pytest.fixture
def broken(monkeypatch):
    monkeypatch.setattr(compiler, "obstacle", lambda device: BROKEN)
    compiler._warned.cache_clear()
    yield
    compiler._warned.cache_clear()


@pytest.mark.parametrize("compiled", [None, False, True])
def test_it_is_done_and_said_and_recorded(tmp_path, capfd, compiled):
    assert recorded(tmp_path, runs(), progress=True, compiled=compiled) == bool(compiled)
    assert ("compiling" in capfd.readouterr().err) == bool(compiled)


def test_an_executor_is_told(tmp_path):
    with ThreadPoolExecutor(1) as executor:
        assert recorded(tmp_path, runs(), compiled=True, executor=executor) is True


@pytest.fixture
def short_is_long(monkeypatch):
    """In this process, trainings of twenty iterations are worth compiling, and worth a process."""
    monkeypatch.setattr(worth, "COMPILING", 0.0)


def test_own_workers_are_told(tmp_path, monkeypatch, short_is_long):
    """Long trainings of two structures go to own workers, if there are two cores: processes, in whose place a
    thread stands here.
    """

    @contextmanager
    def threads(number):
        with ThreadPoolExecutor(1) as executor:
            yield workers.Team(executor)

    monkeypatch.setattr(workers, "_own_processes", threads)
    for module in (memoised, workers):
        monkeypatch.setattr(module, "cores", lambda: 2)
    assert recorded(tmp_path, [*runs(20), *runs(21)], compiled=False) is False


def test_where_nothing_can_be_compiled_long_runs_are_trained_all_the_same(
    tmp_path, monkeypatch, broken, short_is_long
):
    for module in (memoised, workers):
        monkeypatch.setattr(module, "cores", lambda: 1)
    with pytest.warns(
        UserWarning,
        match="^Trainings are not compiled, which makes long ones slower: torch 9.9 does not compile here",
    ) as caught:
        assert recorded(tmp_path, runs(20)) is False
        assert recorded(tmp_path, runs(21)) is False
    assert len([w for w in caught if "not compiled" in str(w.message)]) == 1


def test_where_nothing_can_be_compiled_it_is_refused_in_a_sentence(tmp_path, broken):
    with pytest.raises(
        RuntimeError,
        match=r"^compiled=True, but torch 9.9 does not compile here \(OSError: the disk is full\)\.$",
    ):
        recorded(tmp_path, runs(), compiled=True)
    assert len(Store(tmp_path, EXPERIMENT).read()) == 0


def test_sequences_of_digits_are_refused_in_a_sentence(tmp_path):
    arm = next(iter(digit_arms("sum", 10, 10).values()))
    asked = [Run(task=digit_task("sum", "sklearn", longest=10), model=arm.model, recipe=arm.recipe, seed=0)]
    with pytest.raises(
        ValueError, match=r"^Sequences of digits are not trained compiled; leave compiled at None\.$"
    ):
        run_all(asked, EXPERIMENT, results=str(tmp_path), progress=False, compiled=True)
