"""A test may be left out for want of a GPU alone: it is named and counted then; every other skip fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = {
    "passes": "def test_passes(): pass",
    "gpu": "@pytest.mark.gpu\ndef test_gpu(): raise AssertionError('it ran')",
    "two of three": "gpu = pytest.mark.gpu\n"
    "@pytest.mark.parametrize('x', [0, pytest.param(1, marks=gpu), pytest.param(2, marks=gpu)])\n"
    "def test_three(x): assert x == 0, 'it ran'",
    "skips": "def test_skips(): pytest.skip('no time')",
    "is skipped": "@pytest.mark.skip(reason='no time')\ndef test_is_skipped(): pass",
    "says so itself": "def test_says_so(): pytest.skip('needs a GPU')",
    "gpu that skips": "@pytest.mark.gpu\ndef test_gpu_skips(): pytest.skip('no time')",
    "module": "pytest.skip('no time', allow_module_level=True)",
    "fails as expected": "@pytest.mark.xfail(strict=True)\ndef test_fails(): assert False",
}


@pytest.fixture
def run(tmp_path):
    """What pytest says of some tests with the project's conftest, on a machine that has a GPU or none, and
    whether it passed.
    """

    def run(*names, gpu=False, workers=0, files=(".",), options=()):
        shutil.copy(CONFTEST, tmp_path)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\nxfail_strict = true\n")
        (tmp_path / "torch.py").write_text(f"class cuda:\n    is_available = staticmethod(lambda: {gpu})\n")
        for name in names:
            (tmp_path / f"test_{name.replace(' ', '_')}.py").write_text(f"import pytest\n{TESTS[name]}\n")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "xdist",
            "-n",
            str(workers),
            "-p",
            "no:cacheprovider",
            *options,
            *files,
        ]
        # no time goes into plugins that are not needed
        alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=alone)
        return ended.stdout.splitlines(), ended.returncode == 0

    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_those_that_need_a_gpu_are_named_and_counted(run, workers):
    said, passed = run("passes", "gpu", "two of three", "fails as expected", workers=workers)
    assert passed and said[-1] == "3 tests need a GPU and were not run"
    assert [line for line in said if line.startswith("NOT RUN")] == [
        f"NOT RUN {name} - needs a GPU"
        for name in (
            "test_gpu.py::test_gpu",
            "test_two_of_three.py::test_three[1]",
            "test_two_of_three.py::test_three[2]",
        )
    ]


def test_one_is_one(run):
    said, passed = run("passes", "gpu")
    assert passed and said[-1] == "1 test needs a GPU and was not run"


def test_where_there_is_a_gpu_they_run(run):
    said, passed = run("passes", "gpu", gpu=True)
    assert not passed and any("it ran" in line for line in said) and "1 failed, 1 passed" in said[-1]


def test_nothing_is_said_where_nothing_is_left_out(run):
    said, passed = run("passes")
    assert passed and "1 passed" in said[-1]


@pytest.mark.parametrize("workers", [0, 2])
def test_every_other_skip_fails(run, workers):
    said, passed = run("passes", "gpu", "skips", "is skipped", "says so itself", workers=workers)
    assert (
        not passed
        and "2 failed, 1 passed, 1 skipped, 1 error" in said[-2]
        and said[-1] == "1 test needs a GPU and was not run"
    )
    # two reasons
    assert len({line for line in said if line.startswith("Skipped, but every test must run")}) == 2


def test_a_module_that_skips_itself_fails(run):
    said, passed = run("passes", "module")
    assert not passed and any("test_module.py was skipped, but every test must run" in line for line in said)


def test_a_test_that_has_its_gpu_may_not_skip(run):
    said, passed = run("passes", "gpu that skips", gpu=True)
    assert not passed and "Skipped, but every test must run: no time" in said


def test_a_module_that_is_named_by_itself_is_loaded_once(run, tmp_path):
    (tmp_path / "nalm").mkdir()
    (tmp_path / "nalm" / "__init__.py").write_text("from nalm.units import Unit\n")
    (tmp_path / "nalm" / "units.py").write_text(
        'class Unit:\n    """\n    >>> Unit.__name__\n    \'Unit\'\n    """\n'
    )
    (tmp_path / "test_same.py").write_text(
        "import nalm\nfrom nalm.units import Unit\n\ndef test_same(): assert Unit is nalm.Unit\n"
    )
    options = "--doctest-modules", "--import-mode=importlib", "-o", "pythonpath=."
    said, passed = run(files=("nalm/units.py", "test_same.py"), options=options)
    assert passed and "2 passed" in said[-1]
