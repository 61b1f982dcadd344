"""Freshness: rows know the code they were made with, and whether it is still that."""

import ast
import json
import sys

import pytest

from nalm.models import DigitSequence, Layer, Stack
from nalm.records import PUBLISHED, Store, code, experiments, freshness, run_all
from nalm.records.definitions import Definitions
from nalm.records.row import row_of
from nalm.tasks import (
    DigitSequenceTask,
    SimpleArithmeticTask,
    SingleModuleTask,
    SubsetArithmeticTask,
    TenParameterTask,
    Uniform,
)
from nalm.training import SGD, Adam, Discretisation, Recipe, RMSProp, Run
from nalm.training.trainers import trainer_of
from nalm.units import UNITS

EXPERIMENT = "demo/code"
FRESH, OLDER = "fresh", "older than the code it depends on"


def run(unit="NMU", task=None, model=None, **recipe):
    recipe = Recipe(**({"iterations": 4, "optimiser": Adam(lr=1e-2), "log_interval": 2} | recipe))
    task = task or SingleModuleTask.on("U[1,2)", operation="mul")
    return Run(
        task=task, model=model or Stack.of(unit, task.out_features), recipe=recipe, seed=0, threshold=1e-5
    )


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


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """A folder with a row of an NMU."""
    folder = tmp_path_factory.mktemp("products")
    record(folder, "NMU")
    return folder


def test_rows_are_fresh_until_their_code_changes(tmp_path, edit):
    record(tmp_path, "NMU", "NRU")
    assert freshness(EXPERIMENT, tmp_path) == FRESH
    edit("nalm.units.nau", "return identity_product", "return 1 * identity_product")
    assert freshness(EXPERIMENT, tmp_path) == OLDER
    store = Store(tmp_path, EXPERIMENT)
    assert code.freshness_of(store.read(), store.sidecar()).tolist() == [OLDER, FRESH]


def test_docstrings_comments_and_layout_are_no_code(tmp_path, edit):
    record(tmp_path, "NMU")
    before = code.LOADED["nalm.units.nau"]
    edit("nalm.units.nau", '"""', '"""Other words. ')
    edit("nalm.units.nau", "class NMU", "# a comment\n\n\nclass NMU")
    edit(
        "nalm.training.log",
        "self.selection = selection",
        "self.selection = (\n            selection\n        )",
    )
    assert code.LOADED["nalm.units.nau"] != before
    assert freshness(EXPERIMENT, tmp_path) == FRESH


@pytest.mark.parametrize(
    ("module", "old", "new", "expected"),
    [
        ("nalm.training.update", "self.recipe = ", "self.recipe = 0 or ", OLDER),
        ("nalm.training.update", "total + penalty", "total - penalty", OLDER),
        (
            "nalm.tasks.single_module",
            "def in_features(self) -> int:\n        return ",
            "def in_features(self) -> int:\n        return 0 + ",
            OLDER,
        ),
        # a constant of what the task imports
        ("nalm.tasks.arithmetic", "VALIDATION_SEED = ", "VALIDATION_SEED = 1 + ", OLDER),
        (
            "nalm.units.functional",
            "def product(factors: Tensor",
            "def product(factors: Tensor, other: int = 1",
            OLDER,
        ),
        # of another unit
        ("nalm.units.functional", "return torch.tanh(weight_tanh)", "return -torch.tanh(weight_tanh)", FRESH),
        # these runs have no penalty
        ("nalm.units.unit", "[distance(getattr", "[-distance(getattr", FRESH),
        ("nalm.records.row", "errors < np", "errors <= np", OLDER),  # first_solved
        ("nalm.tasks.operations", "operator.mul", "operator.add", OLDER),
        ("nalm.tasks.operations", "a**0.5", "a**0.25", FRESH),  # another entry of the same dict
        ("nalm.training.losses", "target).square()", "target).abs()", OLDER),
        ("nalm.training.losses", "((target - output) / target)", "((target - output) / output)", FRESH),
        ("nalm.training.optimisers", "t = (step + 1)", "t = (step + 2)", OLDER),
        # RMSProp
        (
            "nalm.training.optimisers",
            "(square.sqrt() + self.eps), square",
            "(square.sqrt() - self.eps), square",
            FRESH,
        ),
        ("nalm.tasks.simple_arithmetic", "return ", "return 0 or ", FRESH),
        ("nalm.units.npu", "return ", "return 0 or ", FRESH),
        ("nalm.models.digit_sequence", "return ", "return 0 or ", FRESH),
        ("nalm.training.sequences", "return ", "return 0 or ", FRESH),
        ("nalm.models.stack", "return UNITS", "return 0 or UNITS", OLDER),
        ("nalm.models.stack", "self.draws)", "self.draws + 1)", OLDER),
        ("nalm.training.ensemble", "raise ValueError(", "raise TypeError(", FRESH),
        ("nalm.training.graphed", "return ", "return 0 or ", FRESH),
    ],
)
def test_rows_depend_on_their_own_code_only(products, edit, module, old, new, expected):
    edit(module, old, new)
    assert freshness(EXPERIMENT, products) == expected


@pytest.mark.parametrize("name", ["the same", "another version of PyTorch"])
def test_the_minor_version_of_pytorch_is_part_of_fresh(tmp_path, monkeypatch, name):
    record(tmp_path, "NMU")
    major, minor, *_ = code.torch.__version__.split(".")
    monkeypatch.setattr(
        code.torch,
        "__version__",
        f"{major}.{minor}.77" if name == "the same" else f"{major}.{int(minor) + 1}.0",
    )
    assert freshness(EXPERIMENT, tmp_path) == (FRESH if name == "the same" else OLDER)


def test_a_confirmation_counts_for_its_own_way_whichever_rows_are_asked(tmp_path):
    record(tmp_path, "NMU", "NRU")
    store = Store(tmp_path, EXPERIMENT)
    rows, sidecar = store.read(), store.sidecar()
    for batch in sidecar["batches"].values():
        batch["code"] = "older"
    of = code.codes(rows, sidecar)
    note = {
        "recorded": of["recorded"].iloc[0],
        "current": of["current"].tolist(),
        "rows": rows["key"][:1].tolist(),
    }
    sidecar["confirmations"] = [note]
    confirmed = ["confirmed", OLDER]
    assert code.freshness_of(rows, sidecar).tolist() == confirmed
    assert [code.freshness_of(rows[rows["key"] == key], sidecar).item() for key in rows["key"]] == confirmed


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
    edited = dict(code.LOADED) | {
        "nalm.units.nau": code.LOADED["nalm.units.nau"].replace(
            "identity_product(x, weight", "identity_product(weight, x"
        )
    }
    monkeypatch.setattr(code, "_sources", lambda: edited)
    record(tmp_path, "NMU", "NRU")
    batches = Store(tmp_path, EXPERIMENT).sidecar()["batches"].values()
    assert sorted(batch["code"] is None for batch in batches) == [False, True]


SUBSET = SubsetArithmeticTask(
    operation="mul", interpolation=Uniform(low=1.0, high=2.0), extrapolation=Uniform(low=2.0, high=6.0)
)
RUNS = {unit: run(unit) for unit in UNITS} | {
    "subset": run(task=SUBSET, optimiser=SGD(lr=1e-3)),
    "ten parameters": run(
        task=TenParameterTask(),
        penalties=(Discretisation(weight=1.0, start=0, end=2),),
        clip_gradient_norm=1.0,
    ),
    "simple arithmetic": run(task=SimpleArithmeticTask(), optimiser=RMSProp(lr=1e-3)),
    "digits": run(
        task=DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,)),
        model=DigitSequence(cell=Layer(unit="NMU")),
        iterations=1,
    ),
}


@pytest.mark.parametrize("name", ["npu/fractional-sir", "division/distributions"])
def test_configurations_that_differ_in_rates_and_ranges_only_have_one_code(name):
    alike = {}
    for configuration in Store(PUBLISHED, name).sidecar()["configurations"].values():
        alike.setdefault(json.dumps(code._shape(configuration)), []).append(configuration)
    assert any(len(several) > 1 for several in alike.values())
    for several in alike.values():
        assert len({code._code_of_configuration(one) for one in (several[0], several[-1])}) == 1


@pytest.mark.parametrize("name", RUNS)
def test_all_code_that_is_executed_is_known(name):
    asked, executed = RUNS[name], set()

    def notice(frame, event, argument):
        if event == "call":
            executed.add(
                (frame.f_globals.get("__name__", ""), frame.f_code.co_qualname.partition(".<locals>")[0])
            )

    rebuilt, trainer = Run.from_json(asked.canonical()), trainer_of(asked)
    sys.setprofile(notice)
    try:
        row_of(rebuilt, 0, trainer([rebuilt]).train(), "demo/traced", "")
    finally:
        sys.setprofile(None)
    # What makes dataclasses has no place in a file, and a function without a name is part of what it stands
    # in. An extra that is not installed is refused, and what changes no number is not followed.
    ours = {
        (module, place)
        for module, place in executed
        if module in code.LOADED.keys() - set(code.NO_NUMBER)
        and "<" not in place
        and place not in ("__create_fn__", "__getattr__")
    }
    assert {
        ("nalm.training.update", "Update._loss"),
        ("nalm.records.row", "row_of"),
        ("nalm.training.ensemble", "Ensemble._advance"),
    } <= ours
    definitions, (entered, words) = Definitions(code.LOADED, code.NO_NUMBER), code.entrances(asked)
    known = {
        (place.module, place.name)
        for place in definitions.used([definitions.place_of(*one) for one in entered], words)
    }
    assert ours - known == set()


def test_no_published_row_is_older_than_its_code():
    assert {name: freshness(name) for name in experiments(PUBLISHED) if freshness(name) == OLDER} == {}


RUNS_IN_SHORT = {
    name: RUNS[name]
    for name in (
        "NMU",
        "NAU",
        "GatedNAUNMU",
        "RealNPU",
        "NALU",
        "subset",
        "ten parameters",
        "simple arithmetic",
        "digits",
    )
}


def older(edits):
    """Which of the runs have other code with these edits of the sources: module -> (old, new) or a text."""
    sources = dict(code.LOADED)
    for module, edit in edits.items():
        if isinstance(edit, tuple):
            assert edit[0] in sources[module], edit
        sources[module] = sources[module].replace(*edit, 1) if isinstance(edit, tuple) else edit
    return {name for name, run in RUNS_IN_SHORT.items() if code.code(run, sources) != code.code(run)}


WITH_NMU = {"NMU", "GatedNAUNMU", "subset", "ten parameters", "simple arithmetic", "digits"}


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        (
            {
                "nalm.training.streams": (
                    '["philox", "uniforms", "COMMON_SEED"]',
                    '["COMMON_SEED", "philox", "uniforms"]',
                )
            },
            set(),
        ),
        (
            {
                "nalm.training.checkpoint": (
                    "buffer = io.BytesIO()\n        torch.save(content, buffer)",
                    "b = io.BytesIO()\n        torch.save(content, b)",
                )
            },
            set(),
        ),
        (
            {
                "nalm.training.losses": (
                    'LOSSES = {"mse"',
                    "def cube(output, target):\n    return (output - target) ** 3\n\n\n"
                    'LOSSES = {"cube": cube, "mse"',
                )
            },
            set(),
        ),
        ({"nalm.units": ("    NMU,\n", "    NMU,\n    Unit,\n")}, set()),
        (
            {
                "nalm.training.optimisers": (
                    "class LBFGS(Value)",
                    "class Rprop(Value):\n    lr: float\n\n\nclass LBFGS(Value)",
                )
            },
            set(),
        ),
        ({"nalm.tasks": ("AnyTask = ", "AnyTask = Task | ")}, set()),
        ({"nalm.tasks.operations": ('    "add"', '    "modulo": operator.mod,\n    "add"')}, set()),
        ({"nalm.units.init": ('    "nac": nac_', '    "zeros": nn.init.zeros_,\n    "nac": nac_')}, set()),
        (
            {
                "nalm.units.unit": (
                    "    def extra_repr",
                    "    def doubled_(self):\n        pass\n\n    def extra_repr",
                )
            },
            set(),
        ),
        ({"nalm.units.checks": ("did you mean", "is it")}, set()),
        (
            {
                "nalm.units.nau": (
                    "return identity_product(x, weight, self",
                    "return -identity_product(x, weight, self",
                )
            },
            WITH_NMU,
        ),
        # an import is redirected
        (
            {"nalm.units.nau": ("clamped, identity_product,", "clamped, product as identity_product,")},
            WITH_NMU,
        ),
        # a constant of a module
        ({"nalm.units.functional": ("UNROLLED_FACTORS = 16", "UNROLLED_FACTORS = 8")}, WITH_NMU),
        ({"nalm.training.streams": ("_ROUNDS = 7", "_ROUNDS = 8")}, set(RUNS_IN_SHORT)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_which_rows_an_edit_makes_older(edits, expected):
    assert older(edits) == expected


def test_where_a_module_is_and_how_it_is_sorted_is_no_code():
    moved = {
        name: text.replace("nalm.units.functional", "nalm.units.formulas").replace(
            "nalm.training.streams", "nalm.streams"
        )
        for name, text in code.LOADED.items()
    }
    moved["nalm.units.formulas"], moved["nalm.streams"] = (
        moved.pop("nalm.units.functional"),
        moved.pop("nalm.training.streams"),
    )
    tree = ast.parse(moved.pop("nalm.units.nau"))
    first = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    body = [*first, *reversed([node for node in tree.body if node not in first])]
    moved = {name: text.replace("nalm.units.nau", "nalm.units.addition") for name, text in moved.items()}
    moved["nalm.units.addition"] = ast.unparse(ast.Module(body, []))
    assert {name for name, run in RUNS.items() if code.code(run, moved) != code.code(run)} == set()
