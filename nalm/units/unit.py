"""What all units have in common."""

import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.types import Device

from nalm.units.checks import floating_point, positive_int
from nalm.units.functional import distance, distance_to_ternary, nearest

LOWER = torch.float32, torch.bfloat16, torch.float16
"""What autocast may make, and takes."""


class Unit(nn.Module, ABC):
    """An arithmetic layer: an ordinary module that maps ``(..., in_features)`` to ``(..., out_features)``.

    A subclass defines :meth:`forward` and :meth:`reset_parameters`, names the values to which its parameters
    are pulled in ``discrete_values``, and defines those of the other methods in which it differs from what
    follows from these. Nothing computed from a parameter is kept between two forward passes, so parameters
    may be changed in place at any time.

    An input has the dtype of the unit's parameters, as with torch's own layers. Under ``torch.autocast`` a
    unit computes in that dtype too, and casts what lower precision comes in: in bfloat16 a product of two
    numbers of three digits would be wrong.

    Args:
        in_features: number of inputs, a positive integer.
        out_features: number of outputs, a positive integer.
        device, dtype: of the parameters, as in torch's own layers.
        options: the options of the subclass's constructor, for :func:`repr`, which shows those that are not
            default.

    Attributes:
        in_features (int): number of inputs.
        out_features (int): number of outputs.
        discrete_values (Mapping[str, Sequence[float]]): parameter -> the values to which
            :meth:`penalty` pulls it, in whose range :meth:`project_` holds it, and to which :meth:`round_`
            rounds it; empty here.

    Raises:
        TypeError: if a size is not an integer, or ``dtype`` no floating-point type.
        ValueError: if a size is below 1.

    Example:
        >>> import torch
        >>> from nalm import Unit
        >>> class Squares(Unit):  # y = W x^2 with W of zeros and ones
        ...     discrete_values = {"weight": (0, 1)}
        ...
        ...     def __init__(self, in_features, out_features, *, device=None, dtype=None):
        ...         super().__init__(in_features, out_features, device=device, dtype=dtype)
        ...         self.weight = self.new_weight()
        ...         self.reset_parameters()
        ...
        ...     def reset_parameters(self):
        ...         torch.nn.init.constant_(self.weight, 0.75)
        ...
        ...     def forward(self, x):
        ...         return torch.nn.functional.linear(x.square(), self.weight)
        >>> unit = Squares(2, 1)
        >>> unit.penalty().item()
        0.25
        >>> unit.round_()
        >>> unit(torch.tensor([3.0, 4.0])).detach()
        tensor([25.])
    """

    discrete_values: Mapping[str, Sequence[float]] = {}

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self.in_features = positive_int("in_features", in_features)
        self.out_features = positive_int("out_features", out_features)
        self._new = {"device": device, "dtype": floating_point("dtype", dtype)}
        self._options = options

    def __call__(self, x: Tensor) -> Tensor:
        """Check the input, and map it by :meth:`forward`."""
        self.check_input(x)
        if _under_autocast(x):
            with torch.autocast(x.device.type, enabled=False):
                return super().__call__(x.to(self._dtype(x)))
        return super().__call__(x)

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

        The bounds are the smallest and the largest of the ``discrete_values``. It acts entry by entry, so it
        serves stacked parameters too.

        Raises:
            RuntimeError: if a parameter has been replaced by a computation (a parametrisation) that cannot be
                set to the value within the bounds.
        """
        for name, values in self.discrete_values.items():
            self.clamp_(name, min(values), max(values))

    def penalty(self) -> Tensor:
        """Discretisation penalty, a scalar to be scaled and added to the loss.

        The mean distance of a stored parameter from its ``discrete_values``, summed over the parameters that
        have any; zero if none has.
        """
        distances = [distance(getattr(self, name), of).mean() for name, of in self.discrete_values.items()]
        return reduce(operator.add, distances) if distances else next(self.parameters()).new_zeros(())

    def round_(self) -> None:
        """Round the parameters that have ``discrete_values`` to the nearest of them, in place.

        Raises:
            ValueError: if the unit has no discrete values.
            RuntimeError: as in :meth:`project_`.
        """
        if not self.discrete_values:
            raise ValueError(f"{self} has no discrete values to which it could be rounded.")
        for name, values in self.discrete_values.items():
            self._change_(name, partial(nearest, values=values))

    def sparsity_error(self) -> Tensor:
        r"""Largest distance of an effective weight from {-1, 0, 1}, a scalar.

        :math:`\max_{o,i} \min(|W_{oi}|, |1 - |W_{oi}||)`: Madsen & Johansen (2020), Eq. 17. Gates and biases
        do not count.
        """
        return torch.stack([distance_to_ternary(weight).amax() for weight in self.effective_weights()]).amax()

    def check_input(self, x: Tensor) -> None:
        """Refuse what :meth:`forward` would take for something else: a 1 as last dimension would broadcast,
        and numbers of another dtype would be converted, or not, depending on how many there are.

        Raises:
            TypeError: if ``x`` is no tensor.
            ValueError: if its last dimension is not ``in_features``.
            RuntimeError: if it has another dtype than the parameters, as with ``nn.Linear``. Under autocast,
                which may have made it, another precision is allowed.
        """
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} takes a tensor, but this input is of type {type(x).__name__}.")
        if x.shape[-1:] != (self.in_features,):
            raise ValueError(
                f"{name} takes inputs of shape (..., {self.in_features}), "
                f"but this one has shape {tuple(x.shape)}."
            )
        dtype = self._dtype(x)
        if x.dtype != dtype and not (_under_autocast(x) and x.dtype in LOWER):
            raise RuntimeError(
                f"{name} has parameters of {dtype}, but this input is of {x.dtype}: convert one of the two, "
                f"as in x.to({dtype})."
            )

    def _dtype(self, x: Tensor) -> torch.dtype:
        """The dtype of the parameters; that of ``x`` if there are none."""
        return next(self.parameters(), x).dtype

    def new_weight(self, in_features: int | None = None) -> nn.Parameter:
        """An unfilled parameter ``(out_features, in_features)``."""
        return self.new_parameter(self.out_features, in_features or self.in_features)

    def new_parameter(self, *shape: int) -> nn.Parameter:
        """An unfilled parameter on the ``device`` and of the ``dtype`` that the constructor was given."""
        return nn.Parameter(torch.empty(shape, **self._new))  # type: ignore[arg-type]

    def clamp_(self, name: str, low: float, high: float) -> None:
        """Clamp a parameter in place."""
        self._change_(name, lambda parameter: parameter.clamp(low, high))

    @torch.no_grad()
    def _change_(self, name: str, function: Callable[[Tensor], Tensor]) -> None:
        """Replace a parameter by a function of it that acts entry by entry.

        Of one that is computed, by a parametrisation or by pruning, what it is computed from is replaced.
        """
        if f"{name}_mask" in self._buffers:
            name = f"{name}_orig"  # pruning multiplies the two before each forward pass
        if name in self._parameters:
            parameter = getattr(self, name)
            parameter.copy_(function(parameter))  # a copy, as vmap has no rule for the in-place clamp
            return
        value = function(getattr(self, name))
        if torch.allclose(getattr(self, name), value, rtol=0, atol=0, equal_nan=True):
            return
        stored = {key: tensor.clone() for key, tensor in self.state_dict().items()}
        if parametrize.is_parametrized(self, name):
            with suppress(Exception):  # of a right inverse that is not there or does not take this value
                setattr(self, name, value)
        if not torch.allclose(getattr(self, name), value, equal_nan=True):
            self.load_state_dict(stored)
            raise RuntimeError(
                f"{type(self).__name__}: {name} is computed, and what computes it does not reach the values "
                "that it is to take; choose a parametrisation with a right inverse that reaches them."
            )

    def extra_repr(self) -> str:
        shown: dict[str, object] = {"in_features": self.in_features, "out_features": self.out_features}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if self._options.get(name, parameter.default) != parameter.default:
                shown[name] = self._options[name]
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


def _under_autocast(x: Tensor) -> bool:
    device = x.device.type
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
