"""The operand tasks: positions, ranges and fixed evaluation sets as the protocols say."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nalm.tasks import (
    OPERATIONS,
    UNIFORM_RANGES,
    LargeScaleTask,
    SimpleArithmeticTask,
    SingleModuleTask,
    SubsetArithmeticTask,
    TenParameterTask,
    TruncatedNormal,
    Uniform,
    UniformUnion,
)
from nalm.training.streams import uniforms

TASKS = [
    SingleModuleTask.on("U[-2,2)", operation="div"),
    SingleModuleTask.on("U[1,2)", operation="sub", inputs=10),
    SubsetArithmeticTask(operation="mul"),
    TenParameterTask(),
    SimpleArithmeticTask(),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_batch_lies_in_the_interpolation_range(task):
    noise = uniforms(torch.tensor([3]), torch.tensor(17), task.noise_rows(), 64)[0]
    x, target = task.batch(noise, task.constants(3), task.shared())
    assert x.shape == (64, task.in_features) and target.shape == (64, task.out_features)
    assert x.min() >= task.interpolation.low and x.max() <= task.interpolation.high
    assert task.interpolation.high - task.interpolation.low < 1.2 * (x.max() - x.min())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_evaluation_inputs_are_the_same_for_all_seeds(task):
    for name, examples in task.evaluation(1).items():
        assert examples.inputs is task.evaluation(2)[name].inputs
        assert examples.inputs.dtype == examples.targets.dtype == torch.float32


EXPECTED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "squared": lambda a, b: a**2,
    "root": lambda a, b: np.sqrt(a),
    "reciprocal": lambda a, b: 1 / a,
}


def test_the_operations():
    found = {name: operation(4.0, 0.5) for name, operation in OPERATIONS.items()}
    assert found == {
        "add": 4.5,
        "sub": 3.5,
        "mul": 2.0,
        "div": 8.0,
        "squared": 16.0,
        "root": 2.0,
        "reciprocal": 0.25,
    }


@pytest.mark.parametrize("operation", EXPECTED)
@pytest.mark.parametrize("kind", [SingleModuleTask, SubsetArithmeticTask])
def test_targets_are_the_operation_on_the_operands(kind, operation):
    ranges = {"interpolation": Uniform(low=1.0, high=2.0), "extrapolation": Uniform(low=2.0, high=6.0)}
    task = kind(operation=operation, inputs=10, **ranges)
    operands = task.operands(5)
    for examples in task.evaluation(5).values():
        a, b = operands @ examples.inputs.double().numpy().T
        np.testing.assert_allclose(examples.targets[:, 0], EXPECTED[operation](a, b), rtol=1e-5, atol=1e-6)
    noise = uniforms(torch.tensor([5]), torch.tensor(0), 10, 128)[0]
    x, target = task.batch(noise, task.constants(5), {})
    a, b = operands @ x.double().numpy().T
    np.testing.assert_allclose(target[:, 0], EXPECTED[operation](a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "seed", "low", "high"), [("valid", 43953907, 1, 2), ("test", 8689336, 2, 6)]
)
def test_evaluation_inputs_are_those_of_the_published_seeds(name, seed, low, high):
    examples = SingleModuleTask.on("U[1,2)", operation="div").evaluation(0)[name]
    expected = np.random.RandomState(seed).uniform(low, high, (10_000, 2)).astype(np.float32)
    np.testing.assert_array_equal(examples.inputs, expected)


@pytest.mark.parametrize(
    ("task", "low", "high", "inputs"),
    [(SimpleArithmeticTask(), 0.1, 2.1, 2), (LargeScaleTask(operation="add"), -1.0, 1.0, 100)],
    ids=["simple", "large scale"],
)
def test_the_other_tasks_are_validated_on_numbers_of_the_same_seed(task, low, high, inputs):
    expected = np.random.RandomState(43953907).uniform(low, high, (10_000, inputs)).astype(np.float32)
    np.testing.assert_array_equal(task.evaluation(0)["valid"].inputs, expected)


def test_a_union_picks_each_element_from_either_range():
    union = UniformUnion(first=Uniform(low=-6.0, high=-2.0), second=Uniform(low=2.0, high=6.0))
    x = union.sample(np.random.RandomState(0), (10_000, 2))
    assert ((-6 <= x) & (x < -2) | (2 <= x) & (x < 6)).all()
    assert (x > 0).mean(0) == pytest.approx([0.5, 0.5], abs=0.02)
    assert (x[:, 0] * x[:, 1] < 0).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("coin", [0, 1])
def test_a_union_draws_both_ranges_and_then_its_coins(coin):
    first, second = Uniform(low=-6.0, high=-2.0), Uniform(low=2.0, high=6.0)
    found = UniformUnion(first=first, second=second, coin=coin).sample(np.random.RandomState(7), (50,))
    generator = np.random.RandomState(7)
    negative, positive = generator.uniform(-6, -2, 50), generator.uniform(2, 6, 50)
    coins = generator.randint(0, 2, 50)
    np.testing.assert_array_equal(found, np.where(coins == coin, negative, positive))


def test_the_nine_ranges_of_the_division_paper():
    assert [(name, str(trained), str(tested)) for name, (trained, tested) in UNIFORM_RANGES.items()] == [
        ("U[-20,-10)", "U[-20,-10)", "U[-40,-20)"),
        ("U[-2,-1)", "U[-2,-1)", "U[-6,-2)"),
        ("U[-1.2,-1.1)", "U[-1.2,-1.1)", "U[-6.1,-1.2)"),
        ("U[-0.2,-0.1)", "U[-0.2,-0.1)", "U[-2,-0.2)"),
        ("U[-2,2)", "U[-2,2)", "U[-6,-2)|U[2,6)"),
        ("U[0.1,0.2)", "U[0.1,0.2)", "U[0.2,2)"),
        ("U[1,2)", "U[1,2)", "U[2,6)"),
        ("U[1.1,1.2)", "U[1.1,1.2)", "U[1.2,6)"),
        ("U[10,20)", "U[10,20)", "U[20,40)"),
    ]


def test_the_operands_of_the_single_module_task():
    two = SingleModuleTask.on("U[1,2)", operation="div")
    np.testing.assert_array_equal(two.operands(3), np.eye(2))
    positions = [
        SingleModuleTask.on("U[1,2)", operation="div", inputs=10).operands(seed).argmax(1)
        for seed in range(25)
    ]
    assert all(b == a + 1 for a, b in positions) and len({a for a, _ in positions}) > 5
    one = SingleModuleTask.on("U[1,2)", operation="reciprocal", inputs=1)
    np.testing.assert_array_equal(one.operands(0), np.ones((2, 1)))


@given(st.integers(0, 2**32 - 1), st.integers(4, 300), st.floats(0.05, 0.5), st.floats(0, 1))
def test_subsets_are_adjacent_and_share_the_overlap(seed, inputs, subset_ratio, overlap_ratio):
    task = SubsetArithmeticTask(
        operation="mul", inputs=inputs, subset_ratio=subset_ratio, overlap_ratio=overlap_ratio
    )
    subset = math.floor(subset_ratio * inputs)
    overlap = math.floor(overlap_ratio * subset)
    if subset < 1:
        with pytest.raises(ValueError, match="choose another subset_ratio"):
            task.operands(seed)
        return
    a, b = task.operands(seed)
    assert a.sum() == b.sum() == subset and (a * b).sum() == overlap
    used = np.flatnonzero(a + b)
    assert len(used) == 2 * subset - overlap == used[-1] - used[0] + 1
    x, target = task.batch(torch.rand(inputs, 3), task.constants(seed), {})
    np.testing.assert_allclose(target[:, 0], (x.numpy() @ a) * (x.numpy() @ b), rtol=1e-4)


@pytest.mark.parametrize("range_", UNIFORM_RANGES)
def test_targets_in_float64_are_those_of_exact_sums(range_):
    trained, tested = UNIFORM_RANGES[range_]
    task = SubsetArithmeticTask(
        operation="mul", inputs=300, interpolation=trained, extrapolation=tested, targets="float64"
    )
    noise = uniforms(torch.tensor([3]), torch.tensor(17), 300, 64)[0]
    noise[:2, 0] = torch.tensor([2**-24, 1 - 2**-24])  # the least and the largest that are drawn
    x, target = task.batch(noise, task.constants(3), {})
    a, b = (
        [float(sum(map(Fraction, one[operand == 1].tolist()))) for one in x] for operand in task.operands(3)
    )
    np.testing.assert_array_equal(target[:, 0], np.float32(np.multiply(a, b)))


@pytest.mark.parametrize(
    ("numbers", "sizes"),
    [
        ({}, (25, 12)),
        ({"overlap_ratio": 0.75}, (25, 18)),  # 18.75, rounded down
        ({"inputs": 11}, (2, 1)),  # 2.75, rounded down
        ({"inputs": 10, "subset_ratio": 0.39, "overlap_ratio": 0.9}, (3, 2)),
    ],
)
def test_the_sizes_of_subsets_are_rounded_down(numbers, sizes):
    assert SubsetArithmeticTask(operation="mul", **numbers).sizes() == sizes


def test_the_grids_of_the_simple_arithmetic_task():
    sets = SimpleArithmeticTask().evaluation(0)
    assert sets["test_add"].inputs.shape == (1681, 2) and sets["test_sqrt"].inputs.shape == (1600, 2)
    x = sets["test_div"].inputs[:, 0].unique()
    assert (
        float(x[0]) == pytest.approx(-4.1)
        and float(x[-1]) == pytest.approx(3.9)
        and x.abs().min() == pytest.approx(0.1, abs=1e-6)
    )
    assert float(sets["test_sqrt"].inputs.max()) == pytest.approx(4.0)


def test_the_simple_arithmetic_task_has_four_targets_of_which_a_set_may_compare_one():
    task = SimpleArithmeticTask()
    sets = task.evaluation(0)
    pairs = [(examples.inputs, examples.targets) for examples in sets.values()]
    for x, found in [task.batch(torch.linspace(0.01, 0.99, 50).view(2, 25), task.constants(0), {}), *pairs]:
        a, b = x.mT
        expected = torch.stack([a + b, a * b, a / b, a.sqrt()], 1)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert {name: (examples.error, examples.output) for name, examples in sets.items()} == {
        "test_add": ("mae", 0),
        "test_mul": ("mae", 1),
        "test_div": ("mae", 2),
        "test_sqrt": ("mae", 3),
        "test": ("mse", None),
        "valid": ("mse", None),
    }


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: SingleModuleTask.on("U[1,3)", operation="div"),
            r"Unknown range 'U\[1,3\)': did you mean 'U\[1,2\)'\?",
        ),
        (
            lambda: SingleModuleTask.on("U[1,2)", operation="divide"),
            "Unknown operation 'divide': did you mean 'div'",
        ),
        (lambda: SingleModuleTask.on("U[1,2)", operation="div", inputs=0), "inputs is 0"),
        (lambda: Uniform(low=2.0, high=1.0), "low < high"),
        (lambda: Uniform(low=2.0, hihg=1.0), "no field 'hihg': did you mean 'high'"),
        (lambda: SubsetArithmeticTask(operation="mul", subset_ratio=1.5), "subset_ratio is 1.5"),
        (
            lambda: SubsetArithmeticTask(operation="mul", subset_ratio=1.0).operands(0),
            "need 1 to 100 inputs, but use 150: choose another subset_ratio",
        ),
    ],
)
def test_bad_input_is_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_tasks_that_compute_otherwise_share_no_ensemble():
    task = SingleModuleTask.on("U[1,2)", operation="div")
    normal = TruncatedNormal(mean=1.0, deviation=1.0, low=1.0, high=2.0)
    structures = [task.but(**other).structure() for other in ({}, {"targets": "float64"}, {"inputs": 3})]
    structures += [
        task.but(**other).structure() for other in ({"operation": "mul"}, {"interpolation": normal})
    ]
    assert len(set(structures)) == 5
    assert SingleModuleTask.on("U[10,20)", operation="div").structure() == task.structure()
    of_four = [SubsetArithmeticTask(operation="mul", inputs=4, subset_ratio=ratio) for ratio in (0.25, 0.5)]
    of_four += [TenParameterTask(), SingleModuleTask.on("U[1,2)", operation="mul", inputs=4)]
    assert len({task.structure() for task in of_four}) == 4


def test_all_are_validated_on_ten_thousand_examples():
    assert {len(task.evaluation(0)["valid"].inputs) for task in TASKS} == {10_000}


def test_a_task_is_called_as_its_training_range():
    assert [task.label() for task in TASKS] == ["U[-2,2)", "U[1,2)", "U[1,2)", "U[1,2)", "U[0.1,2.1)"]


@pytest.mark.parametrize("task", [SubsetArithmeticTask(operation="mul"), TenParameterTask()])
def test_subsets_are_of_the_ranges_of_the_paper_unless_others_are_named(task):
    assert (str(task.interpolation), str(task.extrapolation)) == ("U[1,2)", "U[2,6)")
