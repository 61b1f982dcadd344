"""What people do to a module of PyTorch, for which units it works, and the table that says so.

Each check takes a unit's class and raises where the unit does not do what the check's name says.
``python tests/units/citizen.py`` prints the table, ``--write`` writes it into the book's page, ``--heavy``
tries what compiles or needs ONNX and prints what was found as JSON.
"""

import argparse
import copy
import io
import json
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacfwd, jacrev, stack_module_state, vmap
from torch.nn.utils import parametrizations, parametrize, prune

from nalm import UNITS, Unit, formula, formula_error

PAGE = Path(__file__).resolve().parents[2] / "book" / "api.md"
MARKS = "<!-- pytorch -->", "<!-- /pytorch -->"
DISCRETE = tuple(
    name
    for name, unit in UNITS.items()
    if any(part.discrete_values for part in unit(2, 1).modules() if isinstance(part, Unit))
)
"""Units with discrete values unless options say otherwise."""
close = torch.testing.assert_close


@dataclass(frozen=True)
class Check:
    """Something to do with a unit, and the units for which it works."""

    name: str
    works: Callable[[type[Unit]], object]
    units: tuple[str, ...]
    heavy: bool

    def holds(self, unit: str) -> bool:
        torch.manual_seed(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.works(UNITS[unit])
        except Exception as error:
            self.said[unit] = f"{type(error).__name__}: {error}"
            return False
        return True

    @property
    def said(self) -> dict[str, str]:
        """Unit -> why it does not work."""
        return SAID.setdefault(self.name, {})


CHECKS: dict[str, Check] = {}
SAID: dict[str, dict[str, str]] = {}


def check(name: str, only: tuple[str, ...] = (), but: tuple[str, ...] = (), heavy: bool = False) -> Callable:
    def entered(works: Callable[[type[Unit]], object]) -> Callable[[type[Unit]], object]:
        units = tuple(unit for unit in UNITS if unit not in but and (not only or unit in only))
        CHECKS[name] = Check(name, works, units, heavy)
        return works

    return entered


def inputs(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.rand(shape or (5, 3)) + 0.5).to(dtype)


def trained(unit: Unit, x: Tensor) -> Tensor:
    """The output, after a backward pass that gave every parameter a finite gradient."""
    y = unit(x)
    (y.float().square().mean() + unit.penalty().float()).backward()
    assert y.isfinite().all() and all(p.grad.isfinite().all() for p in unit.parameters())
    return y.detach()


def refused(error: type[Exception], call: Callable[[], object]) -> None:
    """The call raises this error, with one sentence."""
    try:
        call()
    except error as raised:
        assert "\n" not in str(raised) and str(raised).endswith("."), raised
    else:
        raise AssertionError("accepted")


# Making


@check("`device=` and `dtype=` in the constructor, `torch.nn.utils.skip_init`")
def placed(unit):
    made = unit(3, 2, device="meta", dtype=torch.float64)
    assert {(p.device.type, p.dtype) for p in made.parameters()} == {("meta", torch.float64)}
    assert next(nn.utils.skip_init(unit, 3, 2).parameters()).shape[0] in (2, 3)
    torch.manual_seed(0)
    expected = unit(3, 2).state_dict()
    torch.manual_seed(0)
    found = unit(3, 2, device="cpu", dtype=torch.float32).state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


@check("on `meta`, then `to_empty` and `reset_parameters`")
def meta(unit):
    with torch.device("meta"):
        made = unit(3, 2)
    assert made(torch.empty(5, 3, device="meta")).shape == (5, 2)
    made.to_empty(device="cpu").reset_parameters()
    assert made(inputs()).isfinite().all()


@check("NumPy integers as sizes; floats and booleans are refused")
def sizes(unit):
    made = unit(np.int64(3), np.int32(2))
    assert type(made.in_features) is int and made(inputs()).shape == (5, 2)
    # NumPy's booleans are integers to NumPy before 2.3
    booleans = () if hasattr(np.bool_, "__index__") else (np.bool_(True),)
    for wrong in (3.0, True, "3", np.float64(3), *booleans):
        refused(TypeError, lambda wrong=wrong: unit(wrong, 2))


# Keeping


@check("`state_dict`, saved and loaded with `weights_only`")
def state_dict(unit):
    one, other, file = unit(3, 2), unit(3, 2), io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    x = inputs()
    assert torch.equal(one(x), other(x))


@check("`copy.deepcopy` and `pickle`")
def copied(unit):
    one, x = unit(3, 2), inputs()
    for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert torch.equal(one(x), other(x)) and repr(one) == repr(other)


# Types of numbers


@check("`float64`, `bfloat16` and `float16`, forward and backward")
def dtypes(unit):
    one, x = unit(3, 2), inputs()
    expected = one.eval()(x).detach()
    for dtype, rtol in ((torch.float64, 1e-4), (torch.bfloat16, 0.1), (torch.float16, 0.02)):
        other = copy.deepcopy(one).to(dtype)
        assert trained(other.train(), x.to(dtype)).dtype == dtype
        close(other.eval()(x.to(dtype)).float(), expected, rtol=rtol, atol=1e-2)


@check("an input of another dtype is refused, of whatever size, as `nn.Linear` does; integers too")
def mixed(unit):
    for size in (3, 40):
        for dtype in (torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
            x = torch.ones(5, size, dtype=dtype)
            refused(RuntimeError, lambda size=size, x=x: unit(size, 2)(x))


@check("what is no tensor is refused")
def no_tensor(unit):
    for x in ([1.0, 2.0, 3.0], np.ones(3, dtype=np.float32), 1.0, None):
        refused(TypeError, lambda x=x: unit(3, 2)(x))


@check("under `torch.autocast` the dtype of the parameters, of whatever size, also after `nn.Linear`")
def autocast(unit):
    for size in (3, 40):
        one, x = unit(size, 2), inputs(5, size)
        expected = one(x).detach()
        with torch.autocast("cpu", torch.bfloat16):
            y = one(x)
            hidden = nn.Linear(4, size)(inputs(5, 4))
            assert hidden.dtype == torch.bfloat16 and one(hidden.exp()).dtype == torch.float32
            refused(RuntimeError, lambda one=one, x=x: one(x.double()))
        assert y.dtype == torch.float32 and torch.equal(y, expected)
        y.sum().backward()


# Shapes and values


@check("inputs of 1, 3 and 4 dimensions")
def dimensions(unit):
    one = unit(3, 2)
    for shape in ((3,), (2, 4, 3), (2, 1, 2, 3)):
        x = inputs(*shape)
        close(one(x), one(x.reshape(-1, 3)).reshape(*shape[:-1], 2), rtol=1e-5, atol=1e-6)


@check("an empty batch; one input and one output")
def smallest(unit):
    y = unit(3, 2)(torch.empty(0, 3))
    assert y.shape == (0, 2)
    y.sum().backward()
    assert trained(unit(1, 1), inputs(5, 1)).shape == (5, 1)


@check("finite where an input is 0, in evaluation", but=("NRU", "NMRU"))
def zero(unit):
    assert unit(3, 2).eval()(inputs() * torch.tensor([0.0, 1.0, 1.0])).isfinite().all()


@check("finite, with finite gradients, for negative inputs and for 0, in training")
def negative(unit):
    trained(unit(3, 2), inputs() * torch.tensor([0.0, -1.0, 1.0]))


@check("the same in training and in evaluation, before training", but=("NRU", "NMRU", "SNMU"))
def modes(unit):
    one, x = unit(3, 2), -inputs()
    assert torch.equal(one.train()(x), one.eval()(x))


# Derivatives and transforms


@check("`vmap` over stacked parameters, `functional_call`")
def stacked(unit):
    units, x = [unit(3, 2) for _ in range(3)], inputs()
    parameters, buffers = stack_module_state(units)
    together = vmap(lambda p: functional_call(units[0], p, (x,)))(parameters)
    for one, y in zip(units, together, strict=True):
        close(y, one(x))
    assert not buffers


@check("gradients of each example (`vmap` of `grad`)")
def per_example(unit):
    one, x = unit(3, 2).double(), inputs(dtype=torch.float64)
    parameters = {name: p.detach() for name, p in one.named_parameters()}
    each = vmap(grad(lambda p, x: functional_call(one, p, (x,)).sum()), in_dims=(None, 0))(parameters, x)
    one(x).sum().backward()
    for name, p in one.named_parameters():
        close(each[name].sum(0), p.grad)


@check("`jacfwd`, `jacrev`; second derivatives (`gradgradcheck`)", but=("SNMU",))
def derivatives(unit):
    one, x = unit(3, 2).double(), inputs(2, 3, dtype=torch.float64)
    close(jacfwd(one)(x[0]), jacrev(one)(x[0]))
    assert torch.autograd.gradgradcheck(one, (x.requires_grad_(),))


@check("`torch.inference_mode`; frozen parameters")
def inference(unit):
    one = unit(3, 2)
    with torch.inference_mode():
        assert not one(inputs()).requires_grad
    one.requires_grad_(False)
    assert not one(inputs()).requires_grad and not one.penalty().requires_grad
    one.project_()


@check("`torch.compile` without a break of the graph, also under autocast")
def traced(unit):
    one, x = unit(3, 2), inputs()
    torch._dynamo.reset()
    graph = torch.compile(one, backend="eager", fullgraph=True)
    close(graph(x), one(x))
    with torch.autocast("cpu", torch.bfloat16):
        assert graph(x).dtype == torch.float32


# Weights that are computed


class Half(nn.Module):
    def forward(self, weight):
        return weight / 2


class Invertible(Half):
    def right_inverse(self, weight):
        return weight * 2


def constrained(unit: type[Unit]) -> Unit:
    """With all parameters at 5, outside of all bounds."""
    made = unit(3, 2)
    for parameter in made.parameters():
        nn.init.constant_(parameter, 5.0)
    return made


def first_matrix(one: Unit) -> tuple[Unit, str]:
    """A weight, and the unit or sub-unit to which it belongs."""
    owner = one.add if hasattr(one, "add") else one
    return owner, next(name for name, p in owner.named_parameters() if p.dim() == 2)


@check("parametrisation, `weight_norm` and pruning, forward and backward")
def computed(unit):
    for change in (
        lambda owner, name: parametrize.register_parametrization(owner, name, Half()),
        lambda owner, name: parametrizations.weight_norm(owner, name),
        lambda owner, name: prune.l1_unstructured(owner, name, 1),
    ):
        one = unit(3, 2)
        change(*first_matrix(one))
        trained(one, inputs())


@check("`project_` acts through right inverses and pruning; what it cannot hold, it refuses", only=DISCRETE)
def projected(unit):
    one = constrained(unit)
    owner, name = first_matrix(one)
    parametrize.register_parametrization(owner, name, Invertible())
    one.project_()
    close(getattr(owner, name), torch.ones_like(getattr(owner, name)))
    one = constrained(unit)
    owner, name = first_matrix(one)
    prune.l1_unstructured(owner, name, 1)
    one.project_()
    one(inputs())
    close(getattr(owner, name), owner.weight_mask)
    one = unit(3, 2)
    owner, name = first_matrix(one)
    parametrize.register_parametrization(owner, name, Half())
    one.project_()  # within its bounds
    nn.init.constant_(owner.parametrizations.weight.original, 5.0)
    refused(RuntimeError, one.project_)
    assert (owner.weight == 2.5).all()


# What units add


@check("`penalty`, `project_` and `round_` act unless options say otherwise", only=DISCRETE)
def discretised(unit):
    one = constrained(unit)
    assert one.penalty() > 0
    one.project_()
    one.round_()
    assert one.penalty() == 0 and one.sparsity_error() == 0


@check("`formula` is what the unit computes in evaluation")
def read(unit):
    one, names, x = unit(3, 2).double(), ["a", "b", "c"], torch.randn(20, 3, dtype=torch.float64)
    assert formula_error(formula(one, names), names, one, x) < 1e-9


# With the compiler and with ONNX


@check("`torch.compile` (inductor), forward and backward", heavy=True)
def compiled(unit):
    one, x = unit(3, 2), inputs()
    expected, gradients = trained(one, x), [p.grad.clone() for p in one.parameters()]
    one.zero_grad()
    torch._dynamo.reset()
    y = torch.compile(one, fullgraph=True)(x)
    (y.square().mean() + one.penalty()).backward()
    close(y, expected, rtol=1e-4, atol=1e-5)
    close([p.grad for p in one.parameters()], gradients, rtol=1e-3, atol=1e-5)


def any_batch() -> tuple[dict[int, torch.export.Dim]]:
    return ({0: torch.export.Dim("batch", min=2)},)


@check("`torch.export` for batches of any size, saved and loaded", heavy=True)
def exported(unit):
    one, file, x = unit(3, 2).eval(), io.BytesIO(), inputs(11, 3)
    torch.export.save(torch.export.export(one, (inputs(),), dynamic_shapes=any_batch()), file)
    file.seek(0)
    close(torch.export.load(file).module()(x), one(x))


@check("ONNX for batches of any size, run by `onnxruntime`", heavy=True)
def onnx(unit):
    import onnxruntime

    one, file = unit(3, 2).eval(), io.BytesIO()
    torch.onnx.export(one, (inputs(),), dynamo=True, dynamic_shapes=any_batch(), verbose=False).save(file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    for x in (inputs(11, 3), -inputs(7, 3)):
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        close(torch.tensor(found), one(x).detach(), rtol=1e-4, atol=1e-5)


@check("`torch.jit.trace`", heavy=True)
def jit_traced(unit):
    one, x = unit(3, 2).eval(), inputs(9, 3)
    close(torch.jit.trace(one, inputs())(x), one(x))


def table() -> str:
    """
    >>> print(table().splitlines()[2])
    | `device=` and `dtype=` in the constructor, `torch.nn.utils.skip_init` | all |
    """
    lines = ["| what | units |", "|---|---|"]
    for one in CHECKS.values():
        without = [unit for unit in UNITS if unit not in one.units]
        but = f"all but {', '.join(without)}" if without else "all"
        lines.append(f"| {one.name} | {but if len(without) < 4 else ', '.join(one.units)} |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The text with the table between its marks."""
    before, _, rest = text.partition(MARKS[0])
    return f"{before}{MARKS[0]}\n{table()}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--heavy", action="store_true")
    options = parser.parse_args()
    if options.heavy:
        heavy = [one for one in CHECKS.values() if one.heavy]
        found = {one.name: [unit for unit in UNITS if one.holds(unit)] for one in heavy}
        print(json.dumps({"found": found, "said": SAID}))
    elif options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table())


if __name__ == "__main__":
    sys.exit(main())
