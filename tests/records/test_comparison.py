"""What may differ between a recorded row and its run, trained again: limit by limit, from rows that are
written down.
"""

import json

import numpy as np
import pytest

from nalm.models import DigitSequence, Stack
from nalm.records import verification
from nalm.records.comparison import Tolerances, differences, twins
from nalm.tasks import DigitSequenceTask, SingleModuleTask
from nalm.training import Adam, Recipe, Run

RUN = Run(
    task=SingleModuleTask.on("U[1,2)", operation="mul"),
    model=Stack.of("NMU", 1),
    recipe=Recipe(iterations=1000, optimiser=Adam(lr=1e-3), log_interval=10),
    seed=0,
    threshold=1e-5,
)


def weights(*values):
    return json.dumps({"0.weight": [values]})


ROW = {
    "paper": "demo",
    "task": "SingleModuleTask",
    "seed": 0,
    "stream": "own",
    "iterations": 1000,
    "threshold": 1e-5,
    "model": "NMU",
    "range": "U[1,2)",
    "usual model": "NMU",
    "usual range": "U[1,2)",
    "success": True,
    "solved_at": 100.0,
    "selected_at": 200.0,
    "nan_at": np.nan,
    "valid_mse": 1e-6,
    "test_mse": 1e-6,
    "sparsity_error": 0.25,
    "weights": weights(0.5, 4.0),
}


def found(recorded, retrained=None, others=(), tolerances=Tolerances()):  # noqa: B008
    """What is said of a row, its run and the run's twins, each given by what is not as in :data:`ROW`."""
    return differences(
        ROW | recorded, ROW | (retrained or {}), [ROW | other for other in others], RUN, tolerances
    )


@pytest.mark.parametrize(
    ("column", "near", "far"),
    [
        ("solved_at", 110.0, 110.5),
        ("selected_at", 190.0, 189.5),
        ("valid_mse", 1.25e-6, 1.27e-6),
        ("test_mse", 0.8e-6, 0.79e-6),
        ("sparsity_error", 0.2509, 0.2511),
        ("weights", weights(0.5009, 4.0), weights(0.5011, 4.0)),
        ("weights", weights(0.5, 4.0039), weights(0.5, 4.0041)),  # relative above 1
    ],
)
def test_a_difference_is_accepted_up_to_its_limit(column, near, far):
    assert found({column: near}) == []
    (said,) = found({column: far})
    assert said.startswith(column)


@pytest.mark.parametrize(("recorded", "retrained", "same"), [(1e-12, 1e-10, True), (1e-12, 1e-8, False)])
def test_errors_below_the_floor_are_equal(recorded, retrained, same):
    assert (found({"valid_mse": recorded}, {"valid_mse": retrained}) == []) == same


def test_ten_times_the_farthest_twin_is_accepted_as_well():
    others = [{"solved_at": 101.0}, {"solved_at": 97.0}]
    assert found({"solved_at": 140.0}, others=others) == []
    assert found({"solved_at": 141.0}, others=others) == [
        "solved_at is recorded as 141, retrained 100, more than the accepted 40"
    ]


def test_a_twin_that_has_no_number_excuses_nothing_where_twins_do_not_count():
    alone = Tolerances(spread=0.0)
    for twin in ({"test_mse": np.nan}, {"test_mse": 1e300}):
        (said,) = found({"test_mse": 1.0}, others=[twin], tolerances=alone)
        assert said.startswith("test_mse")


def test_success_may_differ_where_it_does_among_the_twins():
    assert found({"success": False}, others=[{}, {"success": False}]) == []
    assert found({"success": False}, others=[{}, {}]) == ["success is recorded as False, retrained True"]


@pytest.mark.parametrize(("interval", "near"), [(100, True), (99, False)])
def test_a_lowest_error_may_be_reached_a_log_interval_earlier_or_later(interval, near):
    run = RUN.but(recipe=RUN.recipe.but(log_interval=interval))
    early, late = (ROW | {"lows": json.dumps({"test_2": [[0, 1.0], [at, 0.01]]})} for at in (100, 200))
    for recorded, retrained in ((early, late), (late, early)):
        said = differences(recorded, retrained, [], run, Tolerances())
        assert [one.partition(" ")[0] for one in said] == ([] if near else ["lows"])


def test_a_weight_that_is_a_number_on_one_side_only_is_infinitely_far_away():
    lost = {"weights": weights(0.5, np.nan)}
    for recorded, retrained in ((lost, {}), ({}, lost)):
        (said,) = found(recorded, retrained)
        assert said.startswith("weights")
    assert found(lost, lost) == []


def test_twins_differ_by_the_last_places_of_their_learning_rates():
    rates = [np.float32(twin.recipe.optimiser.lr) for twin in twins(RUN)]
    places = [int(rate.view(np.int32)) - int(np.float32(1e-3).view(np.int32)) for rate in rates]
    assert sorted(places) == [-4, -3, -2, -1, 1, 2, 3, 4]


def test_an_error_that_is_a_number_on_one_side_only_is_infinitely_far_away():
    lost = {"test_mse": np.nan}
    for recorded, retrained in ((lost, {}), ({}, lost)):
        (said,) = found(recorded, retrained)
        assert said.startswith("test_mse")
    assert found(lost, lost) == []


@pytest.mark.parametrize("other", [np.nan, json.dumps({"test_3": [[0, 1.0]]})])
def test_lows_of_one_row_only_or_of_other_sets_are_others(other):
    own = {"lows": json.dumps({"test_2": [[0, 1.0]]})}
    for recorded, retrained in (({"lows": other}, own), (own, {"lows": other})):
        (said,) = found(recorded, retrained)
        assert said.startswith("lows")


def test_counts_of_none_and_one_are_equal():
    name = "parameters_above_0.01"
    assert found({name: 0}, {name: 1}) == []
    (said,) = found({name: 0}, {name: 3})
    assert said.startswith(name)


def test_a_large_model_has_one_twin():
    digits = RUN.but(
        task=DigitSequenceTask(operation="product", source="sklearn"), model=DigitSequence(cell=None)
    )
    assert len(twins(digits)) == 1 and len(twins(RUN)) == 8


def test_a_row_that_only_its_twins_excuse_is_said_to_be():
    told = {"experiment": "demo/twins", "key": RUN.key, "freshness": "fresh"}
    retrained = verification._Retrained(RUN, ROW, [ROW | {"solved_at": 97.0}], 0)
    for at, how in ((130.0, "within the spread of its twins"), (110.0, "up to rounding")):
        one = verification._compared(ROW | told | {"solved_at": at}, None, retrained, Tolerances())
        assert one.passed and str(one).endswith(how)
        assert one.within_spread == bool(one.beyond) == (at == 130.0)
