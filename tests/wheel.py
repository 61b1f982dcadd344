"""The wheel holds the library and nothing else; its units need torch and numpy only, and are typed.

Part of ``make test-fresh``, as it installs.
"""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

import pytest
from test_import import BLOCKED, LIGHT

ROOT = Path(__file__).parents[1]
RIGHT = """
import torch
from torch import Tensor, nn

from nalm import NMU, NPU, Unit, penalty, project_, sparsity_error

unit: Unit = NMU(2, 1)
model = nn.Sequential(NPU(2, 2), unit)
output: Tensor = model(torch.ones(3, 2))
loss: Tensor = output.sum() + penalty(model)
project_(model)
error: Tensor = sparsity_error(model)
"""
WRONG = """
from nalm import NMU, penalty

NMU("two", 1)
x: int = NMU(2, 1)
NMU(2, 1, clamped="none")
penalty(3)
"""


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; all must go well, but mypy may find something."""
    ended = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    assert ended.returncode == 0 or "mypy" in command, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel as ``make wheel`` builds it, of a copy in which nothing was built before."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, folder)
    for name in ("nalm", "book"):
        copytree(
            ROOT / name, folder / name, ignore=ignore_patterns("__pycache__", "*.egg-info", "results", "data")
        )
    options = "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"
    run(sys.executable, "-m", "pip", "wheel", *options, "-w", "dist", ".", cwd=folder)
    (built,) = (folder / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of an environment with the wheel, which borrows all other packages from this one."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env" / "bin" / "python"
    packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    )
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        packages,
        wheel,
        cwd=folder,
    )
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test_the_wheel_holds_the_library_only(wheel):
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    sources = [str(file.relative_to(ROOT)) for file in (ROOT / "nalm").rglob("*.py")]
    assert sorted(names) == sorted([*sources, "nalm/py.typed"])


def test_the_units_of_the_wheel_need_torch_and_numpy_only(python, tmp_path):
    code = (
        f"import sys\nsys.modules |= dict.fromkeys({BLOCKED!r})\n{LIGHT}\nimport nalm\nprint(nalm.__file__)"
    )
    said, file = run(python, "-I", "-c", code, cwd=tmp_path).splitlines()
    assert said == "True True" and file.startswith(str(python.parents[1]))


def test_a_type_checker_finds_what_is_wrong_in_code_that_uses_the_wheel(python, tmp_path):
    for name, code in {"right.py": RIGHT, "wrong.py": WRONG}.items():
        (tmp_path / name).write_text(code)
    options = "--config-file=", "--python-executable", python, "--cache-dir", ROOT / ".mypy_cache" / "wheel"
    said = run(sys.executable, "-m", "mypy", *options, "right.py", "wrong.py", cwd=tmp_path).splitlines()
    assert [line.split(": error: ")[0] for line in said if ": error: " in line] == [
        f"wrong.py:{line}" for line in (4, 5, 6, 7)
    ], said
