"""Exact weights solve their task, and leave the errors that the authors of the division paper recorded."""

import pytest
import torch
from companion.division.golden import golden_error, golden_weights
from companion.published import load

from nalm.models import Layer
from nalm.tasks import SingleModuleTask, Uniform

TASKS = {"1/a from a": ("reciprocal", 1), "1/a from a, b": ("reciprocal", 2), "a/b from a, b": ("div", 2)}
OPTIONS = {"Real NPU": {}, "Real NPU, ε = 0": {"eps": 0.0}, "NRU": {}, "NMRU": {"rounding": "sequential"}}


def task(name: str, high: float) -> SingleModuleTask:
    operation, inputs = TASKS[name]
    small = Uniform(low=0.0, high=high)
    return SingleModuleTask(operation=operation, interpolation=small, extrapolation=small, inputs=inputs)


@pytest.mark.parametrize("unit", ["RealNPU", "NRU", "NMRU"])
@pytest.mark.parametrize(
    ("operation", "inputs"), [("reciprocal", 1), ("reciprocal", 2), ("div", 2), ("mul", 2), ("div", 10)]
)
def test_golden_weights_solve_the_task(unit: str, operation: str, inputs: int) -> None:
    on = SingleModuleTask.on("U[-2,-1)", operation=operation, inputs=inputs)
    options = {"eps": 0.0} if unit == "RealNPU" else {}
    module = Layer(unit=unit, options=options).build(inputs).double().eval()
    module.load_state_dict(golden_weights(unit, on, seed=3))
    test = on.evaluation(3)["test"]
    x = test.inputs.double()
    a, b = (torch.tensor(on.operands(3)) @ x.T)[:, :, None]
    exact = {"reciprocal": 1 / a, "div": a / b, "mul": a * b}[operation]
    torch.testing.assert_close(module(x).detach(), exact, rtol=1e-12, atol=0)


def test_recorded_errors_are_reproduced() -> None:
    recorded = load("division_golden_errors")
    assert len(recorded) == 4 * 3 * 9
    for row in recorded.itertuples():
        unit = "RealNPU" if row.model.startswith("Real NPU") else row.model
        here = golden_error(unit, task(row.task, float(row.range[4:-1])), **OPTIONS[row.model])
        # To four digits, except without epsilon: there the error is the rounding of logarithms and
        # exponentials, which libraries do differently.
        assert here == pytest.approx(
            row.value, rel=0.25 if "ε" in row.model else 0.015 if row.model == "NRU" else 5e-5
        ), row


@pytest.mark.parametrize(("unit", "operation"), [("NAU", "div"), ("NRU", "add")])
def test_without_golden_weights_is_refused(unit: str, operation: str) -> None:
    with pytest.raises(ValueError, match="golden weights"):
        golden_weights(unit, SingleModuleTask.on("U[1,2)", operation=operation))
