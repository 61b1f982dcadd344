"""Memoised training: what is recorded is read, only what is missing is trained."""

import json
import signal
import sys
import textwrap
import time

import numpy as np
import pytest
from forked import PROCESSES

from nalm.models import DigitSequence, Stack
from nalm.records import Store, code, cost, folders, groups, memoised, run_all
from nalm.records.groups import checkpoint_of
from nalm.records.keys import keys_of
from nalm.records.provenance import is_gpu
from nalm.tasks import DigitSequenceTask, SingleModuleTask, SubsetArithmeticTask, Uniform
from nalm.training import SGD, Adam, Discretisation, Recipe, Run

EXPERIMENT = "demo/memoised"
# whose processes need not import torch each by themselves


def runs(seeds, unit="NMU", task=None, **recipe):
    recipe = Recipe(**({"iterations": 40, "optimiser": Adam(lr=1e-2), "log_interval": 10} | recipe))
    task = task or SingleModuleTask.on("U[1,2)", operation="mul")
    return [
        Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=s, threshold=1e-5, labels={"arm": unit})
        for s in seeds
    ]


@pytest.fixture
def trained(monkeypatch):
    """The runs that were trained, in order."""
    seen, train = [], memoised.train_ensembles

    def record(ensembles, *arguments):
        seen.extend(run for ensemble in ensembles for run in ensemble)
        return train(ensembles, *arguments)

    monkeypatch.setattr(memoised, "train_ensembles", record)
    return seen


def ask(asked, folder):
    return run_all(asked, EXPERIMENT, results=str(folder), progress=False)


def test_nothing_is_trained_twice(tmp_path, trained):
    first = ask(runs(range(3)), tmp_path)
    assert [run.seed for run in trained] == [0, 1, 2]
    again = ask(runs(range(3)), tmp_path)
    assert len(trained) == 3 and again.equals(first)
    more = ask(runs(range(5)), tmp_path)
    assert [run.seed for run in trained] == [0, 1, 2, 3, 4] and more["seed"].tolist() == [0, 1, 2, 3, 4]
    fewer = ask(runs([4, 0]), tmp_path)
    assert len(trained) == 5 and fewer["seed"].tolist() == [4, 0]
    ask(runs([0], iterations=41), tmp_path)
    assert len(trained) == 6


def test_what_is_recorded_is_read_without_training(tmp_path, trained):
    def read(seeds):
        return run_all(runs(seeds), EXPERIMENT, results=str(tmp_path), train=False)

    with pytest.raises(ValueError, match="None of the 2 runs asked for is recorded"):
        read(range(2))
    assert not list(tmp_path.rglob("*.csv"))
    rows = ask(runs([0, 2]), tmp_path)
    assert read([2, 1, 0]).equals(rows.iloc[::-1].reset_index(drop=True))
    assert len(trained) == 2
    with pytest.raises(ValueError, match="asked for twice"):
        read([0, 0])


@pytest.mark.parametrize(("stream", "sizes"), [("common", [3, 3]), ("own", [6])])
def test_runs_that_share_their_inputs_are_together(stream, sizes):
    tasks = [SingleModuleTask.on(on, operation="mul") for on in ("U[1,2)", "U[0.1,0.2)")]
    recipe = Recipe(iterations=60, optimiser=Adam(lr=1e-2), stream=stream)
    runs = [
        Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=seed, threshold=1e-5)
        for seed in range(3)
        for task in tasks
    ]
    ensembles = memoised.ensembles_of(runs, places=1)
    assert [len(ensemble) for ensemble in ensembles] == sizes
    assert {run.key for ensemble in ensembles for run in ensemble} == {run.key for run in runs}


def test_all_places_are_done_at_the_same_time(monkeypatch):
    monkeypatch.setattr(memoised, "_most_runs", lambda run, device: 4)
    assert [len(ensemble) for ensemble in memoised.ensembles_of(runs(range(10)), places=2)] == [3, 3, 3, 1]


def test_a_checkpoint_of_a_large_model_by_itself_is_written_at_every_evaluation(tmp_path):
    task = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,))
    recipe = Recipe(iterations=4, optimiser=Adam(lr=1e-3), log_interval=2)
    digits = [Run(task=task, model=DigitSequence(cell=None), recipe=recipe, seed=seed) for seed in range(2)]
    pauses = [checkpoint_of(part, tmp_path).every for part in (digits[:1], digits, runs([0]))]
    assert pauses == [0.0, groups.CHECKPOINT_SECONDS, groups.CHECKPOINT_SECONDS]


@pytest.mark.parametrize(("targets", "sizes"), [("float64", [9]), ("float32", [3, 3, 3])])
def test_subsets_of_any_size_are_together_where_their_sums_are_products(targets, sizes):
    base = SubsetArithmeticTask(operation="mul", targets=targets)
    tasks = [base, base.but(subset_ratio=0.5), base.but(overlap_ratio=0.0)]
    recipe = Recipe(iterations=60, optimiser=Adam(lr=1e-2), stream="common")
    model = Stack.of("NAU", 2, "NMU", 1)
    runs = [Run(task=task, model=model, recipe=recipe, seed=seed) for task in tasks for seed in range(3)]
    assert [len(ensemble) for ensemble in memoised.ensembles_of(runs, places=1)] == sizes
    elsewhere = [run.but(task=base.but(interpolation=Uniform(low=-2.0, high=2.0))) for run in runs[:3]]
    assert len(memoised.ensembles_of([*runs, *elsewhere], places=1)) == len(sizes) + 1


def test_a_run_of_two_experiments_is_trained_once(tmp_path, trained):
    ask(runs(range(2)), tmp_path)
    relabelled = [run.but(labels={"arm": "again"}) for run in runs(range(3))]
    rows = run_all(relabelled, "demo/further", results=str(tmp_path), progress=False, also=[EXPERIMENT])
    assert [run.seed for run in trained] == [0, 1, 2]
    assert rows["experiment"].tolist() == [EXPERIMENT] * 2 + ["demo/further"] and set(rows["arm"]) == {
        "again"
    }
    assert Store(tmp_path, "demo/further").read()["seed"].tolist() == [2]
    assert cost(rows, str(tmp_path)).runs == 3
    with pytest.raises(ValueError, match="recorded neither in the book nor with results='elsewhere'"):
        cost(rows, "elsewhere")


def test_rows_hold_what_they_promise(tmp_path):
    rows = ask(runs(range(2)) + runs([0], unit="NAC"), tmp_path)
    assert rows["model"].tolist() == ["NMU", "NMU", "NAC"] == rows["arm"].tolist()
    assert (
        (rows["paper"] == "demo").all()
        and (rows["range"] == "U[1,2)").all()
        and (rows["stream"] == "own").all()
    )
    assert rows["success"].dtype == bool and rows["weights"][0].startswith('{"0.weight":[[')
    spent = cost(rows, str(tmp_path))
    assert spent.runs == 3 and spent.run_iterations == 120 and spent.devices
    origins = Store(tmp_path, EXPERIMENT).sidecar()["batches"].values()
    assert all(origin["versions"]["torch"] and origin["threads"] >= 1 for origin in origins)
    assert sum(origin["runs"] for origin in origins) == 3


def test_labels_are_those_that_were_asked_for(tmp_path):
    ask(runs([0]), tmp_path)
    renamed = [run.model_copy(update={"labels": {"arm": "another name"}}) for run in runs([0])]
    assert ask(renamed, tmp_path)["arm"].tolist() == ["another name"]


def test_a_run_that_becomes_nan_is_recorded_as_failed(tmp_path):
    task = SingleModuleTask.on("U[10,20)", operation="mul")
    rows = ask(runs([0], unit="Linear", task=task, optimiser=SGD(lr=1e30)) + runs([0]), tmp_path)
    assert not rows["success"][0] and rows["nan_at"][0] == 10 and np.isnan(rows["solved_at"][0])
    assert np.isnan(rows["nan_at"][1]) and np.isfinite(rows["test_mse"][1])


def test_published_rows_are_read_and_never_changed_by_a_rerun(tmp_path, monkeypatch, trained):
    published, own = tmp_path / "published", tmp_path / "own"
    ask(runs(range(2)), published)
    before = {
        file: file.read_bytes()
        for file in published.rglob("*.*")
        if file.is_file() and file.suffix != ".lock"
    }
    monkeypatch.setattr(memoised, "PUBLISHED", published)
    rows = ask(runs(range(3)), own)
    assert [run.seed for run in trained] == [0, 1, 2] and rows["seed"].tolist() == [0, 1, 2]
    assert {file: file.read_bytes() for file in before} == before
    assert Store(own, EXPERIMENT).read()["seed"].tolist() == [2]


def test_a_published_row_counts_before_a_local_one(tmp_path, monkeypatch, trained):
    published, own = tmp_path / "published", tmp_path / "own"
    rows = ask(runs(range(2)), published)
    ask(runs(range(2)), own)
    stale = Store(own, EXPERIMENT)
    changed = stale.read().assign(test_mse=0.5)
    stale.rows_file.unlink(), stale.sidecar_file.unlink()
    for batch, part in changed.groupby("batch"):
        stale.add(part.to_dict("records"), {}, batch, {"device": "test"})
    assert ask(runs(range(2)), own)["test_mse"].tolist() == [0.5, 0.5]
    monkeypatch.setattr(memoised, "PUBLISHED", published)
    assert ask(runs(range(2)), own)["test_mse"].tolist() == rows["test_mse"].tolist()
    assert (
        run_all(runs(range(2)), "demo/other", results=str(own), also=[EXPERIMENT], progress=False)[
            "test_mse"
        ].tolist()
        == rows["test_mse"].tolist()
    )


def test_fresh_trains_what_is_published_once(tmp_path, monkeypatch, trained):
    published, own = tmp_path / "published", tmp_path / "own"
    rows = ask(runs(range(2)), published)
    monkeypatch.setattr(memoised, "PUBLISHED", published)
    trained.clear()
    for _ in range(2):  # the second time, the new rows are read
        again = run_all(runs(range(2)), EXPERIMENT, results=str(own), progress=False, fresh=True)
    assert [run.seed for run in trained] == [0, 1]
    assert again["test_mse"].tolist() == rows["test_mse"].tolist()
    with pytest.raises(ValueError, match="cannot take the new ones; allowed are"):
        run_all(runs(range(2)), EXPERIMENT, results=str(published), progress=False, fresh=True)


@pytest.mark.parametrize(
    ("asked", "results", "device", "sentence"),
    [
        ([], "", "cpu", "selection of models, ranges or seeds is empty"),
        (runs([0, 0]), "", "cpu", "asked for twice: seed 0"),
        (runs([0]), "", "cuda:99", "Device 'cuda:99' is not there"),
        (runs([0]), __file__, "cpu", "is a file; allowed are"),
    ],
)
def test_bad_input_is_refused_before_anything_trains(asked, results, device, sentence, trained):
    with pytest.raises(ValueError, match=sentence):
        run_all(asked, EXPERIMENT, results=results, device=device)
    assert not trained


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ({"seed": "a"}, "A label cannot be called 'seed'"),
        ({"key": "a"}, "A label cannot be called 'key'"),
        ({"test_mse": "a"}, "A label cannot be called 'test_mse'"),
        ({"lows": "a"}, "A label cannot be called 'lows'"),
        ({"arm": ""}, "A label cannot be '': it would be read as a missing value"),
        ({"arm": "nan"}, "A label cannot be 'nan'"),
        ({"arm": "a\rb"}, r"A label cannot be 'a\\rb': a carriage return ends a line"),
        ({"a\rb": "a"}, r"A label cannot be 'a\\rb': a carriage return ends a line"),
        ({"a\ud800": "a"}, "A label cannot be 'a.ud800': it is no text that a file can hold"),
        ({"arm": "a\ud800"}, "A label cannot be 'a.ud800': it is no text that a file can hold"),
        ({"": "a"}, "A label has no name"),
        ({"model": "01"}, "A model cannot be called '01': it would be read as 1"),
        ({"range": "1e3"}, "A range cannot be called '1e3': it would be read as 1000"),
    ],
)
def test_labels_that_would_not_be_read_back_are_refused(tmp_path, labels, sentence, trained):
    with pytest.raises(ValueError, match=sentence):
        run_all([run.but(labels=labels) for run in runs([0])], EXPERIMENT, results=str(tmp_path))
    assert not trained


def test_numbers_that_are_not_finite_are_refused(tmp_path, trained):
    unchecked = runs([0])[0].model_copy(update={"threshold": float("inf")})
    with pytest.raises(ValueError, match="threshold is inf, but must be a finite number"):
        run_all([unchecked], EXPERIMENT, results=str(tmp_path))
    assert not trained


def test_a_damaged_store_stops_before_training(tmp_path, trained):
    file = Store(tmp_path, EXPERIMENT).rows_file
    file.parent.mkdir()
    file.write_text("damaged")
    with pytest.raises(ValueError, match="is not a results file"):
        ask(runs([0]), tmp_path)
    assert not trained and file.read_text() == "damaged"


def test_results_folders(tmp_path, monkeypatch):
    assert folders.results_folder(str(tmp_path)) == tmp_path
    assert folders.results_folder("publish").name == "results"
    for wrong in ("Publish", "PUBLISH"):
        with pytest.raises(ValueError, match="did you mean 'publish'"):
            folders.results_folder(wrong)
    monkeypatch.setattr(folders, "PUBLISHED", tmp_path / "no" / "book")
    with pytest.raises(ValueError, match="without its repository"):
        folders.results_folder("publish")
    with pytest.raises(ValueError, match="names the home of a user whom this machine does not know"):
        folders.results_folder("~no-such-user/rows")
    for wrong in (None, 3, b"rows"):
        with pytest.raises(TypeError, match="^results must be '', 'publish' or the path of a folder, but it"):
            folders.results_folder(wrong)


@pytest.mark.parametrize(
    ("asked", "how", "error", "sentence"),
    [
        ([1], {}, TypeError, "^What is trained is a nalm.training.Run, not 1.$"),
        (None, {}, TypeError, "^What is trained is a nalm.training.Run, not None.$"),
        (
            runs([0]),
            {"scheduler": 5},
            TypeError,
            "^A scheduler is its address, as 'tcp://host:8786', not 5.$",
        ),
        (runs([0]), {"executor": 3}, TypeError, "^An executor is a concurrent.futures.Executor, not 3.$"),
        (runs([0]), {"experiment": None}, ValueError, "^An experiment is named .* not None.$"),
    ],
)
def test_what_is_no_run_no_name_and_no_executor_is_refused(asked, how, error, sentence, tmp_path):
    with pytest.raises(error, match=sentence):
        run_all(asked, **({"experiment": EXPERIMENT, "results": str(tmp_path), "progress": False} | how))
    assert not list(tmp_path.iterdir())


def test_a_run_by_itself_and_the_name_of_another_file(tmp_path, trained):
    ask(runs([0]), tmp_path)
    (run,) = runs([0])
    rows = run_all(run, "demo/other", results=str(tmp_path), progress=False, also=EXPERIMENT)
    assert len(rows) == len(trained) == 1


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
    run_all(runs, "demo/killed", results=sys.argv[1])
"""


def run(script, folder):
    """What ``python -c script folder`` would do, in this process."""
    sys.argv = ["-c", str(folder)]
    exec(textwrap.dedent(script), {"__name__": "__main__"})


def started(script, folder):
    """A process that does it."""
    process = PROCESSES.Process(target=run, args=(script, folder))
    process.start()
    return process


def test_a_killed_sweep_keeps_its_rows_and_is_finished_by_the_same_command(tmp_path, monkeypatch, capsys):
    store, process = Store(tmp_path, "demo/killed"), started(SWEEP, tmp_path)
    while process.is_alive() and (not store.rows_file.exists() or len(store.read()) < 6):
        time.sleep(0.02)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    kept = store.read()
    assert 6 <= len(kept) < 24
    monkeypatch.setattr(sys, "argv", sys.argv)
    run(SWEEP, tmp_path)
    rows, said = store.read(), capsys.readouterr().err
    assert len(rows) == 24 and rows["key"].is_unique and rows.head(len(kept)).equals(kept)
    assert "24 of 24 runs" in said and "run-iterations/s" in said


LONG_ENSEMBLE = """
    import sys
    from nalm.models import Stack
    from nalm.records import groups, run_all
    from nalm.tasks import SingleModuleTask
    from nalm.training import Adam, Discretisation, Recipe, Run

    groups.CHECKPOINT_SECONDS = 0.0
    task = SingleModuleTask.on("U[1,2)", operation="div")
    penalties = (Discretisation(weight=1.0, start=50, end=150),)
    recipe = Recipe(
        iterations=300, optimiser=Adam(lr=1e-2), log_interval=20, penalties=penalties, clip_gradient_norm=1.0
    )
    first = Run(task=task, model=Stack.of("NMRU", 1), recipe=recipe, seed=0, threshold=1e-5)
    run_all([first.but(seed=seed) for seed in range(3)], "demo/long", results=sys.argv[1])
"""


def test_a_killed_ensemble_goes_on_to_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(groups, "CHECKPOINT_SECONDS", groups.CHECKPOINT_SECONDS)  # which the script sets
    run(LONG_ENSEMBLE, tmp_path / "whole")
    whole = Store(tmp_path / "whole", "demo/long").read()
    folder, kills = tmp_path / "killed", 0
    while not Store(folder, "demo/long").rows_file.exists():
        process = started(LONG_ENSEMBLE, folder)
        checkpoints = list(folder.rglob("*.pt"))
        before = checkpoints[0].stat().st_mtime_ns if checkpoints else 0
        while process.is_alive() and kills < 2:
            checkpoints = list(folder.rglob("*.pt"))
            if checkpoints and checkpoints[0].stat().st_mtime_ns > before:
                process.kill()
                kills += 1
                break
            time.sleep(0.01)
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    rows = Store(folder, "demo/long").read()
    assert kills == 2 and not list(folder.rglob("*.pt"))
    same = [column for column in whole.columns if column not in ("seconds", "batch")]
    assert rows[same].equals(whole[same])


def test_a_damaged_checkpoint_costs_time_only(tmp_path):
    whole = ask(runs([0]), tmp_path / "whole")
    checkpoint = checkpoint_of(runs([0]), tmp_path / "demo")
    checkpoint.path.parent.mkdir(parents=True)
    checkpoint.path.write_bytes(b"damaged")
    rows = ask(runs([0]), tmp_path)
    assert rows["weights"].equals(whole["weights"]) and not checkpoint.path.exists()


def test_a_checkpoint_belongs_to_the_code_of_all_its_runs(tmp_path, monkeypatch):
    penalty = Discretisation(weight=1.0, start=10, end=20)
    asked = runs([0]) + runs([1], penalties=(penalty,))
    assert asked[0].structure() == asked[1].structure() and code.code(asked[0]) != code.code(asked[1])
    place = checkpoint_of(asked, tmp_path).path
    assert checkpoint_of(asked[:1], tmp_path).path != place
    edited = code.LOADED["nalm.units.unit"].replace("[distance(getattr", "[2 * distance(getattr")
    assert edited != code.LOADED["nalm.units.unit"]
    alone = checkpoint_of(asked[:1], tmp_path).path
    monkeypatch.setitem(code.LOADED, "nalm.units.unit", edited)
    assert checkpoint_of(asked[:1], tmp_path).path == alone
    assert checkpoint_of(asked, tmp_path).path != place


def test_a_processor_has_no_number(tmp_path, trained):
    rows = run_all(runs([0]), EXPERIMENT, results=str(tmp_path), device="cpu:7", progress=False)
    origin = Store(tmp_path, EXPERIMENT).sidecar()["batches"][rows["batch"].iloc[0]]
    assert not is_gpu(origin["device"])
    with pytest.raises(ValueError, match="^Unknown device 'cpux'"):
        run_all(runs([1]), EXPERIMENT, results=str(tmp_path), device="cpux", progress=False)


def test_where_rows_come_from_is_said(tmp_path, monkeypatch, capsys):
    """Rows of one's own, and rows that are older than their code, are not mixed with others in silence."""
    asked = runs(range(2))
    run_all(asked, "demo/own", results=str(tmp_path), progress=False)
    assert not capsys.readouterr().out
    run_all(asked, "demo/own", results=str(tmp_path))
    assert capsys.readouterr().out == f"2 of 2 rows come from {tmp_path / 'demo' / 'own.csv'}.\n"
    store = Store(tmp_path, "demo/own")
    sidecar = json.loads(store.sidecar_file.read_text())
    for batch in sidecar["batches"].values():
        batch["code"] = "another"
    store.sidecar_file.write_text(json.dumps(sidecar))
    run_all(asked, "demo/own", results=str(tmp_path))
    assert "2 of 2 rows are older than the code that they depend on.\n" in capsys.readouterr().out
    monkeypatch.setattr(memoised, "PUBLISHED", tmp_path)
    run_all(asked, "demo/own", results=str(tmp_path))
    assert "come from" not in capsys.readouterr().out


def test_what_was_just_trained_counts_though_its_file_was_edited(tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "code_on_disk", lambda runs: None)
    assert len(run_all(runs(range(2)), EXPERIMENT, str(tmp_path), progress=False, retrain=True)) == 2


def test_a_run_of_another_threshold_has_another_key():
    (one,) = runs([0])
    other = one.but(threshold=1e-3)
    assert keys_of([one, other]) == [one.key, other.key] and one.key != other.key


def test_large_models_are_trained_by_themselves_or_on_a_gpu_ten_at_once():
    task = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,))
    recipe = Recipe(iterations=4, optimiser=Adam(lr=1e-3))
    digits = [Run(task=task, model=DigitSequence(cell=None), recipe=recipe, seed=seed) for seed in range(12)]
    assert {len(one) for one in memoised.ensembles_of(digits, places=1)} == {1}
    assert [len(one) for one in memoised.ensembles_of(digits, places=1, device="cuda")] == [6, 6]


def test_a_common_draw_is_as_large_for_any_number_of_runs():
    wide = [
        run.but(task=run.task.but(inputs=10_000), recipe=run.recipe.but(stream="common"))
        for run in runs(range(8))
    ]
    assert [len(one) for one in memoised.ensembles_of(wide, places=1)] == [8]
    own = [run.but(recipe=run.recipe.but(stream="own")) for run in wide]
    assert max(len(one) for one in memoised.ensembles_of(own, places=1)) < 8
