"""Neural power units."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from nalm.units import init as initial
from nalm.units.checks import as_tuple, number, one_of, subset
from nalm.units.functional import clamped, complex_power, distance, distance_to_ternary, phase
from nalm.units.unit import Device, Unit

NPUInit = Literal["glorot", "capped-glorot", "uniform"]
NaiveNPUPart = Literal["weight", "weight_im"]
NPUPart = Literal["weight", "weight_im", "gate"]
RealNPUPart = Literal["weight", "gate"]

DISCRETE_WEIGHTS = (-1, 1), (-1, 0, 1)
# Mistry et al. write [-1, 1] for the gate too; their code clips it to [0, 1].
BOUNDS = {"weight": (-1, 1), "weight_im": (-1, 1), "gate": (0, 1)}


class PowerUnit(Unit):
    r"""What the three power units share; use :class:`NPU`, :class:`RealNPU` or :class:`NaiveNPU`.

    .. math::

        y &= \exp(W_r \log r - W_i k) \odot \cos(W_r k + W_i \log r) \\
        r &= \hat g \odot (|x| + \epsilon) + 1 - \hat g, \qquad
        k_i = \begin{cases} 0 & x_i \ge 0 \\ \pi \hat g_i & x_i < 0 \end{cases}, \qquad
        \hat g = \min(\max(g, 0), 1)

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of ``weight``: ``"glorot"``, ``"capped-glorot"`` or ``"uniform"``.
        init_scale: factor on the initial weight.
        eps: :math:`\epsilon`; None for the machine epsilon of the input's dtype.
        gate_init: initial value of every gate; None for a unit without gate.
        imaginary: whether the unit has :math:`W_i`.
        clip: the parameters that :meth:`project_` clamps.
        discretise: the parameters that :meth:`penalty` counts.
        discretise_to: the values to which the penalty pulls the weight.
        device, dtype: of the parameters, as in torch's own layers.
    """

    weight_im: nn.Parameter | None
    gate: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: str,
        init_scale: float,
        eps: float | None,
        gate_init: float | None,
        imaginary: bool,
        clip: tuple[str, ...],
        discretise: tuple[str, ...],
        discretise_to: tuple[int, ...],
        device: Device,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            init=init,
            init_scale=init_scale,
            eps=eps,
            gate_init=gate_init,
            clip=clip,
            discretise=discretise,
            discretise_to=discretise_to,
        )
        self.init = one_of("init", init, get_args(NPUInit))
        self.init_scale = number("init_scale", init_scale)
        self.eps = None if eps is None else number("eps", eps, low=0.0)
        self.gate_init = None if gate_init is None else number("gate_init", gate_init)
        self.clip = clip
        self.discretise = discretise
        self.discretise_to = one_of("discretise_to", as_tuple(discretise_to), DISCRETE_WEIGHTS)
        values = {"weight": self.discretise_to, "weight_im": (0,), "gate": (0, 1)}
        self.discrete_values = {name: values[name] for name in discretise}
        self.weight = self.new_weight()
        self.register_parameter("weight_im", self.new_weight() if imaginary else None)
        self.register_parameter("gate", None if gate_init is None else self.new_parameter(self.in_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, self.init, self.init_scale)
        if self.weight_im is not None:
            nn.init.zeros_(self.weight_im)
        if self.gate is not None:
            nn.init.constant_(self.gate, self.gate_init)  # type: ignore[arg-type]

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The real and, if there is one, the imaginary part of the weight."""
        return (self.weight,) if self.weight_im is None else (self.weight, self.weight_im)

    def forward(self, x: Tensor) -> Tensor:
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        r, k = torch.abs(x) + eps, phase(x)
        if self.gate is not None:
            # Training and evaluation alike. The clamp is part of the graph: outside [0, 1] the gate has no
            # gradient from the loss, at 0 and 1 it still has.
            gate = clamped(self.gate, 0, 1)
            r, k = gate * r + (1 - gate), gate * k
        return complex_power(r, k, self.weight, self.weight_im)

    def project_(self) -> None:
        """Clamp in place the parameters named in ``clip``: weights to [-1, 1], the gate to [0, 1]."""
        for name, bounds in BOUNDS.items():
            if name in self.clip:
                self.clamp_(name, *bounds)

    def penalty(self) -> Tensor:
        """Sum over the parameters named in ``discretise`` of their distance from discrete values.

        ``weight``: mean distance to ``discretise_to``; ``gate``: mean distance of the stored, unclamped gate
        to {0, 1}; ``weight_im``: sum of absolute values (the authors' code takes no mean here).
        """
        total = self.weight.new_zeros(())
        if "weight" in self.discretise:
            total = total + distance(self.weight, self.discretise_to).mean()
        if "weight_im" in self.discretise:
            total = total + torch.abs(self.weight_im).sum()  # type: ignore[arg-type]
        if "gate" in self.discretise:
            total = total + distance(self.gate, (0, 1)).mean()  # type: ignore[arg-type]
        return total

    def sparsity_error(self) -> Tensor:
        """Largest distance of a stored weight from {-1, 0, 1}, a scalar; real and imaginary errors are added.

        The gate does not count. Without ``clip`` the error can exceed 0.5.
        """
        return torch.stack([distance_to_ternary(weight).amax() for weight in self.effective_weights()]).sum()


class NaiveNPU(PowerUnit):
    r"""The naive neural power unit: products of complex powers of real inputs, without gate.

    .. math::

        y &= \exp(W_r \log r - W_i k) \odot \cos(W_r k + W_i \log r) \\
        r &= |x| + \epsilon, \qquad k_i = \begin{cases} 0 & x_i \ge 0 \\ \pi & x_i < 0 \end{cases}

    Heim et al. (2020), Eq. 11.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of ``weight``: ``"glorot"`` (uniform); ``"capped-glorot"``, the NAU's, at most
            ±0.5; ``"uniform"``, U[0, 1). ``weight_im`` starts at zero.
        init_scale: factor on the initial weight.
        eps: :math:`\epsilon`; None for the machine epsilon of the input's dtype.
        clip: subset of ``("weight", "weight_im")`` that :meth:`project_` clamps to [-1, 1].
        discretise: subset of ``("weight", "weight_im")`` that :meth:`penalty` counts.
        discretise_to: values to which the penalty pulls ``weight``: ``(-1, 1)`` or ``(-1, 0, 1)``.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight`` (:math:`W_r`), ``weight_im`` (:math:`W_i`): ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or an option has an unknown value.

    Example:
        >>> import torch
        >>> from nalm.units import NaiveNPU
        >>> unit = NaiveNPU(2, 1, eps=0.0).double()
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0]]))
        >>> unit(torch.tensor([-3.0, 2.0], dtype=torch.float64)).detach()
        tensor([-1.5000], dtype=torch.float64)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: NPUInit = "glorot",
        init_scale: float = 1.0,
        eps: float | None = None,
        clip: tuple[NaiveNPUPart, ...] = (),
        discretise: tuple[NaiveNPUPart, ...] = (),
        discretise_to: tuple[int, ...] = (-1, 1),
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            init=init,
            init_scale=init_scale,
            eps=eps,
            gate_init=None,
            imaginary=True,
            clip=subset("clip", clip, get_args(NaiveNPUPart)),
            discretise=subset("discretise", discretise, get_args(NaiveNPUPart)),
            discretise_to=discretise_to,
            device=device,
            dtype=dtype,
        )


class NPU(PowerUnit):
    r"""The neural power unit: products of complex powers, with a relevance gate on the inputs.

    .. math::

        y &= \exp(W_r \log r - W_i k) \odot \cos(W_r k + W_i \log r) \\
        r &= \hat g \odot (|x| + \epsilon) + 1 - \hat g, \qquad
        k_i = \begin{cases} 0 & x_i \ge 0 \\ \pi \hat g_i & x_i < 0 \end{cases}, \qquad
        \hat g = \min(\max(g, 0), 1)

    Heim et al. (2020), Eq. 14 and 15; Mistry et al. (2022), Eq. 1 and 3. A gate of 0 turns its input into 1.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of ``weight``: ``"glorot"`` (uniform); ``"capped-glorot"``, the NAU's, at most
            ±0.5; ``"uniform"``, U[0, 1). ``weight_im`` starts at zero.
        init_scale: factor on the initial weight.
        gate_init: initial value of every gate.
        eps: :math:`\epsilon`; None for the machine epsilon of the input's dtype.
        clip: subset of ``("weight", "weight_im", "gate")`` that :meth:`project_` clamps, weights to [-1, 1]
            and the gate to [0, 1].
        discretise: subset of ``("weight", "weight_im", "gate")`` that :meth:`penalty` counts.
        discretise_to: values to which the penalty pulls ``weight``: ``(-1, 1)`` or ``(-1, 0, 1)``.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight`` (:math:`W_r`), ``weight_im`` (:math:`W_i`): ``(out_features, in_features)``
        - ``gate`` (g): ``(in_features,)``, one per input

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or an option has an unknown value.

    Example:
        >>> import torch
        >>> from nalm.units import NPU
        >>> unit = NPU(3, 1, eps=0.0).double()
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0, 0.3]]))
        ...     _ = unit.gate.copy_(torch.tensor([1.0, 1.0, 0.0]))
        >>> unit(torch.tensor([-3.0, 2.0, -9.0], dtype=torch.float64)).detach()
        tensor([-1.5000], dtype=torch.float64)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: NPUInit = "glorot",
        init_scale: float = 1.0,
        gate_init: float = 0.5,
        eps: float | None = None,
        clip: tuple[NPUPart, ...] = (),
        discretise: tuple[NPUPart, ...] = (),
        discretise_to: tuple[int, ...] = (-1, 1),
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            init=init,
            init_scale=init_scale,
            eps=eps,
            gate_init=number("gate_init", gate_init),
            imaginary=True,
            clip=subset("clip", clip, get_args(NPUPart)),
            discretise=subset("discretise", discretise, get_args(NPUPart)),
            discretise_to=discretise_to,
            device=device,
            dtype=dtype,
        )


class RealNPU(PowerUnit):
    r"""The real neural power unit: the NPU without the imaginary part of the weight.

    .. math::

        y &= \exp(W \log r) \odot \cos(W k) \\
        r &= \hat g \odot (|x| + \epsilon) + 1 - \hat g, \qquad
        k_i = \begin{cases} 0 & x_i \ge 0 \\ \pi \hat g_i & x_i < 0 \end{cases}, \qquad
        \hat g = \min(\max(g, 0), 1)

    Heim et al. (2020), section 3.2; Mistry et al. (2022), Eq. 2 and 3. Their modified Real NPU is
    ``RealNPU(..., init="capped-glorot", clip=("weight", "gate"), discretise=("weight", "gate"))``.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of ``weight``: ``"glorot"`` (uniform); ``"capped-glorot"``, the NAU's, at most
            ±0.5; ``"uniform"``, U[0, 1).
        init_scale: factor on the initial weight.
        gate_init: initial value of every gate.
        eps: :math:`\epsilon`; None for the machine epsilon of the input's dtype.
        clip: subset of ``("weight", "gate")`` that :meth:`project_` clamps, the weight to [-1, 1] and the
            gate to [0, 1].
        discretise: subset of ``("weight", "gate")`` that :meth:`penalty` counts.
        discretise_to: values to which the penalty pulls ``weight``: ``(-1, 1)``, where a zero weight is
            penalised (the authors' default), or ``(-1, 0, 1)`` as their main text says.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``; ``gate``: ``(in_features,)``, one per input

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or an option has an unknown value.

    Example:
        >>> import torch
        >>> from nalm.units import RealNPU
        >>> unit = RealNPU(3, 1, eps=0.0).double()
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0, 0.3]]))
        ...     _ = unit.gate.copy_(torch.tensor([1.0, 1.0, 0.0]))
        >>> unit(torch.tensor([-3.0, 2.0, -9.0], dtype=torch.float64)).detach()
        tensor([-1.5000], dtype=torch.float64)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: NPUInit = "glorot",
        init_scale: float = 1.0,
        gate_init: float = 0.5,
        eps: float | None = None,
        clip: tuple[RealNPUPart, ...] = (),
        discretise: tuple[RealNPUPart, ...] = (),
        discretise_to: tuple[int, ...] = (-1, 1),
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            init=init,
            init_scale=init_scale,
            eps=eps,
            gate_init=number("gate_init", gate_init),
            imaginary=False,
            clip=subset("clip", clip, get_args(RealNPUPart)),
            discretise=subset("discretise", discretise, get_args(RealNPUPart)),
            discretise_to=discretise_to,
            device=device,
            dtype=dtype,
        )
