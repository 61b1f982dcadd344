"""What is still missing is trained in order, once, into a store of its own."""

import pandas as pd
import pytest
from companion import missing
from companion.missing import QUEUE, Job, left, table, train
from companion.nau_nmu.settings import subset_runs
from companion.nau_nmu.subset_shapes import MODELS, SHAPES, shape_runs
from companion.thresholds import nearly_perfect_mse

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


def test_figure_8():
    """Three panels of 14, 6 and 4 points, of which the default task is in each; thresholds as simulated with
    subsets that are one input too long.
    """
    assert len(SHAPES) == 24 and len({(one.inputs, one.overlap, one.subset) for one in SHAPES}) == 22
    assert [one.iterations // 10**6 for one in SHAPES[:14]] == [5] * 6 + [10] * 4 + [15] * 4
    runs = shape_runs(MODELS, SHAPES, 2)
    assert len({run.key for run in runs}) == len(runs) == 22 * 6 * 2
    default = {run.key for run in subset_runs(["NMU"], ["mul"], 1)}
    assert sum(shape_runs(["NMU"], [shape], 1)[0].key in default for shape in SHAPES) == 3
    for shape in SHAPES:
        (run,) = shape_runs(["NMU"], [shape], 1)
        own = nearly_perfect_mse(run.task, samples=20_000)
        usual = shape.inputs >= 50 and shape.subset == 0.25
        assert 0.9 < run.threshold / own < 1.1 if usual else 0.1 < run.threshold / own < 2.5
