"""Training draws (torch) and evaluation draws (NumPy) of a range follow the same distribution."""

from functools import partial

import numpy as np
import pytest
import torch
from companion.division import settings as division
from scipy import stats

from nalm.tasks import Benford, Halves, TruncatedNormal, Uniform
from nalm.training.streams import uniforms

RANGES = {
    str(r): r
    for pair in [*division.DISTRIBUTIONS.values(), *division.MIXED_SIGNS.values()]
    for r in pair
    if hasattr(r, "transform")
}


def drawn(range_, inputs=3, numbers=20_000):
    return (
        range_.transform(
            uniforms(torch.tensor([1]), torch.tensor(5), inputs, numbers)[0], range_.numbers(inputs)
        )
        .double()
        .numpy()
    )


@pytest.mark.parametrize("range_", RANGES.values(), ids=RANGES)
def test_training_and_evaluation_draw_alike(range_):
    trained, evaluated = drawn(range_), range_.sample(np.random.RandomState(3), (20_000, 3)).T
    for ours, theirs in zip(trained, evaluated, strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-4
        assert stats.levene(ours, theirs).pvalue > 1e-4


def test_truncated_normal_follows_its_distribution_and_stays_inside():
    range_ = TruncatedNormal(mean=1.0, deviation=3.0, low=-10.0, high=5.0)
    x = drawn(range_).ravel()
    assert -10 <= x.min() and x.max() <= 5
    expected = stats.truncnorm((-10 - 1) / 3, (5 - 1) / 3, loc=1, scale=3)
    assert stats.kstest(x, expected.cdf).pvalue > 1e-4
    ends = range_.transform(torch.tensor([2.0**-24, 1 - 2.0**-24]), range_.numbers(1))
    assert ends.tolist() == pytest.approx([-10, 5], abs=1e-2)


@pytest.mark.parametrize(
    "range_", [r for r in RANGES.values() if isinstance(r, TruncatedNormal) and r.low < 0 < r.high], ids=str
)
def test_no_truncated_normal_number_is_zero(range_):
    law = stats.truncnorm(*range_._bounds(), loc=range_.mean, scale=range_.deviation)
    nearest = round(law.cdf(0) * 2**23)
    # all that the stream has near it
    u = (
        (torch.arange(nearest - 1000, nearest + 1000, dtype=torch.float64) + 0.5)
        .mul(2.0**-23)
        .to(torch.float32)
    )
    x = range_.transform(u, range_.numbers(1))
    assert x.dtype == torch.float32 and x.min() < 0 < x.max()
    assert (x != 0).all() and len(x.unique()) == len(x)


@pytest.mark.parametrize(("digits", "numbers", "smallest", "largest"), [(2, 81, 11, 99), (3, 810, 110, 999)])
def test_benford_draws_exactly_its_numbers_with_its_frequencies(digits, numbers, smallest, largest):
    range_ = Benford(digits=digits)
    values, probabilities = range_.values()
    assert (len(values), values.min(), values.max()) == (
        numbers,
        smallest,
        largest,
    ) and probabilities.sum() == pytest.approx(1)
    x, counts = np.unique(drawn(range_, numbers=200_000), return_counts=True)
    assert np.array_equal(x, values)
    assert stats.chisquare(counts, probabilities * counts.sum()).pvalue > 1e-4
    assert range_.transform(torch.tensor([2.0**-24, 1 - 2.0**-24]), range_.numbers(1)).tolist() == [
        smallest,
        largest,
    ]


def test_halves_gives_the_middle_input_to_the_second_half():
    x = drawn(
        Halves(first_half=Uniform(low=-2.0, high=-1.0), second_half=Uniform(low=1.0, high=2.0)), inputs=5
    )
    assert (np.sign(x[:2]) == -1).all() and (np.sign(x[2:]) == 1).all()


@pytest.mark.parametrize("kind", [Uniform, partial(TruncatedNormal, mean=0.0, deviation=1.0)])
def test_an_empty_range_is_refused(kind):
    with pytest.raises(ValueError, match=r"low < high, but got \[5, 5\)"):
        kind(low=5.0, high=5.0)
    with pytest.raises(ValueError, match="low"):
        kind(low=float("nan"), high=5.0)


@pytest.mark.parametrize("digits", [1, 4])
def test_benford_has_two_or_three_digits(digits):
    with pytest.raises(ValueError, match=f"digits is {digits}"):
        Benford(digits=digits)


def test_a_deviation_is_positive():
    with pytest.raises(ValueError, match="deviation is 0"):
        TruncatedNormal(mean=0.0, deviation=0.0, low=-1.0, high=1.0)


@pytest.mark.parametrize(("low", "high"), [(-1e308, 1e308), (1e39, 1e40), (-3e38, 3e38), (-1e39, 0.0)])
def test_a_range_beyond_the_numbers_of_training_is_refused(low, high):
    with pytest.raises(ValueError, match="^A range is of numbers of 32 bits, up to 3.4e38, but got"):
        Uniform(low=low, high=high)


@pytest.mark.parametrize(("low", "high"), [(5.0, 6.0), (-6.0, -5.0), (5.5, 5.6)])
def test_the_tail_of_a_normal_distribution_is_drawn_from(low, high):
    range_ = TruncatedNormal(mean=0.0, deviation=1.0, low=low, high=high)
    x, expected = drawn(range_), range_.sample(np.random.RandomState(0), (20_000,))
    assert len(np.unique(x)) > 0.8 * x.size  # float32 has 210,000 numbers from 5.5 to 5.6
    assert np.quantile(x, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(expected, [0.1, 0.5, 0.9]), rel=5e-3)


def test_so_far_in_the_tail_that_training_would_see_a_constant_is_refused():
    with pytest.raises(ValueError, match=r"mean 0 and deviation 1 lies in \[7, 8\) to draw"):
        TruncatedNormal(mean=0.0, deviation=1.0, low=7.0, high=8.0)
