"""Compiled functions do what they do uncompiled, for every shape and layout."""

import subprocess
import sys

import pytest
import torch

from nalm.training import compiler
from nalm.training.compiler import Compiled, Eager


def step(parameters, total, factor, draw, fixed):
    """A function with everything that an update has: several tensors, a scalar, sometimes a draw, something fixed."""
    x = factor * fixed["x"] if draw is None else factor * draw
    new = {name: p.sin() + x.sum() for name, p in parameters.items()}
    return new, total + x.square().mean()


PARAMETERS = {"a": torch.linspace(0, 1, 35).reshape(5, 7), "b": torch.linspace(-2, 2, 5)}


@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize("drawn", [False, True])
def test_a_repeated_call(together, drawn):
    inputs = [(torch.tensor(float(number)), torch.full((9,), 0.1 * number) if drawn else None) for number in range(5)]
    state, fixed = (PARAMETERS, torch.tensor(0.0)), ({"x": torch.ones(9)},)
    expected, found = Eager(step).repeat(state, inputs, fixed), Compiled(step, together).repeat(state, inputs, fixed)
    torch.testing.assert_close(found, expected)
    assert Compiled(step, together).repeat(state, [], fixed) is state


def test_each_shape_and_layout_has_its_own_code():
    double = Compiled(lambda x, y: {"sum": (2 * x + y).sum(0), "same": x + 0})
    for x in (torch.rand(3, 4), torch.rand(4, 3), torch.rand(4, 3).mT, torch.rand(3, 4, dtype=torch.float64)):
        for _ in range(2):
            found = double(x, x)
            torch.testing.assert_close(found, {"sum": 3 * x.sum(0), "same": x})
    assert len(double._known) == 4


def test_the_instructions_are_those_that_inductor_finds_by_itself():
    code = "from torch._inductor.cpu_vec_isa import pick_vec_isa; print(pick_vec_isa())"
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    compiler._prepare()
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    assert str(pick_vec_isa()) == alone


def test_operations_that_depend_on_values_are_refused():
    """Recorded once, they would be wrong for other values."""
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        Compiled(lambda x: x if x.sum() > 0 else -x)(torch.ones(3))
