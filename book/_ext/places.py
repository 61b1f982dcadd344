"""Where the papers' figures and tables are shown: each gets an address in its chapter,
``book/division/losses.html#paper-figure-21``. It is that of the first figure whose caption names
it; else of the first section whose heading does; else of the first section that names it at all.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

from companion.scoreboard import ITEMS, anchor

LIST = re.compile(r"\b(Figure|Table)s? ((?:A?\d+[a-d]?(?:, | and |–| to )?)+)")


def named(text: str) -> set[str]:
    """The figures and tables that a text names.

    >>> sorted(named("The paper's Figures 1a and 14, and Table A2"))
    ['Figure 1', 'Figure 14', 'Table A2']
    """
    return {
        f"{kind} {number}"
        for kind, numbers in LIST.findall(text)
        for number in re.findall(r"A?\d+", numbers)
    }


def candidates(page: nodes.document) -> Iterator[tuple[nodes.Element, str]]:
    """Elements in the order in which they are asked, with the text that may name an item."""
    figures, sections = list(page.findall(nodes.figure)), list(page.findall(nodes.section))
    for figure in figures:
        yield figure, "".join(part.astext() for part in figure.findall(nodes.caption))
    for section in sections:
        yield section, section.next_node(nodes.title).astext()
    for section in sections:
        own = (part for part in section.children if not isinstance(part, nodes.section))
        yield section, "\n".join(part.astext() for part in own)


def place(app: Sphinx, page: nodes.document) -> None:
    shown = [item for item in ITEMS if item.chapter.removesuffix(".ipynb") == app.env.docname]
    asked = list(candidates(page)) if shown else []
    for item in shown:
        found = next((element for element, text in asked if item.name in named(text)), None)
        (found or next(page.findall(nodes.section)))["ids"].append(anchor(item.name))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("doctree-read", place)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
