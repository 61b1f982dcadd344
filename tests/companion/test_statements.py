"""What statements are made of: intervals of published numbers, sizes of explanations, seeds drawn again."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from companion.experiment import statements
from companion.experiment.statements import Claim, Explanation, Item, Statements, rounded, student
from companion.measures import Interval

ROWS = pd.DataFrame(
    [
        {"model": "NMU", "hidden": hidden, "seed": seed, "iterations": 10, "stream": "own", "success": True}
        for hidden in (2, 3)
        for seed in range(4)
    ]
)
ITEM = Item(
    "npu",
    "Figure 1",
    "",
    "experiment",
    lambda rows: [Claim("never", False)],
    seeds=4,
    iterations=10,
    runs=8,
    by=("model", "hidden"),
)


def test_a_mean_of_two_runs_has_students_interval():
    found = student(0.0, 1.0, 2)
    assert found.high == pytest.approx(12.706, abs=1e-3) and found.low == -found.high


def test_a_size_moves_each_end_by_its_own():
    moved = statements._moved(Interval(10.0, 9.0, 12.0, 5), Interval(1.0, 0.5, 3.0, 5))
    assert moved.estimate == 11.0 and moved.n == 5
    assert moved.low == pytest.approx(11 - math.hypot(1.0, 0.5))
    assert moved.high == pytest.approx(11 + math.hypot(2.0, 2.0))


def test_seeds_that_are_shared_are_drawn_together(monkeypatch):
    asked = []

    def drawn(rows, by, shared):
        asked.append((by, shared))
        return iter(())

    monkeypatch.setattr(statements, "drawn_again", drawn)
    replace(ITEM, shared=("hidden", "seed")).decided(ROWS)
    assert asked == [(("model", "hidden"), ("hidden", "seed"))]


def test_half_of_the_statements_are_not_most():
    half = [Claim("yes", True), Claim("perhaps", False, undecided=True)]
    assert ITEM._judged(half, None, 4, 10).verdict == "open"
    assert ITEM._judged([*half, Claim("too", True)], None, 4, 10).verdict == "reproduced"


def _judged(*agree, **fields):
    item = replace(
        ITEM, statements=lambda rows: [Claim(str(n), one) for n, one in enumerate(agree)], **fields
    )
    return item.judge(ROWS)


def test_a_power_of_ten_is_rounded_as_its_digits_say():
    assert rounded(1e6, digits=2).high == pytest.approx(1.05e6)


def test_of_what_differs_only_that_is_explained_which_is():
    found = _judged(False, False, True, explanations=(Explanation(("1",), "why"),))
    assert list(Statements([found]).frame["agrees"]) == ["no", "no, explained", "yes"]


def test_seven_statements_are_folded_and_six_are_not():
    folded = ["<details" in Statements([_judged(*[True] * count)])._repr_html_() for count in (6, 7)]
    assert folded == [False, True]


def test_what_a_replay_does_not_show_stands_among_what_does_not_agree():
    found = _judged(*[True] * 7)
    found = replace(found, replay=_judged(False, *[True] * 6))
    assert "The 6 that agree" in Statements([found])._repr_html_()
    assert len(Statements([found], shown=lambda one: not one.agrees).frame) == 1


def test_no_more_seeds_are_covered_than_there_are_and_what_is_covered_is_said_once():
    found = replace(_judged(True, seeds=5, runs=10), most_seeds=100)
    assert found.covered_seeds == "4 to 5 of 5"
    assert replace(found, replay=found).said.count("4 to 5 of 5 seeds") == 1


@pytest.mark.parametrize(
    ("lines", "verdict", "said"),
    [
        (["replayed"] * 2, "replayed", "2 of 2 lines replayed"),
        (["replayed", "not run"], "reproduced", "1 of 2 lines replayed, 1 not run"),
        (["not replayed", "replayed", "not replayed"], "reproduced", "1 of 3 lines replayed, 2 not"),
        ([], "reproduced", ""),
    ],
)
def test_an_item_is_replayed_if_all_its_lines_are(lines, verdict, said):
    item = replace(ITEM, statements=lambda rows: [Claim("yes", True)])
    item = replace(item, lines=lambda read: [SimpleNamespace(verdict=one) for one in lines])
    found = item.judge(ROWS, lambda name: ROWS)
    assert (found.verdict, found.seed_by_seed) == (verdict, said)


def test_a_reason_is_said_if_some_of_what_it_explains_does_not_agree():
    reasons = (Explanation(("0", "1"), "why"),)
    said = [_judged(one, True, explanations=reasons).explanation for one in (False, True)]
    assert said == ["why", ""]
