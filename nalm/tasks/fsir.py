"""The fractional SIR system of the NPU paper: an epidemic whose course is to be learned from forty points in
time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from pydantic import Field, NonNegativeFloat
from torch import Tensor

from nalm.tasks.task import EvaluationSet, Task, Tensors

__all__ = ["FractionalSIRTask", "fractional_sir"]

ALPHA, BETA, ETA = 0.05, 0.06, 0.01
GAMMA = KAPPA = 0.5
INITIAL_STATE = (100.0, 0.01, 0.0)
END, POINTS = 200.0, 40


def fractional_sir(t: Tensor, state: Tensor) -> Tensor:
    r"""The derivative of (S, I, R), NPU paper, Eq. 16 and 17.

    .. math::

        \dot S = -r + \eta R, \qquad \dot I = r - \alpha I, \qquad \dot R = \alpha I - \eta R, \qquad
        r = \beta I^\gamma S^\kappa

    with :math:`\alpha = 0.05`, :math:`\beta = 0.06`, :math:`\eta = 0.01` and
    :math:`\gamma = \kappa = 1/2`. The sum S + I + R does not change.

    Args:
        t: time; the system does not depend on it.
        state: (..., 3), not negative.

    >>> fractional_sir(torch.tensor(0.0), torch.tensor([100.0, 4.0, 10.0]))
    tensor([-1.1000,  1.0000,  0.1000])
    """
    s, i, r = state.unbind(-1)
    infected = BETA * i**GAMMA * s**KAPPA
    return torch.stack([-infected + ETA * r, infected - ALPHA * i, ALPHA * i - ETA * r], -1)


@lru_cache
def _states(start: float, end: float) -> Tensor:
    """The states (40, 3) at equally spaced times of [start, end], to ten digits."""
    from torchdiffeq import odeint

    times = torch.linspace(start, end, POINTS, dtype=torch.float64)
    from_start = times if start == 0.0 else torch.cat([times.new_zeros(1), times])
    initial = torch.tensor(INITIAL_STATE, dtype=torch.float64)
    # It steps to every time that is asked for: its interpolation is less accurate than its steps.
    return odeint(
        fractional_sir,
        initial,
        from_start,
        method="dopri8",
        rtol=1e-11,
        atol=1e-12,
        options={"step_t": from_start[1:]},
    )[-POINTS:]


class FractionalSIRTask(Task):
    """From a time to the state (S, I, R) of the fractional SIR system: 40 times, equally spaced on [0, 200],
    both ends included.

    Training sees all of them in every iteration. The start (100, 0.01, 0) is known. Evaluation sets:
    ``valid``, the training data (the paper has no others), and ``test``, the states without noise at 40 times
    on [200, 400].

    Args:
        noise: standard deviation of normal noise on the data, as a share of each variable's standard
            deviation over the 40 times. The start is exact.
        noise_seed: of the noise.

    Source: NPU paper, section 4.1. The paper's data come from a solver with a relative tolerance of 1e-3 and
    differ by at most 0.003 from these.

    >>> task = FractionalSIRTask()
    >>> x, states = task.batch(torch.empty(0), {}, task.shared())
    >>> x[-1].item(), [round(v, 3) for v in states.sum(-1)[[0, -1]].tolist()]
    (200.0, [100.01, 100.01])
    """

    kind: Literal["FractionalSIRTask"] = "FractionalSIRTask"
    noise: NonNegativeFloat = 0.0
    noise_seed: int = Field(0, ge=0, lt=2**32)

    @property
    def in_features(self) -> int:
        return 1

    @property
    def out_features(self) -> int:
        return 3

    def label(self) -> str:
        return f"t in [0, {END:g}]" + (f", noise {self.noise:g}" if self.noise else "")

    def structure(self) -> tuple:
        return (type(self).__name__, self.noise, self.noise_seed)

    def constants(self, seed: int) -> Tensors:
        return {}

    def shared(self) -> Tensors:
        states = _states(0.0, END)
        if self.noise:
            normal = torch.from_numpy(np.random.RandomState(self.noise_seed).standard_normal((POINTS - 1, 3)))
            states = torch.cat([states[:1], states[1:] + self.noise * states.std(0, correction=0) * normal])
        return {"times": torch.linspace(0.0, END, POINTS, dtype=torch.float64).unsqueeze(1), "states": states}

    def host_draw(self, seed: int, iteration: int, batch_size: int) -> Tensor:
        return torch.empty(0)

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        return shared["times"], shared["states"]

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        later = torch.linspace(END, 2 * END, POINTS, dtype=torch.float64).unsqueeze(1)
        data = self.shared()
        return {
            "valid": EvaluationSet(data["times"], data["states"]),
            "test": EvaluationSet(later, _states(END, 2 * END)),
        }
