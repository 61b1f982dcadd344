"""Neural accumulators and the neural arithmetic logic unit."""

import math
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from nalm.units import init as initial
from nalm.units.checks import boolean, number, one_of
from nalm.units.functional import UNROLLED_SIZE, clamped, exp_log, nac_weight, weighted_sum
from nalm.units.unit import Device, Unit

NACInit = Literal["nac", "glorot", "uniform"]
NACMulWeight = Literal["tanh-sigmoid", "sigmoid", "linear"]


class NAC(Unit):
    r"""The additive neural accumulator, NAC+.

    .. math::

        W = \tanh(\hat W) \odot \sigma(\hat M), \qquad y_o = \sum_i W_{oi} x_i

    Madsen & Johansen (2020), Eq. 1 and 2; introduced by Trask et al. (2018). No bias, constraint or penalty.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        init: distribution of both parameters. ``"nac"``: U[-r, r] with Var(W) = 2 / max(in + out, 5), the
            range of Madsen & Johansen (Eq. 29; the 5 is in their code only); ``"glorot"``: Glorot uniform
            (Heim et al., 2020); ``"uniform"``: U[0, 1).
        init_scale: factor on the initial parameters.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight_tanh`` (:math:`\hat W`) and ``weight_sigmoid`` (:math:`\hat M`):
          ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1 or ``init`` is unknown.

    Example:
        >>> import torch
        >>> from nalm.units import NAC
        >>> unit = NAC(3, 1)
        >>> with torch.no_grad():
        ...     _ = unit.weight_tanh.copy_(torch.tensor([[40.0, -40.0, 0.0]]))
        ...     _ = unit.weight_sigmoid.fill_(40.0)
        >>> unit(torch.tensor([5.0, 2.0, 9.0])).detach()
        tensor([3.])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        init: NACInit = "nac",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, device=device, dtype=dtype, init=init, init_scale=init_scale
        )
        self.init = one_of("init", init, get_args(NACInit))
        self.init_scale = number("init_scale", init_scale)
        self.weight_tanh = self.new_weight()
        self.weight_sigmoid = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.fill_(self.weight_tanh, self.init, self.init_scale)
        initial.fill_(self.weight_sigmoid, self.init, self.init_scale)

    def effective_weights(self) -> tuple[Tensor, ...]:
        return (nac_weight(self.weight_tanh, self.weight_sigmoid),)

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return weighted_sum(x, weight)


class NACMul(Unit):
    r"""The multiplicative neural accumulator, NAC•, and its two variants.

    .. math::

        y_o = \exp\Bigl(\sum_i W_{oi} \log(|x_i| + \epsilon)\Bigr)

    Madsen & Johansen (2020), Eq. 3. The sign of the input is lost.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        weight: construction of W and with it the initial distribution. ``"tanh-sigmoid"``: NAC•, W as in
            :class:`NAC`; ``"sigmoid"``: NAC•,σ, :math:`W = \sigma(\hat M)`, Glorot normal; ``"linear"``:
            NAC•,NMU, W itself, held in [0, 1] by :meth:`project_`, with the penalty of :class:`NMU`,
            U[0.25, 0.75].
        eps: :math:`\epsilon`, added to the magnitudes.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight_tanh`` and ``weight_sigmoid``, only ``weight_sigmoid``, or only ``weight``, as ``weight``
          says: ``(out_features, in_features)``

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1, ``weight`` is unknown or ``eps`` is negative.

    Example:
        >>> import torch
        >>> from nalm.units import NACMul
        >>> unit = NACMul(2, 1, weight="linear", eps=0.0).double()
        >>> with torch.no_grad():
        ...     _ = unit.weight.fill_(1.0)
        >>> unit(torch.tensor([3.0, 0.5], dtype=torch.float64)).detach()
        tensor([1.5000], dtype=torch.float64)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        weight: NACMulWeight = "tanh-sigmoid",
        eps: float = 1e-7,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, device=device, dtype=dtype, weight=weight, eps=eps)
        self.construction = one_of("weight", weight, get_args(NACMulWeight))
        self.eps = number("eps", eps, low=0.0)
        if weight == "tanh-sigmoid":
            self.weight_tanh = self.new_weight()
        if weight == "linear":
            self.discrete_values = {"weight": (0, 1)}
            self.weight = self.new_weight()
        else:
            self.weight_sigmoid = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.construction == "tanh-sigmoid":
            initial.fill_(self.weight_tanh, "nac")
            initial.fill_(self.weight_sigmoid, "nac")
        elif self.construction == "sigmoid":
            initial.fill_(self.weight_sigmoid, "glorot-normal")  # the paper gives no initialisation
        else:
            initial.fill_(self.weight, "nmu")

    def effective_weights(self) -> tuple[Tensor, ...]:
        if self.construction == "tanh-sigmoid":
            return (nac_weight(self.weight_tanh, self.weight_sigmoid),)
        if self.construction == "sigmoid":
            return (torch.sigmoid(self.weight_sigmoid),)
        return (clamped(self.weight, 0, 1),)

    def forward(self, x: Tensor) -> Tensor:
        (weight,) = self.effective_weights()
        return _powers(x, weight, self.eps)


class NALU(Unit):
    r"""The neural arithmetic logic unit: a gate between NAC+ and NAC•.

    .. math::

        y = g \odot W x + (1 - g) \odot \exp\bigl(W' \log(|x| + \epsilon)\bigr), \qquad g = \sigma(G x)

    Madsen & Johansen (2020), section 2.1; Heim et al. (2020), Eq. 1-3; introduced by Trask et al. (2018).
    W and W' are NAC weights, one and the same if ``shared``. A gate of 1 selects addition, 0 multiplication.

    Args:
        in_features: number of inputs.
        out_features: number of outputs.
        shared: one weight for both paths (True) or one for each (False).
        gate_bias: add a bias to G x. No paper has it, the code of Heim et al. does.
        eps: :math:`\epsilon`, added to the magnitudes: 1e-7 in Madsen & Johansen, 1e-8 in Heim et al.
        init: distribution of the NAC parameters. ``"nac"``: as :class:`NAC`, with G Glorot uniform and zero
            bias; ``"glorot"``: all Glorot uniform, the bias U[-b, b], b = sqrt(6 / out) (Heim et al., simple
            task); ``"uniform"``: all U[0, 1), zero bias (with ``init_scale=0.1``: their large-scale task).
        init_scale: factor on all initial parameters.
        device, dtype: of the parameters, as in torch's own layers.

    Shape:
        - input ``(..., in_features)``, output ``(..., out_features)``
        - ``weight_tanh``, ``weight_sigmoid``, ``gate_weight``: ``(out_features, in_features)``
        - ``weight_tanh_mul``, ``weight_sigmoid_mul``: the same, of the multiplicative path, unless ``shared``
        - ``gate_bias``: ``(out_features,)`` or None

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a size is below 1, ``init`` is unknown or ``eps`` is negative.

    Example:
        >>> import torch
        >>> from nalm.units import NALU
        >>> unit = NALU(2, 1)
        >>> with torch.no_grad():
        ...     for parameter in unit.parameters():
        ...         _ = parameter.fill_(40.0)
        >>> unit(torch.tensor([3.0, 2.0])).detach()  # the gate is open for addition
        tensor([5.])
    """

    gate_bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        shared: bool = True,
        gate_bias: bool = False,
        eps: float = 1e-7,
        init: NACInit = "nac",
        init_scale: float = 1.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            in_features,
            out_features,
            device=device,
            dtype=dtype,
            shared=shared,
            gate_bias=gate_bias,
            eps=eps,
            init=init,
            init_scale=init_scale,
        )
        self.shared = boolean("shared", shared)
        self.eps = number("eps", eps, low=0.0)
        self.init = one_of("init", init, get_args(NACInit))
        self.init_scale = number("init_scale", init_scale)
        self.weight_tanh = self.new_weight()
        self.weight_sigmoid = self.new_weight()
        if not shared:
            self.weight_tanh_mul = self.new_weight()
            self.weight_sigmoid_mul = self.new_weight()
        self.gate_weight = self.new_weight()
        has_bias = boolean("gate_bias", gate_bias)
        self.register_parameter("gate_bias", self.new_parameter(self.out_features) if has_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for name, parameter in self.named_parameters():
            if name == "gate_bias":
                bound = math.sqrt(6 / self.out_features) if self.init == "glorot" else 0.0
                nn.init.uniform_(parameter, -bound * self.init_scale, bound * self.init_scale)
            elif name == "gate_weight" and self.init == "nac":
                initial.fill_(parameter, "glorot", self.init_scale)
            else:
                initial.fill_(parameter, self.init, self.init_scale)

    def effective_weights(self) -> tuple[Tensor, ...]:
        """The weight of both paths if shared, else the additive and the multiplicative one."""
        weight = nac_weight(self.weight_tanh, self.weight_sigmoid)
        if self.shared:
            return (weight,)
        return weight, nac_weight(self.weight_tanh_mul, self.weight_sigmoid_mul)

    def gate(self, x: Tensor) -> Tensor:
        """The gate ``(..., out_features)`` in [0, 1] for the input ``x``: 1 adds, 0 multiplies."""
        logit = weighted_sum(x, self.gate_weight)
        return self._elementwise(torch.sigmoid, logit if self.gate_bias is None else logit + self.gate_bias)

    def multiply(self, x: Tensor, weight: Tensor) -> Tensor:
        """The multiplicative path."""
        return _powers(x, weight, self.eps) if self._examples_are_more() else exp_log(x, weight, self.eps)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.effective_weights()
        parts = self.gate(x), weighted_sum(x, weights[0]), self.multiply(x, weights[-1])
        return self._elementwise(
            lambda gate, added, multiplied: gate * added + (1 - gate) * multiplied, *parts
        )

    def _examples_are_more(self) -> bool:
        """Whether it pays to compute with examples last: with few outputs of many inputs. Of one output, or
        few inputs, they are last already.
        """
        return 1 < self.out_features < 16 and self.in_features * self.out_features > UNROLLED_SIZE

    def _elementwise(self, function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return _examples_last(function, *tensors) if self._examples_are_more() else function(*tensors)


def _powers(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """As :func:`nalm.units.functional.exp_log`, with examples last."""
    logs = _examples_last(lambda x: torch.log(torch.abs(x) + eps), x)
    return _examples_last(torch.exp, weighted_sum(logs, weight))


def _examples_last(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """An elementwise function of tensors ``(..., out)``, computed as ``(out, ...)``.

    A compiler that takes the last dimension for its vectors does little with one of two outputs. Compiled for
    a hundred runs of 100 inputs and two outputs, an update of the NALU takes half the time.
    """
    if tensors[0].dim() == 1:
        return function(*tensors)
    return function(*(tensor.mT for tensor in tensors)).mT
