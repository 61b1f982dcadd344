"""Figure 8: its points, the rows that belong to it, and what can be compared of a drawing."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from companion import measures, published, scoreboard
from companion.experiment import judged
from companion.experiment.rows import Rows
from companion.experiment.statements import Statements
from companion.nau_nmu import subset_arithmetic
from companion.nau_nmu.mistakes import smallest_mistake
from companion.nau_nmu.near_exact import FACTORS
from companion.nau_nmu.settings import REPLAY
from companion.nau_nmu.subset_shapes import (
    EXPERIMENT,
    MODELS,
    OF_PANEL,
    PANELS,
    SHAPES,
    panel,
    recorded_at,
    shape_runs,
    shaped,
    solved_over,
)
from companion.recorded import read

from nalm.tasks import SubsetArithmeticTask
from nalm.units import NMU, NACMul

(FIGURE_8,) = EXPERIMENT.items
THEIRS = published.load("nau_nmu_runs").query("operation == 'mul'").set_index(["model", "seed"])
"""The authors' runs of the default task, without those of the gated unit, none of which is solved."""
MEASURES = ["success", "solved_at", "sparsity_error"]


def recorded(seeds=10, **changes):
    """A row for each point, model and seed: as the authors have it with the default task."""
    lines = [
        {
            "model": model,
            "operation": "mul",
            "range": "U[1,2)",
            "stream": "common",
            "seed": seed,
            "iterations": shape.iterations,
        }
        | dict(zip(MEASURES, _theirs(model, seed), strict=True))
        | {x: float(getattr(shape, x)) for x in PANELS}
        for shape in dict.fromkeys(SHAPES)
        for model in MODELS
        for seed in range(seeds)
    ]
    rows = pd.DataFrame(lines)
    same = (rows["overlap"] == 1) & rows["success"]
    return rows.assign(sparsity_error=rows["sparsity_error"].mask(same, 0.02)).assign(**changes)


@cache
def _theirs(model, seed):
    return tuple(THEIRS.loc[(model, seed), MEASURES]) if model in THEIRS.index else (False, np.nan, 0.5)


def test_all_that_can_be_compared():
    found = FIGURE_8.judge(recorded())
    assert (found.verdict, found.count) == ("reproduced so far", "18 of 19")  # three NAC• have no median
    assert FIGURE_8.judge(recorded(50)).verdict == "reproduced"


def test_the_authors_own_runs_are_drawn_above_the_ticks_that_are_left():
    """2,000,000 iterations are the last tick over overlap ratios, 0.0015 over subset ratios."""
    won = THEIRS[THEIRS["success"]].query("seed < 50").loc["NAC•"]
    assert measures.solved_at(won["solved_at"]).estimate > 3_000_000
    assert measures.sparsity_error(won["sparsity_error"], scale="published").high > 0.002


@pytest.mark.parametrize(
    ("changes", "compared", "differing"),
    [
        ({"success": False}, 7, 5),  # four models, and no run to draw
        ({"solved_at": 3_500_000.0}, 19, 7),  # of four models, but one mean of few runs
        ({"sparsity_error": 0.01}, 19, 4),
        ({"sparsity_error": 1e-7}, 19, 5),  # four models, and the tick
    ],
)
def test_other_rows_do_not_agree(changes, compared, differing):
    found = FIGURE_8.compared_with(FIGURE_8.select(recorded(50, **changes)))
    assert len(found) == compared and sum(not one.agrees for one in found) == differing


def test_one_solved_run_is_enough_to_reach_a_tick():
    rows = recorded()
    rows["success"] = (rows["overlap"] == 1) & (rows["model"] == "NMU") & (rows["seed"] == 3)
    for error, agrees in {0.0094: False, 0.02: True}.items():
        rows["sparsity_error"] = error
        *_, tick = FIGURE_8.compared_with(FIGURE_8.select(rows))
        assert "reach 0.01" in tick.what and tick.agrees == agrees


def test_replays_are_not_compared_with_themselves():
    """No run of the figure is from other initial weights, so none has agreed with them."""
    rows = read(REPLAY)
    found = judged(FIGURE_8, rows, read)
    assert found.replay and found.replays_alone and "replayed" not in found.said
    assert "it agrees" not in Statements([found]).frame
    line = scoreboard.load().query("paper == 'nau-nmu' and item == 'Figure 8'").iloc[0]
    assert (line["agreeing"], line["replay_agreeing"]) == ("", found.count)
    table_6 = subset_arithmetic.EXPERIMENT.item("Table 6")
    assert not judged(table_6, read("nau-nmu/arithmetic"), read).replays_alone


def test_a_missing_point_leaves_it_open():
    rows = recorded()
    rows = rows[rows["overlap"] != 0.1]
    assert FIGURE_8.judge(rows).verdict == "open"
    said = [one.what for one in FIGURE_8.judge_so_far(rows).statements]
    assert len(said) == 18 and not any("overlap" in one for one in said)


def test_shorter_runs_and_those_of_other_figures_are_none_of_it():
    rows = recorded(2)
    short = rows.assign(iterations=4)
    others = rows.assign(factor=0.1), rows.assign(range="U[0,1)"), rows.assign(hidden=3.0), short
    assert len(FIGURE_8.select(pd.concat([rows, *others]))) == len(rows) == 22 * 6 * 2
    large = rows.assign(iterations=rows["iterations"].clip(upper=5_000_000))
    assert len(FIGURE_8.select(large)) == 14 * 6 * 2


def test_rows_without_a_shape_are_of_the_default_task():
    rows = FIGURE_8.select(read(REPLAY))
    default = rows[(rows[list(PANELS)] == ["100", "0.5", "0.25"]).all(axis=1) & (rows["model"] == "NMU")]
    assert sorted(default["seed"])[:50] == list(range(50))


def test_all_points_together_have_the_rows_of_the_figure():
    found = [recorded_at(run) for run in shape_runs(["NMU"], SHAPES, seeds=1)]
    assert len(found) == 22 and set(found[0]["inputs"]) == {"4"} and set(found[0]["model"]) == set(MODELS)
    assert sorted(pd.concat(found)["key"]) == sorted(FIGURE_8.select(read(REPLAY))["key"])


def test_a_panel_is_in_the_order_of_its_axis():
    part = panel(Rows(shaped(recorded(1)).sample(frac=1, random_state=0)), "inputs").frame
    assert list(part["model"][:6]) == list(MODELS)
    assert list(part["inputs"].unique()) == [f"{shape.inputs}" for shape in OF_PANEL["inputs"]]
    assert set(part["overlap"]) == {"0.5"} and set(part["subset"]) == {"0.25"}


def test_when_the_runs_of_a_panel_are_solved():
    rows = recorded(2)
    rows["solved_at"] = 100_000.0 * rows["subset"] * (1 + rows["seed"])
    rows = Rows(shaped(rows))
    assert solved_over(rows, "subset") == {
        "subset-solved": "8 of 8",
        "subset-order": "each",
        "subset-first": "0.05",
        "subset-first-at": "7,500",
        "subset-last": "0.5",
        "subset-last-at": "75,000",
    }
    rows.frame.loc[rows.frame["subset"] == "0.1", "solved_at"] = 1.0
    assert solved_over(rows, "subset")["subset-order"] == "not each"
    assert solved_over(rows, "subset", but=["0.1"])["subset-order"] == "each"
    assert set(solved_over(rows.of(model="NALU"), "inputs").values()) == {"not run"}


@pytest.mark.parametrize("shape", SHAPES[:10] + SHAPES[14:19] + SHAPES[20:])
def test_a_swapped_pair(shape):
    """Eq. (m - 1) / 36, on any range times its width to the power of four."""
    task = SubsetArithmeticTask(
        operation="mul", inputs=shape.inputs, subset_ratio=shape.subset, overlap_ratio=float(shape.overlap)
    )
    subset, shared = task.sizes()
    mistake, square = smallest_mistake(task, examples=5_000)
    assert mistake == pytest.approx((subset - shared - 1) / 36, rel=0.1, abs=1e-12)
    a, b = task.operands(1) @ np.full(shape.inputs, 1.5)
    assert a * b < square**0.5 < 1.1 * a * b


@pytest.mark.parametrize(
    ("model", "unit"), [("NMU", NMU(2, 1)), ("NAC•,NMU", NACMul(2, 1, weight="linear", eps=0.0))]
)
def test_factors_are_those_of_the_units(model, unit):
    sums = torch.rand(50, 2) + 1
    torch.testing.assert_close(FACTORS[model](sums, unit.weight[0]).prod(-1), unit(sums)[:, 0])
