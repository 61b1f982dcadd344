"""One call, or one command, compares units."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import own_units
import pandas as pd
import pytest
import torch
from companion.measures import wilson
from forked import run_script

import nalm
from nalm import study
from nalm.models import Layer, Stack
from nalm.tasks import SingleModuleTask, Uniform
from nalm.training import Adam, Discretisation, Recipe

TASKS = [
    SingleModuleTask.on("U[1,2)", operation=operation) for operation in ("squared", lambda a, b: a * a + b)
]
FILE = Path(own_units.__file__)
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return nalm.compare(
        [own_units.SquareUnit, "NAU"],
        TASKS,
        lr=[1e-2, 3e-2],
        seeds=3,
        iterations=300,
        results=str(folder),
        progress=False,
    )


def test_each_unit_task_and_rate_has_a_line_with_its_interval(found):
    lines = found.summary()
    assert lines["model"].tolist() == ["SquareUnit"] * 2 + ["NAU"] * 2 + ["SquareUnit"] * 2 + ["NAU"] * 2
    assert lines["lr"].tolist() == ["0.01", "0.03"] * 4
    assert lines["operation"].tolist() == ["squared"] * 4 + ["a * a + b"] * 4
    squares = lines[(lines["model"] == "SquareUnit") & (lines["operation"] == "squared")]
    assert (squares["solved"] == 3).any() and (lines[lines["model"] == "NAU"]["solved"] == 0).all()
    for line in lines.to_dict("records"):
        rows = found.rows
        for name in ("model", "operation", "lr"):
            rows = rows[rows[name].astype(str) == line[name]]
        assert (line["n"], line["solved"]) == (len(rows), rows["success"].sum())
        assert (line["low"], line["high"]) == pytest.approx(wilson(line["solved"] / 3, 3))


def test_the_best_rate_of_each_unit_is_drawn(found):
    best = found.best()
    assert len(best) == 4 and not best.duplicated(["operation", "model"]).any()
    axes = found.figure("squared").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["squared\nU[1,2)"]
    drawn = {bars.get_label(): bars.lines[0].get_ydata().tolist() for bars in axes.containers}
    squared = best[best["operation"] == "squared"].set_index("model")
    assert drawn == {name: [rate] for name, rate in squared["rate"].items()}
    for bars in axes.containers:
        (ends,) = bars.lines[2][0].get_segments()
        assert ends[:, 1] == pytest.approx(squared.loc[bars.get_label(), ["low", "high"]].to_numpy(float))
    assert sum(bars.lines[0].get_xdata().item() for bars in axes.containers) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="no operation 'cubed' in this comparison; there are 'squared', "):
        found.figure("cubed")


def test_its_rows_are_fresh_and_can_be_verified(found):
    assert found.freshness() == "fresh"
    outcome = found.verify(rows=1)
    assert outcome.passed and outcome.candidates == 24
    part = study.Study(found.rows[found.rows["model"] == "NAU"], found.experiment, found.results)
    outcome = part.verify(rows=1)
    assert outcome.passed and outcome.candidates == len(part.rows) < 24
    assert outcome.rows[0].name.startswith("NAU ")


def test_what_is_recorded_is_not_trained_again(found, monkeypatch):
    monkeypatch.setattr("nalm.records.memoised.train_ensembles", None)
    again = nalm.compare(
        [own_units.SquareUnit],
        TASKS[0],
        lr=3e-2,
        seeds=2,
        iterations=300,
        results=found.results,
        progress=False,
    )
    pd.testing.assert_frame_equal(
        again.rows.reset_index(drop=True)[["key", "test_mse"]],
        found.rows[found.rows["key"].isin(again.rows["key"])].reset_index(drop=True)[["key", "test_mse"]],
    )


def test_a_recipe_and_a_stack_are_taken_as_they_are(tmp_path):
    recipe = Recipe(iterations=8, optimiser=Adam(lr=1.0), log_interval=4, batch_size=7)
    found = nalm.compare(
        [Stack.of("NAU", 2, "NMU", 1)],
        TASKS[0],
        lr=0.5,
        seeds=1,
        recipe=recipe,
        results=str(tmp_path),
        progress=False,
    )
    assert found.rows[["model", "iterations"]].iloc[0].tolist() == ["NAU-NMU", 8]


def test_units_and_tasks_of_one_name_are_numbered(tmp_path):
    found = nalm.compare(
        ["NMU", Stack.of("RealNPU", 1), Stack(layers=(Layer(unit="RealNPU", options={"clip": ("gate",)}),))],
        [SingleModuleTask.on("U[1,2)", operation="mul", inputs=inputs) for inputs in (2, 10)],
        seeds=1,
        iterations=2,
        results=tmp_path,
        progress=False,
    )
    assert found.summary()[["operation", "model", "n"]].to_numpy().tolist() == [
        [f"mul {task}", unit, 1] for task in (1, 2) for unit in ("NMU", "RealNPU 1", "RealNPU 2")
    ]


def test_what_a_configuration_was_called_before_makes_no_difference(tmp_path):
    """Alone it is NAU, beside another one NAU 1; its rows are verified, and counted as one line."""
    clamped = Stack(layers=(Layer(unit="NAU", options={"clamp": "forward"}),))
    how = {"iterations": 10, "results": tmp_path, "progress": False}
    nalm.compare("NAU", TASKS[0], seeds=1, **how)
    found = nalm.compare(["NAU", clamped], TASKS[0], seeds=2, **how)
    assert found.summary()[["model", "n"]].to_numpy().tolist() == [["NAU 1", 2], ["NAU 2", 2]]
    assert found.verify(4).passed
    assert nalm.compare("NAU", TASKS[0], seeds=2, **how).rows["model"].tolist() == ["NAU", "NAU"]


def test_published_rows_of_a_comparison_are_found(found, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "PUBLISHED", Path(found.results))
    assert study.Study(found.rows, found.experiment, str(tmp_path)).freshness() == "fresh"


def test_rows_that_were_replaced_or_removed_are_older(tmp_path):
    found = nalm.compare("NAU", TASKS[0], seeds=2, iterations=4, results=tmp_path, progress=False)
    assert found.freshness() == "fresh"
    shutil.rmtree(tmp_path)
    assert found.freshness() == "older than the code it depends on"


def test_a_module_without_a_penalty_is_compared_as_well(tmp_path):
    found = nalm.compare(torch.nn.Linear, TASKS[0], seeds=1, iterations=4, results=tmp_path, progress=False)
    assert found.rows["model"].tolist() == ["Linear"]


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"iterations": -5}, ValueError, "iterations must be a positive integer, but it is -5"),
        ({"iterations": 1e2}, TypeError, "iterations must be a positive integer, but it is 100.0"),
        ({"lr": "0.01"}, TypeError, "lr must be a number, but it is '0.01'"),
        ({"lr": np.array(0.01)}, TypeError, r"lr must be a number, but it is array\(0.01\)"),
        ({"threshold": None}, TypeError, "threshold must be a number, but it is None"),
        ({"compiled": "no"}, TypeError, "compiled must be True or False, but it is 'no'"),
        ({"tasks": "mul"}, TypeError, r"A task is a nalm.tasks.Task, .*, operation='mul'\), not 'mul'"),
        ({"tasks": None}, TypeError, "A task is a nalm.tasks.Task, .* not None"),
        ({"units": None}, TypeError, "A unit is a class, the name of one or a .*, not None"),
        (
            {"tasks": SingleModuleTask.on("U[-2,2)", operation="root")},
            ValueError,
            r"'root' has no finite value on part of U\[-2,2\): take another range",
        ),
        (
            {"tasks": TASKS[0].but(operation="root", extrapolation=Uniform(low=-2.0, high=-1.0))},
            ValueError,
            r"'root' has no finite value on part of U\[1,2\): take another range",
        ),
        ({"units": nalm.NAU(2, 1)}, TypeError, r"A unit is a class, the name of one or a .*, not NAU\("),
        ({"units": [3]}, TypeError, "A unit is a class, the name of one or a .*, not 3"),
        ({"seeds": 10**9}, ValueError, "seeds is 1000000000, but must be at most 10,000"),
        ({"lr": float("nan")}, ValueError, "lr must be a finite number, but it is nan"),
        ({"seeds": 1.5}, TypeError, "seeds must be a positive integer, but it is 1.5"),
        ({"recipe": {"iterations": 4}}, TypeError, "A recipe is a nalm.training.Recipe, not {'iter"),
        ({"units": dict}, ValueError, "dict is no unit: a unit is a class of torch.nn.Module"),
        ({"units": [Stack.of("NMU", 2)]}, ValueError, "The model has 2 outputs, but SingleModuleTask has 1"),
    ],
)
def test_wrong_numbers_are_refused_before_anything_trains(changed, error, sentence, tmp_path):
    asked = {"units": ["NMU"], "tasks": TASKS[0], "iterations": 4, "seeds": 1} | changed
    with pytest.raises(error, match=sentence):
        nalm.compare(**asked, results=tmp_path, progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Unmade", "Unmade cannot be made by Unmade(in_features, out_features): KeyError: 'size'."),
        ("Flat", "Flat maps inputs of shape (7, 2) to (7,)"),
        ("Twice", "Twice maps inputs of shape (7, 2) to (7, 2)"),
        ("Frozen", "Frozen freezes its parameter 'weight'"),
        ("Branching", "Branching lets the course of forward depend on the values of tensors"),
        ("Penalised", "Penalised has a penalty that is no scalar tensor"),
        ("Nowhere", f"{f'{FILE}:Nowhere'!r} is not found: "),
    ],
)
def test_the_command_refuses_a_wrong_unit_in_one_sentence(name, sentence, capsys, tmp_path):
    assert study.main([f"{FILE}:{name}", "--seeds", "1", "--results", str(tmp_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert sentence in said and "\n" not in said


def test_the_command_takes_a_unit_that_stands_beside_the_others(capsys, tmp_path):
    asked = ["NMU", "--operations", "mul", "mul", "--iterations", "4", "--seeds", "1"]
    asked += ["--ranges", "U[1,2)", "U[1,2)"]
    assert study.main([*asked, "--results", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[2] for line in lines if line[0] == "mul"] == ["NMU", "NAU"]


def test_a_comparison_finds_its_rows_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = nalm.compare("NMU", TASKS[0], iterations=4, seeds=1, results="here", progress=False)
    monkeypatch.chdir("/")
    assert found.freshness() == "fresh"


def test_the_command_prints_a_line_for_each_unit(tmp_path):
    script = tmp_path / "command.py"
    script.write_text("import runpy; runpy.run_module('nalm.study', run_name='__main__')")
    done = run_script(
        script, f"{FILE}:SquareUnit", "--beside", "NAU", "--operations", "squared", "--ranges", "U[1,2)",
        "--seeds", "2", "--iterations", "20", "--results", str(tmp_path / "rows"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[2] for line in lines[-3:-1]] == ["SquareUnit", "NAU"]
    assert lines[-1] == "The rows are fresh."


def test_nalm_itself_imports_nothing_for_it():
    code = "import nalm, sys; print([m for m in ('pandas', 'pydantic') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        nalm.compere  # noqa: B018
    assert importlib.import_module("nalm").compare is study.compare


def test_the_best_rate_solves_most_and_of_equals_is_the_soonest():
    solved = {"0.01": [None, 10.0], "0.1": [20.0, 20.0], "1": [10.0, 20.0], "2": [None, None]}
    rows = pd.DataFrame(
        [
            {
                "operation": "add",
                "range": "U[1,2)",
                "model": "A",
                "lr": lr,
                "success": at is not None,
                "solved_at": at,
            }
            for lr, times in solved.items()
            for at in times
        ]
    )
    best = study.Study(rows, "own/compare", "").best()
    assert best[["lr", "solved", "solved_at"]].values.tolist() == [["1", 2, 15.0]]


def test_the_best_are_in_the_order_of_tasks_and_units():
    asked = [("U[1,2)", "A", None), ("U[1,2)", "B", 10.0), ("U[-2,2)", "A", 20.0), ("U[-2,2)", "B", None)]
    rows = [
        {
            "operation": "add",
            "range": of,
            "model": model,
            "lr": "0.1",
            "success": at is not None,
            "solved_at": at,
        }
        for of, model, at in asked
    ]
    best = study.Study(pd.DataFrame(rows), "own/compare", "").best()
    assert list(zip(best["range"], best["model"], strict=True)) == [one[:2] for one in asked]


def test_solved_at_is_the_median_of_solved_runs():
    line = {"operation": "add", "range": "U[1,2)", "model": "A", "lr": "0.1"}
    ends = (True, 10.0), (True, 20.0), (True, 60.0), (False, 5.0), (False, None)
    rows = [line | {"success": won, "solved_at": at} for won, at in ends]
    (found,) = study.Study(pd.DataFrame(rows), "own/compare", "").summary().to_dict("records")
    assert (found["solved"], found["solved_at"]) == (3, 20.0)


def test_rows_of_which_some_are_gone_are_older(tmp_path):
    found = nalm.compare("NAU", TASKS[0], seeds=2, iterations=4, results=tmp_path, progress=False)
    rows = found.rows.assign(batch=[found.rows["batch"][0], "replaced"])
    assert study.Study(rows, found.experiment, found.results).freshness().startswith("older")


def test_without_a_recipe_the_penalty_grows_from_half_to_three_quarters():
    recipe = study._recipe(Stack.of("NAU", 1), TASKS[0], 100)
    assert recipe.penalties == (Discretisation(weight=1.0, start=50, end=75),)
    assert recipe.log_interval == 2 and study._recipe(Stack.of("NAU", 1), TASKS[0], 1).log_interval == 1
    assert study._recipe(Stack.of(torch.nn.Linear, 1), TASKS[0], 100).penalties == ()


@pytest.fixture
def asked(monkeypatch):
    """The runs that are asked for, none of which is trained; and how."""
    runs = []

    def ask(all_of_them, experiment, **how):
        runs.extend(all_of_them)
        assert how["retrain"] is True
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_all", ask)
    return runs


def test_what_is_not_named_is_as_the_documentation_says(asked):
    with pytest.raises(KeyboardInterrupt):
        nalm.compare("NMU", TASKS[0])
    assert [run.seed for run in asked] == list(range(25))
    assert {(run.threshold, run.recipe.iterations, run.recipe.optimiser.lr) for run in asked} == {
        (1e-5, 5000, 1e-2)
    }


def test_the_command_asks_for_what_its_help_says(asked):
    with pytest.raises(KeyboardInterrupt):
        study.main([f"{FILE}:SquareUnit"])
    assert {(run.labels["operation"], run.task.label()) for run in asked} == {
        (operation, name) for operation in ("squared", "add", "mul") for name in ("U[1,2)", "U[-2,2)")
    }
    assert {run.labels["model"] for run in asked} == {"SquareUnit", "NAU", "NMU"}
    assert {(run.recipe.iterations, run.recipe.optimiser.lr) for run in asked} == {(5000, 1e-2)}
    assert len(asked) == 6 * 3 * 10


def test_a_rate_is_asked_for_once_and_written_in_full(asked):
    with pytest.raises(KeyboardInterrupt):
        nalm.compare("NMU", TASKS[0], lr=[0.01, 1e-2, 0.12345678], seeds=1, threshold=0.5)
    assert [run.labels["lr"] for run in asked] == ["0.01", "0.12345678"]
    assert {run.threshold for run in asked} == {0.5}


def test_so_many_seeds_and_no_more():
    assert study.check_seeds(study.MOST_SEEDS) == 10_000


def test_the_command_says_that_a_folder_cannot_be_written(monkeypatch, capsys):
    def full(*_, **__):
        raise OSError("rows.csv cannot be written")

    monkeypatch.setattr(study, "run_all", full)
    assert study.main(["NMU", "--seeds", "1"]) == 2
    assert capsys.readouterr().err == "rows.csv cannot be written\n"
