"""Every unit is exact at its golden weights, whatever the signs, the dtype and the shape of the batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nalm.units import NMU, NPU, NRU, UNITS, NaiveNPU, RealNPU
from nalm.units.functional import identity_product, product, weighted_sum
from nalm.units.inalu import recovered_sign
from nalm.units.snmu import uniform_of

from .cases import GOLDEN, OPEN, SEVERAL_OUTPUTS

nonzero = st.integers(-20, 20).filter(bool)


def test_every_unit_has_golden_weights():
    assert {case.unit for case in GOLDEN} == set(UNITS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", GOLDEN, ids=str)
@settings(max_examples=6, deadline=None)
@given(values=st.lists(nonzero, min_size=18, max_size=18), batch=st.sampled_from([(), (5,), (2, 3)]))
def test_exact_at_golden_weights(case, dtype, values, batch):
    count = torch.Size(batch).numel()
    x = torch.tensor(values[: 3 * count], dtype=dtype).reshape(*batch, 3)
    if not case.signs:
        x = x.abs()
    y = case.build_golden(dtype)(x)
    assert y.shape == (*batch, 1) and y.dtype == dtype
    torch.testing.assert_close(y, case.computes(x), rtol=case.ulps * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_each_output_is_computed_by_its_own_row(case):
    unit = case.build().eval()
    x = torch.rand(4, 3, dtype=torch.float64) - 0.5
    both = unit(x)
    for name, parameter in unit.named_parameters():
        if name != "gate":  # one per input, shared by the rows
            with torch.no_grad():
                parameter.copy_(parameter.flip(0))
    torch.testing.assert_close(unit(x), both.flip(-1))


@pytest.mark.parametrize("kind", [NaiveNPU, NPU, RealNPU])
def test_npu_is_the_real_part_of_a_complex_power(kind):
    torch.manual_seed(0)
    unit = kind(3, 2, eps=0.0).double()
    x = torch.randn(50, 3, dtype=torch.float64)
    for parameter in unit.parameters():
        torch.nn.init.uniform_(parameter, -1.5, 1.5)
    gate = torch.ones(3, dtype=torch.float64) if unit.gate is None else unit.gate.clamp(0, 1)
    weight_im = torch.zeros(2, 3) if unit.weight_im is None else unit.weight_im
    # A gate g moves the logarithm of the input along its angle: log r + i pi g where x < 0.
    log_x = torch.complex((gate * x.abs() + 1 - gate).log(), torch.pi * gate * (x < 0))
    expected = torch.exp(log_x @ torch.complex(unit.weight, weight_im.double()).T).real
    torch.testing.assert_close(unit(x), expected)


@pytest.mark.parametrize("kind", [NPU, RealNPU])
def test_npu_epsilon_is_added_to_the_magnitude_before_the_gate(kind):
    unit = kind(1, 1, eps=0.25).double()
    with torch.no_grad():
        unit.weight.fill_(1.0)
        unit.gate.fill_(0.5)
    assert unit(torch.tensor([2.0], dtype=torch.float64)).item() == pytest.approx(0.5 * (2 + 0.25) + 0.5)


def test_npu_without_gate_is_a_power_of_a_complex_number():
    unit = NaiveNPU(1, 1, eps=0.0).double()
    with torch.no_grad():
        unit.weight.fill_(0.7)
        unit.weight_im.fill_(-0.4)
    x = torch.tensor([[-3.0], [0.2], [5.0]], dtype=torch.float64)
    exponent = torch.tensor(0.7 - 0.4j, dtype=torch.complex128)
    expected = torch.pow(x.to(torch.complex128), exponent).real
    torch.testing.assert_close(unit(x), expected)


def test_npu_epsilon_is_that_of_the_dtype():
    for dtype in (torch.float32, torch.float64):
        unit = RealNPU(1, 1).to(dtype)
        with torch.no_grad():
            unit.weight.fill_(1.0)
            unit.gate.fill_(1.0)
        assert unit(torch.zeros(1, dtype=dtype)).item() == pytest.approx(torch.finfo(dtype).eps, rel=1e-5)


@pytest.mark.parametrize("separate_sign", [False, True])
def test_nru_selects_smoothly_in_training_and_linearly_in_evaluation(separate_sign):
    unit = NRU(1, 1, separate_sign=separate_sign).double()
    x = torch.tensor([4.0], dtype=torch.float64)
    with torch.no_grad():
        unit.weight.fill_(0.5)
    torch.testing.assert_close(unit.train()(x).item(), 2.0)  # 4 ** 0.5, fully selected
    torch.testing.assert_close(unit.eval()(x).item(), 0.5 * 2.0 + 0.5)


def test_nmru_shifts_the_reciprocal_in_training_only():
    unit = UNITS["NMRU"](1, 1, eps=0.5).double()
    with torch.no_grad():
        unit.weight.copy_(torch.tensor([[0.0, 1.0]]))
    x = torch.tensor([-2.0], dtype=torch.float64)
    torch.testing.assert_close(unit.train()(x).item(), 1 / -1.5)  # the signed input is shifted
    torch.testing.assert_close(unit.eval()(x).item(), -0.5)


def test_inalu_bounds_magnitude_and_exponent():
    unit = UNITS["INALU"](1, 1).double()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.fill_(40.0)
        unit.gate_weight.fill_(-1e9)
    x = torch.tensor([[1e12], [1e-12]], dtype=torch.float64)
    torch.testing.assert_close(unit(x)[0].item(), torch.tensor(20.0).double().exp().item())
    with torch.no_grad():
        unit.gate_weight.fill_(-1e18)
    torch.testing.assert_close(unit(x)[1].item(), 1e-7)


def test_small_factors_keep_their_digits_unless_rounded_as_in_the_code():
    a, b = torch.tensor([3e-9]), torch.tensor([7e-9])
    for rounding, expected in (("exact", a), ("sequential", torch.zeros(1))):
        nmu = NMU(1, 1, rounding=rounding)
        torch.nn.init.ones_(nmu.weight)
        assert torch.equal(nmu(a), expected)
    for name, weight in (("NRU", [[1.0, -1.0]]), ("NMRU", [[1.0, 0.0, 0.0, 1.0]])):
        for rounding, expected in (("exact", 3 / 7), ("sequential", 0.0)):
            unit = UNITS[name](2, 1, rounding=rounding).eval()
            with torch.no_grad():
                unit.weight.copy_(torch.tensor(weight))
            assert unit(torch.cat([a, b])).item() == pytest.approx(expected)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 40, 101])
def test_product_is_the_product(n):
    torch.manual_seed(n)
    factors = torch.randn(4, n, dtype=torch.float64)
    torch.testing.assert_close(product(factors), factors.prod(-1))
    assert torch.equal(product(torch.arange(n, dtype=torch.float64)), torch.zeros(()).double())


@pytest.mark.parametrize(("out_features", "in_features"), [(1, 2), (4, 8), (4, 9), (2, 100)])
@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_weighted_sum_is_linear_for_small_and_large_weights(out_features, in_features, batch):
    torch.manual_seed(0)
    x = torch.randn(*batch, in_features, dtype=torch.float64)
    weight = torch.randn(out_features, in_features, dtype=torch.float64)
    torch.testing.assert_close(weighted_sum(x, weight), torch.nn.functional.linear(x, weight))


def test_identity_product_ignores_what_is_not_selected():
    x = torch.tensor([float(2**20), -7.0])
    assert identity_product(x, torch.tensor([[0.0, 1.0], [0.0, 0.0]])).tolist() == [-7.0, 1.0]


@pytest.mark.parametrize("batch", [(), (40,)])
def test_sign_of_many_inputs_is_the_product_of_its_factors(batch):
    torch.manual_seed(0)
    x = torch.randn(*batch, 30, dtype=torch.float64)
    x[..., 3] = 0.0
    weight = torch.rand(4, 30, dtype=torch.float64) * 0.9
    weight[0, 5], weight[1, 4] = 1.0, 0.0
    summed, multiplied = (weight.clone().requires_grad_() for _ in range(2))
    sign, expected = recovered_sign(x, summed), identity_product(x.sign(), multiplied)
    torch.testing.assert_close(sign, expected)
    scale = torch.randn_like(sign)
    (sign * scale).sum().backward()
    (expected * scale).sum().backward()
    torch.testing.assert_close(summed.grad, multiplied.grad)


def test_sign_of_many_inputs_where_a_factor_is_zero():
    weight = torch.full((1, 30), 1.0)
    x = torch.ones(30).index_fill(0, torch.tensor([7]), 0.0)
    assert recovered_sign(x, weight).item() == pytest.approx(0, abs=1e-30)
    assert recovered_sign(torch.ones(30), weight).item() == 1
    assert recovered_sign(-torch.ones(30), weight).item() == 1
    assert recovered_sign(x - 2 * (x < 0.5), weight).item() == -1


def test_the_noise_of_the_snmu_cancels_at_weights_of_0_and_1_only():
    torch.manual_seed(0)
    unit, x = UNITS["SNMU"](3, 1).double(), torch.rand(1000, 3, dtype=torch.float64) + 1
    weight, noise = unit.weight.detach(), 1 + 4 * uniform_of(x)
    expected = identity_product(x * noise, weight) / identity_product(noise, weight)
    torch.testing.assert_close(unit.train()(x), expected)
    assert not torch.isclose(unit(x), unit.eval()(x)).any()
    torch.nn.init.ones_(unit.weight)
    torch.testing.assert_close(unit.train()(x), x.prod(-1, keepdim=True))


def test_the_noise_of_the_snmu_is_uniform_and_depends_on_the_whole_example():
    """Also for inputs that differ in the last bit, as those of narrow ranges do."""
    x = (
        torch.full((100_000,), 1.1)
        .view(torch.int32)
        .add(torch.arange(100_000, dtype=torch.int32))
        .view(torch.float32)
    )
    x = torch.stack([x, x.flip(0)], -1)
    u = uniform_of(x)
    counts = torch.histogramdd(u, [10, 10], [0.0, 1.0, 0.0, 1.0]).hist
    assert 0 < u.min() and u.max() < 1 and ((counts - 1000) ** 2 / 1000).sum() < 150  # of 99 +- 14
    other = x.clone()
    other[:, 1] += 1e-3
    assert torch.equal(u, uniform_of(x.clone())) and (u != uniform_of(other)).all(1).float().mean() > 0.99
    assert not (u == uniform_of(x.flip(1)).flip(1)).all(1).any()


def test_fresh_noise_is_drawn_anew():
    unit, x = UNITS["SNMU"](2, 1, noise="fresh").train(), torch.tensor([3.0, 2.0])
    torch.manual_seed(0)
    first, second = unit(x), unit(x)
    torch.manual_seed(0)
    assert first != second and unit(x) == first and unit.eval()(x) == unit(x)


@pytest.mark.parametrize("multiply", [False, True])
def test_an_mcfc_conserves_mass(multiply):
    torch.manual_seed(0)
    unit, x = UNITS["MCFC"](3, 4, multiply=multiply, eps=0.0).double(), torch.rand(5, 3).double() + 1
    torch.nn.init.constant_(unit.gate_bias, OPEN)
    mass = unit(x).log() if multiply else unit(x)
    torch.testing.assert_close(mass.sum(-1), (x.log() if multiply else x).sum(-1))


def test_the_golden_ratio_is_the_base_of_a_g_nalu():
    torch.manual_seed(0)
    unit, x, phi = UNITS["GNALU"](3, 2).double(), torch.rand(5, 3).double() + 1, (1 + 5**0.5) / 2
    power = phi ** (2 * unit.weight_tanh)
    W = (power - 1) / (power + 1) / (1 + phi**-unit.weight_sigmoid)
    g = 1 / (1 + phi ** -(x @ unit.gate_weight.T))
    base = torch.tensor(phi).double()
    y = g * (x @ W.T) + (1 - g) * phi ** ((x + 1e-7).log() @ W.T / base.log())
    torch.testing.assert_close(unit(x), y)
