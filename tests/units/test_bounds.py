"""The gradient at a bound is the one inside, on every version of torch; that of ``torch.clamp`` is 0 there
from torch 2.14 on.
"""

import math
from dataclasses import dataclass, field
from functools import partial

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.func import grad, jvp, vmap

from nalm.training.compiler import compiled
from nalm.units import UNITS, ReLU6
from nalm.units.functional import clamped
from nalm.units.snmu import uniform_of

from .cases import GOLDEN, MORE_ARMS

f64 = torch.float64
X, LOG_X = 3.0, math.log(3.0)


@dataclass(frozen=True)
class Bounded:
    """A parameter of a unit with one input, X, and the slope of the output where the parameter is at its
    lower and its upper bound.

    The other parameters are 1, but for ``others``. Of the NMRU, what divides is switched off.
    """

    unit: str
    options: dict
    parameter: str
    bounds: tuple[float, float]
    slopes: tuple[float, float]
    in_forward: bool = True
    """Whether the forward pass clamps, so that there is no gradient outside."""
    others: dict = field(default_factory=dict)

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.unit}({options}).{self.parameter}"

    def slope(self, at: float) -> float:
        unit = UNITS[self.unit](1, 1, **self.options).double().train()
        with torch.no_grad():
            for name, parameter in unit.named_parameters():
                parameter.fill_(at if name == self.parameter else self.others.get(name, 1.0))
            if self.unit == "NMRU":
                unit.weight[0, 1] = 0.0
        unit(torch.tensor([X], dtype=f64)).sum().backward()
        return unit.get_parameter(self.parameter).grad.flatten()[0].item()


SIGNED, UNSIGNED = (-1.0, 1.0), (0.0, 1.0)
EXPONENT = (LOG_X / X, LOG_X * X)  # of X ** w at -1 and 1
NOISE = 1 + 4 * uniform_of(torch.tensor([X])).item()  # of the sNMU at X
EXACT = {"eps": 0.0}
HALF = {"gate_weight": 0.0}
NO_IMAGINARY = {"weight_im": 0.0}

BOUNDED = [
    *(
        Bounded("NAU", {"clamp": clamp}, "weight", SIGNED, (X, X), clamp != "none")
        for clamp in ("step", "forward", "none")
    ),
    *(Bounded("NMU", {"clamp": clamp}, "weight", UNSIGNED, (X - 1, X - 1)) for clamp in ("step", "forward")),
    Bounded("SNMU", {}, "weight", UNSIGNED, ((X - 1) * NOISE, (X - 1) / NOISE)),
    Bounded("GatedNAUNMU", {}, "add.weight", SIGNED, (X / 2, X / 2), others=HALF),
    Bounded("GatedNAUNMU", {}, "mul.weight", UNSIGNED, ((X - 1) / 2, (X - 1) / 2), others=HALF),
    Bounded("NACMul", {"weight": "linear"} | EXACT, "weight", UNSIGNED, (LOG_X, LOG_X * X)),
    *(
        Bounded("RealNPU", {"clip": clip} | EXACT, "gate", UNSIGNED, (X - 1, X - 1))
        for clip in ((), ("gate",))
    ),
    *(
        Bounded("NPU", {"clip": clip} | EXACT, "gate", UNSIGNED, (X - 1, X - 1), others=NO_IMAGINARY)
        for clip in ((), ("gate",))
    ),
    # Only project_ bounds these: the gradient is there outside too.
    Bounded("RealNPU", {"clip": ("weight",)} | EXACT, "weight", SIGNED, EXPONENT, False),
    Bounded("NPU", {"clip": ("weight",)} | EXACT, "weight", SIGNED, EXPONENT, False, NO_IMAGINARY),
    Bounded("NaiveNPU", {"clip": ("weight",)} | EXACT, "weight", SIGNED, EXPONENT, False, NO_IMAGINARY),
    # X cos(w log X)
    *(
        Bounded(
            unit,
            {"clip": ("weight_im",)} | EXACT,
            "weight_im",
            SIGNED,
            (X * LOG_X * math.sin(LOG_X), -X * LOG_X * math.sin(LOG_X)),
            False,
        )
        for unit in ("NPU", "NaiveNPU")
    ),
    Bounded("NRU", {}, "weight", SIGNED, EXPONENT, False),
    Bounded("NMRU", EXACT, "weight", UNSIGNED, (X - 1, X - 1), False),
    Bounded("NMRU", {"gate": "identity"} | EXACT, "gate", UNSIGNED, (X - 1, X - 1), False),
    Bounded("NMRU", {"gate": "zero", "sign": False} | EXACT, "gate", UNSIGNED, (X, X), False),
]


@pytest.mark.parametrize("case", BOUNDED, ids=str)
@pytest.mark.parametrize("side", [0, 1], ids=["lower", "upper"])
def test_the_gradient_at_a_bound_is_that_inside(case, side):
    bound, slope = case.bounds[side], case.slopes[side]
    towards = (-math.inf, math.inf)
    inside, outside = math.nextafter(bound, towards[1 - side]), math.nextafter(bound, towards[side])
    for at, expected in ((inside, slope), (bound, slope), (outside, 0.0 if case.in_forward else slope)):
        assert case.slope(at) == pytest.approx(expected, rel=1e-14, abs=0), at


# Where a gate is 0 in `NMRU(gate="zero")`, a gated input has no sign; without signs it is in BOUNDED.
SMOOTH = [case for case in (*GOLDEN, *MORE_ARMS) if str(case) != "NMRU(gate=zero)"]


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_the_gradient_of_whatever_is_bounded_goes_on_at_the_bound(case):
    """Also of a unit that comes later: what ``project_`` moves is bounded."""
    torch.manual_seed(0)
    x, unit = torch.rand(8, case.in_features, dtype=f64) + 1.5, case.build().train()
    for parameter in unit.parameters():
        for far in (-5.0, 5.0):
            with torch.no_grad():
                parameter.fill_(far)
            unit.project_()
            if (bound := parameter.flatten()[0].item()) == far:
                continue
            slopes = []
            for at in (bound, bound - math.copysign(1e-12, far)):
                torch.manual_seed(0)
                unit.reset_parameters()
                with torch.no_grad():
                    parameter.fill_(at)
                unit.zero_grad()
                unit(x).sum().backward()
                slopes.append(parameter.grad.clone())
            torch.testing.assert_close(*slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("unit", ["NMU", "NAU"])
def test_a_weight_leaves_its_bound(unit):
    """From every corner of its bounds a unit of two inputs learns the product, or the sum, that it can
    compute.
    """
    target = {"NMU": lambda x: x.prod(-1, keepdim=True), "NAU": lambda x: x.sum(-1, keepdim=True)}[unit]
    for corner in ([[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]]):
        torch.manual_seed(0)
        module, x = UNITS[unit](2, 1), torch.rand(64, 2) + 1
        with torch.no_grad():
            module.weight.copy_(torch.tensor(corner))
        optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
        for _ in range(100):
            optimiser.zero_grad()
            (module(x) - target(x)).square().mean().backward()
            optimiser.step()
            module.project_()
        torch.testing.assert_close(module.weight.detach(), torch.ones(1, 2), atol=0.02, rtol=0)


def test_relu6_is_torch_s():
    """It has no gradient at its bounds, which hold an output, not a parameter."""
    unit = ReLU6(1, 1, bias=False)
    with torch.no_grad():
        unit.weight.fill_(1.0)
    x = torch.tensor([[-1.0], [0.0], [3.0], [6.0], [7.0]], requires_grad=True)
    unit(x).sum().backward()
    assert x.grad.flatten().tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


# The bounds of the logarithms in NRU and iNALU hold inputs, which have a gradient where a layer lies before.


def test_the_smallest_magnitude_of_the_nru():
    unit = UNITS["NRU"](1, 1).double().train()
    tiny = torch.finfo(f64).tiny
    with torch.no_grad():
        unit.weight.fill_(0.5)
    for magnitude, slope in (
        (math.nextafter(tiny, 0), 0.0),
        (tiny, 0.5 * tiny**-0.5),
        (math.nextafter(tiny, 1), 0.5 * tiny**-0.5),
    ):
        x = torch.tensor([magnitude], dtype=f64, requires_grad=True)
        unit(x).sum().backward()
        assert x.grad.item() == pytest.approx(slope, rel=1e-9, abs=0)


def test_the_smallest_magnitude_and_the_largest_exponent_of_the_inalu():
    unit = UNITS["INALU"](1, 1).double()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.fill_(40.0)
        unit.gate_weight.fill_(0.0)  # half the sum and half the product
    for magnitude, slope in ((math.nextafter(1e-7, 0), 0.5), (1e-7, 1.0), (math.nextafter(1e-7, 1), 1.0)):
        x = torch.tensor([magnitude], dtype=f64, requires_grad=True)
        unit(x).sum().backward()
        assert x.grad.item() == pytest.approx(slope, rel=1e-9, abs=0)
    for exponent, slope in ((19.5, 1.0), (20.5, 0.5)):  # 20 itself is no logarithm of a number in 64 bits
        x = torch.tensor([math.exp(exponent)], dtype=f64, requires_grad=True)
        unit(x).sum().backward()
        assert x.grad.item() == pytest.approx(slope, rel=1e-6, abs=0)


# The function itself.

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
INTEGERS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.bfloat16: torch.int16,
    torch.float16: torch.int16,
}
LIMITS = [(0, 1), (-1, 1), (0.0, None), (None, 20.0), (1e-7, None)]


def bits(x: torch.Tensor) -> list[int]:
    return x.detach().view(INTEGERS[x.dtype]).tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@given(
    values=st.lists(
        st.floats(width=64) | st.sampled_from([-1.0, -0.0, 0.0, 1.0, 20.0, 1e-7]), min_size=1, max_size=40
    )
)
@example(values=[math.nan, -math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 5e-324, -5e-324, 1.0, 20.0, 1e-7])
def test_values_are_those_of_clamp_and_gradients_those_before_torch_2_14(dtype, limits, values):
    low, high = limits
    x = torch.tensor(values, dtype=f64).to(dtype).requires_grad_()
    y, upstream = clamped(x, low, high), torch.linspace(-2, 2, len(values)).to(dtype)
    y.backward(upstream)
    theirs = x.detach().clone().requires_grad_()
    expected = theirs.clamp(low, high)
    assert bits(y) == bits(expected)
    inside = torch.ones_like(x, dtype=torch.bool)
    inside &= inside if low is None else x >= low
    inside &= inside if high is None else x <= high
    assert bits(x.grad) == bits(torch.where(inside, upstream, torch.zeros_like(upstream)))
    if torch.__version__ < (2, 14):
        expected.backward(upstream)
        assert bits(x.grad) == bits(theirs.grad)


AT = torch.tensor([-0.5, 0.0, 0.3, 1.0, 1.5], dtype=f64)
SLOPES = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0], dtype=f64)


def clamped_square(x: torch.Tensor) -> torch.Tensor:
    return clamped(x, 0, 1).square()


def test_transforms():
    expected = 2 * AT.clamp(0, 1) * SLOPES
    assert torch.equal(vmap(grad(clamped_square))(AT), expected)
    assert torch.equal(jvp(clamped_square, (AT,), (torch.ones_like(AT),))[1], expected)
    assert torch.equal(vmap(grad(grad(clamped_square)))(AT), 2 * SLOPES)
    x = AT.clone().requires_grad_()
    (first,) = torch.autograd.grad(clamped_square(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(second, 2 * SLOPES)


@pytest.mark.parametrize(
    "compiled",
    [
        partial(torch.compile, backend="eager", fullgraph=True),
        partial(torch.compile, backend="aot_eager", fullgraph=True),
        compiled,  # inductor, which by itself asks a process for each set of instructions
    ],
)
def test_compiled(compiled):
    x = AT.clone().requires_grad_()
    compiled(clamped_square)(x).sum().backward()
    assert torch.equal(x.grad, 2 * AT.clamp(0, 1) * SLOPES)


def test_exported():
    class Clamped(torch.nn.Module):
        def forward(self, x):
            return clamped_square(x)

    program = torch.export.export(Clamped(), (AT,)).module()
    assert torch.equal(program(AT), AT.clamp(0, 1).square())
