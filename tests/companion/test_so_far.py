"""What can be compared of an item before all its runs are there; the scoreboard counts none of it."""

import pandas as pd
import pytest
from companion.experiment import Experiment
from companion.rows import Rows
from companion.statements import Claim, Item


def _of_models(rows):
    for name, part in rows.groupby("model"):
        yield Claim(f"{name} is solved", bool(part["success"].all()))


EXPERIMENT = Experiment(
    chapter="book/none.ipynb",
    runs=lambda p: {},
    items=(
        Item(
            "nau-nmu", "Figure 1", "", "experiment", _of_models, seeds=2, iterations=10, runs=4, by=("model",)
        ),
    ),
)


def _rows(models, iterations=10, success=True):
    lines = [
        {"model": model, "seed": seed, "iterations": iterations, "stream": "own", "success": success}
        for model in models
        for seed in range(2)
    ]
    return Rows(pd.DataFrame(lines))


def test_an_open_item_says_what_can_be_compared_already():
    rows = _rows(["NMU"])
    assert EXPERIMENT.statements(rows, "Figure 1").caption == "Figure 1: not run at full length"
    found = EXPERIMENT.so_far(rows, "Figure 1")
    assert found.caption == "Figure 1: not run at full length; of what can be compared so far, 1 of 1 agree"
    assert found.judgements[0].verdict == "open"


def test_an_item_that_is_run_in_full_says_all():
    rows = _rows(["NMU", "NAU"])
    found = EXPERIMENT.so_far(rows, "Figure 1", part=lambda one: False)
    assert found.caption == EXPERIMENT.statements(rows, "Figure 1").caption
    assert found.count == "2 of 2"


@pytest.mark.parametrize(("rows", "part"), [(_rows(["NMU"], iterations=5), True), (_rows(["NMU"]), False)])
def test_short_runs_and_other_parts_are_not_compared(rows, part):
    assert EXPERIMENT.so_far(rows, "Figure 1", part=lambda one: part).count == "not run"


def test_what_is_not_shown_is_counted():
    found = EXPERIMENT.so_far(_rows(["NMU", "NAU"]), "Figure 1", shown=lambda one: "NMU" in one.what)
    assert (len(found.frame), found.count) == (1, "2 of 2")
