"""The README's commands, links and files exist, and the parts of the tests that it names are all of them."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    commands = set(re.findall(r"(?:`|^)make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"book", "test"} <= commands <= targets


def test_files_exist() -> None:
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", README) if not target.startswith("https://")]
    folders = re.findall(r"`((?:nalm|book|tests)/[\w/]*)`", README)
    chapters = re.findall(r"CHAPTER=(\S+)", README)
    missing = [name for name in {*links, *folders, *chapters} if not (ROOT / name).exists()]
    assert links and folders and chapters and not missing


def test_scoreboard_has_its_place() -> None:
    assert README.index("<!-- scoreboard -->") < README.index("<!-- /scoreboard -->")


def arguments(part: str) -> list[str]:
    """What the Makefile gives pytest for a part of the tests."""
    recipe = re.search(rf"^{part}:.*\n\t(?:@\$\(BROWSER\) )?\$\(PYTEST\) (.+)$", MAKEFILE, flags=re.MULTILINE)
    assert recipe, f"{part} does not run pytest"
    return recipe[1].split()


def holds(part: str, file: Path) -> bool:
    named = [argument for argument in arguments(part) if not argument.startswith("-")]
    ignored = [
        argument.removeprefix("--ignore=") for argument in arguments(part) if argument.startswith("--ignore=")
    ]
    return any(map(file.is_relative_to, named)) and not any(map(file.is_relative_to, ignored))


def test_every_test_belongs_to_one_part() -> None:
    parts = re.findall(r"^\| `make (test-[a-z]+)` \|", README, flags=re.MULTILINE)
    tests = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")]
    others = [Path("nalm"), Path("book")]  # the examples in docstrings and the chapters
    found = {path.as_posix(): [part for part in parts if holds(part, path)] for path in [*tests, *others]}
    assert len(parts) == 4 and Path("tests/book/test_readme.py") in tests
    assert {path: of for path, of in found.items() if len(of) != 1} == {}


def test_the_quick_tests_exist() -> None:
    asked = subprocess.run(
        ["make", "--no-print-directory", "-n", "test-quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = asked.splitlines()[-1].partition(" -n ")[2].split()[1:]
    assert len(files) > 10 and not [file for file in files if not (ROOT / file).exists()]
