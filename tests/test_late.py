"""Late runs that are planted have to be found from two published numbers alone, or, with one, no more of them than there are."""

import numpy as np
import pytest

from nalm import measures
from nalm.scoreboard.late import fewest_late_runs, late_runs

SOON = np.random.default_rng(0).integers(15, 22, 200) * 1000.0


def _line(runs, count, at):
    """Mean and fit of runs of which some are late, the others being others than those that are known to be soon."""
    values = np.append(np.random.default_rng(1).integers(15, 22, runs - count) * 1000.0, np.full(count, at))
    return values.mean(), measures.solved_at(values, variance="sample").estimate


@pytest.mark.parametrize(("runs", "count", "at"), [(100, 1, 4.9e6), (100, 5, 3.5e6), (50, 2, 8e5), (20, 3, 2e6)])
def test_planted_runs_are_found(runs, count, at):
    found = late_runs(SOON, runs, *_line(runs, count, at))
    assert found.count == count
    assert found.at == pytest.approx(at, rel=0.02)


@pytest.mark.parametrize(("runs", "count", "at"), [(100, 1, 4.9e6), (100, 5, 3.5e6), (50, 2, 8e5)])
def test_the_fewest_are_no_more_than_the_planted_ones_and_make_the_same_fit(runs, count, at):
    fit = _line(runs, count, at)[1]
    found = fewest_late_runs(SOON, runs, fit, 5_000_000)
    assert found.count <= count and found.at >= 0.98 * at
    assert found.printed.estimate == pytest.approx(fit, rel=1e-4)


def test_one_run_is_not_enough_for_what_three_make():
    fit = _line(50, 3, 4.5e6)[1]
    assert fewest_late_runs(SOON, 50, fit, 5_000_000).count > 1
    assert fewest_late_runs(SOON, 50, fit, 100_000) is None


def test_runs_that_are_as_soon_have_no_late_ones_among_them():
    assert late_runs(SOON, 100, SOON.mean() - 1, SOON.mean()) is None
    assert fewest_late_runs(SOON, 100, SOON.mean() / 2, 5_000_000) is None


@pytest.mark.parametrize(("soon", "runs"), [([], 10), ([1000.0], 1)])
def test_bad_input_is_one_sentence(soon, runs):
    with pytest.raises(ValueError, match="soon runs"):
        late_runs(soon, runs, 5000.0, 6000.0)
    with pytest.raises(ValueError, match="soon runs"):
        fewest_late_runs(soon, runs, 6000.0, 10_000)
