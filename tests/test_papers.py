"""The papers' settings are those of their tables."""

import pytest

from nalm.experiments import runs_of
from nalm.papers import division
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import Run


@pytest.mark.parametrize(("inputs", "iterations", "ramps", "nru"), [(2, 50_000, ((40_000, 50_000), (20_000, 35_000)), 1.0), (10, 100_000, ((50_000, 75_000),) * 2, 1e-3)])
def test_division_settings(inputs, iterations, ramps, nru):
    arms = division.arms(inputs)
    assert {arm.recipe.iterations for arm in arms.values()} == {iterations}
    assert [arm.recipe.optimiser.lr for arm in arms.values()] == [5e-3, 5e-3, nru, 1e-2]
    assert [arm.recipe.clip_gradient_norm for arm in arms.values()] == [None, None, None, 1.0]
    for name, weight, ramp in [("Real NPU (modified)", 1.0, ramps[0]), ("NRU", 10.0, ramps[1]), ("NMRU", 10.0, ramps[1])]:
        penalty = arms[name].recipe.penalties[-1]
        assert (penalty.weight, penalty.start, penalty.end) == (weight, *ramp)


def test_fewer_iterations_leave_the_schedules():
    short, long = division.arms(2, iterations=20)["NRU"], division.arms(2)["NRU"]
    assert short.recipe.iterations == 20 and short.recipe.penalties == long.recipe.penalties


def test_runs_of_arms_are_recorded_and_found_again():
    tasks = {f"data set {n}": division.task(ranges) for n, ranges in division.MIXED_SIGNS.items()}
    runs = runs_of(division.arms(2), tasks, seeds=2, threshold=1e-5)
    assert len({run.key for run in runs}) == len(runs) == 4 * 6 * 2
    assert all(Run.from_json(run.canonical()).key == run.key for run in runs)
    assert runs[0].labels == {"model": "Real NPU (baseline)", "range": "data set 1"}


def test_data_set_three_is_the_ordinary_range():
    assert division.task(division.MIXED_SIGNS["3"]) == SingleModuleTask.on("U[-2,2)", operation="div")
    assert set(division.DISTRIBUTIONS).isdisjoint(UNIFORM_RANGES)
