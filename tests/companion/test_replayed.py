"""Replays beside the authors' own runs: the right pairs, and nothing where there is none."""

import numpy as np
import pandas as pd
import pytest
from companion import published
from companion.division import settings as division
from companion.nau_nmu import replayed as comparison
from companion.nau_nmu import settings as nau_nmu
from companion.replay import main, replayed, replays

from nalm.models import Stack
from nalm.tasks import LargeScaleTask, UniformUnion
from nalm.training import Adam, Recipe, Run

VALUES = {
    "success": True,
    "solved_at": 5000.0,
    "sparsity_error": 1e-7,
    "valid_mse": 1e-9,
    "test_mse": 1e-9,
    "selected_at": 9000,
}


def row(task, model, operation, seed, **values):
    return (
        {
            "task": task,
            "range": "U[1,2)",
            "model": model,
            "operation": operation,
            "seed": seed,
            "stream": "numpy",
            "iterations": 20_000,
        }
        | VALUES
        | values
    )


def test_a_run_stands_beside_the_authors_of_its_model_operation_and_seed():
    rows = [
        row("SubsetArithmeticTask", "NAU", "sub", 3),
        row("SubsetArithmeticTask", "NMU", "mul", 99),
        row("TenParameterTask", "NMU", np.nan, 0),
    ]
    rows.append(row("SingleModuleTask", "NMU", "mul", 0))  # of the other paper
    rows.append(row("SubsetArithmeticTask", "NMU", "mul", 1, range="U[0.1,0.2)"))  # of Figure 3
    found = comparison.beside_published(pd.DataFrame(rows))
    assert list(found["table"]) == ["Table 1", "Table 6", "Table 6"] and list(found["operation"]) == [
        "mul",
        "sub",
        "mul",
    ]
    theirs = (
        published.load("nau_nmu_runs").query("model == 'NAU' and operation == 'sub' and seed == 3").iloc[0]
    )
    (ours,) = found.query("model == 'NAU'").to_dict("records")
    assert (ours["published_success"], ours["published_solved_at"]) == (
        theirs["success"],
        theirs["solved_at"],
    )
    assert (
        ours["published_selected_at"] == 1000 * (theirs["selected_log_point"] - 1)
        and ours["published_logged_points"] == 5001
    )
    without = found[found["model"] == "NMU"]
    assert (
        without.filter(like="published_").isna().all(axis=None) and without["success"].all()
    )  # seed 99, and Table 1, are not in their file


def test_no_replays_make_an_empty_table():
    assert comparison.recorded("nowhere").empty


def test_what_a_replay_changes_and_what_not():
    arm = division.arms(inputs=2)["NRU"]
    run = Run(
        task=division.task(division.MIXED_SIGNS["3"]),
        model=arm.model,
        recipe=arm.recipe,
        seed=4,
        threshold=1e-5,
    )
    found = replayed(run)
    assert (found.seed, found.threshold, found.recipe) == (4, 1e-5, run.recipe.but(stream="numpy"))
    assert isinstance(found.task.extrapolation, UniformUnion) and found.task.extrapolation.coin == 1
    assert found.task.but(targets="float32", extrapolation=run.task.extrapolation) == run.task
    assert found.model.layers[0].options == {"power": "pow"} and found.model.draws == 2
    assert replayed(found) == found and replayed(run, "common").recipe.stream == "common"
    assert (
        nau_nmu.arms()["NMU"].model.layers[0]
        == replayed(nau_nmu.subset_runs(["NMU"], ["mul"], 1)[0]).model.layers[0]
    )  # the NAU


def test_what_cannot_be_replayed_is_refused(capsys):
    recipe = Recipe(iterations=1, optimiser=Adam(lr=1e-2), stream="common")
    with pytest.raises(
        ValueError, match="Only stacks of units on two operands are replayed, not Stack on LargeScaleTask"
    ):
        replayed(Run(task=LargeScaleTask(operation="add"), model=Stack.of("NAU", 1), recipe=recipe, seed=0))
    assert (
        main(["division/no-redundncy"]) == 2
        and "did you mean 'division/no-redundancy'?" in capsys.readouterr().err
    )
    with pytest.raises(ValueError, match="Unknown model 'NMUU'"):
        replays("nau-nmu/ten-parameter", models=("NMUU",))


def test_each_run_is_replayed_once():
    runs = replays("division/no-redundancy", seeds=2)
    assert len({run.key for run in runs}) == len(runs) == 9 * 7 * 2 + 2  # one arm is the second draw itself
    assert {run.labels["of"] for run in runs} == {"division/no-redundancy"}


def test_the_logs_that_end_early():
    logs = comparison.short_logs(40)
    assert [(run.labels["operation"], run.seed, run.recipe.iterations) for run in logs][:3] == [
        ("add", 7, 5000),
        ("add", 49, 32000),
        ("mul", 0, 32000),
    ]
    assert {run.labels["model"] for run in logs} == {"NALU"} and len(logs) == 9
