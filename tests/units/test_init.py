"""Initial distributions: bounds, moments and their dependence on torch's seed alone."""

import math

import pytest
import torch

from nalm.units import (
    INALU,
    NAC,
    NALU,
    NAU,
    NMRU,
    NMU,
    NPU,
    NRU,
    Dense,
    GatedNAUNMU,
    Linear,
    NACMul,
    NaiveNPU,
    RealNPU,
    ReLU,
)
from nalm.units.init import nac_bound, nac_variance

from .cases import GOLDEN, MORE_ARMS


@pytest.mark.parametrize(
    ("fan_in", "fan_out", "r"), [(100, 2, 0.504), (2, 1, 9.47), (10, 1, 2.26), (4, 2, 5.43), (1, 1, 9.47)]
)
def test_nac_bound(fan_in, fan_out, r):
    bound = nac_bound(fan_in, fan_out)
    assert bound == pytest.approx(r, abs=0.005)
    assert nac_variance(bound) == pytest.approx(2 / max(fan_in + fan_out, 5))


def test_nac_weight_has_the_glorot_variance():
    torch.manual_seed(0)
    (weight,) = NAC(300, 200).effective_weights()
    assert weight.mean().item() == pytest.approx(0, abs=2e-3)
    assert weight.var().item() == pytest.approx(2 / 500, rel=0.03)


def assert_uniform(values, low, high):
    """The sample fills [low, high] evenly (10,000 or more entries)."""
    assert low <= values.min() and values.max() <= high
    assert values.min().item() == pytest.approx(low, abs=0.01 * (high - low))
    assert values.max().item() == pytest.approx(high, abs=0.01 * (high - low))
    assert values.mean().item() == pytest.approx((low + high) / 2, abs=0.02 * (high - low))
    assert values.var().item() == pytest.approx((high - low) ** 2 / 12, rel=0.05)


GLOROT = math.sqrt(6 / 300)


@pytest.mark.parametrize(
    ("unit", "name", "low", "high"),
    [
        (NAU(200, 100), "weight", -GLOROT, GLOROT),
        (NAU(200, 100, init="glorot", init_scale=0.2), "weight", -0.2 * GLOROT, 0.2 * GLOROT),
        (NAU(200, 100, init="uniform", init_scale=0.1), "weight", 0.0, 0.1),
        (NMU(200, 100), "weight", 0.25, 0.75),
        (NMU(200, 100, init="uniform"), "weight", 0.0, 1.0),
        (NACMul(200, 100, weight="linear"), "weight", 0.25, 0.75),
        (NALU(200, 100), "gate_weight", -GLOROT, GLOROT),
        (NALU(200, 100, init="glorot"), "weight_tanh", -GLOROT, GLOROT),
        (NALU(200, 100, init="uniform", init_scale=0.1), "gate_weight", 0.0, 0.1),
        (INALU(200, 100), "weight_sigmoid_mul", -GLOROT, GLOROT),
        (NPU(200, 100), "weight", -GLOROT, GLOROT),
        (NaiveNPU(200, 100, init="uniform", init_scale=0.1), "weight", 0.0, 0.1),
        (NRU(200, 100), "weight", -GLOROT, GLOROT),
        (NMRU(100, 100), "weight", 0.25, 0.75),
        (Linear(200, 100), "weight", -GLOROT, GLOROT),
        (Dense(200, 100), "weight", -GLOROT, GLOROT),
        (ReLU(200, 100), "weight", -math.sqrt(6 / 200), math.sqrt(6 / 200)),
    ],
)
def test_initial_distribution(unit, name, low, high):
    torch.manual_seed(0)
    unit.reset_parameters()
    assert_uniform(unit.get_parameter(name).detach(), low, high)


@pytest.mark.parametrize("unit", [NAU, NRU, lambda i, o: RealNPU(i, o, init="capped-glorot")])
@pytest.mark.parametrize("in_features", [1, 2, 10])
def test_small_layers_start_within_a_half(unit, in_features):
    weights = torch.cat([unit(in_features, 1).weight.detach().flatten() for _ in range(200)])
    assert 0.4 < weights.abs().max() <= 0.5


def test_real_npu_starts_beyond_one_without_the_cap():
    weights = torch.cat([RealNPU(2, 1).weight.detach().flatten() for _ in range(200)])
    assert 1.3 < weights.abs().max() <= math.sqrt(2)


def test_the_gate_between_nau_and_nmu_starts_beyond_one_half():
    """Glorot's range without the NAU's cap, when the unit is made and when it starts anew."""
    units = [GatedNAUNMU(2, 1) for _ in range(200)]
    for _ in range(2):
        assert (
            1.3
            < torch.cat([unit.gate_weight.detach().flatten() for unit in units]).abs().max()
            <= math.sqrt(2)
        )
        [unit.reset_parameters() for unit in units]


def test_sigmoid_weight_starts_glorot_normal():
    torch.manual_seed(0)
    weight = NACMul(200, 100, weight="sigmoid").weight_sigmoid
    assert weight.std().item() == pytest.approx(math.sqrt(2 / 300), rel=0.02)
    assert weight.abs().max() > 3 * math.sqrt(2 / 300)


def test_constants():
    unit = NPU(3, 2, gate_init=1.0)
    assert unit.gate.tolist() == [1.0] * 3 and unit.weight_im.abs().sum() == 0
    assert RealNPU(3, 2).gate.tolist() == [0.5] * 3
    assert NMRU(3, 2, gate="zero").gate.tolist() == [0.5] * 6
    assert Linear(3, 2).bias.tolist() == [0.0] * 2
    assert NALU(3, 2, gate_bias=True).gate_bias.tolist() == [0.0] * 2


def test_glorot_gate_bias():
    torch.manual_seed(0)
    unit = NALU(1, 10000, gate_bias=True, init="glorot")
    assert_uniform(unit.gate_bias.detach(), -math.sqrt(6 / 10000), math.sqrt(6 / 10000))
    scaled = NALU(1, 10000, gate_bias=True, init="glorot", init_scale=0.1)
    assert_uniform(scaled.gate_bias.detach(), -0.1 * math.sqrt(6 / 10000), 0.1 * math.sqrt(6 / 10000))


@pytest.mark.parametrize("case", [*GOLDEN, *MORE_ARMS], ids=str)
def test_initial_weights_depend_on_the_seed_alone(case):
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(torch.cat([p.detach().flatten() for p in case.build().parameters()]))
    assert torch.equal(states[0], states[1]) and not torch.equal(states[0], states[2])
    unit = case.build()
    parameters = dict(unit.named_parameters())
    torch.manual_seed(1)
    unit.float().reset_parameters()
    assert all(unit.get_parameter(name) is p for name, p in parameters.items())
    again = torch.cat([p.detach().flatten() for p in unit.parameters()])
    torch.testing.assert_close(again.double(), states[0])
