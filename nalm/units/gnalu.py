"""The neural arithmetic logic unit with the golden ratio as its base."""

import math

import torch
from torch import Tensor

from nalm.units.functional import nac_weight, weighted_sum
from nalm.units.nac import NALU, NACInit
from nalm.units.unit import Device

LOG_PHI = math.log((1 + math.sqrt(5)) / 2)
"""Logarithm of the golden ratio."""


class GNALU(NALU):
    r"""The golden ratio NALU, G-NALU: a NALU whose exponentials have the base
    :math:`\phi = (1 + \sqrt 5) / 2`.

    .. math::

        W &= \tanh_\phi(\hat W) \odot \sigma_\phi(\hat M), \qquad g = \sigma_\phi(G x) \\
        y &= g \odot W x + (1 - g) \odot \phi^{\,W \log_\phi(|x| + \epsilon)} \\
        \tanh_\phi(z) &= \frac{\phi^{2z} - 1}{\phi^{2z} + 1} = \tanh(z \log \phi), \qquad
        \sigma_\phi(z) = \frac{1}{1 + \phi^{-z}} = \sigma(z \log \phi)

    Rana et al. (2020, arXiv 2004.06674), as the benchmark of Mistry, Farrahi & Hare (2022, arXiv 2101.09530)
    has it. A power whose exponent is a logarithm to the same base does not depend on the base: at the same W
    the multiplicative path is that of the NALU. What differs is that tanh and sigmoid are less steep.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        shared: one weight for both paths (True) or one for each (False).
        eps: :math:`\epsilon`, added to the magnitudes.
        init: initial distribution of all parameters, as in :class:`NALU`; the benchmark's code too keeps the
            NALU's range, which is chosen for the base e.
        init_scale: factor on all initial parameters.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight_tanh``, ``weight_sigmoid``, ``gate_weight``: ``(out_features, in_features)``
        - ``weight_tanh_mul``, ``weight_sigmoid_mul``: the same, of the multiplicative path, unless ``shared``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1, ``init`` is unknown or ``eps`` is negative.

    Example:
        >>> import torch
        >>> from nalm.units import GNALU
        >>> unit = GNALU(2, 1)
        >>> with torch.no_grad():
        ...     for parameter in unit.parameters():
        ...         _ = parameter.fill_(80.0)
        >>> unit(torch.tensor([3.0, 2.0])).detach()  # the gate is open for addition
        tensor([5.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        shared: bool = True,
        eps: float = 1e-7,
        init: NACInit = "nac",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            shared=shared,
            eps=eps,
            init=init,
            init_scale=init_scale,
            device=device,
            dtype=dtype,
        )

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The weight of both paths if shared, else the additive and the multiplicative one."""
        weight = nac_weight(LOG_PHI * self.weight_tanh, LOG_PHI * self.weight_sigmoid)
        if self.shared:
            return (weight,)
        return weight, nac_weight(LOG_PHI * self.weight_tanh_mul, LOG_PHI * self.weight_sigmoid_mul)

    def gate(self, x: Tensor) -> Tensor:
        """The gate ``(..., out_features)`` in [0, 1] for the input ``x``: 1 adds, 0 multiplies."""
        return self._elementwise(torch.sigmoid, LOG_PHI * weighted_sum(x, self.gate_weight))
