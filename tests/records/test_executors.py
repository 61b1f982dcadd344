"""Any executor trains the same rows; what fails is said, and what did not fail is recorded."""

import os
import pickle
import queue
import signal
import textwrap
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from forked import PROCESSES, run_script

from nalm.models import NODE, DigitSequence, Layer, Stack
from nalm.records import Store, code, groups, memoised, run_all, workers
from nalm.tasks import DigitSequenceTask, SingleModuleTask
from nalm.training import Adam, Ensemble, Recipe, Run

EXPERIMENT = "demo/executors"
# whose processes need not import torch each by themselves


def runs(ensembles=3, seeds=2, iterations=60, unit="NMU"):
    """Runs of that many structures."""
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    recipes = [
        Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=20) for i in range(ensembles)
    ]
    return [
        Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=s, threshold=1e-5)
        for recipe in recipes
        for s in range(seeds)
    ]


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
    with ProcessPoolExecutor(1, mp_context=PROCESSES) as executor:
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


@pytest.fixture
def failing(monkeypatch):
    """Trainings of 60 iterations fail, and then those of 61."""
    train = Ensemble.train

    def fail(self, *arguments):
        if self.recipe.iterations < 62:
            raise ArithmeticError(f"This ensemble of {self.recipe.iterations} iterations fails.")
        return train(self, *arguments)

    monkeypatch.setattr(Ensemble, "train", fail)


class AtOnce(Executor):
    """Has done everything by the time it is asked for results, so that nobody sees what was done first."""

    def submit(self, function, /, *arguments):
        future = Future()
        try:
            future.set_result(function(*arguments))
        except ArithmeticError as error:
            future.set_exception(error)
        return future


@pytest.mark.parametrize("where", ["here", "threads", "at once"])
def test_failing_ensembles_do_not_keep_others_from_being_recorded(tmp_path, failing, where):
    with (
        ThreadPoolExecutor(1) as threads,
        pytest.raises(ArithmeticError, match="This ensemble of 60 iterations fails"),
    ):
        ask(tmp_path, runs(4), executor={"here": None, "threads": threads, "at once": AtOnce()}[where])
    assert Store(tmp_path, EXPERIMENT).read()["iterations"].tolist() == [62, 62, 63, 63]


def test_failing_long_ensembles_do_not_keep_short_ones_from_being_recorded(tmp_path, monkeypatch, failing):
    @contextmanager
    def threads(number):
        with ThreadPoolExecutor(1) as executor:
            yield workers.Team(executor)

    monkeypatch.setattr(workers, "_own_processes", threads)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "_is_long", lambda ensemble: ensemble[0].recipe.iterations in (60, 63))
    with pytest.raises(ArithmeticError, match="This ensemble of 60 iterations fails"):
        ask(tmp_path, runs(4))
    assert Store(tmp_path, EXPERIMENT).read()["iterations"].tolist() == [63, 63, 62, 62]


def test_an_interruption_is_no_failure(tmp_path, monkeypatch):
    trained = []

    def interrupted(self, *arguments):
        trained.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ensemble, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path, runs())
    assert len(trained) == 1


OTHER = code.LOADED["nalm.units.nau"].replace(
    "return identity_product(x, weight", "return identity_product(weight, x"
)
"""The source of the NMU, changed."""


def other_code():
    code.LOADED["nalm.units.nau"] = OTHER


def other_files():
    edited = dict(code.LOADED) | {"nalm.units.nau": OTHER}
    code._sources = lambda: edited


def worker(begin):
    return ProcessPoolExecutor(1, mp_context=PROCESSES, initializer=begin)


def test_a_worker_with_other_code_is_refused(tmp_path):
    asked = runs(2) + runs(1, unit="NRU")
    with (
        worker(other_code) as executor,
        pytest.raises(RuntimeError, match="worker on .* runs other code .* than this process") as caught,
    ):
        ask(tmp_path, asked, executor=executor)
    assert "\n" not in str(caught.value)
    store = Store(tmp_path, EXPERIMENT)
    assert store.read()["model"].tolist() == ["NRU"] * 2
    assert [batch["code"] for batch in store.sidecar()["batches"].values()] == [code.code(asked[-1])]


def test_the_code_of_rows_is_what_the_worker_knows_of_it(tmp_path):
    asked = runs(1) + runs(1, unit="NRU")
    with worker(other_files) as executor:
        ask(tmp_path, asked, executor=executor)
    store = Store(tmp_path, EXPERIMENT)
    codes = [store.sidecar()["batches"][batch]["code"] for batch in store.read()["batch"]]
    assert codes == [None, None, code.code(asked[-1]), code.code(asked[-1])]


WITHOUT_GUARD = """
    import sys
    from nalm.models import Stack
    from nalm.records import memoised, run_all, workers
    from nalm.tasks import SingleModuleTask
    from nalm.training import Adam, Recipe, Run

    workers.cores = memoised.cores = lambda: 2
    workers._is_long = lambda ensemble: True
    task, model = SingleModuleTask.on("U[1,2)", operation="mul"), Stack.of("NMU", 1)
    recipe = Recipe(iterations=60, optimiser=Adam(lr=1e-2))
    runs = [Run(task=task, model=model, recipe=recipe, seed=seed, threshold=1e-5) for seed in range(2)]
    run_all(runs, "demo/guard", results=sys.argv[1])
"""


def test_a_script_without_its_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(WITHOUT_GUARD))
    asked = run_script(script, str(tmp_path))
    said = asked.stderr.splitlines()[-1]
    assert asked.returncode == 1 and said.startswith(
        "RuntimeError: A training process was killed from outside"
    )
    assert "lacks 'if __name__ == \"__main__\":'" in said and said.endswith(
        "once the cause is removed, the same command goes on from there."
    )


def test_a_lost_executor_is_said(tmp_path):
    with pytest.raises(RuntimeError, match="Trainings were cancelled"):
        ask(tmp_path, runs(), executor=Elsewhere())


def test_an_executor_and_a_scheduler_are_refused(tmp_path):
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="not both"):
        ask(tmp_path, runs(), executor=executor, scheduler="tcp://127.0.0.1:8786")


def test_a_sweep_that_is_given_up_stops_its_workers(tmp_path, monkeypatch):
    told, stopped = queue.SimpleQueue(), threading.Event()
    with ThreadPoolExecutor(1) as executor:
        sweep = workers.train_ensembles(
            [runs(1), runs(1, iterations=80)],
            "cpu",
            tmp_path,
            print,
            workers.Team(executor, stop=stopped.set),
        )
        assert next(sweep)[0] == runs(1) and not stopped.is_set()
        sweep.close()
    assert stopped.is_set()
    monkeypatch.setattr(workers, "_parent", (told, stopped), raising=False)
    with pytest.raises(RuntimeError, match="Nobody waits"):
        workers._tell_parent((0, 1))
    assert told.empty()


class Untravelled(Exception):
    """Like those of torch's compiler: it can neither be written nor made again from its text."""

    def __init__(self, frame, reason):
        super().__init__(f"{reason}, in {frame}")
        self.frame = threading.Lock()


@pytest.mark.parametrize("error", [Untravelled("a frame", "no room"), ValueError("no room")])
def test_an_error_arrives_as_its_sentence(error):
    there = pickle.loads(pickle.dumps(workers._as_it_arrives(error)))
    assert str(error) in str(there) and (there.args == error.args or str(there).startswith("Untravelled: "))


def test_a_compiler_that_fails_at_a_training_is_done_without(tmp_path, monkeypatch):
    """It compiled a small function, which is all that was asked of it."""
    from torch._inductor.exc import InductorError

    from nalm.training import compiler, ensemble

    def fails(*_):
        raise InductorError(RuntimeError("g++ has no room\nand says more"), None)

    asked = runs(1)
    expected = ask(tmp_path / "eager", asked, compiled=False)
    monkeypatch.setattr(ensemble, "worth_compiling", lambda runs: True)
    monkeypatch.setattr(compiler, "_warned", lambda device: False)
    monkeypatch.setattr(compiler.Compiled, "repeat", fails)
    with pytest.warns(UserWarning, match="^A training is not compiled, which makes it slower: .*no room"):
        found = ask(tmp_path / "tried", asked)
    assert found.equals(expected)
    (batch,) = Store(tmp_path / "tried", EXPERIMENT).sidecar()["batches"].values()
    assert batch["compiled"] is False
    with pytest.raises(InductorError, match="no room"):
        ask(tmp_path / "asked", asked, compiled=True)


def test_a_run_that_never_ends_is_refused(tmp_path):
    for many in (2 * 10**10, 10**30):
        with pytest.raises(ValueError, match=f"A run of {many:,} iterations was asked for, but at most"):
            ask(tmp_path, runs(1, iterations=many))
    assert not list(tmp_path.iterdir())


def told_of(training, monkeypatch, tmp_path):
    """What is said of a training: of its progress, and of how many are compiled."""
    said, compiling = [], []
    monkeypatch.setattr(workers, "train_group", lambda group, *how: training(*group, *how))
    how = {"progress": said.append, "compiling": compiling.append}
    try:
        found = list(workers.train_ensembles([runs(1)], "cpu", tmp_path, **how))
    except ArithmeticError:
        found = None
    return found, said, compiling


def test_what_was_reached_before_is_not_told_again(tmp_path, monkeypatch):
    def training(number, device, folder, tell, compiled):
        for news in (None, 20, 10, 20):
            tell((number, news))
        return [(None, None)]

    expected = [(runs(1), (None, None))], [2 * 20, 2 * 40], [1, 0, 0, 0, 0]
    assert told_of(training, monkeypatch, tmp_path) == expected


def test_a_training_that_failed_has_reached_no_more(tmp_path, monkeypatch):
    def training(number, device, folder, tell, compiled):
        tell((number, None))
        tell((number, 20))
        return [ArithmeticError()]

    assert told_of(training, monkeypatch, tmp_path) == (None, [2 * 20], [1, 0, 0])


def test_a_worker_trains_with_one_thread_and_without_a_folder_that_it_does_not_see(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        workers,
        "train_group",
        lambda _, __, folder, *how: seen.append((folder, torch.get_num_threads())) or [],
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for folder in (tmp_path, tmp_path / "nowhere"):
            workers._train_elsewhere({}, "cpu", folder, print)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == [(tmp_path, 1), (None, 1)]


@pytest.mark.parametrize(("kind", "iterations"), [("digits", 200), ("equations", 200), ("NMU", 10**6)])
def test_what_takes_longer_than_a_process_is_long(kind, iterations):
    (run,) = runs(1, 1)
    model = {
        "digits": DigitSequence(cell=None),
        "equations": NODE(layers=(Layer(unit="NAU"),), initial_state=(1.0,)),
        "NMU": run.model,
    }[kind]
    task = DigitSequenceTask(operation="product", source="sklearn") if kind == "digits" else run.task
    long, short = (
        run.model_copy(update={"task": task, "model": model, "recipe": run.recipe.but(iterations=n)})
        for n in (iterations, 199)
    )
    assert workers._is_long([long]) and not workers._is_long([short])


def test_how_far_a_training_is_is_told_from_its_first_updates_on(monkeypatch):
    told = []
    monkeypatch.setattr(groups, "POLL_SECONDS", -1.0)
    progress = groups._progress_of(5, told.append)
    for iterations in (0, 10, 10, 5):
        progress(iterations)
    assert told == [(5, 20), (5, 25)]
    monkeypatch.setattr(groups, "POLL_SECONDS", 1000.0)
    progress(5)
    assert len(told) == 2


def test_a_group_that_is_lost_is_lost_as_a_whole(tmp_path, monkeypatch):
    group, failed = {0: runs(1), 1: runs(1, iterations=80)}, []
    how = "cpu", tmp_path, lambda news: None, failed.append, None

    def lost(*_):
        raise ArithmeticError

    monkeypatch.setattr(workers, "train_group", lost)
    assert not list(workers._by(workers.Team(Elsewhere()), [group], *how)) and len(failed) == 2
    assert not list(workers._one_after_another([group], *how)) and len(failed) == 4
