"""A chapter begins with its question, a picture, what came out in at most three points, and its card; it ends
with a conclusion.
"""

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
    assert title.startswith("# "), "the first cell begins with the title, '# …'"
    assert not question.startswith((":::", "```")), "after the title stands the question of the chapter"
    kinds = [part.split(" ")[0].strip("`:{}").split("}")[0] for part in parts if part[0] in ":`"]
    picture = [] if chapter.stem in PICTURELESS else ["chapter-picture"]
    wanted = [*picture, "admonition", "chapter-card"]
    assert kinds == wanted, "after the question stand a picture, In short and the card, see CONTRIBUTING.md"


def test_in_short_is_short(chapter: Path) -> None:
    if chapter.stem == "scoreboard":
        return
    box = re.search(r":::\{admonition\} In short\n(.*?)\n:::", first(chapter), flags=re.DOTALL)
    assert box and all(line.startswith("* ") for line in box[1].split("\n")), "In short is a list"
    assert 1 <= box[1].count("\n") + 1 <= 3, "In short has at most three points"


def test_it_ends_with_a_conclusion(chapter: Path) -> None:
    """The last section has that name and says something."""
    if chapter.stem == "scoreboard":
        return
    cells = nbformat.read(chapter, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title, _, said = re.split(r"^## ", text, flags=re.MULTILINE)[-1].partition("\n")
    assert title == "Conclusion" and said.strip(), "the last section is '## Conclusion', see CONTRIBUTING.md"


def test_set_up_is_folded(chapter: Path) -> None:
    """Between the head and the first section are folded imports only, and the parameters come later."""
    cells = nbformat.read(chapter, as_version=4).cells
    before = 1
    while before < len(cells) and not cells[before].source.startswith("## "):
        if chapter.stem not in ("scoreboard", "own-network"):
            folded = {"hide-input", "hide-cell"} & set(cells[before].metadata.get("tags", []))
            assert folded, "imports before the first section have the tag hide-input"
        before += 1
    tags = [cell.metadata.get("tags", []) for cell in cells]
    places = [number for number, of_cell in enumerate(tags) if "parameters" in of_cell]
    assert all(number > before for number in places), "parameters stand where the experiment begins"
    for number in places:
        assert "check(" in cells[number + 1].source, "the cell after the parameters checks them"
