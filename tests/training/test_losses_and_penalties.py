"""Losses against their definitions, schedules against the numbers of the protocols."""

import numpy as np
import pytest
import torch
from scipy import stats

from nalm.models import Stack
from nalm.training import L1, ActivationPenalty, Discretisation, Norms
from nalm.training.losses import mape, mse, pcc


def coefficient(penalty, iteration):
    numbers = {name: torch.tensor(value) for name, value in penalty.numbers().items()}
    return float(penalty.coefficient(numbers, torch.tensor(float(iteration))))


def test_losses():
    generator = torch.Generator().manual_seed(0)
    output, target = torch.rand(128, 1, generator=generator), 1 + torch.rand(128, 1, generator=generator)
    assert float(mse(output, target)) == pytest.approx(float(((output - target) ** 2).mean()))
    assert float(mape(output, -target)) == pytest.approx(float(((output + target) / target).abs().mean()))
    correlation = stats.pearsonr(output[:, 0].numpy(), target[:, 0].numpy()).statistic
    assert float(pcc(output, target)) == pytest.approx(1 - correlation, abs=1e-4)
    # a target that hardly varies is divided by the float's epsilon, not by its variance
    narrow = torch.linspace(0, 1e-4, 9)
    assert float(pcc(narrow, narrow)) == pytest.approx(0.99127, abs=1e-4)


def test_growth_that_ends_on_a_step_takes_no_further_one():
    assert L1(start=1.0, end=125.0, growth=5.0).numbers()["times"] == 3


@pytest.mark.parametrize(
    ("iteration", "expected"), [(0, 0), (20_000, 0), (27_500, 5), (35_000, 10), (10**6, 10)]
)
def test_discretisation_ramp(iteration, expected):
    assert coefficient(Discretisation(weight=10.0, start=20_000, end=35_000), iteration) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("kind", [L1, Norms])
@pytest.mark.parametrize(
    ("iteration", "expected"), [(0, 1e-9), (9_999, 1e-9), (10_000, 1e-8), (20_000, 1e-7), (10**6, 1e-7)]
)
def test_growing_coefficient(kind, iteration, expected):
    assert coefficient(kind(start=1e-9, end=1e-7), iteration) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("iteration", "expected"), [(4, 1.0), (5, 2.0), (10, 4.0), (15, 8.0), (20, 8.0), (10**6, 8.0)]
)
def test_a_coefficient_grows_while_it_is_below_its_end(iteration, expected):
    """By its own factor; the last step may go beyond the end."""
    growing = L1(start=1.0, end=5.0, every=5, growth=2.0)
    assert coefficient(growing, iteration) == pytest.approx(expected, rel=1e-5)


def test_a_constant_coefficient_stays():
    assert coefficient(L1(start=1e-3, end=1e-3), 10**6) == pytest.approx(1e-3)
    assert coefficient(ActivationPenalty(weight=2.0), 5) == 2


@torch.no_grad()
def test_values():
    model = Stack.of("NAU", 2, "NMU", 1).build(2)
    model[0].weight.copy_(torch.tensor([[1.0, -0.5], [0.0, 0.25]]))
    model[1].weight.copy_(torch.tensor([[1.0, 0.8]]))
    assert float(L1.value(model)) == pytest.approx(1.75 + 1.8)
    assert float(Norms.value(model)) == pytest.approx(np.sqrt(1 + 0.25 + 0.0625) + np.sqrt(1.64))
    assert float(Discretisation.value(model)) == pytest.approx((0.5 + 0.25) / 4 + 0.2 / 2)


def test_the_norm_of_zeros_has_gradient_zero():
    model = Stack.of("NPU", 1).build(2)  # its imaginary weights start at zero
    Norms.value(model).backward()
    assert torch.equal(model[0].weight_im.grad, torch.zeros(1, 2))
