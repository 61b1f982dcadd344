"""Large-scale arithmetic: its sequence, its operands, its ranges."""

import numpy as np
import pytest
import torch
from scipy.stats import qmc

from nalm.models import Stack
from nalm.tasks import LargeScaleTask
from nalm.tasks.large_scale import sobol
from nalm.training import Ensemble, Recipe, RMSProp, Run

TASKS = [LargeScaleTask(operation=operation) for operation in ("add", "mul", "reciprocal", "root")]


def test_the_sequence_is_that_of_scipy_wherever_it_is_asked():
    expected = qmc.Sobol(100, scramble=False).random(1024)[1:].T
    np.testing.assert_array_equal(sobol(0, 1023, 100), expected)
    np.testing.assert_array_equal(sobol(640, 128, 100), expected[:, 640:768])
    np.testing.assert_array_equal(sobol(768, 128, 100), expected[:, 768:896])
    np.testing.assert_array_equal(sobol(0, 2, 100), expected[:, :2])


def test_the_last_batch_of_a_training_is_exact_in_float32():
    last = sobol(128 * 99_999, 128, 100).double()
    assert (last * 2**24 % 1 == 0).all() and last.max() < 1


EXPECTED = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "reciprocal": lambda a, b: 1 / a,
    "root": lambda a, b: a.sqrt(),
}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.operation)
def test_batches_and_evaluation_sets_are_operations_on_the_two_sums(task):
    x, target = task.batch(task.host_draw(7, 3, 128), task.constants(7), {})
    assert x.shape == (128, 100) and task.interpolation.low <= x.min() and x.max() <= task.interpolation.high
    assert torch.equal(x, task.batch(task.host_draw(8, 3, 128), task.constants(8), {})[0])
    for inputs, targets in [(x, target), *((s.inputs, s.targets) for s in task.evaluation(0).values())]:
        a, b = inputs[:, :50].double().sum(1), inputs[:, 38:88].double().sum(1)
        expected = EXPECTED[task.operation](a, b)
        usual = a.abs() > 0.1 if task.operation == "reciprocal" else torch.ones_like(a, dtype=torch.bool)
        torch.testing.assert_close(targets[usual, 0].double(), expected[usual], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mirrored", "end", "step"), [(False, -2.0, 4.0), (True, 2.0, -4.0)])
def test_the_test_set_leaves_out_the_point_of_halves(mirrored, end, step):
    inputs = LargeScaleTask(operation="add", mirrored=mirrored).evaluation(0)["test"].inputs
    points = qmc.Sobol(100, scramble=False).random(1024)[2:]  # zeros, then halves
    np.testing.assert_array_equal(inputs[:1022], end + step * points)


def test_a_trivial_predictor_has_the_errors_of_the_protocol():
    add, mul, reciprocal, root = (task.evaluation(0)["test"].targets.double().var().item() for task in TASKS)
    assert add == pytest.approx(165, rel=0.1) and mul == pytest.approx(4.7e3, rel=0.1)
    assert reciprocal == pytest.approx(4e-5, rel=0.3) and root == pytest.approx(0.17, rel=0.1)


def test_runs_share_their_batches_and_learn_the_same_in_any_company():
    recipe = Recipe(
        iterations=40, optimiser=RMSProp(lr=1e-2), log_interval=20, selection="last", stream="common"
    )
    runs = [
        Run(task=TASKS[0], model=Stack.of("NAU", 4, "NMU", 1), recipe=recipe, seed=seed) for seed in range(3)
    ]
    together, alone = Ensemble(runs).train(), Ensemble(runs[1:2]).train()
    assert len(set(together.errors["test"][-1])) == 3
    np.testing.assert_allclose(together.errors["test"][:, 1], alone.errors["test"][:, 0], rtol=1e-4)


def test_an_unknown_operation_is_refused():
    with pytest.raises(ValueError, match="'add', 'mul', 'reciprocal' or 'root'"):
        LargeScaleTask(operation="div")


def test_each_operation_is_an_ensemble_of_its_own_and_validated_on_ten_thousand_examples():
    assert len({task.structure() for task in TASKS}) == len(TASKS)
    assert {len(examples.inputs) for examples in TASKS[0].evaluation(0).values()} == {10_000}


def test_both_test_ranges_are_mirrored():
    up, down = (
        LargeScaleTask(operation="add", mirrored=mirrored).evaluation(0) for mirrored in (False, True)
    )
    for name in ("test", "test_paper"):
        torch.testing.assert_close(down[name].inputs, -up[name].inputs)


@pytest.mark.parametrize(
    ("task", "trained", "tested", "printed"),
    [
        (TASKS[0], (-1, 1), (-2, 2), (-4, 4)),
        (TASKS[1], (-1, 1), (-2, 2), (-4, 4)),
        (TASKS[2], (0, 0.5), (-0.5, 0), (-0.5, 0.5)),
        (TASKS[3], (0, 2), (0, 4), (0, 4)),
    ],
    ids=lambda value: getattr(value, "operation", None),
)
def test_sets_fill_the_ranges_of_the_authors_code_and_of_the_paper(task, trained, tested, printed):
    sets = task.evaluation(0)
    for name, ends in {"valid": trained, "test": tested, "test_paper": printed}.items():
        x = sets[name].inputs
        assert (float(x.min()), float(x.max())) == pytest.approx(ends, abs=2e-3)
