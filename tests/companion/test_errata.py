"""Errata: each stands beside an experiment, can be said, and has a name of its own."""

from functools import cache
from pathlib import Path

import pytest
from companion.experiment.errata import KINDS, Erratum
from companion.recorded import read
from companion.scoreboard import ERRATA, EXPERIMENTS, headline

ROOT = Path(__file__).parents[2]
FOUND = [(paper, erratum, chapter) for paper, found in ERRATA.items() for erratum, chapter in found]
rows = cache(read)


@pytest.mark.parametrize(
    ("paper", "erratum", "chapter"), FOUND, ids=[one.name(paper) for paper, one, _ in FOUND]
)
def test_says_what_is_right(paper, erratum, chapter):
    assert erratum.kind in KINDS and (ROOT / chapter).is_file()
    said = erratum.said(rows)
    assert all(text.strip().endswith(".") and "nan" not in text.split() for text in said.values())
    assert said["Printed"] != said["Right"]


def test_each_text_has_its_heading():
    slip = Erratum("Equation 1", "misprint", "one", lambda read: read("two"), "counted", "nothing")
    said = {"Printed": "one", "Right": "two", "Shown": "counted", "Changes": "nothing"}
    assert slip.said(lambda name: name) == said


def test_all_are_collected_under_names_of_their_own():
    names = [erratum.name(paper) for paper, erratum, _ in FOUND]
    assert len(set(names)) == len(names) == sum(len(one.errata) for one in EXPERIMENTS)
    assert headline()["errata"] == str(len(names))


@pytest.mark.parametrize("paper", ERRATA)
def test_each_paper_has_a_page(paper):
    page = (ROOT / "book" / f"errata-{paper}.md").read_text("utf-8")
    assert ERRATA[paper] and f"```{{errata}} {paper}\n" in page
