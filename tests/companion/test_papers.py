"""The papers' settings are those of their tables."""

import math

import pytest
import torch
from companion.division import settings as division
from companion.experiment import runs_of
from companion.nau_nmu import hidden_sizes
from companion.nau_nmu import settings as nau_nmu
from companion.npu import large_scale
from companion.thresholds import nearly_perfect_mse

from nalm.tasks import UNIFORM_RANGES, SingleModuleTask, SubsetArithmeticTask
from nalm.training import Run


@pytest.mark.parametrize(
    ("inputs", "iterations", "ramps", "nru"),
    [(2, 50_000, ((40_000, 50_000), (20_000, 35_000)), 1.0), (10, 100_000, ((50_000, 75_000),) * 2, 1e-3)],
)
def test_division_settings(inputs, iterations, ramps, nru):
    arms = division.arms(inputs)
    assert {arm.recipe.iterations for arm in arms.values()} == {iterations}
    assert [arm.recipe.optimiser.lr for arm in arms.values()] == [5e-3, 5e-3, nru, 1e-2]
    assert [arm.recipe.clip_gradient_norm for arm in arms.values()] == [None, None, None, 1.0]
    for name, weight, ramp in [
        ("Real NPU (modified)", 1.0, ramps[0]),
        ("NRU", 10.0, ramps[1]),
        ("NMRU", 10.0, ramps[1]),
    ]:
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


@pytest.mark.parametrize("hidden", [2, 3])
def test_models_of_subset_arithmetic(hidden):
    arms = nau_nmu.arms(hidden, iterations=10)
    for arm in arms.values():
        first, second = arm.model.build(100)
        assert (first.out_features, second.in_features, second.out_features, arm.recipe.iterations) == (
            hidden,
            hidden,
            1,
            10,
        )
    ramps = {
        name: [(p.weight, p.start, p.end) for p in arm.recipe.penalties]
        for name, arm in arms.items()
        if arm.recipe.penalties
    }
    late = [(10.0, 1_000_000, 2_000_000)]
    assert ramps == {"NAC•,NMU": late, "Gated NAU/NMU": late, "NMU": late, "NAU": [(0.01, 5_000, 50_000)]}


@pytest.mark.parametrize(
    ("operation", "times"), [("add", 1.08), ("sub", 1.0), ("mul", 1.004), ("root", 1.11), ("squared", 1.0)]
)
def test_recorded_thresholds_are_those_of_subsets_one_too_long(operation, times):
    own = nearly_perfect_mse(SubsetArithmeticTask(operation=operation), samples=100_000)
    assert own == pytest.approx(times * nau_nmu.THRESHOLDS[operation], rel=0.02)


@pytest.mark.parametrize("name", nau_nmu.RANGES)
def test_thresholds_of_ranges(name):
    (run,) = nau_nmu.range_runs(["NMU"], [name], seeds=1)
    assert (str(run.task.interpolation), run.threshold) == (name, nau_nmu.RANGES[name][2])
    assert nearly_perfect_mse(run.task, samples=200_000) == pytest.approx(run.threshold, rel=0.02)


def test_the_default_range_is_that_of_table_2():
    runs = [nau_nmu.range_runs(["NMU"], ["U[1,2)"], seeds=1), nau_nmu.subset_runs(["NMU"], ["mul"], seeds=1)]
    assert runs[0][0].key == runs[1][0].key


def test_two_hidden_units_are_those_of_table_2():
    runs = [
        hidden_sizes.hidden_runs(nau_nmu.arms(), [2], seeds=1),
        nau_nmu.subset_runs(nau_nmu.arms(), ["mul"], seeds=1),
    ]
    assert [run.key for run in runs[0]] == [run.key for run in runs[1]]


def test_ablations_differ_from_the_nmu_in_their_constraints_alone():
    whole, *ablated = hidden_sizes.hidden_runs(["NMU", *hidden_sizes.ABLATIONS], [10], seeds=1)
    penalised = [bool(run.recipe.penalties) for run in ablated]
    clamps = [tuple(unit.clamp for unit in run.model.build(100)) for run in ablated]
    assert list(zip(penalised, clamps, strict=True)) == [
        (False, ("step",) * 2),
        (True, ("forward",) * 2),
        (False, ("forward",) * 2),
    ]
    for run in ablated:
        layers = tuple(layer.but(options={}) for layer in run.model.layers)
        recipe = run.recipe.but(penalties=whole.recipe.penalties)
        assert run.but(model=run.model.but(layers=layers), recipe=recipe, labels=whole.labels) == whole
    assert whole.structure() == ablated[0].structure()  # trained together


@pytest.mark.parametrize("model", large_scale.LARGE_SCALE)
@pytest.mark.parametrize("arm", ["code", "text"])
def test_large_scale_networks_start_as_their_arm_says(model, arm):
    torch.manual_seed(0)
    network = large_scale.large_scale_arm(model, "add", arm=arm).model.build(100)
    parameters = dict(network.named_parameters())
    gates, weights = parameters.pop("1.gate", None), [p for name, p in parameters.items() if p.dim() == 2]
    if gates is not None:
        assert set(gates.tolist()) == {1.0 if (model, arm) == ("NPU", "code") else 0.5}
    if arm == "code":
        assert all(0 <= weight.min() and weight.max() <= 0.1 for weight in weights)
    else:
        bound = math.sqrt(6 / 200)
        assert weights[0].min() < -0.99 * bound and 0.99 * bound < weights[0].max() <= bound
    if model == "NMU":
        assert network[1].weight.min() >= 0 and (network[1].weight.max() > 0.9) == (arm == "text")
    with torch.no_grad():
        weights[0].fill_(3.0)
    network[0].project_()
    assert weights[0].max() == (1.0 if arm == "text" and "NALU" not in model else 3.0)
    assert any(name.endswith("gate_bias") for name in parameters) == ((model, arm) == ("NALU", "code"))


def test_the_text_of_the_large_scale_task_has_the_l1_norm_unless_told_otherwise():
    arms = {arm: large_scale.large_scale_arm("NPU", "root", arm=arm).recipe for arm in ("code", "text")}
    assert [recipe.penalties[0].kind for recipe in arms.values()] == ["Norms", "L1"]
    assert arms["text"] == large_scale.large_scale_arm("NPU", "root", "L1").recipe
    assert large_scale.large_scale_arm("NPU", "root", "norms", arm="text").recipe == arms["code"]
    assert (
        large_scale.large_scale_arm("NPU", "root", gate=0.2, arm="text").model.layers[1].options["gate_init"]
        == 0.2
    )
