"""Parts of pages that are computed when the book is built, so that nothing about runs, verdicts or
ranges is typed in prose.

* ``{headline}`runs``` is one of the numbers of :func:`companion.scoreboard.headline`;
* ``{errata} division`` lists the errata of a paper, ``{errata-counts}`` counts those of all;
* ``{chapter-map}`` lists the parts of the book with their pages, and what each page reproduces;
* ``{test-ranges}`` is the table of the training ranges U[a,b) and their test ranges;
* ``{which-unit} glance`` is a table of :mod:`companion.beyond.which_unit`, ``{which-unit} cells``
  its cells by operation;
* ``{more-units} api/units`` documents the units that neither its page nor those named do;
* ``{citation}`` is the BibTeX entry of CITATION.cff.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from textwrap import wrap

import pandas as pd
import yaml
from docutils import nodes
from docutils.statemachine import StringList
from freshness import always_read
from nalm.tasks import UNIFORM_RANGES
from nalm.units import UNITS
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.beyond import which_unit
from companion.experiment.errata import KINDS
from companion.recorded import read
from companion.scoreboard import ERRATA, PAPERS, VERDICTS, headline, load

ROOT = Path(__file__).parents[2]
rows = cache(read)  # of one build, see setup
numbers = cache(headline)


class HeadlineRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        always_read(self.env)
        if self.text in numbers():
            return [nodes.Text(numbers()[self.text])], []
        said = f"There is no number called {self.text!r}; there are {', '.join(numbers())}."
        return [], [self.inliner.reporter.error(said, line=self.lineno)]


class Written(SphinxDirective):
    """A directive that writes Markdown, which stands in its place."""

    def lines(self) -> Iterator[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        always_read(self.env)
        part = nodes.container()
        self.state.nested_parse(
            StringList(list(self.lines()), source=self.name), self.content_offset, part
        )
        return part.children


class Errata(Written):
    required_arguments = 1

    def lines(self) -> Iterator[str]:
        paper, kind = self.arguments[0], ""
        for erratum, chapter in ERRATA[paper]:
            if erratum.kind != kind:
                kind = erratum.kind
                yield from (f":::{{rubric}} {KINDS[kind]}", ":::", "")
            yield f"::::{{admonition}} {erratum.where}"
            yield from (":class: erratum", f":name: {erratum.name(paper)}", "")
            for heading, text in erratum.said(rows).items():
                where = (
                    f" ({{doc}}`/{chapter.removesuffix('.ipynb')}`)" if heading == "Shown" else ""
                )
                yield from (f"**{heading}.** {text.removesuffix('.')}{where}.", "")
            yield from ("::::", "")


class ErrataCounts(Written):
    def lines(self) -> Iterator[str]:
        yield f"| paper | {' | '.join(kind.lower() for kind in KINDS.values())} | all |"
        yield "|---" * (len(KINDS) + 2) + "|"
        for paper, found in ERRATA.items():
            kinds = [erratum.kind for erratum, _ in found]
            counts = " | ".join(str(kinds.count(kind)) for kind in KINDS)
            yield f"| {{doc}}`{PAPERS[paper]} </book/errata-{paper}>` | {counts} | {len(found)} |"
        yield ""


class ChapterMap(Written):
    """From ``_toc.yml``, with the titles of the pages and the verdicts of the scoreboard."""

    def lines(self) -> Iterator[str]:
        board = load()
        for part in yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))["parts"]:
            if not part.get("numbered"):
                continue
            yield from (f"**{part['caption']}**", "")
            for page in part["chapters"]:
                items = board[board["chapter"].str.rpartition(".")[0] == page["file"]]
                counts = items["verdict"].value_counts()
                said = [
                    f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if verdict in counts
                ]
                shown = f": {', '.join(items['item'])} ({'; '.join(said)})" if said else ""
                yield f"* {{doc}}`/{page['file']}`{shown}"
            yield ""


class TestRanges(Written):
    def lines(self) -> Iterator[str]:
        yield from ("| training and validation | test |", "|---|---|")
        for name, (_, test) in UNIFORM_RANGES.items():
            yield f"| {name} | {str(test).replace('|', ' or ')} |"
        yield ""


class WhichUnit(Written):
    required_arguments = 1

    def lines(self) -> Iterator[str]:
        found, (name,) = which_unit.measured(), self.arguments
        if name in TABLES:
            yield from _table(TABLES[name](found))
        elif name == "cells":
            for operation, said in which_unit.OPERATIONS.items():
                cells = which_unit.every_cell(found, operation)
                yield from (f":::{{dropdown}} {said}, {len(cells)} kinds of numbers", "")
                yield from (*_table(cells), ":::", "")
        else:
            raise self.error(f"No table is called {name!r}; there are cells, {', '.join(TABLES)}.")


TABLES: dict[str, Callable[[pd.DataFrame], list[dict[str, str]]]] = {
    "glance": which_unit.glance,
    "recipes": which_unit.recipes,
    "failures": which_unit.failures,
    "settings": lambda _: which_unit.settings_worth(),
    "together": lambda _: which_unit.together(),
}


def _table(lines: list[dict[str, str]]) -> Iterator[str]:
    yield f"| {' | '.join(lines[0])} |"
    yield "|---" * len(lines[0]) + "|"
    for line in lines:
        yield f"| {' | '.join(str(one).replace('|', chr(92) + '|') for one in line.values())} |"
    yield ""


class MoreUnits(Written):
    has_content, optional_arguments, final_argument_whitespace = False, 1, True

    def lines(self) -> Iterator[str]:
        pages = [self.env.docname, *(f"book/{name}" for name in " ".join(self.arguments).split())]
        page = "".join(Path(self.env.doc2path(name)).read_text("utf-8") for name in pages)
        yield from ("```{eval-rst}", ".. currentmodule:: nalm.units", "")
        for name in UNITS:
            if f".. autoclass:: {name}\n" not in page:
                yield from (f".. autoclass:: {name}", "   :members:", "")
        yield from ("```", "")


class Citation(Written):
    def lines(self) -> Iterator[str]:
        cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
        authors = " and ".join(author["name"] for author in cff["authors"])
        title = "\n    ".join(wrap(cff["title"], 60))
        yield from ("```bibtex", "@software{nalm,", *f"  title = {{{title}}},".split("\n"))
        yield from (f"  author = {{{{{authors}}}}},", f"  year = {{{cff['date-released'].year}}},")
        yield from (f"  version = {{{cff['version']}}}", "}", "```")


def forget(app: Sphinx, config: Config) -> None:
    rows.cache_clear()
    which_unit.measured.cache_clear()
    numbers.cache_clear()


def setup(app: Sphinx) -> dict[str, object]:
    app.add_role("headline", HeadlineRole())
    app.add_directive("errata", Errata)
    app.add_directive("errata-counts", ErrataCounts)
    app.add_directive("chapter-map", ChapterMap)
    app.add_directive("test-ranges", TestRanges)
    app.add_directive("which-unit", WhichUnit)
    app.add_directive("more-units", MoreUnits)
    app.add_directive("citation", Citation)
    app.connect("config-inited", forget, priority=400)  # before widgets write their data
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
