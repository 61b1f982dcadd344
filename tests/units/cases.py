"""Every unit with the options of the papers' arms, and the weights at which it computes a known function."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nalm.units import UNITS, Unit


@dataclass(frozen=True)
class Case:
    """A unit of ``in_features`` inputs, and optionally its golden weights and what it then computes."""

    unit: str
    options: dict = field(default_factory=dict)
    in_features: int = 3
    out_features: int = 1
    golden: dict[str, list] = field(default_factory=dict)
    computes: Callable[[Tensor], Tensor] | None = None
    signs: bool = True
    """Whether the unit computes the function for negative inputs too."""
    ulps: int = 0
    """Allowed relative error in units of the machine epsilon."""

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.unit}({options})"

    def build(self, dtype: torch.dtype = torch.float64) -> Unit:
        unit = UNITS[self.unit](self.in_features, self.out_features, **self.options)
        return unit.to(dtype)

    def build_golden(self, dtype: torch.dtype) -> Unit:
        unit = self.build(dtype).eval()
        with torch.no_grad():
            for name, parameter in unit.named_parameters():
                parameter.copy_(torch.tensor(self.golden[name]) if name in self.golden else torch.zeros(()))
        return unit


def difference(x: Tensor) -> Tensor:
    return x[..., :1] - x[..., 1:2]


def multiple(x: Tensor) -> Tensor:
    return x[..., :1] * x[..., 1:2]


def quotient(x: Tensor) -> Tensor:
    return x[..., :1] / x[..., 1:2]


OPEN = 40.0  # sigmoid(40) and tanh(40) are 1 in float64
FAR = 2.1 * OPEN  # the same with the golden ratio as base
LOG = 64  # ulps of exp(sum of logs) on inputs up to 20
NAC_MINUS = {"weight_tanh": [[OPEN, -OPEN, 0.0]], "weight_sigmoid": [[OPEN, OPEN, 0.0]]}
QUOTIENT = {"weight": [[1.0, -1.0, 0.0]]}
GATED_QUOTIENT = {"weight": [[1.0, -1.0, 0.7]], "gate": [1.0, 1.0, 0.0]}
DIFFERENCE = {"weight": [[1.0, -1.0, 0.0]]}
PRODUCT = {"weight": [[1.0, 1.0, 0.0]]}
RECIPROCAL_QUOTIENT = {"weight": [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]]}

GOLDEN = [
    Case("NAC", {}, golden=NAC_MINUS, computes=difference),
    Case("NACMul", {"eps": 0.0}, golden=NAC_MINUS, computes=quotient, signs=False, ulps=LOG),
    Case(
        "NACMul",
        {"weight": "sigmoid", "eps": 0.0},
        golden={"weight_sigmoid": [[OPEN, OPEN, -OPEN]]},
        computes=multiple,
        signs=False,
        ulps=LOG,
    ),
    Case(
        "NACMul", {"weight": "linear", "eps": 0.0}, golden=PRODUCT, computes=multiple, signs=False, ulps=LOG
    ),
    Case("NALU", {"gate_bias": True}, golden={**NAC_MINUS, "gate_bias": [OPEN]}, computes=difference),
    Case(
        "NALU",
        {"shared": False, "gate_bias": True, "eps": 0.0},
        golden={
            "weight_tanh_mul": [[OPEN, -OPEN, 0.0]],
            "weight_sigmoid_mul": [[OPEN, OPEN, 0.0]],
            "gate_bias": [-100 * OPEN],
        },
        computes=quotient,
        signs=False,
        ulps=LOG,
    ),
    Case(
        "GNALU",
        {"shared": False, "eps": 0.0},
        golden={
            "weight_tanh": [[FAR, 0.0, 0.0]],
            "weight_sigmoid": [[FAR, 0.0, 0.0]],
            "weight_tanh_mul": [[FAR, 0.0, 0.0]],
            "weight_sigmoid_mul": [[FAR, 0.0, 0.0]],
        },
        computes=lambda x: x[..., :1],  # both paths: the gate is at 1/2
        signs=False,
        ulps=LOG,
    ),
    Case(
        "INALU",
        {},
        golden={
            "weight_tanh": [[OPEN, 0.0, 0.0]],
            "weight_sigmoid": [[OPEN, 0.0, 0.0]],
            "weight_tanh_mul": [[OPEN, 0.0, 0.0]],
            "weight_sigmoid_mul": [[OPEN, 0.0, 0.0]],
        },
        computes=lambda x: x[..., :1],  # both paths: the gate is at 1/2
        ulps=LOG,
    ),
    Case("NAU", {}, golden=DIFFERENCE, computes=difference),
    Case("NAU", {"clamp": "forward"}, golden={"weight": [[1.5, -7.0, 0.0]]}, computes=difference),
    Case("NAU", {"clamp": "none"}, golden=DIFFERENCE, computes=difference),
    Case("NMU", {}, golden=PRODUCT, computes=multiple),
    Case("NMU", {"rounding": "sequential"}, golden=PRODUCT, computes=multiple),
    Case("NMU", {"clamp": "forward"}, golden={"weight": [[1.5, 2.0, -0.3]]}, computes=multiple),
    Case("SNMU", {}, golden=PRODUCT, computes=multiple),
    Case(
        "GatedNAUNMU",
        {},
        golden={"add.weight": [[1.0, 0.0, 0.0]], "mul.weight": [[1.0, 0.0, 0.0]]},
        computes=lambda x: x[..., :1],  # both paths: the gate is at 1/2
    ),
    Case("MCFC", {}, golden={"gate_bias": [OPEN]}, computes=lambda x: x.sum(-1, keepdim=True), ulps=4),
    Case(
        "MCFC",
        {"multiply": True, "eps": 0.0},
        golden={"gate_bias": [OPEN]},
        computes=lambda x: x.prod(-1, keepdim=True),
        signs=False,
        ulps=LOG,
    ),
    Case("NaiveNPU", {"eps": 0.0}, golden=QUOTIENT, computes=quotient, ulps=LOG),
    Case("NPU", {"eps": 0.0}, golden=GATED_QUOTIENT, computes=quotient, ulps=LOG),
    Case("RealNPU", {"eps": 0.0}, golden=GATED_QUOTIENT, computes=quotient, ulps=LOG),
    Case("NRU", {}, golden=QUOTIENT, computes=quotient, ulps=2),
    Case("NRU", {"separate_sign": True}, golden=QUOTIENT, computes=quotient, ulps=2),
    Case("NMRU", {}, golden=RECIPROCAL_QUOTIENT, computes=quotient, ulps=2),
    Case("NMRU", {"sign": False}, golden=RECIPROCAL_QUOTIENT, computes=quotient, ulps=2),
    Case(
        "NMRU", {"gate": "zero"}, golden={**RECIPROCAL_QUOTIENT, "gate": [1.0] * 6}, computes=quotient, ulps=2
    ),
    Case(
        "NMRU",
        {"gate": "identity"},
        golden={"weight": [[1.0, 0.3, 0.3, 0.3, 1.0, 0.3]], "gate": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]},
        computes=quotient,
        ulps=2,
    ),
    Case("Linear", {}, golden=DIFFERENCE, computes=difference),
    Case("ReLU", {}, golden=DIFFERENCE, computes=lambda x: difference(x).clamp(min=0)),
    Case("ReLU6", {}, golden=DIFFERENCE, computes=lambda x: difference(x).clamp(0, 6)),
    Case("Dense", {"activation": "identity"}, golden=DIFFERENCE, computes=difference),
    Case("Dense", {"activation": "tanh"}, golden=DIFFERENCE, computes=lambda x: difference(x).tanh()),
]

MORE_ARMS = [
    Case("NaiveNPU", {"clip": ("weight", "weight_im"), "discretise": ("weight_im",)}),
    Case("NPU", {"clip": ("weight", "weight_im", "gate"), "discretise": ("weight", "weight_im", "gate")}),
    Case("RealNPU", {"init": "capped-glorot", "clip": ("weight", "gate"), "discretise": ("weight", "gate")}),
    Case("RealNPU", {"discretise": ("weight",), "discretise_to": (-1, 0, 1)}),
    Case("NRU", {"rounding": "sequential"}),
    Case("NMRU", {"sign": False, "gate": "identity"}),
    Case("NMRU", {"rounding": "sequential"}),
]

SEVERAL_OUTPUTS = [
    Case(case.unit, case.options, case.in_features, out_features=2) for case in (*GOLDEN, *MORE_ARMS)
]
