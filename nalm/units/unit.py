"""What all units have in common."""

import inspect
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from nalm.units.checks import positive_int
from nalm.units.functional import distance_to_ternary


class Unit(nn.Module, ABC):
    """An arithmetic layer: an ordinary module that maps ``(..., in_features)`` to ``(..., out_features)``.

    A subclass defines :meth:`forward` and :meth:`reset_parameters`, and those of the other methods in which
    it differs from a unit without constraint and without penalty. Nothing computed from a parameter is kept
    between two forward passes, so parameters may be changed in place at any time.

    Args:
        in_features: number of inputs, a positive integer.
        out_features: number of outputs, a positive integer.
        options: the options of the subclass's constructor, for :func:`repr`, which shows those that are not
            default.

    Attributes:
        in_features (int): number of inputs.
        out_features (int): number of outputs.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a size is below 1.
    """

    def __init__(self, in_features: int, out_features: int, **options: object) -> None:
        super().__init__()
        self.in_features = positive_int("in_features", in_features)
        self.out_features = positive_int("out_features", out_features)
        self._options = options

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., in_features)`` to ``(..., out_features)``."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw new initial parameters in place from torch's global generator."""

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The weights ``(out, in)`` that the forward pass applies, computed from the present parameters."""
        return (self.weight,)  # type: ignore[return-value]

    def project_(self) -> None:
        """Bring the parameters back into their bounds, in place; call it after every optimiser step.

        Without bounds, as here, it does nothing. It acts entry by entry, so it serves stacked parameters too.
        """

    def penalty(self) -> Tensor:
        """Discretisation penalty, a scalar to be scaled and added to the loss; zero without one, as here."""
        return next(self.parameters()).new_zeros(())

    def sparsity_error(self) -> Tensor:
        r"""Largest distance of an effective weight from {-1, 0, 1}, a scalar.

        :math:`\max_{o,i} \min(|W_{oi}|, |1 - |W_{oi}||)`: Madsen & Johansen (2020), Eq. 17. Gates and biases
        do not count.
        """
        return torch.stack([distance_to_ternary(weight).amax() for weight in self.effective_weights()]).amax()

    def check_input(self, x: Tensor) -> None:
        """Raise unless the last dimension of ``x`` is ``in_features``; a 1 would broadcast unnoticed."""
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(
                f"{type(self).__name__} takes inputs of shape (..., {self.in_features}), "
                f"but this one has shape {tuple(x.shape)}."
            )

    def new_weight(self, in_features: int | None = None) -> nn.Parameter:
        """An unfilled parameter ``(out_features, in_features)``."""
        return nn.Parameter(torch.empty(self.out_features, in_features or self.in_features))

    def extra_repr(self) -> str:
        shown: dict[str, object] = {"in_features": self.in_features, "out_features": self.out_features}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if self._options.get(name, parameter.default) != parameter.default:
                shown[name] = self._options[name]
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())
