"""On how many ranges a model is better, and what the same experiment with other seeds would count."""

import numpy as np
import pandas as pd
import pytest
from companion import measures
from companion.division.compared import _of_one_kind, alike, counted, faster, ranges_where, stated, success

from nalm.tasks import UNIFORM_RANGES

RANGES = list(UNIFORM_RANGES)


def _rows(solved, ranges=1):
    """Runs of each model, whose seeds below a number are solved on all ranges."""
    return pd.DataFrame(
        [
            {"model": model, "range": place, "seed": seed, "success": seed < count}
            for model, count in solved.items()
            for place in RANGES[:ranges]
            for seed in range(25)
        ]
    )


def test_a_count_of_ranges_comes_with_what_other_seeds_would_give():
    solved = {("a", 0): 25, ("b", 0): 5, ("a", 1): 13, ("b", 1): 12, ("a", 2): 0, ("b", 2): 25}
    rows = [
        {"model": m, "range": RANGES[r], "seed": seed, "success": seed < count}
        for (m, r), count in solved.items()
        for seed in range(25)
    ]
    found = ranges_where(pd.DataFrame(rows), "a", "b", np.greater, 3, "")
    assert (found.ours.estimate, found.ours.low, found.ours.high) == (2, 1, 2)
    assert found.probability == 0 and not found.agrees


def test_seeds_that_two_models_share_are_drawn_for_both():
    """One model solves with the seeds of the other and with eight more, on every range: so would it in nearly
    every such experiment. With four more, but others, it would not.
    """

    def better(shift):
        rows = [
            {"model": m, "range": place, "seed": seed, "success": (seed + moved) % 25 < count}
            for m, moved, count in (("a", 0, 18), ("b", shift, 10))
            for place in RANGES[:6]
            for seed in range(25)
        ]
        return ranges_where(pd.DataFrame(rows), "a", "b", np.greater, 6, "").ours

    assert better(0).low > better(12).low


def test_another_experiment_has_other_seeds_as_well():
    """A number of solved runs has twice the variance of a binomial one: it is not known of ours either."""
    found = ranges_where(_rows({"a": 12, "b": 0}), "a", "b", lambda one, other: one, 12, "").ours
    deviation = np.sqrt(2 * 25 * 0.48 * 0.52)
    assert found.estimate == 12
    assert (found.low, found.high) == pytest.approx((12 - 1.96 * deviation, 12 + 1.96 * deviation), abs=1)


def test_that_no_seed_fails_does_not_say_that_none_ever_does():
    found = ranges_where(_rows({"a": 25, "b": 25}, ranges=6), "a", "b", np.less, 0, "").ours
    assert found.estimate == found.low == 0 < found.high


def test_a_rate_of_several_ranges_knows_that_they_share_seeds():
    one, six = (success(_rows({"a": 10}, ranges), "a") for ranges in (1, 6))
    assert (six.estimate, six.n) == (0.4, 150)
    assert (six.low, six.high) == pytest.approx((one.low, one.high))
    assert one == measures.success_rate([True] * 10 + [False] * 15)


@pytest.mark.parametrize(("solved", "later", "agrees"), [(25, 200, True), (25, 0, False), (0, 200, False)])
def test_a_model_that_is_solved_nowhere_is_not_faster(solved, later, agrees):
    rows = _rows({"a": solved, "b": 25}, ranges=3)
    times = 1000 + rows["seed"] + np.where(rows["model"] == "b", later, 100)
    rows = rows.assign(solved_at=times.where(rows["success"]))
    found = faster(rows, "a", "b", RANGES[:3], "ranges")
    assert found.agrees == agrees and found.ours.n == 3 * bool(solved)


def test_a_count_is_tested_on_both_sides():
    found = counted("", 0, 9, np.repeat([0.0, 1.0], [98, 2]), 1)
    assert found.probability == pytest.approx(0.04)


def test_models_are_alike_at_one_level_for_all_ranges():
    """Eight seeds of one range have the probability 2 / 256, which among ten tests is no wonder."""
    rows = _rows({"a": 16, "b": 16}, ranges=9)
    lost = (rows["model"] == "b") & (rows["range"] == RANGES[0]) & (rows["seed"] < 8)
    assert alike(rows.assign(success=rows["success"] & ~lost), "a", "b", "").agrees


def test_faster_is_said_of_the_mean():
    rows = _rows({"a": 25, "b": 25})
    late = (rows["model"] == "a") & (rows["seed"] < 5)
    rows = rows.assign(solved_at=np.where(rows["model"] == "a", 1000.0, 2000.0)).assign()
    rows["solved_at"] = rows["solved_at"].mask(late, 90_000.0)
    assert faster(rows, "a", "b", RANGES[:1], "ranges").ours.estimate == 0


@pytest.mark.parametrize(
    ("made_up", "agrees"),
    [
        ((), False),
        (range(9), True),  # each seed of one range by another
    ],
)
def test_models_are_alike_over_all_ranges_together(made_up, agrees):
    """Two seeds of each range differ, 18 in all, which no range alone shows."""
    rows = _rows({"a": 25, "b": 25}, ranges=9)
    place, few = rows["range"].map(RANGES.index), rows["seed"] < 18
    lost = (rows["model"] == "b") & few & (rows["seed"] % 9 == place)
    lost |= (rows["model"] == "a") & few & (rows["seed"] % 9 == (place + 1) % 9) & place.isin(made_up)
    assert alike(rows.assign(success=rows["success"] & ~lost), "a", "b", "").agrees == agrees


def test_two_ranges_that_make_up_for_each_other_tell_models_apart():
    rows = _rows({"a": 25, "b": 25}, ranges=9)
    lost = (rows["seed"] < 12) & (rows["range"] == rows["model"].map({"a": RANGES[0], "b": RANGES[1]}))
    assert not alike(rows.assign(success=rows["success"] & ~lost), "a", "b", "").agrees


def test_of_few_differences_all_signs_are_asked():
    assert _of_one_kind(pd.Series([1.0] * 11 + [0.0] * 14)) == 2 / 2**11
    assert _of_one_kind(pd.Series([1.0, -1.0])) == _of_one_kind(pd.Series([0.0])) == 1


def test_a_published_rate_is_of_25_seeds_whichever_number_ours_have():
    theirs = []
    for seeds in (25, 50):
        rows = pd.concat([_rows({"NMRU": 12}, ranges=9)] * (seeds // 25), ignore_index=True)
        rows["seed"] += rows.index // 225 * 25
        found = {one.what: one for one in stated(rows, "Fig 6")}
        theirs.append(found["NMRU on all ranges"].published)
    assert theirs[0] == theirs[1] and theirs[0].n == 225
