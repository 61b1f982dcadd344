"""A chapter prints the statements that the scoreboard counts: the same ones, with the same outcome."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from companion import scoreboard
from companion.scoreboard import EXPERIMENTS

ROOT = Path(__file__).parents[2]
SHOWN = [(one.chapter, item) for one in EXPERIMENTS if one.chapter for item in one.items]


@cache
def printed(chapter: str) -> str:
    """All that the committed outputs of a chapter say."""
    cells = nbformat.read(ROOT / chapter, 4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(str(output.get("data", {}).get("text/plain", "")) for output in outputs)


@pytest.mark.parametrize(("page", "item"), SHOWN, ids=[f"{chapter} {item.name}" for chapter, item in SHOWN])
def test_chapter_and_scoreboard_count_alike(page, item):
    board = scoreboard.load().set_index(["paper", "item"])
    agreeing, replayed = board.loc[(item.paper, item.name), ["agreeing", "replay_agreeing"]]
    if replays_alone := set(item.experiment) == {f"{item.paper}/replay"}:
        agreeing = replayed
    said = f"{agreeing} statements agree" if agreeing else "not run at full length"
    again = rf".*, replayed {replayed}\b" if replayed and not replays_alone else ""
    assert re.search(rf"\b{item.name}: {said}{again}", printed(page))


def test_an_item_belongs_to_one_experiment():
    names = [(item.paper, item.name) for _, item in SHOWN]
    assert len(names) == len(set(names))
