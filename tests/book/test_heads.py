"""A chapter begins with its question, a picture, what came out in at most three points, and its card."""

import re
from pathlib import Path

import nbformat

PICTURELESS = {"leaderboard", "lend", "own-network", "verify"}
"""Pages without a figure."""


def first(chapter: Path) -> str:
    """The cell that a chapter begins with; the scoreboard is none."""
    return nbformat.read(chapter, as_version=4).cells[0].source


def test_head(chapter: Path) -> None:
    if chapter.stem == "scoreboard":
        return
    title, question, *parts = first(chapter).split("\n\n")
    assert title.startswith("# ") and not question.startswith((":::", "```"))
    kinds = [part.split(" ")[0].strip("`:{}").split("}")[0] for part in parts if part[0] in ":`"]
    picture = [] if chapter.stem in PICTURELESS else ["chapter-picture"]
    assert kinds == [*picture, "admonition", "chapter-card"]


def test_in_short_is_short(chapter: Path) -> None:
    if chapter.stem == "scoreboard":
        return
    box = re.search(r":::\{admonition\} In short\n(.*?)\n:::", first(chapter), flags=re.DOTALL)
    assert box and all(line.startswith("* ") for line in box[1].split("\n"))
    assert 1 <= box[1].count("\n") + 1 <= 3


def test_set_up_is_folded(chapter: Path) -> None:
    """Between the head and the first section are folded imports only, and the parameters come later."""
    cells = nbformat.read(chapter, as_version=4).cells
    before = 1
    while before < len(cells) and not cells[before].source.startswith("## "):
        if chapter.stem not in ("scoreboard", "own-network"):
            assert {"hide-input", "hide-cell"} & set(cells[before].metadata.get("tags", []))
        before += 1
    tags = [cell.metadata.get("tags", []) for cell in cells]
    places = [number for number, of_cell in enumerate(tags) if "parameters" in of_cell]
    assert all(number > before for number in places)
    for number in places:
        assert "check(" in cells[number + 1].source
