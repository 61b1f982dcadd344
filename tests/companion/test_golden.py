"""Exact weights solve their task, and leave the errors that the authors of the division paper recorded."""

from types import SimpleNamespace

import pytest
import torch
from companion.division import golden_paths
from companion.division.golden import PATHS, errors_by_path, golden_weights
from companion.division.small_numbers import golden, without_epsilon

from nalm.models import Layer
from nalm.tasks import SingleModuleTask


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
    """To four digits; the NRU's are all rounding, and need room."""
    table = golden().dropna(subset="recorded")
    assert len(table) == 4 * 3 * 9
    for row in table.itertuples():
        assert row.here == pytest.approx(row.recorded, rel=0.015 if row.model == "NRU" else 5e-5), row


def test_without_epsilon_a_processor_takes_one_of_the_recorded_paths() -> None:
    place, paths = ["task", "range"], errors_by_path()
    assert list(paths["path"].unique()) == list(PATHS)
    here = without_epsilon().set_index(place)["error"]
    apart = {
        path: (part.set_index(place)["error"] / here - 1).abs().max() for path, part in paths.groupby("path")
    }
    if torch.backends.mkl.is_available():
        assert min(apart.values()) < 1e-3 < 0.1 < sorted(apart.values())[1], apart
    else:  # as on ARM: logarithms of another library, which are rounded as well
        assert max(apart.values()) < 1, apart


def test_a_processor_without_the_paths_records_none(monkeypatch, capsys) -> None:
    told = SimpleNamespace(stdout="task,range,error\na/b,near zero,1.0\n")
    monkeypatch.setattr(golden_paths.subprocess, "run", lambda *_, **__: told)
    monkeypatch.setattr(golden_paths.sealed, "write_text", lambda *_: pytest.fail("written"))
    assert golden_paths.main([]) == 2
    assert "does not have the paths AVX2, AVX512, COMPATIBLE" in capsys.readouterr().err


@pytest.mark.parametrize(("unit", "operation"), [("NAU", "div"), ("NRU", "add")])
def test_without_golden_weights_is_refused(unit: str, operation: str) -> None:
    with pytest.raises(ValueError, match="golden weights"):
        golden_weights(unit, SingleModuleTask.on("U[1,2)", operation=operation))
