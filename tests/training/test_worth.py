"""The estimate decides by updates and numbers alone, and as measured."""

import pytest
from companion.benchmark import division_runs, subset_runs

from nalm.models import DigitSequence
from nalm.tasks import DigitSequenceTask
from nalm.training import Adam, Recipe, Run, worth_compiling


@pytest.mark.parametrize(
    ("make", "shorter", "longer"),
    [
        (lambda iterations: division_runs(2, 1, iterations), 3000, 10_000),
        (lambda iterations: division_runs(2, 225, iterations), 3000, 10_000),
        (lambda iterations: subset_runs("own", 1, iterations), 3000, 10_000),
        (lambda iterations: subset_runs("own", 50, iterations), 1000, 3000),
        (lambda iterations: subset_runs("common", 50, iterations), 3000, 10_000),
    ],
    ids=["division", "225 of them", "100 inputs", "50 of them", "common stream"],
)
def test_what_was_measured_to_be_sooner_done(make, shorter, longer):
    assert (worth_compiling(make(shorter)), worth_compiling(make(longer))) == (False, True)


def test_large_models_are_never_compiled():
    task = DigitSequenceTask(operation="product", source="sklearn")
    recipe = Recipe(iterations=10**6, optimiser=Adam(lr=1e-3))
    assert not worth_compiling([Run(task=task, model=DigitSequence(cell=None), recipe=recipe, seed=0)])
