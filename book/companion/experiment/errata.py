"""What is wrong in the papers: each erratum stands beside the experiment that shows it, and a page of the
book for each paper collects them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from companion.experiment.statements import Read

__all__ = ["KINDS", "Erratum"]

Kind = Literal["claim", "evaluation", "description", "misprint"]
KINDS: dict[Kind, str] = {
    "claim": "Statements that do not follow",
    "evaluation": "How numbers were computed",
    "description": "Descriptions of something else than was run",
    "misprint": "Misprints",
}
"""Kind of an erratum -> heading. *claim*: a statement does not follow from the formulas or numbers beside it.
*evaluation*: numbers were computed from the runs in another way than the text says. *description*: the runs
were made in another way. *misprint*: a formula, table or caption says what it does not mean to.
"""
assert tuple(KINDS) == get_args(Kind)

Text = str | Callable[[Read], str]


@dataclass(frozen=True)
class Erratum:
    """Something in a paper that is not so. Its texts are Markdown; one with a number of ours is a function of
    the recorded rows.

    Args:
        where: the place, ``"Equation 6"``; it also names the erratum among those of its paper and kind.
        kind: one of ``KINDS``.
        says: what the paper says there.
        right: what is right.
        shown: how the chapter shows it.
        changes: what it changes in the paper's results.

    >>> slip = Erratum("Equation 1", "misprint", "one", "two", "counted", "nothing")
    >>> slip.name("division")
    'erratum-division-equation-1'
    """

    where: str
    kind: Kind
    says: Text
    right: Text
    shown: Text
    changes: Text

    def name(self, paper: str) -> str:
        """Under which pages link to it."""
        words = "".join(letter if letter.isalnum() else " " for letter in self.where.lower()).split()
        return "-".join(["erratum", paper, *words])

    def said(self, read: Read) -> dict[str, str]:
        """Its four texts by their headings."""
        texts = {"Printed": self.says, "Right": self.right, "Shown": self.shown, "Changes": self.changes}
        return {name: text if isinstance(text, str) else text(read) for name, text in texts.items()}
