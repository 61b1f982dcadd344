"""What an item of a paper states, beside what rows say: one list, printed by its chapter, counted by the
scoreboard, evaluated by the tests.

An **item** is a figure or a table. It knows its protocol, the rows that belong to it, its statements, and
why what differs does. A **statement** is a number (:class:`Comparison`) or a sentence (:class:`Claim`) of
the paper. The rules, the same for all items:

* A number agrees if it is not significantly apart from ours: :attr:`Comparison.apart`, its distance in
  standard errors, stays below a limit that 99 of 100 true replications of an item pass with all their numbers
  (:data:`FALSE_ALARM`, divided among them as Bonferroni does). A published number without an interval counts
  as uncertain as ours, which is of as many runs. :func:`smallest_seen` says which difference of two rates
  this sees. Runs that share a seed, as those on several ranges do, share their initial weights: a rate that
  pools them has the interval of :func:`companion.measures.independent_runs`. Counts of ranges and ranks of
  errors, which have no standard error, come with the probability of a test.
* A sentence agrees if it holds in the rows. If it does not, it is *undecided* as long as some of
  :data:`SAMPLES` samples of seeds, drawn again from ours, show it: other seeds could. Else it differs.
* Where single runs are published, an item is *replayed* if besides every line of it is, seed by seed.
* A verdict is computed, never entered: see :meth:`Item.judge`. Where all rows of an item are replayed
  (:mod:`companion.replay`), it is that of the replays, which is what the authors trained; the rows from the
  first draw of the weights are shown beside it, whichever of the two agrees more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from html import escape
from itertools import islice
from typing import Literal, Protocol, get_args

import numpy as np
import pandas as pd

from companion import measures
from companion.experiment.tables import Table, text
from companion.measures import Interval, wilson
from companion.resampling import drawn_again

__all__ = [
    "FALSE_ALARM",
    "SAMPLES",
    "VERDICTS",
    "Claim",
    "Comparison",
    "Explanation",
    "Item",
    "Judgement",
    "Later",
    "Line",
    "Statements",
    "above",
    "exactly",
    "in_full",
    "printed",
    "rate",
    "rounded",
    "smallest_seen",
    "solved",
    "solved_runs",
    "student",
]

Kind = Literal["experiment", "analytic", "schematic", "settings"]
Verdict = Literal[
    "replayed",
    "reproduced",
    "reproduced so far",
    "differs, explained",
    "differs",
    "open",
    "documented",
    "not comparable",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""*replayed*: published outcomes seed by seed. *reproduced*: no statement differs and most agree, at the
paper's protocol. *reproduced so far*: so far as seeds and iterations go that are trained. *differs,
explained*: an experiment or the authors' code shows why for everything that differs. *differs*. *open*: not
trained yet, or most statements are undecided. *documented*: schematics and settings, of which nothing is
trained. *not comparable*: seconds on another machine, for example."""

Read = Callable[[str], pd.DataFrame]
"""The recorded rows of an experiment by its name."""


FALSE_ALARM = 0.01
"""The share of true replications of an item some number of which differs all the same.

Rows that are drawn again vary half as much again. With this share nine of ten of them keep the verdict; with
0.05 it would be eight.
"""

SAMPLES = 100
"""How many samples of seeds are asked for a sentence that does not hold.

One that is true, though by no margin, is found to differ in one of a hundred experiments.
"""


@dataclass(frozen=True)
class Comparison:
    """A number measured here beside the published one, each with its 95% interval (the published one of no
    width and ``n=0`` if there is none).

    Args:
        what: what is measured.
        ours, published: the two numbers.
        factor: numbers that are apart by no more than this factor agree as well.
        resolution: numbers that are both below it are rounding, and agree.
        id: of the statement, where an explanation names it.
        probability: with which, by a test, the two would be as far apart if they were of one kind; it decides
            in place of the intervals where it is given.
        family: how many numbers the item compares; :meth:`Item.compared_with` says it.
        degrees: of freedom, where one of them is a mean of few runs: far from it, Student's distribution has
            more than a normal one that is as wide within 95%.
    """

    what: str
    ours: Interval
    published: Interval
    factor: float = 1.0
    resolution: float = 0.0
    id: str = ""
    probability: float | None = None
    family: int = 1
    degrees: float = math.inf

    @property
    def apart(self) -> float:
        """How many standard errors the two numbers are apart; NaN if one of them is missing.

        By the square-and-add method (Newcombe, 1998; Zou and Donner, 2008): of each number that side of its
        interval counts which faces the other, so intervals need not be symmetric.
        """
        ours, published = self.ours, self.published
        distance = published.estimate - ours.estimate
        if math.isnan(distance):  # infinite medians of runs that diverged are equal
            return 0.0 if ours.estimate == published.estimate else math.nan
        sides = ours.estimate - ours.low, ours.high - ours.estimate
        if distance < 0:
            sides = sides[::-1]
        away, facing = sides
        theirs = published.estimate - published.low if distance > 0 else published.high - published.estimate
        if published.n == 0:
            theirs += away
        width = math.hypot(facing, theirs)
        return abs(distance) / width * _Z_95 if width else 0.0 if distance == 0 else math.inf

    @property
    def undecided(self) -> bool:
        """Whether one of the numbers is of too few runs to have an interval."""
        known = not math.isnan(self.ours.estimate - self.published.estimate)
        return self.probability is None and known and math.isnan(self.apart) and not self.agrees

    @property
    def agrees(self) -> bool:
        if self.probability is not None:
            return self.probability >= FALSE_ALARM / self.family
        ours, published = self.ours.estimate, self.published.estimate
        near = (
            self.apart <= _standard_errors(self.family, self.degrees)
            or max(ours, published) < self.resolution
        )
        return near or published / self.factor < ours < published * self.factor

    def __str__(self) -> str:
        return text(self.ours)


_Z_95 = 1.959964


@cache
def _standard_errors(family: int, degrees: float) -> float:
    """How far apart one of so many numbers may be, if 95% of such numbers are within 1.96."""
    from scipy.stats import t

    return float(t.ppf(1 - FALSE_ALARM / family / 2, degrees) / t.ppf(0.975, degrees) * _Z_95)


@dataclass(frozen=True)
class Claim:
    """A comparison between models that the paper's text makes, with the number to show for it.

    Args:
        what: what is said.
        agrees: whether it holds in the rows.
        shown: the number.
        id: as of :class:`Comparison`.
        undecided: it does not hold, but other seeds could show it; :meth:`Item.decided` says it.
    """

    what: str
    agrees: bool
    shown: str = ""
    id: str = ""
    undecided: bool = False

    def __str__(self) -> str:
        return self.shown


Statement = Comparison | Claim
Later = Callable[[], "Comparison | Iterable[Comparison]"]
"""Numbers that are computed when they are asked for. Samples of seeds are asked for sentences alone."""
Which = Callable[[Statement], bool]


def in_full(found: Iterable[Statement | Later]) -> Iterator[Statement]:
    """The statements, with the numbers that are given as functions."""
    for one in found:
        if isinstance(one, Statement):
            yield one
        else:
            numbers = one()
            yield from [numbers] if isinstance(numbers, Comparison) else numbers


def every(one: Statement) -> bool:
    return True


@dataclass(frozen=True)
class Explanation:
    """Why some statements of an item do not agree, shown by an experiment or by the authors' code.

    Args:
        of: the statements, by ``id``, or by ``what`` where they have none.
        text: one or two sentences; every number of ours in it is computed, so it is a function of the
            recorded rows where it has any.
        size: statement -> by how much the cause moves our number away from the published one, in the
            experiment that shows it, with an interval. A number without a size is not explained.
    """

    of: tuple[str, ...]
    text: str | Callable[[Read], str]
    size: Callable[[Read], Mapping[str, Interval]] | None = None

    def said(self, read: Read) -> str:
        return self.text if isinstance(self.text, str) else self.text(read)

    def covering(self, read: Read | None) -> Callable[[Statement], bool]:
        """Tells of a statement whether it is explained: a sentence, or a number that agrees once it is moved
        by the size, which is found once for all of them.

        A larger difference is left unexplained, and so is one in the other direction.
        """
        size = self.size
        sizes = None if size is None or read is None else cache(lambda: size(read))

        def covers(one: Statement) -> bool:
            name = one.id or one.what
            if name not in self.of or isinstance(one, Claim):
                return name in self.of
            if sizes is None:
                return False
            return replace(one, published=_moved(one.published, sizes()[name])).agrees

        return covers


def _moved(number: Interval, by: Interval) -> Interval:
    """The number and a size together, with the interval of their sum."""
    estimate = number.estimate + by.estimate
    below = math.hypot(number.estimate - number.low, by.estimate - by.low)
    above = math.hypot(number.high - number.estimate, by.high - by.estimate)
    return Interval(estimate, estimate - below, estimate + above, number.n)


class Line(Protocol):
    """A line of an item, its replays beside the authors' single runs."""

    @property
    def verdict(self) -> str:
        """``"replayed"``, ``"not replayed"`` or ``"not run"``."""


@dataclass(frozen=True)
class Item:
    """A figure or table of a paper.

    Args:
        paper: ``"nau-nmu"``, ``"npu"`` or ``"division"``.
        name: ``"Figure 3"``.
        title: what it shows.
        kind: an experiment has runs; an analytic figure is computed; schematics and settings are documented.
        statements: what is compared, the headline first: of the rows that belong to it, or of nothing for
            the other kinds. Numbers that take long may be given as a function, see :data:`Later`.
        headline: what the first statement measures, and ``published``, its published value as text.
        seeds, iterations, runs: the paper's protocol.
        updates: of all its runs together, where these differ in length; instead of ``iterations``.
        epochs: passes over the data that the iterations are, where the paper's data are finite.
        from_iterations, from_seeds: the least that it is judged by, if that is less than the paper's: then
            for the length that was trained, and *reproduced so far* at best.
        experiment: the experiments whose rows it is judged by.
        replays: the experiment of its replays, by which it is judged while these have more seeds of each
            configuration.
        rows: which of these rows belong to it.
        by: the columns that make a configuration, each of which needs the paper's seeds.
        shared: the columns that runs which are not independent have in common.
        explanations: why what differs does.
        lines: its lines beside published single runs, see ``companion.nau_nmu.seed_by_seed``; their
            verdicts.
        comparable: whether the numbers can be compared at all.
        compared: which part of the item is compared, where that is not all of it, for example "9 of 14
            values".
        chapter: the page that shows it.
    """

    paper: str
    name: str
    title: str
    kind: Kind
    statements: Callable[..., Iterable[Statement | Later]] | None = None
    headline: str = ""
    published: str = ""
    seeds: int = 0
    iterations: int = 0
    runs: int = 0
    updates: int = 0
    epochs: int = 0
    from_iterations: int = 0
    from_seeds: int = 0
    experiment: tuple[str, ...] = ()
    replays: str = ""
    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
    by: tuple[str, ...] = ()
    shared: tuple[str, ...] = ("seed",)
    explanations: tuple[Explanation, ...] = ()
    lines: Callable[[Read], Sequence[Line]] | None = None
    comparable: bool = True
    compared: str = ""
    chapter: str = ""

    def select(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The rows that it is judged by, of one stream and, if it has one, of one length: the longest of
        which all configurations are trained, if there is one with ``from_seeds`` seeds.
        """
        if rows.empty:
            return rows
        if self.iterations:
            rows = rows[rows["iterations"] <= self.iterations]
        rows = self.rows(rows)
        own = rows[rows["stream"] == "own"]
        rows = rows if own.empty else own
        if rows.empty or not self.iterations:
            return rows
        lengths = {int(length): part for length, part in rows.groupby("iterations")}
        whole = {length: seeds for length, part in lengths.items() if (seeds := self._seeds(part))}
        return lengths[max(whole, key=lambda at: (whole[at] >= self.from_seeds, at), default=max(lengths))]

    def whole(self, rows: pd.DataFrame) -> int:
        """How many seeds of each configuration there are in the rows that it is judged by; 0 while one is
        missing.
        """
        rows = self.select(rows)
        return 0 if rows.empty else self._seeds(rows)

    def _seeds(self, rows: pd.DataFrame) -> int:
        """How many seeds of each configuration there are in rows of one length; 0 while one is missing, or if
        they are too short to be judged by.
        """
        sizes = self._sizes(rows)
        complete = len(sizes) >= self.runs // self.seeds and int(rows["iterations"].max()) >= self._least
        return int(sizes.min()) if complete else 0

    def _sizes(self, rows: pd.DataFrame) -> pd.Series:
        """How many seeds there are of each configuration that has any."""
        if not self.by:
            return pd.Series([rows["seed"].nunique()])
        return rows.groupby(list(self.by))["seed"].nunique()

    def compared_with(self, rows: pd.DataFrame | None = None) -> list[Statement]:
        """Its statements, each number knowing how many there are.

        Args:
            rows: those that belong to it; none where nothing is trained.
        """
        if self.statements is None:
            return []
        found = list(in_full(self.statements() if rows is None else self.statements(rows)))
        family = max(1, sum(isinstance(one, Comparison) for one in found))
        return [replace(one, family=family) if isinstance(one, Comparison) else one for one in found]

    def _sentences(self, rows: pd.DataFrame) -> Iterator[Claim]:
        """Its sentences alone."""
        assert self.statements is not None
        return (one for one in self.statements(rows) if isinstance(one, Claim))

    def decided(self, rows: pd.DataFrame) -> list[Statement]:
        """As :meth:`compared_with`; a sentence that does not hold is undecided if other seeds show it.

        Args:
            rows: those that belong to it.
        """
        found = self.compared_with(rows)
        open_ = {one.what for one in found if isinstance(one, Claim) and not one.agrees}
        undecided: set[str] = set()
        for sample in islice(drawn_again(rows, self.by, self.shared), SAMPLES):
            if not open_:
                break
            shown = {one.what for one in self._sentences(sample) if one.agrees} & open_
            undecided, open_ = undecided | shown, open_ - shown
        return [
            replace(one, undecided=True) if isinstance(one, Claim) and one.what in undecided else one
            for one in found
        ]

    def judge(self, rows: pd.DataFrame | None = None, read: Read | None = None) -> Judgement:
        """What it states beside what the rows say.

        An experiment is *open* until all its configurations are trained at full length, or for
        ``from_iterations``. With fewer seeds or iterations than the paper's it is *reproduced so far* at
        best, and stays *open* if a statement does not agree and it has no ``from_seeds`` seeds.

        Args:
            rows: of its experiments; not needed where nothing is trained.
            read: recorded rows by experiment, for explanations; needed where some depend on rows.
        """
        if self.kind != "experiment":
            return self._judged(self.compared_with(), read, 0)
        rows = self.select(rows if rows is not None else pd.DataFrame())
        if rows.empty or self.statements is None:
            return Judgement(self, (), "open", "", 0)
        seeds = self._seeds(rows)
        compared = self.decided(rows) if seeds else []
        found = self._judged(compared, read, seeds, int(rows["iterations"].max()))
        return replace(found, most_seeds=int(self._sizes(rows).max())) if seeds else found

    @property
    def _least(self) -> int:
        return self.from_iterations or self.iterations

    def judge_so_far(self, rows: pd.DataFrame, part: Which = every, read: Read | None = None) -> Judgement:
        """As :meth:`judge`; while it is open, what its runs of full length can be compared in already.

        The scoreboard counts none of that.
        """
        whole = self.judge(rows, read)
        if whole.statements or self.statements is None:
            return whole
        found = self.select(rows)
        full = found if found.empty else found[found["iterations"] >= self._least]
        return whole if full.empty else replace(whole, statements=tuple(filter(part, self.decided(full))))

    def _judged(
        self, compared: list[Statement], read: Read | None, seeds: int, iterations: int = 0
    ) -> Judgement:
        differing = [one for one in compared if not one.agrees and not one.undecided]
        reasons = [reason.covering(read) for reason in self.explanations]
        known = [one for one in differing if any(covers(one) for covers in reasons)]
        not_shown = {one.id or one.what for one in compared if not one.agrees}
        said = " ".join(
            one.said(read) if read or isinstance(one.text, str) else ""
            for one in self.explanations
            if set(one.of) & not_shown
        ).strip()
        partly = self.kind == "experiment" and (seeds < self.seeds or iterations < self.iterations)
        enough = 0 < self.from_seeds <= seeds
        most = 2 * sum(one.agrees for one in compared) > len(compared)
        verdict: Verdict
        if not self.comparable:
            verdict = "not comparable"
        elif self.kind == "experiment" and not compared:
            verdict = "open"
        elif partly and not (differing and enough):
            verdict = "open" if differing or not most else "reproduced so far"
        elif differing:
            verdict = "differs, explained" if len(known) == len(differing) else "differs"
        elif not most:
            verdict = "open"
        else:
            verdict = "reproduced" if self.kind in ("experiment", "analytic") else "documented"
        lines = self.lines(read) if self.lines and read else ()
        if verdict == "reproduced" and lines and {one.verdict for one in lines} == {"replayed"}:
            verdict = "replayed"
        explained = tuple(one.what for one in known)
        return Judgement(self, tuple(compared), verdict, said, seeds, iterations, tuple(lines), explained)


@dataclass(frozen=True)
class Judgement:
    """An item judged: its statements, the verdict, and how much was covered: seeds of each configuration, of
    some more than of others, and iterations of each run.
    """

    item: Item
    statements: tuple[Statement, ...]
    verdict: Verdict
    explanation: str
    seeds: int
    iterations: int = 0

    lines: tuple[Line, ...] = ()
    explained: tuple[str, ...] = ()
    """The statements that differ by no more than an explanation covers."""
    replay: Judgement | None = None
    """Of the replays of its rows, where all are recorded, or of all its configurations."""
    replays: pd.DataFrame | None = field(default=None, repr=False, compare=False)
    """Their rows."""
    replays_alone: bool = False
    """Whether its rows are those replays: none was trained from other initial weights."""
    most_seeds: int = 0

    @property
    def seed_by_seed(self) -> str:
        """``"2 of 11 lines replayed, 1 not, 8 not run"``; nothing where no single runs are published."""
        if not self.lines:
            return ""
        count = Counter(one.verdict for one in self.lines)
        said = f"{count['replayed']} of {len(self.lines)} lines replayed"
        said += f", {count['not replayed']} not" if count["not replayed"] else ""
        return said + (f", {count['not run']} not run" if count["not run"] else "")

    @property
    def decides(self) -> Judgement:
        """The replays' where there are any."""
        return self.replay or self

    @property
    def agreeing(self) -> int:
        return sum(one.agrees for one in self.statements)

    @property
    def said(self) -> str:
        """``"Figure 1: 8 of 9 statements agree"``; ``", at 110 of 1,001 epochs and 5 of 10 seeds"`` where
        that is not all.
        """
        apart = self.replay and not self.replays_alone
        again = f", replayed {self.replay.count}{self.replay._at}" if apart else ""
        if self.statements and (self.seeds or self.item.kind != "experiment"):
            again = again.removesuffix(self._at)  # said once
            return f"{self.item.name}: {self.count} statements agree{self._at}{again}"
        so_far = f"; of what can be compared so far, {self.count} agree" if self.statements else ""
        return f"{self.item.name}: not run at full length{so_far}{again}"

    @property
    def _at(self) -> str:
        """``", at 5 of 10 seeds"``; empty if that is all."""
        covered = self.coverage if self.seeds else ""
        return f", at {covered}" if covered else ""

    @property
    def coverage(self) -> str:
        """``"110 of 1,001 epochs and 5 of 10 seeds"``: what is less than the paper's; empty if nothing is."""
        item, parts = self.item, []
        if self.iterations < item.iterations:
            of, unit = (item.epochs, "epochs") if item.epochs else (item.iterations, "iterations")
            parts.append(f"{round(self.iterations * of / item.iterations):,} of {of:,} {unit}")
        if self.seeds < item.seeds:
            parts.append(f"{self.covered_seeds} seeds")
        return " and ".join(parts)

    @property
    def covered_seeds(self) -> str:
        """``"5 of 10"``; ``"1 to 5 of 10"`` where some configurations have more than others."""
        few, enough = self.seeds, self.item.seeds
        more = f" to {min(self.most_seeds, enough)}" if few < min(self.most_seeds, enough) else ""
        return f"{few}{more} of {enough}"

    @property
    def count(self) -> str:
        """``"8 of 9"``: statements that agree; ``"not run"`` where there are none."""
        return f"{self.agreeing} of {len(self.statements)}" if self.statements else "not run"


class Statements(Table):
    """What one or several items state, as a table of a chapter. Of more than six statements those that agree
    are folded: a reader sees first what does not.

    Args:
        judgements: of the items, in the order to be shown.
        shown: which statements are shown; all are counted.
    """

    def __init__(self, judgements: Sequence[Judgement], shown: Which = every) -> None:
        lines = []
        for judged in judgements:
            replayed = judged.replay.statements if judged.replay and not judged.replays_alone else ()
            again, known = {one.what: one for one in replayed}, {one.what for one in judged.statements}
            for one in (*judged.statements, *(one for one in replayed if one.what not in known)):
                what = one.what
                if not shown(one) and not shown(again.get(what, one)):
                    continue
                published = text(one.published) if isinstance(one, Comparison) else ""
                line = {"": judged.item.name, "statement": what, "published": published}
                if what in known:
                    line |= {"here": str(one), "agrees": _agrees(one, judged)}
                if what in again:
                    line |= {"replay": str(again[what]), "it agrees": _agrees(again[what], judged.decides)}
                lines.append(line)
            if not (known or again):
                lines.append({"": judged.item.name, "statement": "not run"})
        frame = pd.DataFrame(lines).fillna("")
        columns = ["", "statement", "published", "here", "agrees"]
        frame = frame.reindex(columns=list(dict.fromkeys([*columns, *frame])), fill_value="")
        counts = "; ".join(one.said for one in judgements)
        super().__init__(_without_empty(frame), caption=counts, wrap=True)
        self.judgements = tuple(judgements)

    def _repr_html_(self) -> str:
        if self.frame.empty:
            return f'<p class="nalm-caption">{escape(self.caption)}</p>'
        if len(self.frame) <= 6:
            return super()._repr_html_()
        asked = self.frame[[one for one in ("agrees", "it agrees") if one in self.frame]]
        agree = asked.isin(["yes", ""]).all(axis=1) & (asked == "yes").any(axis=1)
        if agree.all():
            return Table(self.frame, folded=self.caption, wrap=True)._repr_html_()
        rest = Table(_without_empty(self.frame[~agree]), caption=self.caption, wrap=True)._repr_html_()
        if not agree.any():
            return rest
        kept = f"The {agree.sum()} that agree"
        return rest + Table(_without_empty(self.frame[agree]), folded=kept, wrap=True)._repr_html_()

    @property
    def statements(self) -> list[Statement]:
        """Of all items."""
        return [one for judged in self.judgements for one in judged.statements]

    @property
    def count(self) -> str:
        """``"19 of 20"``: statements of all items that agree."""
        found = self.statements
        return f"{sum(one.agrees for one in found)} of {len(found)}" if found else "not run"


def _without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """Lines without the columns in which nothing stands."""
    return frame[[name for name in frame if name in ("", "statement") or any(frame[name])]]


def _agrees(one: Statement, judged: Judgement) -> str:
    if one.agrees or one.undecided:
        return "yes" if one.agrees else "undecided"
    return "no, explained" if one.what in judged.explained else "no"


@cache
def smallest_seen(seeds: int, power: float = 0.8, family: int = 1) -> float:
    """The smallest difference between two success rates, one of them one half, that a comparison of as many
    seeds each sees with this power.

    Args:
        seeds: of either.
        power: share of cases.
        family: how many numbers the item compares.

    >>> round(smallest_seen(25), 2), round(smallest_seen(225), 2)
    (0.42, 0.16)
    """
    from scipy.stats import binom

    counts = np.arange(seeds + 1)
    rates = [rate(count / seeds, seeds) for count in counts]
    apart = np.array([[not Comparison("", a, b, family=family).agrees for b in rates] for a in rates])
    first = binom.pmf(counts, seeds, 0.5)
    for difference in np.arange(0.01, 0.5, 0.01):
        if first @ apart @ binom.pmf(counts, seeds, 0.5 + difference) >= power:
            return float(difference)
    return 0.5


def exactly(number: float) -> Interval:
    """A number without uncertainty."""
    return Interval(number, number, number, 0)


def above(number: float, other: Interval) -> Interval:
    """By how much a number is above another one, whose interval counts.

    >>> above(3.0, Interval(1.0, 0.5, 2.5, 10))
    Interval(estimate=2.0, low=0.5, high=2.5, n=10)
    """
    return Interval(number - other.estimate, number - other.high, number - other.low, other.n)


def rounded(number: float, digits: int) -> Interval:
    """A published number that was rounded to so many digits.

    >>> rounded(1.5e6, digits=2)
    Interval(estimate=1500000.0, low=1450000.0, high=1550000.0, n=0)
    """
    half = 10.0 ** (math.floor(math.log10(abs(number))) + 1 - digits) / 2
    return Interval(number, number - half, number + half, 0)


def printed(number: float, minus: float, plus: float, runs: int, digits: int = 2) -> Interval:
    """A published number, rounded to so many digits, with its interval, widened by what rounding hides.

    >>> printed(14_000.0, 210.0, 220.0, runs=100)
    Interval(estimate=14000.0, low=13290.0, high=14720.0, n=100)
    """
    bare = rounded(number, digits)
    return Interval(number, bare.low - minus, bare.high + plus, runs)


def rate(number: float, runs: int, independent: float | None = None) -> Interval:
    """A published success rate of this many runs.

    Args:
        number: the rate.
        runs: how many.
        independent: as how many independent runs they count; nothing is published of it, so where runs share
            seeds it is :func:`companion.measures.independent_runs` of ours.
    """
    solved = round(number * runs)
    if independent is None:
        return measures.success_rate([True] * solved + [False] * (runs - solved))
    low, high = wilson(solved / runs, independent)
    return Interval(solved / runs, low if solved else 0.0, high if solved < runs else 1.0, runs)


def student(number: float, standard_error: float, runs: int) -> Interval:
    """A published mean with its standard error."""
    from scipy.special import stdtrit

    half = stdtrit(runs - 1, 0.975) * standard_error
    return Interval(number, number - half, number + half, runs)


def solved(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of solved runs."""
    return rows[solved_runs(rows)]


def solved_runs(rows: pd.DataFrame) -> np.ndarray:
    """Which rows are those of solved runs."""
    success = rows["success"]
    return success.eq(True).to_numpy()
