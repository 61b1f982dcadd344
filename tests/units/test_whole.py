"""Whole networks in a loop of one's own: penalty and ramp, projection, rounding."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from nalm import (
    NAU,
    NMU,
    NPU,
    UNITS,
    GatedNAUNMU,
    Linear,
    RealNPU,
    penalty,
    project_,
    ramp,
    round_,
    sparsity_error,
)
from nalm.training import Discretisation
from nalm.units import outermost_units
from nalm.units.functional import DISTANCES, distance, nearest

floats = st.floats(-3, 3, width=32)
several = st.lists(floats, min_size=1, max_size=8).map(torch.tensor)


@settings(deadline=None)
@given(step=st.integers(0, 300), start=st.integers(0, 200), length=st.integers(1, 200))
def test_the_ramp_is_that_of_recorded_runs(step, start, length):
    numbers = Discretisation(weight=1.0, start=start, end=start + length).numbers()
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in numbers.items()}
    recorded = Discretisation.coefficient(tensors, torch.tensor(float(step), dtype=torch.float64))
    assert ramp(step, start, start + length) == recorded.item()


def test_a_ramp_ends_after_it_starts():
    with pytest.raises(ValueError, match="start=5 and end=5"):
        ramp(1, 5, 5)
    with pytest.raises(ValueError, match="A ramp ends after it starts"):
        ramp(5, 0, float("nan"))


@settings(deadline=None)
@given(weight=several)
@pytest.mark.parametrize("values", [*DISTANCES, (0,), (-2, -0.5, 0, 2)], ids=str)
def test_the_nearest_value_is_as_far_as_the_distance_says(values, weight):
    to = nearest(weight, values)
    assert set(to.tolist()) <= set(map(float, values))
    every = torch.stack([(weight - value).abs() for value in values]).amin(0)
    torch.testing.assert_close(distance(weight, values), every, rtol=0, atol=3e-7)
    torch.testing.assert_close((weight - to).abs(), every, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("weight", "values", "expected"),
    [
        (torch.tensor([torch.inf, 3.4e7, -1e8]), (-1, 0, 1), [1.0, 1.0, -1.0]),
        (torch.tensor([300.0], dtype=torch.bfloat16), (-1, 0, 1), [1.0]),
        (torch.tensor([5000.0], dtype=torch.float16), (0, 1), [1.0]),
    ],
)
def test_large_weights_are_nearest_to_the_last_value(weight, values, expected):
    assert nearest(weight, values).tolist() == expected


def test_nan_stays():
    assert nearest(torch.tensor([torch.nan, 0.6]), (0, 1)).isnan().tolist() == [True, False]


@pytest.mark.parametrize(
    ("unit", "parameter", "expected"),
    [
        (NAU(4, 1), "weight", [-1.0, 0.0, 1.0, 1.0]),
        (NAU(4, 1, clamp="forward"), "weight", [-1.0, 0.0, 1.0, 1.0]),
        (NMU(4, 1), "weight", [0.0, 0.0, 1.0, 1.0]),
        (GatedNAUNMU(4, 1), "mul.weight", [0.0, 0.0, 1.0, 1.0]),
        (GatedNAUNMU(4, 1), "gate_weight", [-1.5, -0.25, 0.75, 2.0]),
        (RealNPU(4, 1, discretise=("weight",)), "weight", [-1.0, -1.0, 1.0, 1.0]),
        (RealNPU(4, 1, discretise=("gate",)), "weight", [-1.5, -0.25, 0.75, 2.0]),
        (NPU(4, 1, discretise=("weight_im",)), "weight_im", [0.0, 0.0, 0.0, 0.0]),
        (UNITS["NMRU"](2, 1, gate="zero"), "gate", [0.0, 0.0, 1.0, 1.0]),
        (UNITS["NACMul"](4, 1, weight="linear"), "weight", [0.0, 0.0, 1.0, 1.0]),
    ],
    ids=str,
)
def test_rounding(unit, parameter, expected):
    with torch.no_grad():
        values = torch.tensor([-1.5, -0.25, 0.75, 2.0])
        unit.get_parameter(parameter).copy_(values.reshape(unit.get_parameter(parameter).shape))
    round_(nn.Sequential(nn.Linear(1, 1), unit))
    assert unit.get_parameter(parameter).flatten().tolist() == expected


@pytest.mark.parametrize("unit", [Linear(2, 1), NAU(2, 1, clamp="none"), RealNPU(2, 1)], ids=str)
def test_what_has_no_discrete_values_cannot_be_rounded(unit):
    model = nn.Sequential(NMU(2, 2), unit)
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(ValueError, match=re.escape(f"{unit} has no discrete values to which it could be")):
        round_(model)
    assert all(map(torch.equal, model.parameters(), before))  # the NMU before it neither


def test_a_unit_that_a_model_has_in_several_places_counts_once():
    unit, gated = NMU(2, 2), GatedNAUNMU(2, 2)
    parts = nn.Sequential(unit, nn.ReLU()), nn.Sequential(nn.Sequential(unit), gated), gated.mul
    model = nn.ModuleList(parts)
    assert list(outermost_units(model)) == [unit, gated]
    assert penalty(model).item() == pytest.approx((unit.penalty() + gated.penalty()).item())


def test_a_model_without_units_has_no_sparsity_error():
    assert sparsity_error(nn.Linear(2, 1)).isnan() and sparsity_error(nn.Identity()).isnan()


@pytest.mark.parametrize("ask", [penalty, round_])
def test_a_network_without_units_has_nothing_to_draw(ask):
    with pytest.raises(ValueError, match="This Sequential contains no unit."):
        ask(nn.Sequential(nn.Linear(2, 1)))


def test_the_step_hook_does_what_is_done_by_hand():
    weights = []
    for by_hook in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(NAU(3, 2), NMU(2, 1))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.3)
        if by_hook:
            optimiser.register_step_post_hook(lambda *_, model=model: project_(model))
        for _ in range(20):
            optimiser.zero_grad()
            (model(torch.rand(8, 3)) - 5).square().mean().backward()
            optimiser.step()
            if not by_hook:
                project_(model)
        weights.append(model.state_dict())
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    assert weights[0]["0.weight"].abs().max() == 1


@pytest.mark.parametrize("normalise", [parametrizations.weight_norm, weight_norm])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_weight_that_cannot_be_held_is_left_as_it_was(normalise):
    unit = NMU(3, 1)
    nn.init.constant_(unit.weight, -5.0)  # its bound, 0, has no direction
    normalise(unit, "weight")
    before = {name: value.clone() for name, value in unit.state_dict().items()}
    with pytest.raises(RuntimeError, match="weight is computed, and what computes it does not reach"):
        unit.project_()
    assert all(torch.equal(value, before[name]) for name, value in unit.state_dict().items())


def test_a_computed_weight_that_is_not_a_number_stays_as_a_stored_one_does():
    """Its bounds are not what went wrong."""
    unit = parametrizations.weight_norm(NMU(3, 1), "weight")
    nn.init.constant_(unit.parametrizations.weight.original0, torch.nan)
    before = {name: value.clone() for name, value in unit.state_dict().items()}
    unit.project_()
    assert unit.weight.isnan().all()
    for name, value in unit.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
