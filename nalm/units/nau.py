"""The neural addition unit, the neural multiplication unit and a gate between the two."""

from typing import Literal, get_args

import torch
from torch import Tensor

from nalm.units import init as initial
from nalm.units.checks import number, one_of
from nalm.units.functional import Rounding, clamped, identity_product, weighted_sum
from nalm.units.unit import Device, Unit

NAUClamp = Literal["step", "forward", "none"]
NAUInit = Literal["capped-glorot", "glorot", "uniform"]
NMUClamp = Literal["step", "forward"]
NMUInit = Literal["nmu", "uniform"]


class NAU(Unit):
    r"""The neural addition unit.

    .. math::

        y_o = \sum_i W_{oi} x_i, \qquad W_{oi} \in [-1, 1]

    Madsen & Johansen (2020), Eq. 5-7. The penalty pulls the weight to {-1, 0, 1}.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        clamp: where the weight is held in [-1, 1]. ``"step"``: :meth:`project_` clamps it in place, after
            which the clamp that the forward pass has too changes neither the output nor the gradient, also
            on a bound; ``"forward"``: only the forward pass clamps, the stored weight is free and gets no
            gradient from the loss outside (the authors' "no W-clamp" arm); ``"none"``: no clamp and no
            penalty, a linear layer (Heim et al., 2020).
        init: initial distribution: ``"capped-glorot"``, U[-r, r] with r = min(0.5, sqrt(6 / (in + out)));
            ``"glorot"``, the same without the cap (Heim et al.); ``"uniform"``, U[0, 1).
        init_scale: factor on the initial weight.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``clamp`` or ``init`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import NAU
        >>> unit = NAU(3, 1)
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, -1.0, 0.0]]))
        >>> unit(torch.tensor([5.0, 2.0, 9.0])).detach()
        tensor([3.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        clamp: NAUClamp = "step",
        init: NAUInit = "capped-glorot",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            clamp=clamp,
            init=init,
            init_scale=init_scale,
        )
        self.clamp = one_of("clamp", clamp, get_args(NAUClamp))
        self.discrete_values = {} if clamp == "none" else {"weight": (-1, 0, 1)}
        self.init = one_of("init", init, get_args(NAUInit))
        self.init_scale = number("init_scale", init_scale)
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, self.init, self.init_scale)

    def effective_weights(self) -> tuple[Tensor, ...]:
        return (self.weight if self.clamp == "none" else clamped(self.weight, -1, 1),)

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return weighted_sum(x, weight)

    def project_(self) -> None:
        """Clamp the weight to [-1, 1] in place if ``clamp="step"``."""
        if self.clamp == "step":
            super().project_()


class NMU(Unit):
    r"""The neural multiplication unit.

    .. math::

        y_o = \prod_i (W_{oi} x_i + 1 - W_{oi}), \qquad W_{oi} \in [0, 1]

    Madsen & Johansen (2020), Eq. 10-12. The penalty pulls the weight to {0, 1}.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        clamp: where the weight is held in [0, 1]. ``"step"``: :meth:`project_` clamps it in place, after
            which the clamp that the forward pass has too changes neither the output nor the gradient, also
            on a bound; ``"forward"``: only the forward pass clamps, the stored weight is free and gets no
            gradient from the loss outside (Heim et al., 2020, and the "no W-clamp" arm of Madsen & Johansen).
        init: initial distribution: ``"nmu"``, U[0.25, 0.75], or ``"uniform"``, U[0, 1) (Heim et al.).
        init_scale: factor on the initial weight.
        rounding: how a factor :math:`W x + 1 - W` is rounded. ``"exact"``: as :math:`W x + (1 - W)`, which is
            x where W is 1; ``"sequential"``: from left to right, as the authors' code does, which loses the
            digits of x below the rounding of 1.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight``: ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``clamp``, ``init`` or ``rounding`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import NMU
        >>> unit = NMU(3, 1)
        >>> with torch.no_grad():
        ...     _ = unit.weight.copy_(torch.tensor([[1.0, 1.0, 0.0]]))
        >>> unit(torch.tensor([-5.0, 2.0, 9.0])).detach()
        tensor([-10.])
    """

    discrete_values = {"weight": (0, 1)}

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        clamp: NMUClamp = "step",
        init: NMUInit = "nmu",
        init_scale: float = 1.0,
        rounding: Rounding = "exact",
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            clamp=clamp,
            init=init,
            init_scale=init_scale,
            rounding=rounding,
        )
        self.clamp = one_of("clamp", clamp, get_args(NMUClamp))
        self.init = one_of("init", init, get_args(NMUInit))
        self.init_scale = number("init_scale", init_scale)
        self.rounding = one_of("rounding", rounding, get_args(Rounding))
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight, self.init, self.init_scale)

    def effective_weights(self) -> tuple[Tensor, ...]:
        return (clamped(self.weight, 0, 1),)

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return identity_product(x, weight, self.rounding == "exact")

    def project_(self) -> None:
        """Clamp the weight to [0, 1] in place if ``clamp="step"``."""
        if self.clamp == "step":
            super().project_()


class GatedNAUNMU(Unit):
    r"""A gate between a :class:`NAU` and a :class:`NMU`, after the NALU.

    .. math::

        y = g \odot \mathrm{NAU}(x) + (1 - g) \odot \mathrm{NMU}(x), \qquad g = \sigma(G x)

    Madsen & Johansen (2020), section 2.8 and appendix C.5. Two weights, one gate without bias; a gate of
    1 selects addition, 0 multiplication. Both weights are clamped by :meth:`project_` and penalised.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``add.weight``, ``mul.weight``, ``gate_weight``: ``(out_features, in_features)``

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if a size is below 1.

    Example:
        >>> import torch
        >>> from nalm.units import GatedNAUNMU
        >>> unit = GatedNAUNMU(2, 1)
        >>> with torch.no_grad():
        ...     _ = unit.add.weight.fill_(1.0)
        ...     _ = unit.mul.weight.fill_(1.0)
        ...     _ = unit.gate_weight.fill_(40.0)
        >>> unit(torch.tensor([[3.0, 2.0], [-3.0, -2.0]])).detach()  # adds where G x > 0, else multiplies
        tensor([[5.],
                [6.]])
    """

    def __init__(
        self, in_features: int, out_features: int, *, device: Device = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__(in_features, out_features, device=device, dtype=dtype)
        self.add = NAU(in_features, out_features, device=device, dtype=dtype)
        self.mul = NMU(in_features, out_features, device=device, dtype=dtype)
        self.gate_weight = self.new_weight()
        initial.fill_(self.gate_weight, "glorot")

    def reset_parameters(self) -> None:
        self.add.reset_parameters()
        self.mul.reset_parameters()
        initial.fill_(self.gate_weight, "glorot")

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The additive and the multiplicative weight."""
        return self.add.effective_weights() + self.mul.effective_weights()

    def gate(self, x: Tensor) -> Tensor:
        """The gate ``(..., out_features)`` in [0, 1] for the input ``x``: 1 adds, 0 multiplies."""
        return torch.sigmoid(weighted_sum(x, self.gate_weight))

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x)
        return gate * self.add(x) + (1 - gate) * self.mul(x)

    def project_(self) -> None:
        """Clamp both weights in place."""
        self.add.project_()
        self.mul.project_()

    def penalty(self) -> Tensor:
        """Sum of the penalties of the two sub-units."""
        return self.add.penalty() + self.mul.penalty()

    def round_(self) -> None:
        """Round both weights in place; the gate stays as it is."""
        self.add.round_()
        self.mul.round_()
