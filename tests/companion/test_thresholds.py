"""Simulated thresholds against the values re-simulated with exact indexing in the protocol of the nau-nmu
paper.
"""

import pytest
from companion.thresholds import nearly_perfect_mse

from nalm.tasks import SubsetArithmeticTask, TenParameterTask, Uniform


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (TenParameterTask(), 2.16e-6),
        (SubsetArithmeticTask(operation="mul"), 0.161),
        (SubsetArithmeticTask(operation="mul", inputs=4), 4.80e-7),
        (SubsetArithmeticTask(operation="mul", subset_ratio=0.05), 0.0210),
        (SubsetArithmeticTask(operation="mul", overlap_ratio=1.0), 0.160),
        (
            SubsetArithmeticTask(
                operation="mul",
                interpolation=Uniform(low=10.0, high=20.0),
                extrapolation=Uniform(low=20.0, high=40.0),
            ),
            507.2,
        ),
        (SubsetArithmeticTask(operation="add"), 1.4786e-5 / 0.92),  # the authors' indexing is 8 % lower
    ],
)
def test_thresholds_are_those_of_the_protocol(task, expected):
    assert nearly_perfect_mse(task, samples=100_000) == pytest.approx(expected, rel=0.03)


def test_samples_that_fill_no_chunk_are_counted_as_they_are():
    assert nearly_perfect_mse(TenParameterTask(), samples=75_000) == pytest.approx(2.16e-6, rel=0.03)


def test_a_perfect_solution_has_threshold_zero():
    assert nearly_perfect_mse(TenParameterTask(), eps=0.0, samples=1000) == 0
