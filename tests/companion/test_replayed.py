"""Replays beside the authors' own runs: the right pairs, and nothing where there is none."""

import numpy as np
import pandas as pd
import pytest
from companion import published
from companion.division import settings as division
from companion.experiment.rows import Rows
from companion.missing import QUEUE
from companion.nau_nmu import hidden_sizes, ranges, seed_by_seed, subset_arithmetic
from companion.nau_nmu import replayed as comparison
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.subset_arithmetic import TABLE_2
from companion.recorded import read
from companion.replay import LABELS, in_place, main, replayed, replays

from nalm.models import Stack
from nalm.records.store import COLUMNS, Store
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


@pytest.mark.parametrize("label", [{"range": "U[0,1)"}, {"factor": "0"}, {"hidden": "3"}, {"subset": "0.5"}])
def test_replays_of_figures_are_no_lines_of_tables(label, monkeypatch):
    """Their models bear the same names."""
    known = read("nau-nmu/replay")
    line = known[(known["model"] == "NMU") & (known["range"] == "U[1,2)") & (known["seed"] < 50)]
    others = line.assign(success=False, solved_at=np.nan, key=line["key"] + "x", **label)
    mixed = pd.concat([others, known, others], ignore_index=True)

    def with_others(name):
        return mixed if name == "nau-nmu/replay" else read(name)

    assert comparison.beside_published(mixed).equals(comparison.beside_published(known))
    assert repr(seed_by_seed.lines(TABLE_2, with_others)) == repr(seed_by_seed.lines(TABLE_2, read))
    full = comparison.full("NMU", "mul", "replay")
    monkeypatch.setattr(comparison, "read", with_others)
    assert comparison.full("NMU", "mul", "replay").equals(full) and len(full) == 50


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


def test_one_line_per_model_operation_and_seed(tmp_path):
    """A replay on the authors' batches that is solved counts more than a longer one on a common stream."""
    rows = [
        row("SubsetArithmeticTask", "NAU", "sub", 3, iterations=8000),
        row("SubsetArithmeticTask", "NAU", "sub", 3, stream="common", iterations=5_000_000, solved_at=7000.0),
        row("SubsetArithmeticTask", "NAU", "sub", 4, success=False, solved_at=np.nan),
        row("SubsetArithmeticTask", "NAU", "sub", 4, stream="common", iterations=5_000_000),
    ]
    base = dict.fromkeys(COLUMNS) | {"experiment": "nau-nmu/replay", "batch": "one", "seconds": 1.0}
    rows = [base | {"key": str(number)} | one for number, one in enumerate(rows)]
    Store(tmp_path, "nau-nmu/replay").add(rows, {}, "one", {"runs": 4, "device": "a processor"})
    found = comparison.recorded(tmp_path)
    assert found[["seed", "stream", "iterations"]].values.tolist() == [
        [3, "numpy", 8000],
        [4, "common", 5_000_000],
    ]


def test_rows_get_the_outcome_of_their_replays():
    """Of arms that share a replay both get it; a single run without one, and no rows are returned."""
    own = read("division/small-numbers").query("model in ['NRU', 'NRU, pow'] and question == 'a/b from a, b'")
    found = in_place(own, read)
    assert found[["key", "model", "range", "seed"]].equals(own[["key", "model", "range", "seed"]])
    shared = ["range", "seed", "threshold"]
    pair = found[found["model"] == "NRU"].merge(found[found["model"] == "NRU, pow"], on=shared)
    assert len(pair) == 125 and (pair["success_x"] == pair["success_y"]).all()
    assert set(found["stream"]) == {"numpy"} and set(own["stream"]) == {"own"}
    again = read("division/replay")
    lost = again[again["replays"] != own.query("model == 'NRU, pow'")["key"].iloc[0]]
    assert in_place(own, lambda name: lost if name == "division/replay" else read(name)).empty
    assert in_place(own, lambda name: pd.DataFrame()).empty


def test_a_row_keeps_its_labels_when_it_gets_the_outcome_of_its_replay():
    """The replay of two figures has the labels of one; what a run is called is no outcome."""
    own = read("nau-nmu/penalty").query("operation == 'mul'")
    found = in_place(own, read)
    labels = ["key", "model", "operation", "factor", "seed"]
    assert len(found) == 300 and found[labels].equals(own[labels])
    named = {label for job in QUEUE if job.results == nau_nmu.REPLAY for label in job.runs()[0].labels}
    assert named <= set(LABELS) and named - {"model", "operation", "range"} == set(nau_nmu.VARIED)


def test_a_hidden_size_is_shown_if_all_its_seeds_are_replayed():
    """46 of 50 NMUs with three units are solved in print; some of another figure do not count."""
    first = read("nau-nmu/hidden").query("model == 'NMU'")
    again = first[first["hidden"] == 3].assign(success=lambda rows: rows["seed"] < 46)
    others = again.assign(success=False, factor=0.1)

    def shown(rows):
        every = pd.concat([others, rows], ignore_index=True)
        return hidden_sizes.replayed_sizes(
            Rows(hidden_sizes.with_sizes(first)), hidden_sizes.replays(lambda name: every)
        )

    table, numbers = shown(again)
    assert table.frame[["hidden size", "solved, published", "solved, replay"]].values.tolist() == [
        ["3", "46", "46 of 50"]
    ]
    assert (numbers["sizes"], numbers["equal-replay"], numbers["off-replay"]) == ("3", "1 of 1", "0")
    assert shown(again.assign(success=True))[1]["off-replay"] == "4"
    assert set(shown(again.iloc[1:])[1].values()) == {"not run"}


def test_times_are_drawn_a_panel_for_each_line_and_arm():
    pairs = pd.DataFrame({"published_solved_at": [1e4, 2e4, np.nan], "solved_at": [1e4, 3e4, 2e4]})
    both = {("sums", "replay"): pairs, ("sums", "first weights"): pairs.iloc[:1]}
    panels = comparison.times(both).axes
    assert [panel.get_title() for panel in panels] == ["replay", "first weights"]
    for panel, known in zip(panels, (2, 1), strict=True):
        (drawn,) = [line.get_xydata() for line in panel.lines if line.get_gid()]
        assert drawn.tolist() == pairs.iloc[:known].to_numpy().tolist()
        assert panel.get_xlim() == panel.get_ylim()
    assert comparison.times({("sums", "replay"): pairs.iloc[2:]}) is None


def test_lines_that_are_replayed_in_full_stand_beside_both_draws():
    item, first = subset_arithmetic.EXPERIMENT.item("Table 2"), read("nau-nmu/arithmetic")
    table, numbers = comparison.either_draw(item, first, read)
    shown = table.frame
    assert numbers["lines_replay"] == f"{shown['it agrees'].sum()} of {len(shown)}"
    rates = shown[shown["statement"].str.endswith("success rate")].set_index("statement")
    again = nau_nmu.usual(read("nau-nmu/replay")).query("operation == 'mul' and model == 'NMU'")
    again = again[again["iterations"] == comparison.FULL]
    assert rates["replay"]["NMU on a × b, success rate"].startswith(f"{again['success'].mean():.3g} [")
    assert len(rates) >= 5 and not shown["statement"].str.contains("NALU|Linear|NAC•").any()
    lost = again["key"].iloc[0]  # a line with a single run that is not replayed is not shown

    def without_one(name):
        rows = read(name)
        return rows[rows["key"] != lost] if name == "nau-nmu/replay" else rows

    left = comparison.either_draw(item, first, without_one)[0].frame["statement"]
    assert set(shown["statement"]) - set(left) == {one for one in shown["statement"] if "NMU" in one}
    assert comparison.either_draw(item, pd.DataFrame(), read)[1] == dict.fromkeys(numbers, "not run")


@pytest.mark.parametrize(("page", "name"), [(hidden_sizes, "hidden"), (ranges, "range")])
def test_what_a_figure_of_replays_draws_is_each_run_once(page, name):
    rows = page.replays(read).frame
    assert not rows.duplicated([name, "model", "seed"]).any()
    assert {"NMU"} < set(rows["model"]) and set(rows["iterations"]) == {5_000_000}
    assert rows[rows["model"] == "NMU"].groupby(name).size().eq(50).all()


def test_no_seeds_are_none_and_not_all():
    assert replays("nau-nmu/ten-parameter", models=("NALU",), seeds=0) == []
