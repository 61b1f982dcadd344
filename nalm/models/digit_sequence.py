"""The reader of digit sequences of the nau-nmu paper's sequential MNIST: a run's model as a value, and its
module.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import field_validator
from torch import Tensor, nn
from torch.nn import functional

from nalm.models.stack import Layer
from nalm.units import NAC, NAU, NMU, NACMul, Unit
from nalm.values import Value

__all__ = ["DigitCNN", "DigitSequence", "DigitSequenceNetwork", "activation_penalty"]


class DigitSequence(Value):
    """A digit reader with a recurrent cell, see :class:`DigitSequenceNetwork`.

    Args:
        cell: a unit with one output, for instance ``Layer(unit="NMU")``; ``"LSTM"`` for one of size 1;
            ``None`` for the exact product or sum.
        initial_state: the state before the first digit, 1 or 0. The exact result is a product from 1 and a
            sum from 0.

    Raises:
        ValueError: a cell with several outputs, or another initial state.

    >>> DigitSequence(cell="LSTM", initial_state=0.0).build(1).cell
    LSTMCell(1, 1)
    """

    kind: Literal["DigitSequence"] = "DigitSequence"
    cell: Layer | Literal["LSTM"] | None
    initial_state: float = 1.0
    one_by_one: ClassVar[bool] = (
        True  # a CNN fills the processor by itself; stacked convolutions would be slower
    )
    recorded: ClassVar[str] = "cell."  # the digit reader is too large

    @field_validator("cell", mode="before")
    @classmethod
    def _known(cls, cell: object) -> object:
        if isinstance(cell, str) and cell != "LSTM":
            raise ValueError(f"Unknown cell {cell!r}: allowed are a Layer, 'LSTM' and None.")
        return cell

    @field_validator("cell")
    @classmethod
    def _of_one_output(cls, cell: Layer | str | None) -> Layer | str | None:
        if isinstance(cell, Layer) and cell.out_features != 1:
            raise ValueError(
                f"A recurrent cell has one output, its next state, but out_features={cell.out_features}."
            )
        return cell

    @field_validator("initial_state")
    @classmethod
    def _of_an_identity(cls, state: float) -> float:
        if state not in (0.0, 1.0):
            raise ValueError(f"The initial state must be 1 (products) or 0 (sums), but is {state:g}.")
        return state

    def build(self, in_features: int) -> nn.Module:
        cell = nn.LSTMCell(1, 1) if self.cell == "LSTM" else self.cell and self.cell.build(2)
        return DigitSequenceNetwork(cell, self.initial_state)  # type: ignore[arg-type]


class DigitCNN(nn.Module):
    """One number per image: (..., 28, 28) -> (...).

    Convolution 5x5 to 20 maps, ReLU, max-pool 2; convolution 5x5 to 50 maps, ReLU, max-pool 2; linear 800 to
    500, ReLU; linear 500 to 1; torch's default initialisation.

    >>> DigitCNN()(torch.zeros(3, 2, 28, 28)).shape
    torch.Size([3, 2])
    """

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 20, 5)
        self.second = nn.Conv2d(20, 50, 5)
        self.head = nn.Sequential(nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 1))

    def forward(self, images: Tensor) -> Tensor:
        # Written for CPUs: a convolution of one channel is fastest as a matrix product, which leaves its maps
        # with channels last; so is the second convolution then; and ReLU after pooling is the same on a
        # quarter of the numbers.
        windows = images.reshape(-1, 28, 28).unfold(1, 5, 1).unfold(2, 5, 1).reshape(-1, 25)
        maps = (
            torch.addmm(self.first.bias, windows, self.first.weight.flatten(1).T)  # type: ignore[arg-type]
            .view(-1, 24, 24, 20)
            .permute(0, 3, 1, 2)
        )
        maps = torch.relu(functional.max_pool2d(maps, 2))
        maps = functional.conv2d(
            maps, self.second.weight.contiguous(memory_format=torch.channels_last), self.second.bias
        )
        maps = torch.relu(functional.max_pool2d(maps, 2))
        return self.head(maps.flatten(1)).reshape(images.shape[:-2])


class DigitSequenceNetwork(nn.Module):
    """A digit reader whose numbers are accumulated by a recurrent cell.

    Args:
        cell: a unit with two inputs (the image's number, the state) and one output (the next state); an LSTM
            of size 1, whose hidden state is the result; ``None``: exact, the running product of the numbers
            from a state of 1, their running sum from 0.
        initial_state: the state before the first digit; not learned.

    Shapes: (batch, steps, 28, 28) -> (batch, steps), the state after each digit.
    """

    def __init__(self, cell: Unit | nn.LSTMCell | None, initial_state: float) -> None:
        super().__init__()
        self.reader = DigitCNN()
        self.cell = cell
        self.initial_state = initial_state

    def forward(self, images: Tensor) -> Tensor:
        return self.accumulate(self.reader(images))

    def forward_with_activation_penalty(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The states, and the penalty R_z on the cell's two inputs over batch and steps."""
        states, inputs = self._states(self.reader(images))
        return states, activation_penalty(self.cell, inputs)

    def accumulate(self, numbers: Tensor) -> Tensor:
        """The states for numbers in place of images: (batch, steps) -> (batch, steps)."""
        return self._states(numbers)[0]

    def _states(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        if self.cell is None:
            return numbers.cumprod(-1) if self.initial_state else numbers.cumsum(-1), numbers.unsqueeze(-1)
        state = memory = torch.full_like(numbers[..., :1], self.initial_state)
        states, inputs = [], []
        for number in numbers.split(1, -1):
            inputs.append(torch.cat([number, state], -1))
            if isinstance(self.cell, nn.LSTMCell):
                state, memory = self.cell(number, (state, memory))
            else:
                state = self.cell(inputs[-1])
            states.append(state)
        return torch.cat(states, -1), torch.stack(inputs, -2)


def activation_penalty(cell: nn.Module | None, inputs: Tensor) -> Tensor:
    r"""R_z (nau-nmu paper, section 4.2 and appendix D.2): draws the mean of inputs that are not selected to
    the operation's identity.

    Multiplication: :math:`\frac1I\sum_j (1 - W_j)(1 - \bar z_j)^2`; addition:
    :math:`\frac1I\sum_j (1 - |W_j|)\,\bar z_j^2`. The NAC• takes the formula of multiplication on the
    logarithms that its weights multiply, as in the authors' code, which draws their mean to 1, though the
    identity has logarithm 0.

    Args:
        cell: an NMU, NACMul, NAU or NAC of one output.
        inputs: (..., in); the mean is over all but the last dimension.

    Raises:
        ValueError: another cell.
    """
    mean = (
        (torch.log(inputs.abs() + cell.eps) if isinstance(cell, NACMul) else inputs)
        .reshape(-1, inputs.shape[-1])
        .mean(0)
    )
    if isinstance(cell, NMU | NACMul):
        (weight,) = cell.effective_weights()
        return ((1 - weight) * (1 - mean).square()).mean()
    if isinstance(cell, NAU | NAC):
        (weight,) = cell.effective_weights()
        return ((1 - weight.abs()) * mean.square()).mean()
    raise ValueError(f"R_z is defined for NMU, NACMul, NAU and NAC cells, not for {type(cell).__name__}.")
