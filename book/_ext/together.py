"""What belongs together stays on one line, where browsers would break: a formula and the
punctuation that follows it, a number and its negative exponent.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

MARKS = re.compile(r"[.,;:!?)’”]+")
NUMBER = re.compile(r"(\d[\d.,]*e-\d+)")
AS_WRITTEN = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def _together(*parts: nodes.Node) -> nodes.inline:
    return nodes.inline("", "", *parts, classes=["together"])


class Together(SphinxPostTransform):
    default_priority = 900

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            place = parent.index(formula)
            after = parent[place + 1] if place + 1 < len(parent) else None
            if isinstance(after, nodes.Text) and (marks := MARKS.match(after)):
                both = _together(formula, nodes.Text(marks[0]))
                parent[place : place + 2] = [both, nodes.Text(after[marks.end() :])]
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, AS_WRITTEN) or not NUMBER.search(text):
                continue
            parts = enumerate(NUMBER.split(text))  # every second one is a number
            shown = [_together(nodes.Text(one)) if at % 2 else nodes.Text(one) for at, one in parts]
            text.parent.replace(text, shown)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_post_transform(Together)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
