"""A bare machine is bare, and the table of versions is that of what was tested."""

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import versions
from fresh import bare

ROOT = Path(__file__).parents[1]


def test_a_bare_environment_has_no_home_no_digits_and_no_browser(tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("chromium", "google-chrome", "hello"):
        (programs / name).write_text("#!/bin/sh\necho hello\n")
        (programs / name).chmod(0o755)
    asked = {
        "HOME": "/home/me",
        "NALM_MNIST": "/digits",
        "CHROMIUM": "/chromium",
        "PYTHONPATH": "/code",
        "PIP_CERT": "/certificate",
    }
    (folder := tmp_path / "folder").mkdir()
    found = bare(asked | {"PATH": f"/none{os.pathsep}{programs}"}, folder)
    assert found.keys() == {"HOME", "PATH", "PIP_CERT"} and not any(Path(found["HOME"]).iterdir())
    (of_programs,) = [Path(one) for one in found["PATH"].split(os.pathsep) if one != "/none"]
    assert [program.name for program in of_programs.iterdir()] == ["hello"]
    assert subprocess.run([of_programs / "hello"], capture_output=True, text=True).stdout == "hello\n"


REFUSED = "is for Python 3.11 to 3.14, and {python} is another: choose one with"
GOES_ON = "{python} cannot make virtual environments"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ((3, 10, 14), REFUSED),
        ((3, 11, 0), GOES_ON),
        ((3, 14, 9), GOES_ON),
        ((3, 15, 0), REFUSED),
        (None, REFUSED),
    ],
)
def test_a_python_for_which_nothing_is_locked_is_refused_before_anything_is_installed(
    tmp_path, version, said
):
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "book/pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "another"
    if version:  # one that says its version and can do nothing else
        code = f"import sys; sys.version_info = {version}; exec(sys.argv[1])"
        python.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c '{code}' \"$2\"\n")
        python.chmod(0o755)
    command = ["make", "setup", f"PYTHON={python}"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode
    assert said.format(python=python) in found.stderr
    assert not (tmp_path / ".venv").exists()


def test_readme_and_ci_name_the_pythons_that_make_takes():
    assert "With Python 3.11 to 3.14:" in (ROOT / "README.md").read_text(encoding="utf-8")
    tests = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert 'python: ["3.11", "3.12", "3.13", "3.14"]' in tests


def test_the_oldest_versions_are_those_of_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert versions.required()[:2] == project["dependencies"]
    assert {"pydantic==2.9.*", "torchvision==0.27.*"} < set(map(versions.oldest, versions.required()))
    with pytest.raises(SystemExit, match="'torch' does not say from which version on"):
        versions.oldest("torch")


def test_the_readme_has_a_place_for_versions():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = versions.with_row(readme, "oldest", dict.fromkeys(versions.SHOWN, "1.2.3"))
    again = versions.with_row(row, "newest", dict.fromkeys(versions.SHOWN, "4.5.6+cu130"))
    assert readme.count(versions.MARKS[0]) == readme.count(versions.MARKS[1]) == 1
    assert (
        "| oldest | 1.2.3 |" in again
        and "| newest | 4.5.6 |" in again
        and versions.with_row(again, "newest", dict.fromkeys(versions.SHOWN, "4.5.6")) == again
    )
