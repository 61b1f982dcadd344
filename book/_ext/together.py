"""Punctuation stays on the line of the formula that it follows: browsers break between them."""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

MARKS = re.compile(r"[.,;:!?)’”]+")


class Together(SphinxPostTransform):
    default_priority = 900

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            place = parent.index(formula)
            after = parent[place + 1] if place + 1 < len(parent) else None
            if isinstance(after, nodes.Text) and (marks := MARKS.match(after)):
                both = nodes.inline("", "", formula, nodes.Text(marks[0]), classes=["together"])
                parent[place : place + 2] = [both, nodes.Text(after[marks.end() :])]


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(Together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
