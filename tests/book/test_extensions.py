"""What the book's extensions compute and where they put it."""

import doctest
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from companion.experiment.errata import Erratum
from companion.scoreboard import ITEMS, anchor
from docutils import nodes

import nalm
from nalm.records import experiments
from nalm.tasks import UNIFORM_RANGES

EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"
sys.path.append(str(EXTENSIONS))  # as Sphinx does

computed, evidence, freshness, head, places, together = map(
    importlib.import_module, ("computed", "evidence", "freshness", "head", "places", "together")
)


@pytest.mark.parametrize(
    "name", sorted(file.stem for file in EXTENSIONS.glob("*.py") if ">>>" in file.read_text())
)
def test_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_times_of_a_chapter_in_minutes_and_hours(monkeypatch):
    said = [head.hours(seconds) for seconds in (120, 3540, 3600, 35_000, 36_000, 7.2e6)]
    assert said == ["2 minutes", "59 minutes", "1.0 hours", "9.7 hours", "10 hours", "2,000 hours"]
    took = {"a": (7200.0, 0.0), "b": (3600.0, 600.0)}
    monkeypatch.setattr(head, "spent", took.__getitem__)
    assert head.cost(["a"]) == "2.0 hours of one core"
    assert head.cost(["a", "b"]) == "3.0 hours of one core and 10 minutes of a GPU"


def test_a_card_has_its_items_by_verdict_and_its_rows(monkeypatch):
    board = pd.DataFrame({"paper": "npu", "item": ["Figure 1", "Table 1", "Figure 2", "Figure 3"]})
    board["chapter"] = ["page", "page", "page", "another"]
    board["verdict"] = ["differs, explained", "reproduced", "reproduced", "differs"]
    monkeypatch.setattr(head, "load", lambda: board)
    (line, _) = head.Card.items(None, "page")
    assert line == (
        "{doc}`Neural Power Units </book/scoreboard>`: Table 1, Figure 2 [reproduced]{.reproduced} · "
        "Figure 1 [differs, explained]{.differs}"
    )
    assert list(head.Card.items(None, "none")) == []
    monkeypatch.setattr(head, "rows", {"a": [0] * 1200, "b": [0] * 34}.__getitem__)
    monkeypatch.setattr(head, "of", {"a": "fresh", "b": "confirmed"}.__getitem__)
    monkeypatch.setattr(head, "cost", lambda names: f"the time of {', '.join(names)}")
    (line, _) = head.Card.rows(None, ["a", "b"])
    assert line == (
        "1,234 runs in its results files · the time of a, b · {doc}`confirmed </book/beyond/verify>`"
    )


def _section(title, *parts):
    return nodes.section("", nodes.title("", title), *parts)


def test_an_item_is_found_in_a_caption_then_in_a_heading_then_in_a_text():
    shown = [item.name for item in ITEMS if item.chapter == "book/division/losses.ipynb"]
    assert shown == ["Figure 21", "Figure 22", "Figure 23", "Table 8"]
    figure = nodes.figure("", nodes.caption("", "As Figures 20 and 21 of the paper"))
    inner = _section("Within", nodes.paragraph("", "Figure 22 is here."))
    first = _section("Losses", nodes.paragraph("", "Figure 21, Figure 2 and Table 8"), inner)
    heading = _section("Figure 21 and Table 8", nodes.paragraph("", "Of Figure 22, more."), figure)
    page = nodes.container("", first, heading)
    places.place(SimpleNamespace(env=SimpleNamespace(docname="book/division/losses")), page)
    ids = {anchor(name) for name in shown}
    found = [ids & set(part["ids"]) for part in (figure, heading, inner, first)]
    assert found == [{"paper-figure-21"}, {"paper-table-8"}, {"paper-figure-22"}, {"paper-figure-23"}]


def test_a_formula_keeps_its_punctuation_and_a_number_its_exponent():
    math = nodes.math("", "x")
    parts = nodes.Text("below "), math, nodes.Text("), and 2.5e-7 of 3 in "), nodes.literal("", "1e-9")
    page = nodes.paragraph("", "", *parts, nodes.math("", "y"), nodes.Text(" is all, and more"))
    together.Together.run(SimpleNamespace(document=page))
    kept = [part.astext() for part in page.findall(nodes.inline) if part["classes"] == ["together"]]
    assert kept == ["x),", "2.5e-7"]
    assert page.astext() == "below x), and 2.5e-7 of 3 in 1e-9y is all, and more"


def test_results_files_that_are_alike_are_counted_together(monkeypatch):
    monkeypatch.setattr(freshness, "experiments", lambda: ["a/b", "a/c", "d/e"])
    monkeypatch.setattr(freshness, "of", {"a/b": "fresh", "a/c": "confirmed", "d/e": "fresh"}.__getitem__)
    env = SimpleNamespace(docname="book/beyond/verify")
    (items,) = freshness.FreshnessList.run(SimpleNamespace(env=env))
    said = [item.astext() for item in items.findall(nodes.list_item)]
    assert said == ["fresh, 2 of 3 results files: a/b, d/e", "confirmed, 1 of 3 results files: a/c"]
    assert freshness.outdated(None, env, set(), set(), set()) == {"book/beyond/verify"}


MISTAKES = [("Equation 1", "claim"), ("Equation 2", "misprint"), ("Equation 3", "misprint")]


def test_an_erratum_names_the_chapter_that_shows_it_and_is_counted(monkeypatch):
    text = ("is said.", "is right.", lambda read: "A table.", "nothing.")
    slips = [(Erratum(where, kind, *text), f"book/npu/{where[-1]}.ipynb") for where, kind in MISTAKES]
    monkeypatch.setattr(computed, "ERRATA", {"npu": slips})
    lines = [line for line in computed.Errata.lines(SimpleNamespace(arguments=["npu"])) if line]
    assert [line.split("} ")[1] for line in lines if "{rubric}" in line] == [
        "Statements that do not follow",
        "Misprints",
    ]
    assert [line for line in lines if line.startswith((":name:", "**Shown", "**Changes"))] == [
        part
        for number in "123"
        for part in (
            f":name: erratum-npu-equation-{number}",
            f"**Shown.** A table ({{doc}}`/book/npu/{number}`).",
            "**Changes.** nothing.",
        )
    ]
    head, _, counts, _ = computed.ErrataCounts.lines(None)
    assert head.startswith("| paper | statements that do not follow |") and head.endswith(
        "| misprints | all |"
    )
    assert counts == "| {doc}`Neural Power Units </book/errata-npu>` | 1 | 0 | 0 | 2 | 3 |"


def test_the_table_of_test_ranges_has_all_of_them():
    lines = [line.strip("| ").split(" | ") for line in computed.TestRanges.lines(None)][2:-1]
    assert dict(lines) == {
        name: str(tested).replace("|", " or ") for name, (_, tested) in UNIFORM_RANGES.items()
    }


def test_experiments_are_shown_on_the_pages_of_their_items_and_on_those_that_name_them():
    pages = evidence.shown_on()
    assert set(pages) <= set(experiments()) and all(found == sorted(found) for found in pages.values())
    for item in ITEMS:
        for name in item.experiment if item.chapter else ():
            assert item.chapter.removesuffix(".ipynb") in pages[name]
    assert pages["division/losses"] == ["book/division/losses"]


def test_the_map_of_chapters_has_the_items_of_each_page_and_their_verdicts(monkeypatch):
    board = pd.DataFrame({"item": ["Figure 21", "Table 8", "Figure 22", "Figure 3"]})
    board["chapter"] = [*["book/division/losses.ipynb"] * 3, "book/division/no-redundancy.ipynb"]
    board["verdict"] = ["differs", "reproduced", "differs", "open"]
    monkeypatch.setattr(computed, "load", lambda: board)
    lines = list(computed.ChapterMap.lines(None))
    assert [line for line in lines if ": " in line] == [
        "* {doc}`/book/division/no-redundancy`: Figure 3 (open: 1)",
        "* {doc}`/book/division/losses`: Figure 21, Table 8, Figure 22 (reproduced: 1; differs: 2)",
    ]
    assert sum(line.startswith("* {doc}") for line in lines) > 20


def test_a_table_keeps_its_columns_whatever_stands_in_them():
    lines = list(computed._table([{"range": "U[-6,-2)|U[2,6)", "runs": 25}]))
    assert lines == ["| range | runs |", "|---|---|", "| U[-6,-2)\\|U[2,6) | 25 |", ""]


def test_the_citation_names_the_version_and_its_year():
    cited = "\n".join(computed.Citation.lines(None))
    cff = (EXTENSIONS.parents[1] / "CITATION.cff").read_text("utf-8")
    assert f"version = {{{nalm.__version__}}}" in cited
    assert re.search(r"year = \{(\d+)\}", cited)[1] == re.search(r"date-released: \W?(\d{4})", cff)[1]


def test_a_card_says_how_its_page_is_drawn_trained_and_verified_again(monkeypatch):
    monkeypatch.setattr(head, "rows", lambda name: [0] * 1200)
    monkeypatch.setattr(head, "cost", lambda names: f"the time of {', '.join(names)}")
    monkeypatch.setattr(head, "of", lambda name: "fresh")

    def said(docname, names):
        card = SimpleNamespace(env=SimpleNamespace(docname=docname))
        return [line for line in head.Card.commands(card, f"{docname}.ipynb", names) if line]

    lines = said("book/division/losses", ["a/b", "a/c"])
    assert [line for line in lines if line.startswith("make ")] == [
        "make rerun CHAPTER=book/division/losses.ipynb",
        'make rerun CHAPTER=book/division/losses.ipynb ARGS="-p fresh True"',
        "make verify EXPERIMENT=a/b",
        "make verify EXPERIMENT=a/c",
    ]
    assert "* `a/c`: 1,200 runs, the time of a/c, fresh; {rows}`a/c`" in lines
    assert '<a href="../../_sources/book/division/losses.ipynb" download>' in lines[-1]
    assert not any("verify" in line or "fresh" in line for line in said("book/beyond/own-network", []))


def test_files_are_linked_from_where_a_page_lies_with_their_size(monkeypatch, tmp_path):
    names = ["results/a/b.csv.gz", "results/a/b.json", "results/a/c.json"]
    for name in names:
        (tmp_path / "evidence" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "evidence" / name).write_bytes(bytes(2600))
    monkeypatch.setattr(evidence, "files", lambda: dict.fromkeys(names))
    env = SimpleNamespace(doctreedir=tmp_path, docname="book/division/losses")
    parts = evidence.links(env, "a/b")
    assert "".join(part.astext() for part in parts) == "rows (3 kB), configurations (3 kB)"
    assert [part["refuri"] for part in parts if isinstance(part, nodes.reference)] == [
        "../../results/a/b.csv.gz",
        "../../results/a/b.json",
    ]
    with pytest.raises(ValueError, match="There are no rows called 'a/d'"):
        evidence.links(env, "a/d")
