"""The library from its wheel, in a fresh virtual environment, with the oldest or the newest versions that the
wheel allows, or with the newest ones that there are, ``beyond`` what it allows.

``python tests/versions.py oldest`` (or ``newest``) builds the wheel, installs it without this checkout, runs
the tests of the units and trains an ensemble of 10,000 iterations, which is compiled. ``--write`` notes the
versions in the README's table if all of that succeeded. Needs Python with its ``venv`` module, and about 7 GB
for the environment, which is deleted at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARKS = "<!-- versions -->", "<!-- /versions -->"
SHOWN = ("Python", "torch", "torchvision", "numpy", "scipy", "pandas", "pydantic")
KINDS = ("oldest", "newest", "beyond")
EXTRAS = ("train", "digits")
TESTING = ("pytest", "pytest-xdist", "hypothesis")
TRAINING = """
import tempfile

import nalm
from nalm.models import Stack
from nalm.records import run_all
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Discretisation, Recipe, Run

if __name__ == "__main__":
    assert "site-packages" in nalm.__file__, nalm.__file__
    penalties = (Discretisation(weight=1.0, start=4000, end=7000),)
    recipe = Recipe(iterations=10_000, optimiser=Adam(lr=1e-2), log_interval=1000, penalties=penalties)
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    first = Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0, threshold=1e-5)
    runs = [first, first.but(seed=1)]
    with tempfile.TemporaryDirectory() as folder:
        rows = run_all(runs, "demo/versions", results=folder, progress=False)
    assert len(rows) == 2 and rows["success"].all(), rows.T.to_string()
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> None:
    """A step that is shown while it runs; where it fails, all ends."""
    said = " ".join(map(str, command))
    print(f"$ {said if len(said) < 200 else said[:200] + ' …'}", flush=True)
    # Nothing of this checkout, of the user's own packages or of a folder of digits may be seen.
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NALM_MNIST"}
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    ended = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=inherited | {"PYTHONNOUSERSITE": "1"} | environment
    )
    if ended.returncode:
        sys.exit(f"This failed: {said}")


def installed(kind: str, folder: Path) -> Path:
    """The Python of a fresh environment with the wheel, in a folder."""
    python = folder / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    source = folder / "source"  # what git knows, so that nothing built earlier gets into the wheel
    run("git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), source, cwd=folder)
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    (wheel,) = folder.glob("nalm-*.whl")
    if kind == "newest":
        run(*pip, "--upgrade", f"{wheel}[{','.join(EXTRAS)}]", cwd=folder)
    else:
        limited = oldest if kind == "oldest" else unbounded
        run(*pip, "--upgrade", *map(limited, required()), cwd=folder)
        run(*pip, "--no-deps", wheel, cwd=folder)
    run(*pip, *TESTING, cwd=folder)
    if kind != "beyond":
        run(python, "-m", "pip", "check", cwd=folder)
    return python


def required() -> list[str]:
    """What the library needs, with those of the extras that training runs on images of digits needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = project["dependencies"] + [
        one for name in EXTRAS for one in project["optional-dependencies"][name]
    ]
    return [one for one in needed if not one.startswith("nalm[")]


def oldest(requirement: str) -> str:
    """The oldest series of versions that a requirement allows, with its repairs.

    >>> oldest("torch>=2.11,<2.16")
    'torch==2.11.*'
    """
    found = re.fullmatch(r"([\w.-]+)>=([\d.]+)(,<[\d.]+)?", requirement)
    if not found:
        sys.exit(
            f"The requirement {requirement!r} does not say from which version on: it must read name>=version."
        )
    return f"{found[1]}=={found[2]}.*"


def unbounded(requirement: str) -> str:
    """A requirement without its upper bound.

    >>> unbounded("torch>=2.11,<2.16")
    'torch>=2.11'
    """
    return requirement.partition(",<")[0]


def checked(python: Path, folder: Path) -> dict[str, str]:
    """Tests and trains, and returns the versions with which it did."""
    shutil.copytree(ROOT / "tests" / "units", folder / "tests" / "units")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    run(python, "-m", "pytest", "-q", "-n", "2", "tests/units", cwd=folder)
    (folder / "training.py").write_text(TRAINING)
    run(python, "training.py", cwd=folder, XDG_DATA_HOME=str(folder / "home"))
    script = (
        "import json, platform; from importlib.metadata import version as v; "
        f"print(json.dumps([platform.python_version(), *map(v, {SHOWN[1:]!r})]))"
    )
    found = subprocess.run(
        [python, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    return dict(zip(SHOWN, json.loads(found), strict=True))


def with_row(text: str, kind: str, versions: dict[str, str]) -> str:
    """The text with a row of its table written anew; the other rows stay.

    >>> before = f"A {MARKS[0]} B {MARKS[1]} C"
    >>> print(with_row(before, "newest", dict.fromkeys(SHOWN, "1.2+cu130")))
    A <!-- versions -->
    | | Python | torch | torchvision | numpy | scipy | pandas | pydantic |
    |---|---|---|---|---|---|---|---|
    | newest | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 | 1.2 |
    <!-- /versions --> C
    """
    before, _, rest = text.partition(MARKS[0])
    table, _, after = rest.partition(MARKS[1])
    rows = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("| ")}
    rows[kind] = f"| {kind} | " + " | ".join(versions[name].partition("+")[0] for name in SHOWN) + " |"
    head = "| | " + " | ".join(SHOWN) + " |\n" + "|---" * (len(SHOWN) + 1) + "|\n"
    return (
        before
        + MARKS[0]
        + "\n"
        + head
        + "".join(rows[name] + "\n" for name in KINDS if name in rows)
        + MARKS[1]
        + after
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="versions.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--write", action="store_true", help="note the versions in the README")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nalm-versions-") as name:
        folder = Path(name).resolve()
        versions = checked(installed(options.kind, folder), folder)
    print(
        f"The {options.kind} versions pass: "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
    )
    if options.write:
        readme = ROOT / "README.md"
        readme.write_text(
            with_row(readme.read_text(encoding="utf-8"), options.kind, versions), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
