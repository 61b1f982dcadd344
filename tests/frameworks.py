"""What needs packages that nothing else here needs: the units in skorch, in Lightning and as ONNX, and with
the compiler.

Part of ``make test-fresh``, as it installs.
"""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from units.citizen import CHECKS

from nalm import UNITS

ROOT = Path(__file__).parents[1]
PACKAGES = "skorch", "lightning", "onnx", "onnxscript", "onnxruntime"
HEAVY = [name for name, one in CHECKS.items() if one.heavy]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The Python of an environment with these packages, which borrows all others from this one."""
    python = tmp_path_factory.mktemp("environment") / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    pip = "-m", "pip", "install", "--quiet", "--disable-pip-version-check"
    subprocess.run([python, *pip, *PACKAGES], check=True)
    return python


def printed(python, file, folder, *options):
    ended = subprocess.run([python, file, *options], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip().splitlines()


def test_skorch(python, tmp_path):
    formula, predicted = printed(python, ROOT / "tests" / "loops" / "with_skorch.py", tmp_path)
    assert (formula, predicted) == ("(x1 + x2)*(x3 + x4)", "[[1200.]]")


def test_lightning(python, tmp_path):
    *_, formula = printed(python, ROOT / "tests" / "loops" / "with_lightning.py", tmp_path)
    assert formula == "(x1 + x2)*(x3 + x4)"


@pytest.fixture(scope="module")
def heavy(python, tmp_path_factory):
    file = ROOT / "tests" / "units" / "citizen.py"
    return json.loads(printed(python, file, tmp_path_factory.mktemp("heavy"), "--heavy")[-1])


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("unit", UNITS)
def test_works_for_the_units_of_the_table(heavy, name, unit):
    assert (unit in heavy["found"][name]) == (unit in CHECKS[name].units), heavy["said"].get(name)
