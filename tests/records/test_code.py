"""Freshness: rows know the code they were made with, and whether it is still that."""

import json
import sys

import pytest

from nalm.models import DigitSequence, Layer, Stack
from nalm.records import Store, code, freshness, run_all
from nalm.records.row import row_of
from nalm.records.trainers import trainer_of
from nalm.tasks import DigitSequenceTask, SimpleArithmeticTask, SingleModuleTask, SubsetArithmeticTask, TenParameterTask, Uniform
from nalm.training import SGD, Adam, Discretisation, Recipe, RMSProp, Run
from nalm.units import UNITS

EXPERIMENT = "demo/code"
FRESH, OLDER = "fresh", "older than the code it depends on"


def run(unit="NMU", task=None, model=None, **recipe):
    recipe = Recipe(**({"iterations": 4, "optimiser": Adam(lr=1e-2), "log_interval": 2} | recipe))
    task = task or SingleModuleTask.on("U[1,2)", operation="mul")
    return Run(task=task, model=model or Stack.of(unit, task.out_features), recipe=recipe, seed=0, threshold=1e-5)


@pytest.fixture
def edit(monkeypatch):
    """Edits the source of a module of the library, as if this process had started with it."""

    def edit(module, old, new):
        source = code.LOADED[module]
        assert old in source
        monkeypatch.setitem(code.LOADED, module, source.replace(old, new, 1))

    return edit


def record(folder, *units):
    return run_all([run(unit) for unit in units], EXPERIMENT, results=str(folder), progress=False)


def test_rows_are_fresh_until_their_code_changes(tmp_path, edit):
    record(tmp_path, "NMU", "NRU")
    assert freshness(EXPERIMENT, tmp_path) == FRESH
    edit("nalm.units.nau", "return ", "return 1 * ")
    assert freshness(EXPERIMENT, tmp_path) == OLDER
    store = Store(tmp_path, EXPERIMENT)
    assert code.freshness_of(store.read(), store.sidecar()).tolist() == [OLDER, FRESH]


def test_docstrings_comments_and_layout_are_no_code(tmp_path, edit):
    record(tmp_path, "NMU")
    before = code.LOADED["nalm.units.nau"]
    edit("nalm.units.nau", '"""', '"""Other words. ')
    edit("nalm.units.nau", "class NMU", "# a comment\n\n\nclass NMU")
    edit("nalm.training.log", "self.selection = selection", "self.selection = (\n            selection\n        )")
    assert code.LOADED["nalm.units.nau"] != before
    assert freshness(EXPERIMENT, tmp_path) == FRESH


@pytest.mark.parametrize(
    ("module", "old", "new", "expected"),
    [
        ("nalm.training.update", "self.recipe = ", "self.recipe = 0 or ", OLDER),
        ("nalm.tasks.single_module", "randint(0, ", "randint(0, 0 + ", OLDER),
        ("nalm.tasks.arithmetic", "return ", "return 0 or ", OLDER),  # what the task imports
        ("nalm.units.functional", "return ", "return 0 or ", OLDER),  # what the unit imports
        ("nalm.measures", "errors < np", "errors <= np", OLDER),  # first_solved
        ("nalm.measures", "def success_rate(", "def rate_of_success(", FRESH),
        ("nalm.tasks.simple_arithmetic", "return ", "return 0 or ", FRESH),
        ("nalm.units.npu", "return ", "return 0 or ", FRESH),
        ("nalm.networks", "return ", "return 0 or ", FRESH),
        ("nalm.sequences.ensemble", "return ", "return 0 or ", FRESH),
        ("nalm.models.stack", "return ", "return 0 or ", OLDER),
        ("nalm.models.digit_sequence", "return ", "return 0 or ", FRESH),
        ("nalm.figures.styles", "return ", "return 0 or ", FRESH),
    ],
)
def test_rows_depend_on_their_own_code_only(tmp_path, edit, module, old, new, expected):
    record(tmp_path, "NMU")
    edit(module, old, new)
    assert freshness(EXPERIMENT, tmp_path) == expected


def test_what_is_not_known_is_not_fresh(tmp_path, monkeypatch):
    record(tmp_path, "NMU")
    store = Store(tmp_path, EXPERIMENT)
    sidecar = json.loads(store.sidecar_file.read_text())
    for batch in sidecar["batches"].values():
        del batch["code"]
    store.sidecar_file.write_text(json.dumps(sidecar))
    assert freshness(EXPERIMENT, tmp_path) == OLDER
    with pytest.raises(ValueError, match="no rows of 'demo/other'"):
        freshness("demo/other", tmp_path)


def test_files_that_change_while_a_run_trains_leave_its_code_unknown(tmp_path, monkeypatch):
    edited = dict(code.LOADED) | {"nalm.units.nau": code.LOADED["nalm.units.nau"] + "\nchanged = 1\n"}
    monkeypatch.setattr(code, "_sources", lambda: edited)
    record(tmp_path, "NMU", "NRU")
    batches = Store(tmp_path, EXPERIMENT).sidecar()["batches"].values()
    assert sorted((batch["code"] is None for batch in batches)) == [False, True]


SUBSET = SubsetArithmeticTask(operation="mul", interpolation=Uniform(low=1.0, high=2.0), extrapolation=Uniform(low=2.0, high=6.0))
RUNS = {unit: run(unit) for unit in UNITS} | {
    "subset": run(task=SUBSET, optimiser=SGD(lr=1e-3)),
    "ten parameters": run(task=TenParameterTask(), penalties=(Discretisation(weight=1.0, start=0, end=2),), clip_gradient_norm=1.0),
    "simple arithmetic": run(task=SimpleArithmeticTask(), optimiser=RMSProp(lr=1e-3)),
    "digits": run(
        task=DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,)),
        model=DigitSequence(cell=Layer(unit="NMU")),
        iterations=1,
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_all_code_that_is_executed_is_known(name):
    asked, executed = RUNS[name], set()

    def notice(frame, event, argument):
        executed.add(frame.f_globals.get("__name__", ""))

    rebuilt, trainer = Run.from_json(asked.canonical()), trainer_of(asked)
    sys.setprofile(notice)
    try:
        row_of(rebuilt, 0, trainer([rebuilt]).train(), "demo/traced", "")
    finally:
        sys.setprofile(None)
    executed = {module for module in executed if module.startswith("nalm.")}
    assert {"nalm.training.update", "nalm.records.row", type(asked.task).__module__} <= executed
    assert executed <= set(code.modules(asked))
