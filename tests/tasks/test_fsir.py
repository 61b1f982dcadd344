"""The fractional SIR task: its data against another solver, its noise, and the error of the true equations
under each solver.
"""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from nalm.models.node import ODENetwork
from nalm.tasks import FractionalSIRTask, fractional_sir


def test_the_data_are_the_solution_of_another_library():
    times, states = FractionalSIRTask().batch(torch.empty(0), {}, FractionalSIRTask().shared())
    solution = solve_ivp(
        lambda t, y: fractional_sir(t, torch.from_numpy(y)).numpy(),
        (0, 200),
        [100.0, 0.01, 0.0],
        "DOP853",
        times[:, 0].numpy(),
        rtol=1e-11,
        atol=1e-11,
    )
    np.testing.assert_allclose(states, solution.y.T, atol=1e-7)
    assert len(times) == 40 and times[1, 0] == pytest.approx(200 / 39)


def test_the_test_set_goes_on_where_the_data_end():
    sets = FractionalSIRTask().evaluation(0)
    torch.testing.assert_close(sets["valid"].targets[-1], sets["test"].targets[0], rtol=0, atol=1e-8)
    torch.testing.assert_close(sets["test"].targets.sum(1), torch.full((40,), 100.01, dtype=torch.float64))
    np.testing.assert_allclose(sets["test"].inputs[:, 0], np.linspace(200, 400, 40))


class Truth(torch.nn.Module):
    def forward(self, state):
        return fractional_sir(None, state.clamp(min=0))


@pytest.mark.parametrize(
    ("method", "step", "lowest", "highest"), [("euler", 1.0, 1.07, 1.10), ("rk4", 0.5, 0.0, 1e-5)]
)
def test_the_true_equations_have_the_error_of_their_solver(method, step, lowest, highest):
    data = FractionalSIRTask().shared()
    error = (
        (ODENetwork(Truth(), [100.0, 0.01, 0.0], method, step)(data["times"]) - data["states"])
        .square()
        .mean()
    )
    assert lowest <= error <= highest


def test_noise_is_a_share_of_each_variable_and_leaves_the_start():
    clean, noisy = (FractionalSIRTask(noise=noise, noise_seed=3).shared()["states"] for noise in (0.0, 0.05))
    apart = (noisy - clean) / clean.std(0, correction=0)
    assert (apart[0] == 0).all() and 0.04 < apart[1:].std() < 0.06
    assert torch.equal(noisy, FractionalSIRTask(noise=0.05, noise_seed=3).shared()["states"])
    assert not torch.equal(noisy, FractionalSIRTask(noise=0.05, noise_seed=4).shared()["states"])


def test_noise_is_that_of_its_seed():
    states = [
        FractionalSIRTask(noise=noise, noise_seed=3).shared()["states"].numpy() for noise in (0.0, 0.05)
    ]
    normal = np.random.RandomState(3).standard_normal((39, 3))
    np.testing.assert_allclose(states[1][1:], states[0][1:] + 0.05 * states[0].std(0) * normal, rtol=1e-12)
    task = FractionalSIRTask(noise=0.05)
    sets = task.evaluation(0)
    assert torch.equal(sets["valid"].targets, task.shared()["states"])
    assert torch.equal(sets["test"].targets, FractionalSIRTask().evaluation(0)["test"].targets)
    assert task.label() == "t in [0, 200], noise 0.05" and FractionalSIRTask().label() == "t in [0, 200]"
    assert len({one.structure() for one in (task, task.but(noise=0.1), task.but(noise_seed=1))}) == 3


def test_a_seed_of_noise_is_one_that_numpy_takes():
    with pytest.raises(ValueError, match="noise_seed is 4294967296"):
        FractionalSIRTask(noise_seed=2**32)
