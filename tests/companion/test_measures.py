"""The statistics against closed forms, SciPy's own densities, simulated coverage and the papers' printed
intervals.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from companion import measures
from companion.measures import Interval
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats


@pytest.mark.parametrize(
    "solved, low, high", [(0, 0.0, 0.133), (4, 0.064, 0.347), (16, 0.445, 0.798), (25, 0.867, 1.0)]
)
def test_success_rate_gives_the_intervals_of_the_division_paper(solved, low, high):
    interval = measures.success_rate([True] * solved + [False] * (25 - solved))
    assert (interval.estimate, interval.n) == (solved / 25, 25)
    assert interval.low == pytest.approx(low, abs=6e-4) and interval.high == pytest.approx(high, abs=6e-4)


def test_success_rate_at_the_ends_is_exact_and_a_missing_value_is_a_failure():
    assert measures.success_rate([0] * 100).low == 0.0
    assert measures.success_rate([0] * 100).high == pytest.approx(0.037, abs=5e-4)
    assert measures.success_rate([True, float("nan")]).estimate == 0.5
    empty = measures.success_rate([])
    assert empty.n == 0 and math.isnan(empty.estimate)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=60, deadline=None)
def test_success_rate_is_the_score_interval(counts):
    solved, n = counts
    interval = measures.success_rate([True] * solved + [False] * (n - solved))
    reference = stats.binomtest(solved, n).proportion_ci(0.95, method="wilson")
    assert interval.low == pytest.approx(reference.low, abs=1e-9)
    assert interval.high == pytest.approx(reference.high, abs=1e-9)


@pytest.mark.parametrize(
    ("low", "high", "overlaps"),
    [(3.0, 9.0, False), (2.0, 9.0, True), (-9.0, 0.0, True), (-9.0, -1.0, False), (1.0, float("nan"), False)],
)
def test_intervals_overlap_where_they_share_a_point(low, high, overlaps):
    one, other = Interval(1.0, 0.0, 2.0, 5), Interval(0.0, low, high, 5)
    assert one.overlaps(other) == other.overlaps(one) == overlaps


def _ratio_statistic(logpdf, data, mean, best, bounds):
    """Twice the log-likelihood lost at `mean`, maximised over the nuisance parameter with SciPy's own
    density.
    """

    def profile(value):
        return max(
            -optimize.minimize_scalar(
                lambda z: -logpdf(data, value, np.exp(z)).sum(), bounds=part, method="bounded"
            ).fun
            for part in itertools.pairwise(bounds)
        )

    return 2 * (profile(best) - profile(mean))


def _gamma(x, mean, variance):
    return stats.gamma.logpdf(x, mean**2 / variance, scale=variance / mean)


def _beta(x, mean, v):
    return stats.beta.logpdf(2 * x, 2 * mean * v, (1 - 2 * mean) * v)


@pytest.mark.parametrize("shape, n", [(0.7, 12), (4.0, 25), (900.0, 8)])
def test_solved_at_is_a_profile_likelihood_interval_in_mean_and_variance(shape, n):
    values = np.random.default_rng(3).gamma(shape, 30_000 / shape, n)
    interval = measures.solved_at(values)
    assert interval.estimate == pytest.approx(values.mean()) and interval.n == n
    for end in (interval.low, interval.high):
        lost = _ratio_statistic(_gamma, values, end, interval.estimate, np.log([1e2, 1e6, 1e9, 1e13]))
        assert lost == pytest.approx(stats.chi2.ppf(0.95, 1), rel=1e-3)


@pytest.mark.parametrize("a, b, n", [(1.0, 1e7, 25), (2.0, 30.0, 10), (3.0, 4.0, 25)])
def test_sparsity_error_is_a_profile_likelihood_interval_on_the_true_scale(a, b, n):
    values = np.random.default_rng(4).beta(a, b, n) / 2
    interval = measures.sparsity_error(values)
    assert interval.estimate == pytest.approx(values.mean(), rel=0.02)
    for end in (interval.low, interval.high):
        lost = _ratio_statistic(_beta, values, end, interval.estimate, np.log([1e-2, 1e2, 1e6, 1e10]))
        assert lost == pytest.approx(stats.chi2.ppf(0.95, 1), rel=1e-3)


def test_intervals_cover_the_true_mean_as_often_as_they_say():
    generator = np.random.default_rng(5)
    gamma = [3e4 in measures.solved_at(generator.gamma(4.0, 3e4 / 4, 25)) for _ in range(300)]
    beta = [0.05 in measures.sparsity_error(generator.beta(2.0, 18.0, 25) / 2) for _ in range(300)]
    assert 0.91 <= np.mean(gamma) <= 0.98
    assert 0.91 <= np.mean(beta) <= 0.98


@pytest.mark.parametrize("scale", [1e-8, 1e-5, 1e-3])
def test_published_sparsity_errors_are_halved(scale):
    values = np.random.default_rng(6).gamma(1.0, scale, 25)
    values = np.maximum(values, 1e-9 if scale == 1e-8 else 0)
    true, halved = measures.sparsity_error(values), measures.sparsity_error(values, scale="published")
    assert true.estimate == pytest.approx(values.mean(), rel=1e-3)
    for one, other in ((halved.estimate, true.estimate), (halved.low, true.low), (halved.high, true.high)):
        assert 0.495 <= one / other <= 0.502


def test_without_spread_the_interval_is_students_and_stays_in_bounds():
    assert measures.solved_at([1000.0] * 5) == Interval(1000.0, 1000.0, 1000.0, 5)
    one = measures.solved_at([7000.0, float("nan")])
    assert (one.estimate, one.n) == (7000.0, 1) and math.isnan(one.low) and math.isnan(one.high)
    started_solved = measures.solved_at([0.0, 1000.0, 50_000.0])
    assert started_solved.low == 0.0 and started_solved.high > 50_000
    assert np.isfinite(measures.solved_at([0.0, 1000.0, 2000.0, 3000.0]).high)
    tiny = measures.sparsity_error([0.0, 0.0, 1e-12])
    assert tiny.low == 0.0 and 0 < tiny.high < 1e-11
    assert measures.sparsity_error([0.7, 0.7]) == Interval(0.5, 0.5, 0.5, 2)
    assert measures.solved_at([]).n == 0 and math.isnan(measures.sparsity_error([]).estimate)


def test_extreme_sparsity_errors_have_finite_intervals():
    mixed = measures.sparsity_error([0.0] * 12 + [1e-6] * 13)
    assert mixed.estimate == pytest.approx(5.2e-7, rel=1e-3) and 0 < mixed.low < mixed.high < 1e-4
    piled = measures.sparsity_error([0.499] * 11 + [1e-6] * 14)
    assert 0 < piled.low < piled.estimate < piled.high < 0.5
    over = measures.sparsity_error([0.9, 0.5, 0.45, 0.3])
    assert over.high <= 0.5


@pytest.mark.parametrize(("few", "above"), [(np.full(5, 3.5e6), True), (np.full(1, 1e3), False)])
def test_with_the_variance_held_solved_at_is_the_maximum_of_the_gamma_likelihood_in_its_mean(few, above):
    values = np.append(np.linspace(15_000, 21_000, 95), few)
    variance = values.var(ddof=1)
    means = np.geomspace(values.mean() / 4, values.mean() * 4, 4001)
    heights = np.array([_gamma(values, mean, variance).sum() for mean in means])
    inside = means[heights > heights.max() - stats.chi2.ppf(0.95, 1) / 2]
    held = measures.solved_at(values, variance="sample")
    assert held.estimate == pytest.approx(means[heights.argmax()], rel=1e-3)
    assert (held.low, held.high) == pytest.approx((inside[0], inside[-1]), rel=1e-3)
    assert (held.estimate > values.mean()) == above
    assert measures.solved_at(values).estimate == pytest.approx(values.mean())


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_solved_at_holds_its_mean_and_scales_with_it(values):
    interval = measures.solved_at(values)
    assert interval.low <= interval.estimate <= interval.high
    if interval.high > interval.low and np.std(values) > 1e-3:
        tenfold = measures.solved_at([10 * value for value in values])
        assert tenfold.low == pytest.approx(10 * interval.low, rel=1e-4)


def test_median_interval_is_between_order_statistics():
    assert measures.solved_at_median(range(1, 26)) == Interval(13.0, 8.0, 18.0, 25)
    assert measures.median([np.nan, *range(1, 24), np.inf, np.inf]) == Interval(13.0, 8.0, 18.0, 25)
    assert measures.solved_at_median([]).n == 0


def test_spreads():
    assert measures.mean_and_standard_error([1.0, 2.0, 3.0]).spread == pytest.approx(1 / math.sqrt(3))
    assert math.isnan(measures.mean_and_standard_error([4.0]).spread)
    assert measures.median_and_mad([1.0, 2.0, float("inf")]).estimate == 2.0
    assert measures.median_and_mad([1.0, float("inf"), float("inf")]).spread == 0.0
    assert measures.median_and_mad([]).n == measures.mean_and_standard_error([float("nan")]).n == 0
    assert measures.mean([1.0, 2.0, 3.0]).high == pytest.approx(2 + 4.302653 / math.sqrt(3))


def test_the_median_of_the_best_has_the_distribution_of_an_order_statistic():
    values, best, of = (
        np.arange(30.0),
        3,
        20,
    )  # the median of the three smallest of twenty is the second smallest
    found = measures.median_of_best([*values[:-1], np.nan], best, of)
    below = stats.binom.sf(1, of, (values + 1) / values.size)  # at least two of twenty are as small
    for quantile, value in ((0.025, found.low), (0.5, found.estimate), (0.975, found.high)):
        assert abs(value - np.searchsorted(below, quantile)) <= 1
    assert measures.median_of_best([1.0, np.nan], 1, 1).high == np.inf
    assert measures.median_of_best(values, 10, 40).estimate < measures.median_of_best(values, 10, 20).estimate


@pytest.fixture
def rows():
    return pd.DataFrame(
        {
            "model": ["NRU"] * 3 + ["NMRU"] * 2,
            "range": ["U[1,2)"] * 5,
            "success": [True, True, False, False, False],
            "solved_at": [1000.0, 3000.0, 9000.0, np.nan, np.nan],
            "sparsity_error": [1e-4, 3e-4, 0.4, 0.5, 0.5],
        }
    )


def test_summarise_counts_solved_runs_only(rows):
    table = measures.summarise(rows, by=["model", "range"])
    assert list(table["model"]) == ["NRU", "NMRU"]
    nru, nmru = table.iloc[0], table.iloc[1]
    assert (nru["n"], nru["solved"], nru["success"]) == (3, 2, pytest.approx(2 / 3))
    assert nru["solved_at_mean"] == nru["solved_at_median"] == 2000.0
    assert nru["sparsity_error"] == pytest.approx(2e-4, rel=1e-3)
    assert nmru["solved"] == 0 and nmru["success_high"] < 1 and math.isnan(nmru["solved_at_mean"])
    assert measures.summarise(rows, by=[])["n"].tolist() == [5]
    assert measures.summarise(rows, by="model")["n"].tolist() == [3, 2]


def test_runs_without_a_label_are_a_group(rows):
    unlabelled = rows.assign(model=["NRU", "NRU", None, "NMRU", "NMRU"])
    assert measures.summarise(unlabelled, by=["model"])["n"].tolist() == [2, 1, 2]


def test_bad_input_is_one_sentence(rows):
    with pytest.raises(ValueError, match="no column 'modle': did you mean 'model'"):
        measures.summarise(rows, by=["modle"])
    with pytest.raises(ValueError, match='must be "likeliest" or "sample"'):
        measures.solved_at([1.0, 2.0], variance="known")
    with pytest.raises(ValueError, match="no column 'solved_at'"):
        measures.summarise(rows.drop(columns="solved_at"), by=["model"])
    with pytest.raises(ValueError, match="no rows"):
        measures.summarise(rows.iloc[:0], by=["model"])
    with pytest.raises(ValueError, match='must be "true" or "published"'):
        measures.sparsity_error([0.1], scale="half")
    with pytest.raises(TypeError, match="must hold numbers"):
        measures.solved_at(["soon"])
    with pytest.raises(ValueError, match="negative"):
        measures.solved_at([-1.0, 2.0])
    with pytest.raises(ValueError, match="negative"):
        measures.sparsity_error([-1.0, 2.0])
    with pytest.raises(ValueError, match="between 1 and of = 3, not 4"):
        measures.median_of_best([0.1], best=4, of=3)
    with pytest.raises(ValueError, match="no values to draw from"):
        measures.median_of_best([], best=1, of=3)
    with pytest.raises(ValueError, match="one value per run"):
        measures.success_rate([[True]])


def test_runs_that_share_a_seed_are_not_independent():
    """Ten seeds on nine ranges: where all ranges of a seed agree, ninety runs are as good as ten."""
    seeds = np.repeat(np.arange(10), 9)
    alike = np.isin(seeds, [0, 1, 2, 3])
    assert measures.independent_runs(alike, seeds) == 10
    pooled, ten = measures.success_rate(alike, seeds=seeds), measures.success_rate([True] * 4 + [False] * 6)
    assert (pooled.low, pooled.high, pooled.n) == (pytest.approx(ten.low), pytest.approx(ten.high), 90)
    assert measures.independent_runs([True] * 90, seeds) == 10


def test_independent_runs_by_hand():
    """Four fours: the variance of the rate 1/2 is 4/3 of 2/256 between them, 1/4 over the number of runs.
    Printed tables have 2.1314 and 3.1824 for the quantiles of Student's distribution with 15 and 3 degrees.
    """
    outcomes = [1, 1, 1, 0] + [1, 1, 0, 0] * 2 + [1, 0, 0, 0]
    found = measures.independent_runs(outcomes, seeds=np.repeat(range(4), 4))
    assert found == pytest.approx(24 * (2.1314 / 3.1824) ** 2, rel=1e-4)
    # 24 (0.6912 / 0.7649)^2 would be more than there are runs
    assert measures.independent_runs(outcomes, np.repeat(range(4), 4), confidence=0.5) == 16


def test_a_summary_knows_which_runs_share_a_seed():
    shared = pd.DataFrame(
        {
            "seed": [0, 0, 1, 1],
            "success": [True, True, False, False],
            "solved_at": [10.0, 20.0, np.nan, np.nan],
            "sparsity_error": [0.1, 0.2, 0.5, 0.5],
        }
    )
    (line,) = measures.summarise(shared, by=[]).to_dict("records")
    two = measures.success_rate([True, False])
    assert (line["n"], line["success_low"], line["success_high"]) == (4, two.low, two.high)


def test_unrelated_outcomes_count_nearly_in_full():
    generator = np.random.default_rng(0)
    seeds = np.repeat(np.arange(25), 9)
    found = [measures.independent_runs(generator.random(225) < 0.7, seeds) for _ in range(200)]
    assert 180 < np.mean(found) <= 225


@pytest.mark.parametrize("count", [5, 10, 25])
def test_intervals_of_runs_that_share_seeds_cover(count):
    """Seeds differ in how often they succeed: the interval holds the mean of all seeds in 95% of cases, that
    of independent runs does not.
    """
    generator, seeds = np.random.default_rng(1), np.repeat(np.arange(count), 9)
    chances = generator.beta(1, 1, size=(1000, count))
    inside = {True: 0, False: 0}
    for rates in chances:
        won = generator.random(9 * count) < np.repeat(rates, 9)
        for shared in inside:
            inside[shared] += 0.5 in measures.success_rate(won, seeds=seeds if shared else None)
    assert inside[True] >= 0.936 * 1000 and inside[False] < 0.85 * 1000


def test_runs_of_one_seed_count_as_one():
    assert measures.independent_runs([True, False, True, True], seeds=[7] * 4) == 1.0


def test_runs_of_a_seed_that_differ_as_those_of_all_are_independent():
    assert measures.independent_runs([True, False, True, False], seeds=[0, 0, 1, 1]) == 4
    assert measures.independent_runs([True] * 4, seeds=[0, 0, 1, 1]) == 2


def test_a_point_without_a_number_is_on_no_front():
    nan = float("nan")
    assert measures.nondominated([1, nan, 3], [5.0, 1.0, nan]).tolist() == [True, False, False]
