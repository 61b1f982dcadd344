"""The README's commands, links and files exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
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
