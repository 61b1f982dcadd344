"""The head of a chapter, made when the book is built.

* ``{chapter-card}`` says which figures and tables of the paper the chapter reproduces and with
  which verdict, how many runs are behind it and how fresh their rows are; folded, how to redraw,
  retrain and verify them, and where they lie. Options: ``before``, the pages to read before, and
  ``rows``, results files besides those that its items are judged by.
* ``{chapter-picture} fig-losses-nru`` shows a figure of the chapter before its turn, with a link.
"""

import os
import struct
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import nbformat
from computed import Written, rows
from docutils import nodes
from docutils.parsers.rst.directives import unchanged
from freshness import of
from nalm.records.code import least_fresh
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.recorded import spent
from companion.scoreboard import EXPERIMENTS, PAPERS, VERDICTS, load

ROOT = Path(__file__).parents[2]


def results_of(page: str) -> dict[str, None]:
    """The results files that the items of a page are judged by."""
    items = [item for one in EXPERIMENTS if one.chapter == page for item in one.items]
    return dict.fromkeys(name for item in items for name in item.experiment)


def hours(seconds: float) -> str:
    """Hours, or minutes.

    >>> hours(20), hours(90), hours(6000), hours(600_000)
    ('1 minute', '2 minutes', '1.7 hours', '167 hours')
    """
    if seconds < 3600:
        minutes = max(1, round(seconds / 60))
        return f"{minutes} minute{'s' * (minutes > 1)}"
    return f"{seconds / 3600:,.{1 if seconds < 36_000 else 0}f} hours"


def cost(names: list[str]) -> str:
    """What the rows of results files took."""
    core, gpu = map(sum, zip(*map(spent, names), strict=True))
    return f"{hours(core)} of one core" + (f" and {hours(gpu)} of a GPU" if gpu else "")


class Card(Written):
    option_spec = {"before": unchanged, "rows": unchanged}  # noqa: RUF012, as docutils has it

    def lines(self) -> Iterator[str]:
        page = f"{self.env.docname}.ipynb"
        more = self.options.get("rows", "").split()
        names = list(results_of(page) | dict.fromkeys(more))
        yield from ("::::{container} chapter-card", *self.items(page), *self.rows(names))
        if before := self.options.get("before", "").split():
            yield from (f"Read before: {', '.join(f'{{doc}}`{name}`' for name in before)}.", "")
        yield from (
            ":::{dropdown} Redraw, retrain, verify",
            *self.commands(page, names),
            ":::",
            "::::",
            "",
        )

    def items(self, page: str) -> Iterator[str]:
        """The figures and tables of the paper, those with one verdict together."""
        board = load()
        board = board[board["chapter"] == page]
        said = [
            f"{', '.join(alike['item'])} [{verdict}]{{.{verdict.split(',')[0].replace(' ', '-')}}}"
            for verdict in VERDICTS
            if len(alike := board[board["verdict"] == verdict])
        ]
        if said:
            paper = PAPERS[board["paper"].iloc[0]]
            yield from (f"{{doc}}`{paper} </book/scoreboard>`: {' · '.join(said)}", "")

    def rows(self, names: list[str]) -> Iterator[str]:
        """How many runs, what they cost and how fresh their rows are."""
        if names:
            parts = [rows(name) for name in names]
            fresh = least_fresh([of(name) for name in names])
            yield (
                f"{sum(map(len, parts)):,} runs in its results files · "
                f"{cost(names)} · "
                f"{{doc}}`{fresh} </book/beyond/verify>`"
            )
            yield ""

    def commands(self, page: str, names: list[str]) -> Iterator[str]:
        cells = nbformat.read(ROOT / page, as_version=4).cells
        parameters = "".join(
            cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])
        )
        yield from _command("Redraw the page from the recorded rows:", f"make rerun CHAPTER={page}")
        if "fresh: bool" in parameters:
            yield from _command(
                "Train all its runs again, with the same seeds, into a store of your own:",
                f'make rerun CHAPTER={page} ARGS="-p fresh True"',
            )
        if names:
            yield from _command(
                "Train a random sample of the rows again and compare:",
                *(f"make verify EXPERIMENT={name}" for name in names),
            )
            for name in names:
                said = f"{len(rows(name)):,} runs, {cost([name])}, {of(name)}"
                yield f"* `{name}`: {said}; {{rows}}`{name}`"
            yield ""
        source = f"{'../' * self.env.docname.count('/')}_sources/{page}"
        yield from (f'<a href="{source}" download>The page as a notebook</a>', "")


def _command(what: str, *commands: str) -> Iterator[str]:
    yield from (what, "", "```bash", *commands, "```", "")


class Picture(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        path = Path(self.env.doc2path(self.env.docname))
        for cell in nbformat.read(path, as_version=4).cells:
            shown = cell.metadata.get("mystnb", {})
            if shown.get("figure", {}).get("name") == name:
                break
        else:
            raise self.error(f"No figure of this notebook is called {name!r}.")
        png = next(o.data["image/png"] for o in cell.outputs if "image/png" in o.get("data", {}))
        caption, messages = self.parse_inline(f"{{numref}}`{name}`")
        image = shown["image"]
        kinds = image.get("classes", "").split()
        width, height = struct.unpack(">II", b64decode(png)[16:24])
        if (
            height > 0.75 * width and "as-is" not in kinds
        ):  # panels above one another: the first is shown
            kinds.append("tall")
        picture = nodes.image(uri=self.file_of(b64decode(png)), alt=image["alt"], classes=kinds)
        where = nodes.paragraph("", "", *caption)
        return [nodes.container("", picture, where, classes=["chapter-picture"]), *messages]

    def file_of(self, png: bytes) -> str:
        """The file that the figure itself is shown from, which is called by its content."""
        folder = Path(self.env.app.outdir).parent / "jupyter_execute"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{sha256(png).hexdigest()}.png"
        file.write_bytes(png)
        return f"/{os.path.relpath(file, self.env.srcdir)}"


def setup(app: Sphinx) -> dict[str, object]:
    app.add_directive("chapter-card", Card)
    app.add_directive("chapter-picture", Picture)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
