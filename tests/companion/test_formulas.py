"""The formulas that are read off weights compute what the network computes."""

import numpy as np
import pytest
import sympy
import torch
from companion.npu.formulas import learned_equations

from nalm.models import NODE, Layer

NAMES = ["S", "I", "R"]


def network(unit: str):
    layers = (Layer(unit=unit, out_features=4), Layer(unit="NAU", out_features=3, options={"clamp": "none"}))
    torch.manual_seed(0)
    built = NODE(layers=layers, initial_state=(1.0, 1.0, 1.0)).build(1)
    for parameter in built.parameters():
        torch.nn.init.uniform_(parameter, -0.9, 1.4)
    return built, {name: p.detach().numpy() for name, p in built.named_parameters()}


@pytest.mark.parametrize("unit", ["NPU", "RealNPU"])
def test_formulas_compute_the_right_hand_side(unit):
    built, weights = network(unit)
    compute = sympy.lambdify(sympy.symbols(NAMES, positive=True), learned_equations(weights, NAMES), "numpy")
    for state in np.random.RandomState(0).uniform(0.1, 50.0, (20, 3)):
        expected = built.derivative(torch.from_numpy(state)).detach()
        torch.testing.assert_close(torch.tensor(compute(*state)), expected, rtol=1e-9, atol=1e-9)


def test_rounded_away():
    weights = {
        "field.0.weight": [[0.004, 0.0, 0.0], [0.5, 0.5, 0.0]],
        "field.0.gate": [1.2, 1.0, 0.5],
        "field.1.weight": [[0.1, 0.004]] * 3,
    }
    assert [float(e) for e in learned_equations(weights, NAMES, digits=2)] == [0.1] * 3


def test_bad_input():
    with pytest.raises(ValueError, match="lack field.0.gate"):
        learned_equations({"field.0.weight": [[1.0]], "field.1.weight": [[1.0]]}, ["S"])
    with pytest.raises(ValueError, match="3 entries, but 2 names"):
        learned_equations(network("NPU")[1], ["S", "I"])
