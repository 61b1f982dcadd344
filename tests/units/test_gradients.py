"""Gradients: against the papers' formulas, and against finite differences for every unit."""

import pytest
import torch
from torch import Tensor

from nalm.units import NALU, NMU, NRU, NACMul, RealNPU
from nalm.units.functional import product

from .cases import SEVERAL_OUTPUTS

f64 = torch.float64


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_gradients_agree_with_finite_differences(case, training):
    torch.manual_seed(1)
    unit = case.build().train(training)
    # Away from the kinks of |.| and clamp, and, for tanh(1000 W), where it is not flat.
    scale = 1e-3 if case.unit == "NRU" and training else 1.0
    for parameter in unit.parameters():
        torch.nn.init.uniform_(parameter, 0.3 * scale, 0.7 * scale)
    x = torch.tensor([[1.3, -0.7, 0.4], [-2.1, 0.6, -0.9]], dtype=f64)
    x.requires_grad_(case.unit != "SNMU" or not training)  # its noise changes with x

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(unit, dict(zip(names, parameters, strict=True)), (x,))

    names = [name for name, _ in unit.named_parameters()]
    # The separate sign is rounded: constant except for jumps, which the step does not reach.
    assert torch.autograd.gradcheck(run, (x, *unit.parameters()), eps=1e-7, atol=1e-4, rtol=1e-4)


def test_nru_gradient_is_the_corrected_equation_6():
    torch.manual_seed(0)
    unit = NRU(3, 1).double().train()
    with torch.no_grad():
        unit.weight.copy_(torch.tensor([[0.001, -0.0007, 0.4]]))
    x = torch.tensor([1.7, -0.3, 2.2], dtype=f64)
    (gradient,) = torch.autograd.grad(unit(x).sum(), unit.weight)
    w = unit.weight.detach()[0]
    t = torch.tanh(1000 * w)
    sech2 = 1 / torch.cosh(1000 * w) ** 2
    signed = x.sign() * x.abs() ** w  # the paper prints |x| without its exponent
    factors = signed * t**2 + 1 - t**2
    for i in range(3):
        own = t[i] * (signed[i] * (t[i] * x[i].abs().log() + 2000 * sech2[i]) - 2000 * sech2[i])
        others = factors[torch.arange(3) != i].prod()  # the paper divides it by itself
        torch.testing.assert_close(gradient[0, i], own * others)


@pytest.mark.parametrize(("x", "w"), [(1.0, 0.3), (1.0, -0.001), (5.0, 0.0), (-5.0, 0.0), (-1.0, 0.5)])
def test_nru_gradient_vanishes_where_the_paper_says(x, w):
    unit = NRU(1, 1).double().train()
    with torch.no_grad():
        unit.weight.fill_(w)
    (gradient,) = torch.autograd.grad(unit(torch.tensor([x], dtype=f64)).sum(), unit.weight)
    assert gradient.item() == 0.0


def test_nru_gradient_at_minus_one_vanishes_only_away_from_zero():
    unit = NRU(1, 1).double().train()
    with torch.no_grad():
        unit.weight.fill_(0.001)
    (gradient,) = torch.autograd.grad(unit(torch.tensor([-1.0], dtype=f64)).sum(), unit.weight)
    assert abs(gradient.item()) > 100  # the paper says 0 for every weight


@pytest.mark.parametrize("value", [0.0, 1e-30])
def test_nru_trains_through_inputs_near_zero(value):
    unit = NRU(2, 1).train()
    unit(torch.tensor([value, 2.0])).sum().backward()
    assert unit.weight.grad.isfinite().all()


def test_nmu_gradient_is_equation_26():
    torch.manual_seed(0)
    unit = NMU(4, 1).double()
    x = torch.randn(4, dtype=f64)
    y = unit(x)
    (gradient,) = torch.autograd.grad(y.sum(), unit.weight)
    w = unit.weight.detach()
    torch.testing.assert_close(gradient, y.detach() / (w * x + 1 - w) * (x - 1))


def test_nmu_gradient_is_exact_where_a_factor_is_zero():
    unit = NMU(3, 1).double()
    with torch.no_grad():
        unit.weight.copy_(torch.tensor([[1.0, 0.5, 0.5]]))
    (gradient,) = torch.autograd.grad(unit(torch.tensor([0.0, 3.0, 5.0], dtype=f64)).sum(), unit.weight)
    torch.testing.assert_close(gradient, torch.tensor([[-1.0 * 2.0 * 3.0, 0.0, 0.0]], dtype=f64))


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 40])
def test_product_gradient_is_the_product_of_the_others(n):
    torch.manual_seed(n)
    factors = torch.randn(n, dtype=f64)
    factors[n // 2] = 0.0
    gradient = torch.func.grad(product)(factors)
    others = torch.stack([factors[torch.arange(n) != i].prod() for i in range(n)])
    torch.testing.assert_close(gradient, others)


def test_npu_gate_gradient():
    unit = RealNPU(2, 1, eps=0.0).double()
    with torch.no_grad():
        unit.weight.copy_(torch.tensor([[0.8, -0.6]]))
        unit.gate.copy_(torch.tensor([0.3, 0.9]))
    x = torch.tensor([-2.0, 3.0], dtype=f64)
    (gradient,) = torch.autograd.grad(unit(x).sum(), unit.gate)
    w, g = unit.weight.detach()[0], unit.gate.detach()
    r = g * x.abs() + 1 - g
    size, angle = (w * r.log()).sum().exp(), (w * g * torch.pi * (x < 0)).sum()
    expected = w * (x.abs() - 1) / r * size * angle.cos() - w * torch.pi * (x < 0) * size * angle.sin()
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize(
    ("gate", "alive"), [(-0.1, False), (0.0, True), (0.5, True), (1.0, True), (1.1, False)]
)
def test_npu_gate_has_no_gradient_outside_its_bounds(gate, alive):
    unit = RealNPU(1, 1, gate_init=gate).double()
    (gradient,) = torch.autograd.grad(unit(torch.tensor([3.0], dtype=f64)).sum(), unit.gate)
    assert bool(gradient != 0) == alive


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_penalty_gradient_is_finite(case):
    unit = case.build()
    gradients = torch.func.grad(lambda p: torch.func.functional_call(Penalty(unit), p, ()))(
        {f"unit.{name}": p.detach() for name, p in unit.named_parameters()}
    )
    assert all(gradient.isfinite().all() for gradient in gradients.values())


class Penalty(torch.nn.Module):
    def __init__(self, unit: torch.nn.Module) -> None:
        super().__init__()
        self.unit = unit

    def forward(self) -> Tensor:
        return self.unit.penalty()


@pytest.mark.parametrize(
    "unit",
    [NALU(40, 3), NALU(40, 3, shared=False), NALU(40, 3, gate_bias=True), NALU(40, 1), NACMul(40, 3)],
    ids=str,
)
@pytest.mark.parametrize("batch", [(), (5,), (2, 5)])
def test_many_inputs_and_few_outputs(unit, batch):
    """Computed with examples last: the same outputs and gradients as one by one."""
    torch.manual_seed(0)
    unit.reset_parameters()
    unit, x = unit.double(), torch.rand(*batch, 40, dtype=f64) + 1
    one_by_one = torch.stack([unit(row) for row in x.reshape(-1, 40)]).reshape(*batch, unit.out_features)
    together = unit(x)
    torch.testing.assert_close(together, one_by_one, rtol=1e-10, atol=0)
    towards = torch.rand_like(together)
    expected, found = (
        torch.autograd.grad((y * towards).sum(), list(unit.parameters())) for y in (one_by_one, together)
    )
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_the_nalu_of_many_inputs_is_equation_3():
    unit, x = NALU(40, 3, gate_bias=True).double(), torch.rand(7, 40, dtype=f64) + 1
    W = unit.weight_tanh.tanh() * unit.weight_sigmoid.sigmoid()
    g = (x @ unit.gate_weight.T + unit.gate_bias).sigmoid()
    torch.testing.assert_close(unit(x), g * (x @ W.T) + (1 - g) * ((x + 1e-7).log() @ W.T).exp())
