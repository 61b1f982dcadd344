"""Units under torch.func: many stacked runs give what each gives alone."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

from .cases import SEVERAL_OUTPUTS


class Call(nn.Module):
    """Makes a method of a unit the forward of a module, so that ``functional_call`` reaches it."""

    def __init__(self, unit: nn.Module, method: str) -> None:
        super().__init__()
        self.unit = unit
        self.method = method

    def forward(self):
        return getattr(self.unit, self.method)()


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["own-batches", "common-batch"])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_stacked_runs_equal_runs_alone(case, shared, training):
    torch.manual_seed(0)
    units = [case.build().train(training) for _ in range(3)]
    x = torch.randn(3, 5, 3, dtype=torch.float64)
    y = torch.randn(3, 5, 2, dtype=torch.float64)
    if shared:
        x = x[:1].expand(3, 5, 3)

    def loss(state, x, y):
        return (functional_call(units[0], state, (x,)) - y).square().mean() + functional_call(
            Call(units[0], "penalty"), {f"unit.{name}": value for name, value in state.items()}, ()
        )

    def alone(unit, x, y):
        value = (unit(x) - y).square().mean() + unit.penalty()
        return torch.autograd.grad(value, list(unit.parameters()))

    stacked, _ = stack_module_state(units)
    stacked = {name: value.detach() for name, value in stacked.items()}
    in_dims = (0, None if shared else 0, 0)
    together = vmap(grad(loss), in_dims=in_dims)(stacked, x[0] if shared else x, y)
    outputs = vmap(lambda s, x: functional_call(units[0], s, (x,)), in_dims=in_dims[:2])(
        stacked, x[0] if shared else x
    )
    for run, unit in enumerate(units):
        torch.testing.assert_close(outputs[run], unit(x[run]))
        for (name, _), expected in zip(unit.named_parameters(), alone(unit, x[run], y[run]), strict=True):
            torch.testing.assert_close(together[name][run], expected)


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
@pytest.mark.parametrize("mapped", [False, True], ids=["stacked", "vmap"])
def test_projection_of_stacked_parameters(case, mapped):
    torch.manual_seed(0)
    units = [case.build() for _ in range(3)]
    for unit in units:
        for parameter in unit.parameters():
            nn.init.uniform_(parameter, -3, 3)
    stacked, _ = stack_module_state([Call(unit, "project_") for unit in units])
    stacked = {name: value.detach() for name, value in stacked.items()}
    project = Call(units[0], "project_")
    before = [parameter.clone() for parameter in units[0].parameters()]

    def call(state):
        functional_call(project, state, ())
        return state

    if mapped:
        vmap(call)(stacked)
    else:
        call(stacked)
    assert all(map(torch.equal, before, units[0].parameters()))
    for run, unit in enumerate(units):
        unit.project_()
        for name, parameter in unit.named_parameters():
            assert torch.equal(stacked[f"unit.{name}"][run], parameter), name


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_sparsity_error_of_stacked_parameters(case):
    torch.manual_seed(0)
    units = [Call(case.build(), "sparsity_error") for _ in range(3)]
    stacked, _ = stack_module_state(units)
    together = vmap(lambda state: functional_call(units[0], state, ()))(stacked)
    torch.testing.assert_close(together, torch.stack([unit() for unit in units]))


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_units_trace_without_a_break(case):
    unit = case.build()
    x = torch.randn(5, 3, dtype=torch.float64)
    torch._dynamo.reset()
    compiled = torch.compile(unit, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), unit(x))
