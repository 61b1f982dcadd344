"""What a reader defines outside of the library is found by name, and its source is code."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import own_units
import pytest
import torch
from forked import run_script
from torch import Tensor

from nalm.models import Stack
from nalm.own import find, name_of
from nalm.records import Store, code, own_code, run_all, verify_rows
from nalm.tasks import SingleModuleTask, Task, Uniform
from nalm.tasks.task import EvaluationSet
from nalm.training import Adam, Recipe, Run

ROOT = Path(__file__).parents[1]
FRESH, OLDER = "fresh", "older than the code it depends on"


def run(unit="NAU", task=None, seed=0):
    recipe = Recipe(iterations=6, optimiser=Adam(lr=1e-2), log_interval=3)
    task = task or SingleModuleTask.on("U[1,2)", operation="add")
    return Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=seed, threshold=1e-5)


def test_a_class_and_its_name_are_the_same_run():
    by_class = run(own_units.SquareUnit)
    assert by_class.model.layers[0].unit == "own_units:SquareUnit"
    assert by_class == run("own_units:SquareUnit") == Run.from_json(by_class.canonical())
    assert run(f"{Path(own_units.__file__)}:SquareUnit") == by_class
    assert isinstance(by_class.model.build(2)[0], own_units.SquareUnit)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("SquareUnit", "Unknown unit 'SquareUnit'"),
        ("nowhere/square.py:SquareUnit", "there is no file nowhere/square.py"),
        ("nowhere:SquareUnit", "there is no module 'nowhere' on Python's path"),
        ("own_units:Square", "own_units has no class 'Square'"),
        ("__main__:SquareUnit", "defined in a notebook"),
    ],
)
def test_what_is_not_found_is_said_in_one_sentence(name, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        Stack.of(name, 1)
    assert "\n" not in str(refusal.value)


def test_a_file_that_fails_and_one_with_a_taken_name_are_named(tmp_path):
    (tmp_path / "failing_unit.py").write_text("1 / 0")
    (tmp_path / "ending_unit.py").write_text("raise SystemExit(0)")
    with pytest.raises(ValueError, match="importing 'ending_unit' fails with SystemExit: 0"):
        Stack.of(f"{tmp_path}/ending_unit.py:A", 1)
    (tmp_path / "textwrap.py").write_text("")
    with pytest.raises(ValueError, match="importing 'failing_unit' fails with ZeroDivisionError"):
        Stack.of(f"{tmp_path}/failing_unit.py:A", 1)
    (tmp_path / "needing_unit.py").write_text("import no_such_package")
    with pytest.raises(ValueError, match="importing 'needing_unit' fails with ModuleNotFoundError: No mod"):
        Stack.of(f"{tmp_path}/needing_unit.py:A", 1)
    with pytest.raises(ValueError, match="Python knows another module 'textwrap'"):
        Stack.of(f"{tmp_path}/textwrap.py:A", 1)
    assert str(tmp_path) not in sys.path


class Outer:
    class Inner(own_units.SquareUnit):
        pass


def test_a_class_inside_a_function_or_class_is_refused():
    class Inner(own_units.SquareUnit):
        pass

    for inner in (Inner, Outer.Inner):
        with pytest.raises(ValueError, match="define it at the top level"):
            Stack.of(inner, 1)


def test_a_file_may_be_named_from_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "unit_at_home.py").write_text("class A: pass")
    assert name_of(find("~/unit_at_home.py:A")) == "unit_at_home:A"


def test_a_module_of_a_package_that_is_run_keeps_its_name(monkeypatch):
    main = SimpleNamespace(__spec__=SimpleNamespace(name="package.script"), Square=own_units.SquareUnit)
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert find("package.script:Square") is own_units.SquareUnit


def test_a_class_that_is_defined_anew_is_looked_at_anew(monkeypatch):
    Stack.of(own_units.Plain, 1)
    anew = type("Plain", (own_units.Unmade,), {"__module__": "own_units"})
    monkeypatch.setattr(own_units, "Plain", anew)
    with pytest.raises(ValueError, match="Plain cannot be made by"):
        Stack.of(anew, 1)


class SumOfSquares(Task):
    """y = x0² + x1², in full."""

    power: float = 2.0

    @property
    def in_features(self) -> int:
        return 2

    @property
    def out_features(self) -> int:
        return 1

    def label(self) -> str:
        return "own"

    def structure(self) -> tuple:
        return (self.power,)

    def constants(self, seed: int) -> dict[str, Tensor]:
        return {}

    def batch(self, noise, constants, shared):
        return noise.mT, noise.mT.pow(self.power).sum(-1, keepdim=True)

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        import torch

        x = torch.rand(20, 2, generator=torch.Generator().manual_seed(1))
        found = EvaluationSet(x, x.pow(self.power).sum(-1, keepdim=True))
        return {"valid": found, "test": found}


class Named(SumOfSquares):
    """Its evaluation sets have other names."""

    names: tuple[str, ...] = ()

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        return dict.fromkeys(self.names, super().evaluation(seed)["test"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("valid",), "Named.evaluation must return the sets 'valid' and 'test', but 'test' is missing"),
        (("test", "test_far"), "Named.evaluation must return the sets .*, but 'valid' is missing"),
        (("valid", "test", "seed"), "Named.evaluation returns the set 'seed', but the name of a further one"),
        (("valid", "test", "tester"), "Named.evaluation returns the set 'tester', but"),
    ],
)
def test_evaluation_sets_that_rows_have_no_place_for_are_refused(names, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        run_all([run(task=Named(names=names))], "demo/own", results=str(tmp_path), progress=False)
    assert not list(tmp_path.rglob("*.csv"))


def test_a_further_evaluation_set_is_a_column(tmp_path):
    asked = [run(task=Named(names=("valid", "test", "test_far")))]
    assert "test_far" in run_all(asked, "demo/own", results=str(tmp_path), progress=False)


class Narrow(Uniform):
    """A distribution of one's own."""


def test_a_task_and_a_range_of_ones_own_are_recorded_found_and_verified(tmp_path):
    narrow = Narrow(low=1.0, high=1.5)
    task = SingleModuleTask(operation="add", interpolation=narrow, extrapolation=narrow)
    usual = task.but(interpolation=Uniform(low=1.0, high=1.5))
    asked = [run(task=SumOfSquares(power=3.0)), run(task=task)]
    assert run(task=task).key != run(task=usual).key
    rows = run_all(asked, "demo/own", results=str(tmp_path), progress=False)
    assert rows["task"].tolist() == [name_of(SumOfSquares), "SingleModuleTask"]
    assert [Run.from_json(one.canonical()) for one in asked] == asked
    assert f'"kind":"{name_of(Narrow)}"' in asked[1].canonical()
    assert {code.freshness("demo/own", tmp_path)} == {FRESH}
    outcome = verify_rows(rows=2, experiment="demo/own", folder=tmp_path, progress=False)
    assert outcome.passed and all(row.identical for row in outcome.rows)


def test_another_class_is_no_task():
    described = json.loads(run().canonical())
    described["task"] = {"kind": "own_units:SquareUnit"}
    with pytest.raises((ValueError, TypeError), match="own_units:SquareUnit is no Task"):
        Run.from_json(json.dumps(described))


SQUARE = '''
from helper import square
from nalm import Unit
from nalm.units.functional import weighted_sum
from torch import nn

WIDTH = 0.5

class Square(Unit):
    """A docstring."""

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.uniform_(self.weight, 0.5 - WIDTH / 2, 0.5 + WIDTH / 2)

    def forward(self, x):
        return weighted_sum(square(x), self.weight)

def unused():
    return 1

if __name__ == "__main__":
    print("a script as well")
'''
HELPER = "POWER = 2\n\ndef square(x):\n    return x**POWER\n\ndef other():\n    pass\n"
RECORD = """
    import sys
    from square import Square
    from nalm.models import Stack
    from nalm.records import freshness, run_all
    from nalm.tasks import SingleModuleTask
    from nalm.training import Adam, Recipe, Run

    recipe = Recipe(iterations=6, optimiser=Adam(lr=1e-2), log_interval=3)
    task = SingleModuleTask.on("U[1,2)", operation="squared")
    run = Run(task=task, model=Stack.of(Square, 1), recipe=recipe, seed=0, threshold=1e-5)
    for retrain in (False, True)[: 1 + ("retrain" in sys.argv)]:
        rows = run_all([run], "demo/own", "rows", progress=False, retrain=retrain)
        print(float(rows["test_mse"].iloc[0]), freshness("demo/own", "rows"), sep=";")
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a unit, what it calls, and a script; and what the script says of its row."""
    (tmp_path / "square.py").write_text(SQUARE)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "record.py").write_text(textwrap.dedent(RECORD))

    def ask(*arguments):
        done = run_script(tmp_path / "record.py", *arguments)
        assert done.returncode == 0, done.stderr
        said = [line.split(";") for line in done.stdout.strip().splitlines()]
        return [(float(error), state) for error, state in said]

    def edit(file, old, new):
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))

    return SimpleNamespace(ask=ask, edit=edit)


def test_a_changed_unit_makes_its_rows_older_and_they_are_trained_again(project):
    (first,) = project.ask()
    project.edit("square.py", "A docstring", "Another docstring")
    project.edit("square.py", "return 1", "return 2")
    project.edit("square.py", "a script as well", "another script")
    project.edit("helper.py", "    pass", "    return 3")
    assert first[1] == FRESH and project.ask("retrain") == [first, first]
    project.edit(
        "square.py", "weighted_sum(square(x), self.weight)", "2 * weighted_sum(square(x), self.weight)"
    )
    older, second = project.ask("retrain")
    assert older == (first[0], OLDER)
    assert second[0] != first[0] and second[1] == FRESH
    project.edit("helper.py", "POWER = 2", "POWER = 3")
    assert project.ask() == [(second[0], OLDER)]


SCRIPT = """
if __name__ == "__main__":
    from nalm.models import Stack
    from nalm.records import run_all, workers
    from nalm.tasks import SingleModuleTask
    from nalm.training import Adam, Recipe, Run

    workers._is_long = lambda runs: True
    workers.cores = lambda: 2
    recipes = [Recipe(iterations=n, optimiser=Adam(lr=1e-2), log_interval=3) for n in (6, 9)]
    task = SingleModuleTask.on("U[1,2)", operation="squared")
    runs = [Run(task=task, model=Stack.of(Square, 1), recipe=one, seed=0, threshold=1e-5) for one in recipes]
    rows = run_all(runs, "demo/own", "rows", progress=False)
    print(*rows["model"], *rows["test_mse"])
"""


def test_worker_processes_find_the_unit_of_a_script(project, tmp_path):
    """It may have a variable of the name of a notebook's cells."""
    (tmp_path / "script.py").write_text(SQUARE + "In = ['', 'x = 1']" + SCRIPT)
    done = run_script(tmp_path / "script.py")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()[-1].split()
    assert said[:2] == ["script:Square"] * 2 and Store(tmp_path / "rows", "demo/own").read().shape[0] == 2


NOTEBOOK = """
In, get_ipython = ["", SOURCE], None  # as IPython keeps the cells
exec(SOURCE)
from concurrent.futures import ThreadPoolExecutor
from nalm.models import Stack
from nalm.records import freshness, run_all, workers
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

workers._is_long = lambda runs: True
workers.cores = lambda: 2
recipes = [Recipe(iterations=n, optimiser=Adam(lr=1e-2), log_interval=3) for n in (6, 9)]
task = SingleModuleTask.on("U[1,2)", operation="squared")
runs = [Run(task=task, model=Stack.of(Square, 1), recipe=one, seed=0, threshold=1e-5) for one in recipes]
print(*run_all(runs, "demo/own", "rows", progress=False)["model"], freshness("demo/own", "rows"), sep=";")
In.append(SOURCE.replace("WIDTH = 0.5", "WIDTH = 0.4"))
print(freshness("demo/own", "rows"))
try:
    run_all(runs, "demo/own", "other", progress=False, executor=ThreadPoolExecutor(1))
except ValueError as error:
    print(error)
"""


def test_the_unit_of_a_notebook_is_trained_in_its_own_process(project, tmp_path):
    (tmp_path / "notebook.py").write_text(f"SOURCE = {SQUARE!r}{NOTEBOOK}")
    done = run_script(tmp_path / "notebook.py")
    assert done.returncode == 0, done.stderr
    _, trained, edited, elsewhere = done.stdout.splitlines()
    assert trained == f"__main__:Square;__main__:Square;{FRESH}" and edited == OLDER
    assert elsewhere.startswith("Square is defined in this notebook") and elsewhere.endswith("import it.")


def test_the_source_is_that_of_the_class_that_was_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "edited_unit.py").write_text(SQUARE.replace("helper", "edited_helper"))
    (tmp_path / "edited_helper.py").write_text(HELPER)
    asked = run("edited_unit:Square")
    before = code.code(asked)
    assert code.code_on_disk([asked]) == before
    (tmp_path / "edited_helper.py").write_text(HELPER.replace("2", "3"))
    assert code.code(asked) == before and code.code_on_disk([asked]) is None


@pytest.mark.parametrize("edited", ["late_unit", "late_helper"])
def test_a_file_that_was_edited_since_its_import_is_not_what_trains(edited, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {"late_unit": SQUARE.replace("helper", "late_helper"), "late_helper": HELPER}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    asked = run("late_unit:Square")
    own_code._known.cache_clear()  # nothing was asked for yet
    (tmp_path / f"{edited}.py").write_text(files[edited].replace("0.5", "0.9").replace("2", "3"))
    assert code.code_on_disk([asked]) is None


VARIED = """from functools import cached_property

import torch
from nalm import Unit
from torch import nn

POWER = 2.0
FILLED, NOT_YET, COUNTED = {}, None, 0
SEEN = []


def decorated(function):
    def without_a_word(*arguments):
        return function(*arguments)

    return without_a_word


def power(x, by=1.0, *, times=1.0):
    global COUNTED, NOT_YET
    COUNTED, NOT_YET = COUNTED + 1, "by now"
    FILLED[COUNTED] = SEEN.append(COUNTED)
    return times * x ** (by * POWER)


class Varied(Unit):
    discrete_values = {"weight": (0, 1)}
    low, high = 0.25, 0.75
    built = 0
    scale = 1.0

    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        type(self).built += 1
        self.scale = 1.0
        self.weight = self.new_weight()
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.uniform_(self.weight, self.low, self.high)

    @property
    def half(self):
        return 0.5

    @half.setter
    def half(self, value):
        self.changed = 4.0

    @cached_property
    def third(self):
        return 0.3

    @torch.no_grad()
    def project_(self):
        self.weight.clamp_(0.0, 1.0)

    @staticmethod
    def plain(x):
        return x + 0.0

    @decorated
    def other(self, x=1.0):
        return x

    def forward(self, x):
        return power(self.plain(x)) @ self.weight.mT + 0 * self.half * self.third
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("POWER = 2.0", "POWER = 3"),
        ('"weight": (0, 1)', '"weight": (0, 2)'),
        ("scale = 1.0", "scale = 2.0"),
        ("by=1.0", "by=1.5"),
        ("by=1.0", "by"),
        ("times=1.0", "times=2.0"),
        ("return 0.5", "return 0.6"),
        ("4.0", "5.0"),
        ("return 0.3", "return 0.4"),
        ("clamp_(0.0, 1.0)", "clamp_(0.0, 2.0)"),
        ("x + 0.0", "x + 0.1"),
        ("x ** (by", "x * (by"),
        ("weight.mT", "weight.mH"),
        ("", ""),
    ],
)
def test_whatever_was_edited_since_an_import_is_noticed(before, after, tmp_path, monkeypatch):
    """What the file has filled and counted since is no edit."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"varied_{abs(hash((before, after)))}"
    (tmp_path / f"{name}.py").write_text(VARIED)
    asked = run(f"{name}:Varied")
    asked.model.build(2)(torch.ones(1, 2))
    own_code._known.cache_clear()
    (tmp_path / f"{name}.py").write_text(VARIED.replace(before, after, 1) if before else VARIED)
    assert (code.code_on_disk([asked]) is None) == bool(before)


def test_a_class_without_a_source_is_refused():
    code = "from nalm import NMU; from nalm.models import Stack\nclass A(NMU): pass\nStack.of(A, 1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "A is defined where its source is not kept: write it to a file" in done.stderr


def test_own_code_ends_where_installed_packages_begin():
    own = own_code.own_sources(frozenset({own_units.SquareUnit}))
    assert list(own) == ["own_units"]
    assert not own_code._is_own(Path("/usr/lib/python3/dist-packages/package.py"))


def test_own_code_follows_imports_within_a_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    files = {
        "__init__": "",
        "helper": "",
        "unasked": "",
        "inner/__init__": "from .first import one",
        "inner/first": "one = 1",
        "inner/second": "",
        "inner/units": "from . import second\nfrom ..helper import *\nclass A: pass",
    }
    for name, text in files.items():
        file = tmp_path / "package_of_units" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    found = own_code.own_sources(frozenset({find("package_of_units.inner.units:A")}))
    named = {name.removeprefix("package_of_units.") for name in found}
    assert named == {"helper", "inner", "inner.first", "inner.second", "inner.units"}


def test_cells_of_a_notebook_are_code():
    cells = ["from torch import nn", "x = 1\nprint(x)", "%magic", "class A: pass", "class A:\n    size = x"]
    tree = own_code._of_cells(cells)
    names = [next(iter(own_code.names_bound_by(node))) for node in tree.body]
    assert names == ["nn", "x", "A"] and "size" in own_code.ast.unparse(tree)


def test_find_is_of_classes_only():
    assert find("collections:OrderedDict").__name__ == "OrderedDict"
    with pytest.raises(ValueError, match="has no class 'deepcopy'"):
        find("copy:deepcopy")


def test_rows_of_ones_own_go_to_ones_own_store(tmp_path):
    run_all([run(own_units.SquareUnit)], "demo/own", results=str(tmp_path), progress=False)
    assert Store(tmp_path, "demo/own").read()["model"].tolist() == ["own_units:SquareUnit"]
