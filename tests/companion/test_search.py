"""The search finds the exact form from a start that has too many numbers, and records what it found."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from companion import sealed
from companion.discovery import Discovery, PowerSystem, discover, discover_all, page, recorded, search
from companion.npu.settings import EXACT_FSIR, fsir_arm

from nalm.tasks import FractionalSIRTask
from nalm.training import Run

TIMES = np.linspace(0.0, 4.0, 10)
STATES = np.stack([(4 - TIMES / 2) ** 2, 1 + TIMES], 1)  # x' = -sqrt(x), y' = 1


def start(seed: int = 0) -> PowerSystem:
    random = np.random.RandomState(seed)
    numbers = np.concatenate(
        [
            random.uniform(0, 0.5, (3, 2)),
            random.uniform(-0.05, 0.05, (3, 2)),
            random.uniform(-0.3, 0.3, (3, 2)),
        ],
        1,
    )
    return PowerSystem(numbers, np.ones_like(numbers, dtype=bool))


def test_exact_form_is_found():
    sizes = []
    found = discover(start(), TIMES, STATES, lambda size, error: sizes.append(size))
    assert found.error < 1e-9 and found.system.size <= 4
    assert not found.system.free[:, 2:4].any()  # no imaginary weights
    assert sizes == [size for size, _ in found.path[1:]] and sizes == sorted(sizes, reverse=True)


def test_discoveries_are_recorded_and_read(tmp_path, monkeypatch):
    """A stub of the search makes it short; the file, the processes and the errors are real."""
    arm = fsir_arm("RealNPU", 6, 0.0)
    run = Run(
        task=FractionalSIRTask(), model=arm.model, recipe=arm.recipe, seed=3, labels={"model": "RealNPU"}
    )
    monkeypatch.setattr(recorded, "own_processes", lambda number: ThreadPoolExecutor(number))
    exact = PowerSystem.of(EXACT_FSIR)
    monkeypatch.setattr(
        recorded, "discover", lambda start, times, states: Discovery(exact, 1e-9, [(24, 0.1), (10, 1e-9)])
    )
    first = discover_all([run], results=str(tmp_path), progress=False)
    assert first["numbers"].item() == 10 and first["mse"].item() < 1e-6 and first["test_mse"].item() < 1e-6
    assert json.loads(first["weights"].item()) == EXACT_FSIR
    assert first["fresh"].item() and first["seed"].item() == 3
    file = tmp_path / "beyond" / "equations.json"
    before = file.read_bytes()
    monkeypatch.setattr(recorded, "discover", None)
    pd.testing.assert_frame_equal(discover_all([run], results=str(tmp_path), progress=False), first)
    assert file.read_bytes() == before
    content = json.loads(before)
    content[run.key]["code"] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="is not what was recorded"):
        discover_all([run], results=str(tmp_path), progress=False)
    sealed.write_json(file, {run.key: content[run.key]})
    assert not discover_all([run], results=str(tmp_path), progress=False)["fresh"].item()


def test_a_number_is_worth_the_logarithm_of_how_many_are_fitted():
    exact = PowerSystem.of(EXACT_FSIR)
    free = exact.free.copy()
    free[2, 2] = False
    fits = [search._Fit(system, 0.1, np.zeros((39 * 3, 1))) for system in (exact, exact.but(free=free))]
    more, fewer = (fit.information(1e-9) for fit in fits)
    assert more - fewer == pytest.approx(np.log(39 * 3))
    assert more == pytest.approx(page.criterion(0.1, 10))


def test_a_unit_gives_its_coefficients_to_another_which_makes_up_for_its_size():
    """x and x y, where y is always 2."""
    numbers = np.array([[1.0, 0.0, 0.0, 0.0, -0.2, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.1]])
    states = np.stack([np.linspace(3, 2, 5), np.full(5, 2.0)], 1)
    first, second = search._merged(PowerSystem(numbers, numbers != 0), states)
    np.testing.assert_allclose(first.numbers, [[1, 0, 0, 0, -0.2, 0.2], [0] * 6])
    np.testing.assert_allclose(second.numbers, [[0] * 6, [1, 1, 0, 0, -0.1, 0.1]])
    assert (first.free == (first.numbers != 0)).all() and (second.size, first.size) == (4, 3)


def test_units_of_the_true_form_are_found_in_any_order():
    order = [2, 0, 1]
    system = PowerSystem(page.TRUE.numbers[order] * 1.1, page.TRUE.free[order])
    aligned = page._aligned(json.dumps(system.weights()))
    np.testing.assert_allclose(aligned, 1.1 * page.TRUE.numbers[page.TRUE.free])
    moved = system.numbers.copy()
    moved[0, [0, 2]] = moved[0, [2, 0]]
    assert page._aligned(json.dumps(PowerSystem(moved, moved != 0).weights())) is None


def test_the_figure_of_a_search_marks_what_was_chosen():
    path = [[24, 0.5], [20, 0.1], [10, 0.2], [9, 0.4]]
    found = pd.DataFrame({"draw": ["0", "1"], "noise": "1%", "path": [path, path], "numbers": [10, 9]})
    (axis,) = page.step(found).axes
    way, mark, true = axis.lines
    assert way.get_xydata().tolist() == [[9, 0.4], [10, 0.2], [20, 0.1]]
    assert mark.get_xydata().tolist() == [[10, 0.2]] and list(true.get_xdata()) == [10, 10]
    assert axis.get_title() == "noise 1%" and axis.xaxis_inverted()
