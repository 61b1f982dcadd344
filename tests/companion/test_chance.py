"""Statements asked of samples of seeds are those that the scoreboard judges."""

import numpy as np
import pandas as pd
import pytest
from companion.division import chance
from companion.division.chance import STATEMENTS, Sample, further_runs, replayed, shares
from companion.experiment.rows import NOT_RUN
from companion.recorded import read
from companion.scoreboard.items import ITEMS

from nalm.records import PUBLISHED, Store, recorded_runs

DIVISION = {item.name: item for item in ITEMS if item.paper == "division"}


def judged_rows(item):
    """The rows by which the scoreboard judges an item of the paper."""
    return item.select(pd.concat(map(read, item.experiment), ignore_index=True))


def rows_of(statement):
    """The recorded rows that a statement is about."""
    wanted = {run.key for run in further_runs(seeds=25, first=0, statements=[statement])}
    rows = pd.concat(
        [Store(PUBLISHED, experiment).read() for experiment in statement.runs], ignore_index=True
    )
    return rows[rows["key"].isin(wanted)].drop_duplicates("key")


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.what)
def test_the_scoreboard_judges_the_same(statement):
    """On our seeds, where the answer is no, and on samples of them, where it is sometimes yes."""
    item = DIVISION[statement.item]
    rows, judged = rows_of(statement), judged_rows(item)
    assert rows.groupby(["model", "range"]).size().eq(25).all()
    drawn = np.vstack([np.arange(25), np.random.default_rng(1).integers(25, size=(5, 25))])
    claims = []
    for seeds in drawn:
        places = pd.DataFrame({"seed": seeds, "place": range(25)})
        again = judged.merge(places, on="seed").drop(columns="seed").rename(columns={"place": "seed"})
        claims.append(next(one.agrees for one in item.compared_with(again) if one.what == statement.what))
    assert statement.holds(Sample(rows, drawn)).tolist() == claims
    assert not claims[0]


def test_shares():
    """Of a unit that fails on one range only, on every second run, this is the hardest but in one of 2^size
    samples.
    """
    rows = pd.DataFrame(
        [
            {
                "model": "NMRU",
                "range": place,
                "seed": seed,
                "success": place != "U[-20,-10)" or seed % 2 == 0,
                "solved_at": 1000.0,
            }
            for place in chance.UNIFORM
            for seed in range(40)
        ]
    )
    hardest = [one for one in STATEMENTS if one.item == "Figure 23"]
    found = shares(rows, size=3, samples=20_000, statements=hardest)
    # where all are solved, no range is the hardest
    assert found["holds"].all() and found["share"].item() == pytest.approx(1 - 0.5**3, abs=0.02)
    moved = rows.replace({"range": {"U[-20,-10)": "U[10,20)", "U[10,20)": "U[-20,-10)"}})
    found = shares(moved, size=3, samples=20_000, statements=hardest)
    assert not found["holds"].any() and found["share"].item() == 0


def test_a_missing_seed_is_refused():
    rows = rows_of(STATEMENTS[3])
    with pytest.raises(ValueError, match="lacks some of the seeds"):
        Sample(rows.iloc[1:])


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"experiment": "division/nothing"}, "There are no rows of 'division/nothing'"),
        (
            {"experiment": "division/losses", "seed": 99},
            "There are no rows of 'division/losses' with seed 99",
        ),
        ({"experiment": "division/losses", "labels": ("modle",)}, "have no column 'modle'"),
    ],
)
def test_recorded_runs_that_are_not_there(asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        recorded_runs(**asked)


def test_recorded_runs_are_those_of_the_rows():
    rows = Store(PUBLISHED, "division/losses").read()
    assert [run.key for run in recorded_runs("division/losses")] == rows["key"].tolist()


def test_replays_of_all_its_runs_decide():
    """Of our 25 seeds, as of any others; where a run has no replay, nothing is said."""
    hardest = next(one for one in STATEMENTS if one.item == "Figure 23")
    again = read("division/replay")

    def without(rows):
        return lambda experiment: rows if experiment == "division/replay" else read(experiment)

    assert replayed(hardest, read) == "yes"
    nmru = rows_of(hardest)
    assert replayed(hardest, without(again[again["replays"] != nmru["key"].iloc[0]])) == NOT_RUN
    own = nmru.assign(replays=nmru["key"], key="again-" + nmru["key"])  # each its own replay
    assert replayed(hardest, without(own)) == "no"
