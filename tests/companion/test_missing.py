"""What is still missing is trained in order, once, into a store of its own."""

import inspect
import json
import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from companion import missing
from companion.missing import QUEUE, Job, left, listed, table, train
from companion.nau_nmu.digit_runs import EPOCHS, HORIZON, ITERATIONS, digit_runs
from companion.nau_nmu.digit_runs import MODELS as MODELS_OF_DIGITS
from companion.nau_nmu.settings import subset_runs
from companion.nau_nmu.subset_shapes import MODELS, SHAPES, shape_runs
from companion.thresholds import nearly_perfect_mse
from torch._inductor import config as inductor

from nalm.models import Stack
from nalm.records.lengths import shorter
from nalm.records.store import Store
from nalm.tasks import SingleModuleTask, Uniform
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
    assert [run.seed for run in left(job("all", 0, 1, 2), tmp_path)[1].values()] == [0, 2]
    assert left(job("some", 1), tmp_path / "else", tmp_path)[1] == {}


def test_what_another_file_records_is_not_left(tmp_path):
    list(train(tmp_path, [job("some", 1)]))
    elsewhere = Job("all", "demo/others", lambda: [RUN.but(seed=1)], also=("demo/missing",))
    assert left(elsewhere, tmp_path, tmp_path)[1] == {}


def test_the_hours_are_those_of_the_call(tmp_path, monkeypatch):
    clock = iter([1000.0, 1000.0 + 7200.0])
    monkeypatch.setattr(missing, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(missing, "run_all", lambda *asked, **how: None)
    assert list(train(tmp_path, [job("all", 0, 1)])) == [
        "all: 2 runs trained in 2.00 hours, all 2 are recorded"
    ]


def test_a_gpu_says_nothing_of_the_pace_of_a_core(tmp_path):
    list(train(tmp_path, [job("some", 1)]))
    store = Store(tmp_path, "demo/missing")
    sidecar = store.sidecar()
    for batch in sidecar["batches"].values():
        batch["device"] = "NVIDIA H200"
    store.sidecar_file.write_text(json.dumps(sidecar))
    assert np.isnan(table(tmp_path, [job("all", 0, 1)])["hours"].item())


def test_the_table_says_what_is_left_and_the_hours(tmp_path):
    nothing = table(tmp_path, [job("all", 0, 1)]).to_dict("records")
    assert np.isnan(nothing[0].pop("hours"))
    assert nothing == [{"job": "all", "runs": 2, "recorded": 0, "left": 2, "updates left": 40}]
    list(train(tmp_path, [job("some", 1)]))
    seconds = recorded(tmp_path)["seconds"].sum() / 20
    lines = table(tmp_path, [job("some", 0, 1), job("all", 0, 1, 2)])
    assert lines["left"].tolist() == [1, 1] and lines["recorded"].tolist() == [1, 1]
    assert lines["hours"].tolist() == pytest.approx([20 * seconds / 3600] * 2)
    assert table(tmp_path, [job("some", 1)])["hours"].tolist() == [0.0]
    said = listed(lines).splitlines()
    assert len(said) == 4 and said[-1].split()[:2] == ["all,", "hours"]


def test_hours_of_likewise_runs(tmp_path):
    list(train(tmp_path, [job("some", 1)]))
    alike = Job("others", "demo/others", lambda: [RUN], like="demo/missing")
    assert table(tmp_path, [alike])["hours"].item() > 0


def test_runs_that_are_lost_say_nothing_of_the_pace(tmp_path):
    huge = Uniform(low=1e30, high=2e30)  # its products are infinite in float32
    lost = RUN.but(task=RUN.task.but(interpolation=huge, extrapolation=huge))
    list(train(tmp_path, [Job("both", "demo/missing", lambda: [RUN, lost])]))
    rows = recorded(tmp_path)
    assert rows["nan_at"].notna().sum() == 1
    seconds = rows.loc[rows["nan_at"].isna(), "seconds"].item() / 20
    line = table(tmp_path, [Job("all", "demo/missing", lambda: [RUN, lost, RUN.but(seed=1)])])
    assert line["hours"].item() == pytest.approx(20 * seconds / 3600)


def test_digits_of_more_epochs_are_counted_from_where_the_shorter_runs_end(tmp_path):
    def digits(epochs):
        runs = digit_runs("product", ["NMU"], 1, epochs, source="sklearn", longest=2)
        return Job(f"{epochs}", "demo/digits", lambda: runs)

    assert table(tmp_path, map(digits, (5, 15, 10, 20)))["updates left"].tolist() == [50, 100, 50, 50]
    queue = [digits(5), digits(15)]
    assert table(tmp_path, queue)["updates left"].tolist() == [50, 100]
    list(train(tmp_path, queue[:1]))
    assert list((tmp_path / "demo" / ".checkpoints").glob("*.pt"))
    assert table(tmp_path, queue)["updates left"].tolist() == [0, 100]


DIGITS = [job for job in QUEUE if "epochs" in job.what]


def test_digits_come_after_the_division_paper_and_by_seed():
    first = QUEUE.index(DIGITS[0])
    before = [job.what.partition(",")[0] for job in QUEUE[:first]]
    assert before[0] == "division/mixed-signs"
    assert before[3].startswith("npu Figure 4") and len(QUEUE[3].runs()) == 300
    assert set(before[4:]) == {"leaderboard as published", "leaderboard tuned alike"}
    assert "epochs" in QUEUE[first + 1].what and "epochs" not in QUEUE[first + 2].what
    runs = DIGITS[0].runs()
    assert [run.seed for run in runs] == [seed for seed in range(5) for _ in MODELS_OF_DIGITS["product"]]
    assert {run.recipe.iterations for run in runs} == {HORIZON * 388}
    assert {run.recipe.iterations for run in DIGITS[-1].runs()} == {ITERATIONS["sum"]}


@pytest.mark.parametrize("operation", ["product", "sum"])
def test_a_horizon_is_the_beginning_of_the_full_length(operation):
    """The run of 1,001 epochs passes through that of 110, whose row is none of its own."""
    models = MODELS_OF_DIGITS[operation]
    short, whole = (digit_runs(operation, models, 1, epochs) for epochs in (HORIZON, EPOCHS))
    for one, other in zip(short, whole, strict=True):
        assert one.key != other.key and one.key in {run.key for run in shorter(other)}


@pytest.mark.parametrize("ask", [[], ["--list"]])
def test_where_rows_go_and_what_trains_them_is_checked_first(ask, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert missing.main([str(tmp_path / "file"), *ask]) == 2
    assert "is a file; allowed are" in capsys.readouterr().err
    assert missing.main([str(tmp_path), "--device", "gpu", *ask]) == 2
    assert capsys.readouterr().err.startswith("Unknown device 'gpu'")


def test_a_stopped_training_says_how_it_goes_on(tmp_path, monkeypatch, capsys):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(missing, "train", stopped)
    monkeypatch.setattr(missing, "yield_to_others", lambda: None)
    assert missing.main([str(tmp_path)]) == 130
    assert "goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize(("device", "called"), [("cpu", "1"), ("cuda", None)])
def test_on_cores_compiled_code_is_called_from_cpp(device, called, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    monkeypatch.setenv("TORCHINDUCTOR_CPP_WRAPPER", "")  # so that it is put back
    monkeypatch.delenv("TORCHINDUCTOR_CPP_WRAPPER")
    monkeypatch.setattr(missing, "yield_to_others", lambda: None)
    monkeypatch.setattr(missing, "train", lambda *arguments: [])
    monkeypatch.setattr(missing, "check_device", torch.device)  # there need be none
    assert missing.main([str(tmp_path), "--device", device]) == 0
    assert os.environ.get("TORCHINDUCTOR_CPP_WRAPPER") == called
    assert ("CUTLASS" in os.environ["PYTHONWARNINGS"]) == bool(called)
    assert 'environ.get("TORCHINDUCTOR_CPP_WRAPPER"' in inspect.getsource(inductor)  # torch reads it


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "Figure 99"], "No job has 'Figure 99' in its name"),
        (["--only", "1,001 epochs, 10 seeds", "--device", "cuda:99"], "Device 'cuda:99' is not there"),
    ],
)
def test_what_cannot_be_trained_is_a_sentence(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(missing, "yield_to_others", lambda: None)
    assert missing.main([str(tmp_path), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_jobs_are_named_by_whole_words(tmp_path, monkeypatch):
    queues = []
    monkeypatch.setattr(missing, "yield_to_others", lambda: None)
    monkeypatch.setattr(missing, "call_from_cpp", lambda: None)
    monkeypatch.setattr(missing, "train", lambda results, queue, device: queues.append(queue) or [])
    for only in ("Table 6, ×, 10", "Table 6"):
        assert missing.main([str(tmp_path), "--only", only]) == 0
    assert [job.what for job in queues[0]] == ["nau-nmu Table 6, ×, 10 seeds"] and len(queues[1]) == 9


SUMS = [job for job in QUEUE if job.results == "nau-nmu/replay"]


@pytest.mark.parametrize("job", SUMS[:5], ids=lambda job: job.what)
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


def test_the_pace_is_that_of_its_own_runs_where_there_are_some(tmp_path):
    others = Job("others", "demo/others", lambda: [RUN.but(recipe=RECIPE.but(iterations=21))])
    list(train(tmp_path, [job("some", 1), others]))
    own = recorded(tmp_path)["seconds"].sum() / 20
    asked = Job("all", "demo/missing", lambda: [RUN.but(seed=s) for s in (0, 1)], like="demo/others")
    assert table(tmp_path, [asked])["hours"].item() == pytest.approx(20 * own / 3600)
