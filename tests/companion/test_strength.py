"""Judges that can fail: rows are corrupted, and verdicts fall as recorded."""

import pandas as pd
import pytest
from companion.recorded import read
from companion.scoreboard import ITEMS
from companion.scoreboard.strength import CORRUPTIONS, SEEN, corrupted, recorded, strength
from companion.statements import Claim, Item

JUDGED = recorded()
SEES = [(place, one.sees[0]) for place, one in JUDGED.items() if one.sees]  # `make strength` asks all


def rows_of(item):
    return pd.concat([read(name) for name in item.experiment], ignore_index=True)


@pytest.fixture(scope="module")
def rows():
    return {}


@pytest.mark.parametrize(("place", "name"), SEES, ids=[f"{' '.join(place)}: {name}" for place, name in SEES])
def test_corrupted_rows_lose_the_verdict(rows, place, name):
    """Of three draws two at least, where four of five were recorded to."""
    item = next(one for one in ITEMS if (one.paper, one.name) == place)
    if place not in rows:
        rows.clear()  # those of one item at a time
        rows[place] = item.select(rows_of(item)).reset_index(drop=True)
    before = {one.what for one in item.compared_with(rows[place]) if one.agrees}
    falls = []
    for seed in range(3):
        after = {
            one.what
            for one in item.compared_with(item.rows(corrupted(rows[place], name, seed)))
            if one.agrees
        }
        falls.append(bool(before - after))
        if sum(falls) == 2:
            break
    assert sum(falls) >= 2


def test_every_judged_experiment_was_measured():
    judged = {(one.paper, one.name) for one in ITEMS if one.kind == "experiment" and one.comparable}
    assert set(JUDGED) <= judged
    assert len(JUDGED) > 25


def test_a_judge_of_rates_sees_lost_runs_and_a_judge_of_nothing_is_weak():
    rows = pd.DataFrame(
        [
            {
                "model": "NMU",
                "seed": seed,
                "iterations": 10,
                "stream": "own",
                "success": True,
                "solved_at": 5.0,
                "sparsity_error": 1e-6,
                "test_mse": 1e-9,
                "valid_mse": 1e-9,
            }
            for seed in range(50)
        ]
    )
    common = {"seeds": 50, "iterations": 10, "runs": 50, "by": ("model",)}
    strict = Item(
        "npu", "Figure 1", "", "experiment", lambda r: [Claim("most", r["success"].mean() > 0.9)], **common
    )
    blind = Item(
        "npu",
        "Figure 1",
        "",
        "experiment",
        lambda r: [Claim("some", len(r) > 0), Claim("never", False)],  # what differs before is not lost
        **common,
    )
    assert strength(strict, rows, samples=5).sees == ["20 % of successes lost", "40 % of successes lost"]
    assert strength(blind, rows, samples=5).sees == [] and strength(blind, rows, samples=5).kept == 1.0
    slow = Item(
        "npu", "Figure 1", "", "experiment", lambda r: [Claim("soon", r["solved_at"].mean() < 9)], **common
    )
    assert strength(slow, rows, samples=5).lost == dict.fromkeys(CORRUPTIONS, 0.0) | {"solved at × 2": 1.0}
    assert 0.5 < SEEN < 1


def test_seeds_are_drawn_with_all_their_rows_and_count_as_others():
    rows = pd.DataFrame(
        [
            {"model": model, "seed": seed, "of": seed, "iterations": 10, "stream": "own", "success": True}
            | dict.fromkeys(("solved_at", "sparsity_error"), 1.0)
            for model in ("NMU", "NAU")
            for seed in range(20)
        ]
    )
    seen = []
    item = Item(
        "npu",
        "Figure 1",
        "",
        "experiment",
        lambda r: seen.append(r) or [Claim("any", True)],
        seeds=20,
        iterations=10,
        runs=40,
        by=("model",),
    )
    strength(item, rows, samples=3)
    for sample in seen[-3:]:  # the last that are asked for
        pairs = sample.groupby("seed")["of"].agg(["size", "nunique"])
        assert (pairs["size"] == 2).all() and (pairs["nunique"] == 1).all() and len(pairs) == 20
        assert sample["of"].nunique() < 20
