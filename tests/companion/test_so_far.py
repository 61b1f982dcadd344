"""What can be compared of an item before all its runs are there; the scoreboard counts none of it."""

from dataclasses import replace

import pandas as pd
import pytest
from companion.experiment import Experiment, judged, replays_of
from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Item, Statements


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


SHORT = replace(EXPERIMENT.items[0], epochs=5, from_iterations=4, from_seeds=2, seeds=3, runs=6)
"""Judged from 4 of 10 iterations on, which are 2 of 5 epochs, of 2 of 3 seeds each."""


def _rows(models, iterations=10, success=True, seeds=2):
    lines = [
        {"model": model, "seed": seed, "iterations": iterations, "stream": "own", "success": success}
        for model in models
        for seed in range(seeds)
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


@pytest.mark.parametrize(
    ("rows", "verdict", "covered"),
    [
        (_rows(["NMU", "NAU"], 4, True), "reproduced so far", "2 of 5 epochs and 2 of 3 seeds"),
        (_rows(["NMU", "NAU"], 4, False), "differs", "2 of 5 epochs and 2 of 3 seeds"),
        (_rows(["NMU", "NAU"], 4, True, 3), "reproduced so far", "2 of 5 epochs"),
        (_rows(["NMU", "NAU"], 4, False, 1), "open", "2 of 5 epochs and 1 of 3 seeds"),
        (_rows(["NMU", "NAU"], 10, True, 2), "reproduced so far", "2 of 3 seeds"),
        (_rows(["NMU", "NAU"], 10, True, 3), "reproduced", ""),
    ],
)
def test_a_shorter_length_is_judged_as_such(rows, verdict, covered):
    found = SHORT.judge(rows.frame)
    assert (found.verdict, found.coverage) == (verdict, covered)
    assert found.said.endswith(f" statements agree{f', at {covered}' if covered else ''}")


@pytest.mark.parametrize("rows", [_rows(["NMU", "NAU"], 3), _rows(["NMU"], 4)])
def test_too_short_a_length_is_not_judged(rows):
    found = SHORT.judge(rows.frame)
    assert (found.verdict, found.statements) == ("open", ())


@pytest.mark.parametrize(
    ("models", "seeds", "few", "verdict"),
    [
        (["NMU", "NAU"], 3, 3, "reproduced"),
        (["NMU", "NAU"], 1, 3, "differs"),
        (["NMU", "NAU"], 1, 2, "differs"),
        (["NMU"], 3, 3, "differs"),
    ],
)
def test_the_longest_complete_runs_are_judged(models, seeds, few, verdict):
    """Rows of another length stand beside them, and do not count for them."""
    short, whole = _rows(["NMU", "NAU"], 4, False, few), _rows(models, 10, True, seeds)
    assert SHORT.judge(pd.concat([short.frame, whole.frame])).verdict == verdict


def test_as_many_seeds_are_covered_as_every_configuration_has():
    rows = pd.concat([_rows(["NMU"], seeds=3).frame, _rows(["NAU"], seeds=2).frame])
    found = SHORT.judge(rows)
    assert (found.verdict, found.seeds, found.covered_seeds) == ("reproduced so far", 2, "2 to 3 of 3")


REPLAYED = replace(SHORT, replays="again", from_iterations=0, from_seeds=2)


@pytest.mark.parametrize(
    ("first", "again", "verdict", "seeds", "said"),
    [
        (_rows(["NMU"], 10, True, 3), _rows(["NMU", "NAU"]), "reproduced so far", "2 of 3", "not run"),
        (_rows(["NMU"], 10, True, 3), _rows(["NMU", "NAU"], success=False), "differs", "2 of 3", "not run"),
        (_rows(["NMU"], 10, True, 3), _rows(["NMU"]), "open", "0 of 3", "not run"),
        (_rows(["NMU"], 10, True, 3), _rows(["NMU", "NAU"], 4), "open", "0 of 3", "not run"),
        (
            _rows(["NMU", "NAU"], 10, True, 3),
            _rows(["NMU", "NAU"], success=False),
            "reproduced",
            "3 of 3",
            "",
        ),
        (_rows(["NMU", "NAU"], 10, True, 1), _rows(["NMU", "NAU"]), "reproduced so far", "2 of 3", "2 of 2"),
        (Rows(pd.DataFrame()), _rows(["NMU", "NAU"]), "reproduced so far", "2 of 3", "not run"),
    ],
)
def test_replays_judge_what_has_more_seeds_of_them(first, again, verdict, seeds, said):
    """Of each configuration; what lacks one is not judged by either."""
    found = judged(REPLAYED, first.frame, lambda name: again.frame)
    assert (found.decides.verdict, found.decides.covered_seeds) == (verdict, seeds)
    assert said in found.said
    assert replays_of(REPLAYED, first.frame, lambda name: again.frame).empty == (found.replay is None)


@pytest.mark.parametrize(("other", "alone"), [("replay", True), ("hidden", False)])
def test_replays_stand_alone_if_nothing_else_was_trained(monkeypatch, other, alone):
    monkeypatch.setattr("companion.experiment.definition.in_place", lambda rows, read: rows[:0])
    rows = _rows(["NMU", "NAU"], seeds=1).frame.assign(experiment=["nau-nmu/replay", f"nau-nmu/{other}"])
    found = judged(REPLAYED, rows, lambda name: _rows(["NMU", "NAU"]).frame)
    assert found.replays_alone == alone and ("replayed" in found.said) != alone


def test_both_arms_are_shown(monkeypatch):
    """What only replays state stands beside nothing."""
    again = pd.concat([_rows(["NMU"]).frame, _rows(["NAU"], success=False).frame])
    monkeypatch.setattr("companion.experiment.definition.read", lambda name: again)
    found = replace(EXPERIMENT, items=(REPLAYED,)).so_far(_rows(["NMU"], 10, True, 3), "Figure 1")
    assert found.frame[["statement", "agrees", "it agrees"]].values.tolist() == [
        ["NMU is solved", "yes", "yes"],
        ["NAU is solved", "", "no"],
    ]
    assert found.caption == (
        "Figure 1: not run at full length; of what can be compared so far, 1 of 1 agree, "
        "replayed 1 of 2, at 2 of 3 seeds"
    )
    alone = Statements(found.judgements, shown=lambda one: not one.agrees)
    assert alone.frame.columns.tolist() == ["", "statement", "it agrees"]
