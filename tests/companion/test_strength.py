"""Judges that can fail: rows are corrupted, and verdicts fall as recorded."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from companion.experiment.statements import Claim, Comparison, Item, rate
from companion.measures import Interval
from companion.resampling import drawn_again
from companion.scoreboard import ITEMS, load
from companion.scoreboard.strength import (
    CORRUPTIONS,
    KEPT,
    SEEN,
    corrupted,
    falls,
    main,
    measured,
    recorded,
    rows_of,
    strength,
)

JUDGED = recorded()
ROWS = pd.DataFrame({"model": "NMU", "seed": range(4), "iterations": 10, "stream": "own", "success": True})
ROWS = ROWS.assign(solved_at=1.0, sparsity_error=1.0)


def item_of(place):
    return next(one for one in ITEMS if (one.paper, one.name) == place)


@pytest.mark.parametrize("place", JUDGED, ids=" ".join)
def test_corrupted_rows_lose_the_verdict_and_rows_drawn_again_keep_it(place):
    item, measured = item_of(place), JUDGED[place]
    rows = rows_of(item).reset_index(drop=True)
    fall = falls(item, rows)
    for name in measured.sees[:1]:  # `make strength` asks all
        # One draw, where all were recorded to lose it; else most of five.
        needed, lost, kept = 1 if measured.lost[name] == 1 else 3, 0, 0
        while max(lost, kept) < needed:
            if fall(corrupted(rows, name, lost + kept + 100)):
                lost += 1
            else:
                kept += 1
        assert lost == needed, name
    # One of three draws by seed at least: six of ten were recorded to, of most items nine.
    samples = islice(drawn_again(rows, item.by, item.shared, seed=100), 3)
    assert not all(map(fall, samples))  # asks no further than the first that does


def test_corruptions_that_are_seen_are_seen_in_nine_of_ten_cases_and_true_rows_keep_nine_of_ten_verdicts():
    """As `make strength` measured it."""
    seen = [share for one in JUDGED.values() for share in one.lost.values() if share >= SEEN]
    assert len(seen) > 30 and np.mean(seen) >= 0.9
    assert np.mean([one.kept for one in JUDGED.values()]) >= 0.9


@pytest.mark.parametrize("place", JUDGED, ids=" ".join)
def test_true_rows_keep_the_verdict(place):
    assert JUDGED[place].kept >= KEPT


def test_the_scoreboard_says_which_verdicts_are_not_kept():
    said = load().set_index(["paper", "item"])["strength"]
    for place, one in JUDGED.items():
        assert (f"; {one.kept:.0%} of samples" in said[place]) == (one.kept < KEPT), place


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
    assert strength(strict, rows, samples=5).sees == ["20% of successes lost", "40% of successes lost"]
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


def test_an_item_is_measured_with_as_many_samples_as_before(tmp_path, monkeypatch):
    file, asked = tmp_path / "strength.csv", []

    def measured(item, samples):
        asked.append(samples)
        return {"paper": item.paper, "item": item.name, "samples": max(samples, 60)}

    monkeypatch.setattr("companion.scoreboard.strength.measured", measured)
    main(["division Figure 8"], file)
    main(["division Figure 8", "division Figure 11"], file)
    assert asked == [20, 60, 20]


@pytest.mark.parametrize(("samples", "draws"), [(20, 5), (3, 1)])
def test_what_chance_corrupts_is_drawn_for_a_quarter_of_the_samples(monkeypatch, samples, draws):
    """Every other corruption once, and each sample of seeds."""
    asked = []
    monkeypatch.setattr(
        "companion.scoreboard.strength.falls", lambda *_: lambda rows: asked.append(1) or False
    )
    item = Item("npu", "Figure 1", "", "experiment", seeds=4, iterations=10, runs=4, by=("model",))
    assert strength(item, ROWS, samples).kept == 1.0 and len(asked) == 2 * draws + 3 + samples


def test_only_what_is_judged_is_measured(monkeypatch):
    monkeypatch.setattr("companion.scoreboard.strength.rows_of", lambda item: ROWS)
    common = {"seeds": 4, "iterations": 10, "runs": 4, "by": ("model",)}
    item = Item("npu", "Figure 1", "", "experiment", lambda r: [Claim("any", True)], **common)
    line = measured(item, samples=1)
    assert line == {"paper": "npu", "item": "Figure 1", "samples": 1, "kept": 1.0} | dict.fromkeys(
        CORRUPTIONS, 0.0
    )
    assert measured(replace(item, runs=8)) is None


def test_an_unknown_item_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Unknown item 'division Figure 33': did you mean 'division Figure"):
        main(["division Figure 33"], tmp_path / "strength.csv")


def test_no_configuration_gets_more_runs_than_it_has():
    rows = pd.DataFrame({"model": list("aabb"), "seed": range(4)})
    for sample in islice(drawn_again(rows, ["model"]), 20):
        assert sample["model"].value_counts().to_dict() == {"a": 2, "b": 2}


def test_what_a_corruption_does_to_rows():
    """Failed runs stay failed, and a lost one has no time."""
    rows = pd.DataFrame({"success": [True] * 1000 + [False] * 10}).assign(sparsity_error=1e-3)
    rows = rows.assign(solved_at=np.where(rows["success"], 5.0, np.nan), test_mse=2.0, valid_mse=3.0)
    for name, share in {"20% of successes lost": 0.8, "40% of successes lost": 0.6}.items():
        lost = corrupted(rows, name)
        assert (
            lost["success"].sum() == pytest.approx(1000 * share, abs=50) and not lost["success"][1000:].any()
        )
        assert lost["solved_at"].notna().equals(lost["success"])
    assert (corrupted(rows, "solved at × 2")["solved_at"].dropna() == 10.0).all()
    assert (corrupted(rows, "sparsity error × 10")["sparsity_error"] == 1e-2).all()
    assert (corrupted(rows, "errors × 10")[["test_mse", "valid_mse"]] == [20.0, 30.0]).all(axis=None)


@pytest.mark.parametrize(
    ("number", "verdict"),
    [
        (Comparison("a", rate(0.2, 50), rate(0.9, 50)), "differs"),
        (Comparison("a", Interval(0.9, np.nan, np.nan, 1), rate(0.2, 50)), "reproduced"),
    ],
)
def test_rows_that_are_not_changed_keep_any_verdict(number, verdict):
    """Also one that cannot be worse, and one with a number that is undecided."""
    rows = pd.DataFrame({"model": "NMU", "seed": range(50), "iterations": 10, "stream": "own"})
    stated = [number, Claim("one", True), Claim("two", True)]
    item = Item("npu", "Figure 1", "", "experiment", lambda r: stated, seeds=50, iterations=10, runs=50)
    assert item.judge(rows).verdict == verdict and not falls(item, rows)(rows)


def test_what_is_not_comparable_is_not_measured():
    assert measured(item_of(("division", "Table 7"))) is None
