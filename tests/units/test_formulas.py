"""A formula is what the model computes in evaluation, for all units, alone and stacked."""

import pytest
import sympy
import torch
from torch import nn
from torch.nn.utils import prune

from nalm import NAU, NMU, NRU, UNITS, RealNPU, Unit, formula, formula_error

from .cases import GOLDEN, MORE_ARMS

f64 = torch.float64
NAMES = ["a", "b", "c"]
X = torch.tensor([[-1.2, 0.7, 2.0], [1.5, -0.3, 0.4], [3.0, 2.0, -0.5], [0.2, 0.1, 0.9]], dtype=f64)
WANTED = {"difference": "a - b", "multiple": "a*b", "quotient": "a/b"}


@pytest.mark.parametrize("case", [*GOLDEN, *MORE_ARMS], ids=str)
def test_it_is_what_the_unit_computes(case):
    torch.manual_seed(0)
    unit = case.build()
    assert formula_error(formula(unit, NAMES), NAMES, unit, X) < 1e-12


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in GOLDEN
        if case.computes.__name__ in WANTED and case.signs and "separate_sign" not in case.options
    ],
    ids=str,
)
def test_golden_weights_give_the_operation(case):
    (found,) = formula(case.build_golden(f64), NAMES, digits=3)
    assert str(found) == WANTED[case.computes.__name__]


@pytest.mark.parametrize("name", UNITS)
def test_stacks_and_many_inputs(name):
    torch.manual_seed(0)
    stack = nn.Sequential(UNITS[name](3, 2), UNITS[name](2, 2)).double()
    assert formula_error(formula(stack, NAMES), NAMES, stack, X) < 1e-9
    wide, names = UNITS[name](20, 1, dtype=f64), [f"x{i}" for i in range(20)]
    assert formula_error(formula(wide, names), names, wide, torch.randn(5, 20, dtype=f64)) < 1e-6


def test_other_layers_and_other_units():
    class Squares(Unit):
        def __init__(self, in_features, out_features):
            super().__init__(in_features, out_features)
            self.weight = self.new_weight()
            self.reset_parameters()

        def reset_parameters(self):
            nn.init.ones_(self.weight)

        def forward(self, x):
            return nn.functional.linear(x.square(), self.weight)

    assert formula(Squares(2, 1), ["a", "b"])[0] == sympy.sympify("a**2 + b**2").subs(
        {name: sympy.Symbol(name, real=True) for name in "ab"}
    )
    mixed = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.ReLU(), nn.Sigmoid(), NMU(2, 1))
    assert formula_error(formula(mixed, NAMES), NAMES, mixed, X.float()) < 1e-6


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


OPERATIONS = {
    "add alpha": lambda x: torch.add(x[..., :1], x[..., 1:2], alpha=2),
    "sub alpha": lambda x: torch.sub(x[..., :1], x[..., 1:2], alpha=0.5),
    "rsub alpha": lambda x: torch.rsub(x, 3.0, alpha=2),
    "softplus beta": nn.Softplus(beta=5),
    "softplus threshold": nn.Softplus(beta=0.5, threshold=0.3),
    "where is no clamp": lambda x: torch.where(x < 0, x, torch.relu(x)),
    "where has another bound": lambda x: torch.where(x >= -1, x, torch.relu(x)),
    "where asks another": lambda x: torch.where(x[..., :1] >= 0, x[..., 1:2], torch.relu(x[..., 1:2])),
    "where clamps another": lambda x: torch.where(x[..., :1] >= 0, x[..., :1], torch.relu(x[..., 1:2])),
    "remainder": lambda x: torch.remainder(x, 0.7),
    "float": lambda x: x.float().double(),
    "truths": lambda x: (x < 0).long().double(),
    "step": lambda x: x[..., ::2],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_computed_with_its_options(name):
    model = Function(OPERATIONS[name])
    assert formula_error(formula(model, NAMES), NAMES, model, X) < 1e-6


@pytest.mark.parametrize(
    "relation, bound", [(torch.ge, "Max(0, a)"), (torch.gt, "Max(0, a)"), (torch.le, "Min(0, a)")]
)
def test_a_clamp_with_a_gradient_of_its_own_is_a_clamp(relation, bound):
    clamp = {"Max": {"min": 0}, "Min": {"max": 0}}[bound[:3]]
    model = Function(lambda x: torch.where(relation(x, 0), x, x.detach().clamp(**clamp)))
    assert str(formula(model, ["a"])[0]) == bound


@pytest.mark.parametrize("bound", [0, 0.5])
@pytest.mark.parametrize("relation", [torch.lt, torch.le, torch.gt, torch.ge, torch.eq])
def test_a_comparison_holds_at_its_bound(relation, bound):
    model = Function(lambda x: relation(x, bound).double())
    x = torch.tensor([[bound - 0.25], [bound], [bound + 0.25]], dtype=f64)
    assert formula_error(formula(model, ["a"]), ["a"], model, x) == 0


def test_a_softplus_with_the_usual_threshold_is_one_curve():
    assert str(formula(nn.Softplus(), ["a"])[0]) == "log(exp(a) + 1)"


@pytest.mark.parametrize(
    "function, computes",
    [
        (lambda x: (x / 4).long().double(), "a copy as torch.int64"),
        (lambda x: x.to(torch.uint8).double(), "a copy as torch.uint8"),
        (lambda x: x.bool().double(), "a copy as torch.bool"),
        (lambda x: x.unsqueeze(0).sum(0, dtype=torch.int64), "aten.sum.dim_IntList with dtype=torch.int64"),
    ],
)
def test_an_option_that_has_no_symbol_is_refused(function, computes):
    with pytest.raises(NotImplementedError, match=f"^This model computes {computes}, for which there is no"):
        formula(Function(function), NAMES)


def test_the_model_stays_as_it_is():
    model = nn.Sequential(NRU(2, 1), nn.Dropout()).train()
    model[1].eval()
    before = model[0].weight.clone()
    formula_error(formula(model, ["a", "b"], digits=0), ["a", "b"], model, torch.ones(1, 2))
    assert model.training and model[0].training and not model[1].training
    assert model[0].weight.dtype == torch.float32
    assert torch.equal(model[0].weight, before) and model[0].weight.requires_grad


def test_positive_symbols_and_digits():
    unit = RealNPU(2, 1, gate_init=1.0)
    with torch.no_grad():
        unit.weight.copy_(torch.tensor([[0.501, -2.004]]))
    p, q = sympy.symbols("p q", positive=True)
    assert formula(unit, [p, q], digits=2) == (p ** sympy.Float("0.5") / q**2,)
    assert formula_error(formula(unit, [p, q]), [p, q], unit, torch.rand(5, 2) + 0.5) < 1e-5


def test_an_error_is_the_largest():
    model = NAU(2, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.25]]))
    rounded = formula(model, ["a", "b"], digits=0)
    assert formula_error(rounded, ["a", "b"], model, torch.tensor([[1.0, 4.0], [1.0, 8.0]])) == 2.0


@pytest.mark.parametrize(
    "names", [["pi", "b"], ["cos", "abs"], ["E", "exp"], ["lambda", "I"], ["Heaviside", "b"]]
)
def test_inputs_may_have_any_name(names):
    unit, x = RealNPU(2, 1), torch.tensor([[2.0, 3.0], [-1.0, 2.0]])
    (found,) = formula(unit, names)
    assert formula_error(found, names, unit, x) < 1e-5


class Returning(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def test_what_has_no_formula_is_said_in_a_sentence():
    for digits, error in {
        -1: ValueError,
        2.5: TypeError,
        "2": TypeError,
        True: TypeError,
        False: TypeError,
    }.items():
        with pytest.raises(error, match=f"^digits must be an integer of at least 0, but it is {digits!r}"):
            formula(NAU(2, 1), ["a", "b"], digits)
    with pytest.raises(TypeError, match="^What has a formula is a torch.nn.Module, not 3"):
        formula(3, ["a"])
    for returned in (lambda x: (x, x), lambda x: x[None], lambda x: torch.ones(1)):
        with pytest.raises(
            ValueError, match="^The model must map 2 numbers to a vector that depends on them"
        ):
            formula(Returning(returned), ["a", "b"])
    with pytest.raises(TypeError, match=r"^A formula is an expression of SymPy, not 'a\*b'"):
        formula_error("a*b", ["a", "b"], NAU(2, 1), torch.ones(1, 2))
    with pytest.raises(TypeError, match="^The inputs must be a tensor, but are of type list"):
        formula_error(formula(NAU(2, 1), ["a", "b"]), ["a", "b"], NAU(2, 1), [[1.0, 2.0]])
    with pytest.raises(NotImplementedError, match=r"^This model computes aten.gelu.default, for which there"):
        formula(nn.Sequential(NAU(2, 1), nn.GELU()), ["a", "b"])
    with pytest.raises(ValueError, match=r"^The model does not take 1 inputs: .*cannot be multiplied"):
        formula(nn.Linear(2, 1), ["a"])
    sums = formula(NAU(2, 1), ["a", "b"])
    for names, error in ((["a", "a"], ValueError), ([1, 2], TypeError), ("ab", TypeError), (None, TypeError)):
        with pytest.raises(error, match="^The names must be"):
            formula(NAU(2, 1), names)
        with pytest.raises(error, match="^The names must be"):
            formula_error(sums, names, NAU(2, 1), torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"The formulas have b, which is none of the names \['a'\]"):
        formula_error(sums, ["a"], NAU(2, 1), torch.ones(1, 1))
    for shape in (1, 3), (0, 2):
        with pytest.raises(
            ValueError, match=rf"must be \(examples, 2\), one at least, but are \({shape[0]}, "
        ):
            formula_error(sums, ["a", "b"], NAU(2, 1), torch.ones(shape))
    with pytest.raises(ValueError, match=r"must be \(examples, 2\), one at least, but are \(2,\)"):
        formula_error(sums, ["a", "b"], NAU(2, 1), torch.ones(2))
    pruned = NAU(2, 1)
    prune.l1_unstructured(pruned, "weight", 1)
    with pytest.raises(ValueError, match="make pruning or a norm of its weights permanent first"):
        formula(pruned, ["a", "b"])
    with pytest.raises(
        ValueError, match=r"The outputs must be \(examples, 1\), one for .*, but are \(4, 2\)"
    ):
        formula_error(sums, ["a", "b"], NAU(2, 2), torch.ones(4, 2))
    with pytest.raises(ValueError, match=r"NAU takes inputs of shape \(\.\.\., 2\)"):
        formula(NAU(2, 1), NAMES)
