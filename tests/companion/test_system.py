"""A sum of power products: its solution, the derivatives of it, and its relation to the network that it
comes from.
"""

import numpy as np
import pytest
import torch
from companion.discovery import PowerSystem
from companion.npu.settings import EXACT_FSIR

from nalm.models import NODE, Layer
from nalm.tasks import FractionalSIRTask

DATA = FractionalSIRTask().shared()
TIMES, STATES = DATA["times"][:, 0].numpy(), DATA["states"].numpy()


def test_true_system_solves_to_the_data():
    system = PowerSystem.of(EXACT_FSIR)
    states, slopes = system.solve(TIMES, STATES)
    assert system.size == 10 and slopes.shape == (40, 3, 10)
    assert np.mean((states - STATES) ** 2) < 1e-6


@pytest.mark.parametrize("restart", [False, True])
def test_slopes_are_derivatives_by_the_numbers(restart):
    random = np.random.RandomState(0)
    numbers = np.concatenate(
        [
            random.uniform(-0.2, 0.6, (4, 3)),
            random.uniform(-0.2, 0.2, (4, 3)),
            random.uniform(-0.02, 0.02, (4, 3)),
        ],
        1,
    )
    free = random.rand(4, 9) < 0.8
    free[:, 6:] |= ~free[:, 6:].any(1, keepdims=True)
    system = PowerSystem(np.where(free, numbers, 0.0), free)
    times, states = TIMES[:4], STATES[:4] + [0.0, 0.0, 1.0]
    _, slopes = system.solve(times, states, restart)
    for place, (row, column) in enumerate(np.argwhere(free)):
        moved = [system.numbers.copy() for _ in range(2)]
        moved[0][row, column] -= 1e-6
        moved[1][row, column] += 1e-6
        below, above = (PowerSystem(m, free).solve(times, states, restart)[0] for m in moved)
        np.testing.assert_allclose(slopes[:, :, place], (above - below) / 2e-6, rtol=1e-4, atol=1e-5)


def test_open_gates_leave_the_network_as_it_is():
    layers = (Layer(unit="NPU", out_features=4), Layer(unit="NAU", out_features=3, options={"clamp": "none"}))
    torch.manual_seed(0)
    network = NODE(layers=layers, initial_state=(1.0, 1.0, 1.0)).build(1)
    for parameter in network.parameters():
        torch.nn.init.uniform_(parameter, -0.5, 0.9)
    torch.nn.init.constant_(network.field[0].gate, 1.0)
    weights = {name: p.detach().numpy() for name, p in network.named_parameters()}
    state = np.array([30.0, 2.0, 7.0])
    h = 1e-7
    moved = PowerSystem.of(weights).solve(np.array([0.0, h]), state[None])[0][1]
    expected = network.derivative(torch.from_numpy(state)).detach().numpy()
    np.testing.assert_allclose((moved - state) / h, expected, rtol=1e-5)


def test_gates_between_closed_and_open():
    half = EXACT_FSIR | {"field.0.gate": [0.5, 1.2, 0.01]}
    exponents, _, coefficients = PowerSystem.of(half).parts()
    assert exponents[2].tolist() == [0.0, 0.0, 0.0]  # the input behind a shut gate
    assert coefficients[0, 0] == pytest.approx(-0.06 * 0.5**0.5)


def test_weights_as_in_a_row():
    assert PowerSystem.of(EXACT_FSIR).weights() == EXACT_FSIR


@pytest.mark.parametrize(("exponent", "coefficient"), [(2.0, 1.0), (0.0, -1e7)])
def test_diverging_system_has_no_solution(exponent, coefficient):
    weights = {"field.0.weight": [[exponent]], "field.0.gate": [1.0], "field.1.weight": [[coefficient]]}
    assert PowerSystem.of(weights).solve(np.array([0.0, 5.0]), np.array([[10.0]])) is None


def test_a_state_below_zero_changes_no_slope():
    """It counts as the smallest number, however far below it is."""
    root = PowerSystem.of({"field.0.weight": [[0.5]], "field.0.gate": [1.0], "field.1.weight": [[0.1]]})
    states, slopes = root.solve(np.array([0.0, 1.0]), np.array([[-1.0]]))
    assert states[1, 0] == pytest.approx(-1) and np.abs(slopes).max() < 1e-6


def test_units_without_coefficients_lose_their_exponents():
    system = PowerSystem.of(EXACT_FSIR)
    free = system.free.copy()
    free[1, 6:] = False
    assert system.but(free=free).size == 10 - 3
