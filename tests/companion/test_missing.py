"""What is still missing is trained in order, once, into a store of its own."""

import pandas as pd
import pytest
from companion import missing
from companion.missing import QUEUE, Job, left, table, train

from nalm.models import Stack
from nalm.records.store import Store
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

RECIPE = Recipe(iterations=20, optimiser=Adam(lr=1e-2), log_interval=10)
RUN = Run(
    task=SingleModuleTask.on("U[1,2)", operation="mul"),
    model=Stack.of("NMU", 1),
    recipe=RECIPE,
    seed=0,
    threshold=1e-5,
)


def job(what: str, *seeds: int) -> Job:
    return Job(what, "demo/missing", lambda: [RUN.but(seed=seed) for seed in seeds])


def recorded(folder) -> pd.DataFrame:
    return Store(folder, "demo/missing").read()


def test_jobs_are_done_in_order_and_no_run_twice(tmp_path):
    queue = [job("first", 0, 1), job("second", 1, 2)]
    said = list(train(tmp_path, queue))
    assert [one.partition(" runs")[0] for one in said] == ["first: 2", "second: 1"]
    assert recorded(tmp_path)["seed"].tolist() == [0, 1, 2]
    assert all(": 0 runs" in one for one in train(tmp_path, queue))


def test_what_is_recorded_is_not_left(tmp_path):
    assert len(left(job("all", 0, 1, 2), tmp_path)[1]) == 3
    list(train(tmp_path, [job("some", 1)]))
    assert [run.seed for run in left(job("all", 0, 1, 2), tmp_path)[1]] == [0, 2]
    assert left(job("some", 1), tmp_path / "else", tmp_path)[1] == []
    lines = table(tmp_path, [job("all", 0, 1, 2)])
    assert lines.to_dict("records") == [{"job": "all", "runs": 3, "recorded": 1, "updates left": 40}]


def test_a_stopped_training_says_how_it_goes_on(tmp_path, monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(missing, "train", stopped)
    monkeypatch.setattr(missing, "yield_to_others", lambda: None)
    assert missing.main([str(tmp_path)]) == 130
    assert "goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize("job", QUEUE[3:8], ids=lambda job: job.what)
def test_the_queue_starts_from_the_second_draw(job):
    runs = job.runs()
    assert {run.model.draws for run in runs} == {2} and {run.recipe.stream for run in runs} == {"common"}
    assert {run.recipe.iterations for run in runs} == {5_000_000}
