"""The optimisers against torch's, for runs with different learning rates."""

import pytest
import torch

from nalm.training import LBFGS, SGD, Adam, RMSProp
from nalm.training.optimisers import HagerZhangLBFGS

TORCH = {
    "Adam": lambda p, lr: torch.optim.Adam([p], lr=lr),
    "SGD": lambda p, lr: torch.optim.SGD([p], lr=lr),
    "RMSProp": lambda p, lr: torch.optim.RMSprop([p], lr=lr, alpha=0.9),
}


@pytest.mark.parametrize("optimiser", [Adam(lr=0.1), SGD(lr=0.1), RMSProp(lr=0.1)], ids=lambda o: o.kind)
def test_updates_are_torchs(optimiser):
    rates = torch.tensor([0.1, 0.003])
    parameter = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    state = tuple(torch.zeros_like(parameter) for _ in optimiser.slots)
    references = [row.clone().requires_grad_() for row in parameter]
    torch_optimisers = [TORCH[optimiser.kind](r, float(lr)) for r, lr in zip(references, rates, strict=True)]
    for step in range(50):
        gradient = parameter**3 - 1  # of sum(p**4 / 4 - p)
        parameter, *slots = optimiser.update(
            parameter, gradient, state, rates.double()[:, None], torch.tensor(step)
        )
        state = tuple(slots)
        for reference, torch_optimiser in zip(references, torch_optimisers, strict=True):
            torch_optimiser.zero_grad()
            (reference**4 / 4 - reference).sum().backward()
            torch_optimiser.step()
    torch.testing.assert_close(parameter, torch.stack([r.detach() for r in references]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("optimiser", [Adam(lr=0.1), SGD(lr=0.1), RMSProp(lr=0.1)], ids=lambda o: o.kind)
def test_small_gradients_are_taken_as_torch_takes_them(optimiser):
    """Where the root of a square is not much larger than eps, it matters whether eps is added to the root or
    to the square.
    """
    gradient = torch.tensor([1e-9, -1e-8, 1e-7, 1e-6, -1e-5, 1e-4, 1e-3], dtype=torch.float64)
    reference = torch.zeros_like(gradient).requires_grad_()
    reference.grad = gradient
    TORCH[optimiser.kind](reference, optimiser.lr).step()
    state = tuple(torch.zeros_like(gradient) for _ in optimiser.slots)
    found, *_ = optimiser.update(
        torch.zeros_like(gradient), gradient, state, torch.tensor(0.1, dtype=torch.float64), torch.tensor(0)
    )
    torch.testing.assert_close(found, reference.detach(), rtol=1e-6, atol=0)


def test_the_defaults_of_a_second_stage_are_those_that_keys_leave_out():
    for stage in (LBFGS(), HagerZhangLBFGS()):
        assert (stage.iterations, stage.memory, stage.gradient_tolerance) == (1000, 10, 1e-8)
