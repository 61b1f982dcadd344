"""The verdict *replayed* is lost by shuffled seeds and by runs from another draw of the weights."""

import numpy as np
import pandas as pd
import pytest
from companion import published
from companion.experiment.statements import Claim, Item
from companion.nau_nmu import seed_by_seed
from companion.nau_nmu.seed_by_seed import kappa, line, lines
from companion.nau_nmu.subset_arithmetic import TABLE_2
from companion.recorded import read
from companion.scoreboard import ITEMS


def solved_at(operation, model):
    """When the authors' runs of seeds 0 to 49 are solved, NaN if not."""
    runs = published.load("nau_nmu_runs").query("operation == @operation and model == @model")
    return runs["solved_at"].where(runs["success"].astype(bool)).to_numpy(float)


def shuffled(values, seed=0):
    return np.random.default_rng(seed).permutation(values)


@pytest.mark.parametrize(
    "where", [("sub", "NAU"), ("add", "NAU"), ("add", "NALU"), ("mul", "NAC•"), ("mul", "NMU")]
)
def test_the_same_runs_are_replayed_and_corrupted_ones_are_not(where):
    """Three runs of fifty are off; then seeds are shuffled, then the first draw stands in their place."""
    theirs = solved_at(*where)
    ours, first = theirs.copy(), shuffled(theirs, 1)
    ours[:3] = np.where(np.isnan(ours[:3]), np.nan, ours[:3] + 5000)
    assert line(*where, theirs, ours, first).verdict == "replayed"
    corrupted = [line(*where, theirs, shuffled(ours, seed), first).verdict for seed in range(20)]
    assert corrupted == ["not replayed"] * 20
    assert line(*where, theirs, first, first).verdict == "not replayed"


def test_outcomes_count_where_both_occur_and_times_elsewhere():
    theirs = solved_at("add", "NALU")  # six of fifty are solved
    late = line("add", "NALU", theirs, theirs + 100_000, shuffled(theirs))
    assert (late.kappa, late.outcomes, late.near, late.verdict) == (1.0, 50, 44, "replayed")
    lost = np.where(np.cumsum(~np.isnan(theirs)) > 4, np.nan, theirs)  # two of six
    assert line("add", "NALU", theirs, lost, shuffled(theirs)).kappa < 0.8
    always = solved_at("sub", "NAU")
    assert np.isnan(line("sub", "NAU", always, always, shuffled(always)).kappa)
    assert line("sub", "NAU", always, always + 2000, shuffled(always)).verdict == "not replayed"


def test_kappa():
    yes = np.array([True] * 20 + [False] * 5 + [True] * 10 + [False] * 15)
    other = np.array([True] * 25 + [False] * 25)
    assert kappa(yes, other) == pytest.approx(0.4)  # a textbook's table of 20, 5, 10 and 15
    assert np.isnan(kappa(np.ones(3, bool), np.ones(3, bool)))


def test_the_lines_of_table_2():
    """What is not trained is *not run*; rows that arrive are taken up."""
    found = {(one.operation, one.model): one for one in lines(TABLE_2, read)}
    assert ("mul", "NALU") not in found and len(found) == 10  # of which none is solved
    known = found["sub", "NAU"]
    assert (known.runs, known.verdict, known.outcomes) == (50, "replayed", 50) and known.near >= 45
    times = solved_at("add", "NAU")
    arrived = pd.DataFrame({"seed": range(50), "success": True, "solved_at": times}).assign(
        task="SubsetArithmeticTask",
        range="U[1,2)",
        operation="add",
        model="NAU",
        stream="common",
        iterations=5_000_000,
    )

    def with_them(rows):
        return lambda name: rows if name == "nau-nmu/replay" else read(name)

    def verdict(rows):
        return {(one.operation, one.model): one.verdict for one in lines(TABLE_2, with_them(rows))}[
            "add", "NAU"
        ]

    assert verdict(arrived) == "replayed" and verdict(arrived.iloc[1:]) == "not run"
    first = read("nau-nmu/arithmetic").query("operation == 'add' and model == 'NAU' and seed < 50")
    assert verdict(first) == "not replayed"


def test_an_item_is_replayed_if_all_its_lines_are():
    rows = pd.DataFrame([{"model": "NAU", "seed": s, "iterations": 10, "stream": "own"} for s in range(2)])
    own = {"seeds": 2, "iterations": 10, "runs": 2, "by": ("model",)}
    whole, part = seed_by_seed.Line("add", "NAU", 50, 50, 1.0, 50, 0.0, 0.0), seed_by_seed.Line("mul", "NMU")

    def judged(*found, agrees=True):
        states = lambda rows: [Claim("one", agrees)]  # noqa: E731
        return Item("nau-nmu", "Table 2", "", "experiment", states, lines=lambda read: found, **own).judge(
            rows, read
        )

    assert judged(whole).verdict == "replayed" and judged(whole, part).verdict == "reproduced"
    assert judged(whole, agrees=False).verdict == "differs"
    assert judged(whole, part).seed_by_seed == "1 of 2 lines replayed, 1 not run"
    table_2 = next(one for one in ITEMS if (one.paper, one.name) == ("nau-nmu", "Table 2"))
    assert table_2.lines is not None


def test_runs_that_are_further_away_than_the_first_draw_are_not_replayed():
    theirs = np.arange(50) * 1e4
    found = line("sub", "NAU", theirs, ours=theirs + 1000, first=theirs)
    assert found.near == 50 and found.first > 0.5 and found.verdict == "not replayed"


def test_a_run_that_ended_before_it_was_solved_says_nothing():
    """Only seeds that are solved, or trained to the end, are known."""
    rows = pd.DataFrame(
        {"seed": range(3), "success": [True, False, False], "solved_at": [5000.0, np.nan, np.nan]}
    )
    rows = rows.assign(
        task="SubsetArithmeticTask", range="U[1,2)", operation="add", model="NAU", stream="common"
    )
    (known,) = seed_by_seed._known(rows.assign(iterations=[8000, 8000, 5_000_000])).values()
    assert known.index.tolist() == [0, 2] and known.isna().tolist() == [False, True]
