"""How strong an item's comparison is: its rows are corrupted, and it is judged again.

A verdict means little if other rows would have got it as well. So the rows of a judged experiment are
corrupted in ways that a good judge ought to see. And they are drawn again by seed, with replacement (runs
of one seed share initial weights, and stay together): such rows ought to keep the verdict.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from nalm.commands import exit_with
from nalm.records import PUBLISHED
from nalm.units.checks import choose

from companion import sealed
from companion.experiment import replays_of
from companion.experiment.statements import Comparison, Item, Verdict
from companion.recorded import read
from companion.resampling import drawn_again
from companion.scoreboard.items import ITEMS

__all__ = [
    "CORRUPTIONS",
    "FILE",
    "KEPT",
    "SEEN",
    "Strength",
    "corrupted",
    "falls",
    "measured",
    "recorded",
    "rows_of",
    "strength",
]

FILE = PUBLISHED / "strength.csv"
SAMPLES = 20
"""Of seeds, by which a share is measured at least."""
SEEN = 0.8
"""An item sees a corruption if at least this share of the corrupted rows lose its verdict."""
KEPT = 0.6
"""A verdict is settled if at least this share of the rows that are drawn again keep it."""

Corruption = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def _lose(share: float) -> Corruption:
    def lose(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
        solved = rows["success"].eq(True)
        lost = solved & (generator.random(len(rows)) < share)
        return rows.assign(success=solved & ~lost, solved_at=rows["solved_at"].mask(lost))

    return lose


def _times(column: str, factor: float) -> Corruption:
    return lambda rows, generator: rows.assign(**{column: rows[column] * factor})


def _errors_times(factor: float) -> Corruption:
    def times(rows: pd.DataFrame, generator: np.random.Generator) -> pd.DataFrame:
        columns = [name for name in rows if str(name).startswith(("test_", "valid_"))]
        return rows.assign(**{name: rows[name] * factor for name in columns})

    return times


CORRUPTIONS: Mapping[str, Corruption] = {
    "20% of successes lost": _lose(0.2),
    "40% of successes lost": _lose(0.4),
    "solved at × 2": _times("solved_at", 2.0),
    "sparsity error × 10": _times("sparsity_error", 10.0),
    "errors × 10": _errors_times(10.0),
}
"""What is done to the rows, by name."""
RANDOM = ("20% of successes lost", "40% of successes lost")
"""Those that chance decides."""


@dataclass(frozen=True)
class Strength:
    """The share of resampled rows that keep a verdict, and the share of corrupted rows that lose it."""

    kept: float
    lost: Mapping[str, float]

    @property
    def sees(self) -> list[str]:
        """The corruptions that it sees."""
        return [name for name, share in self.lost.items() if share >= SEEN]


def corrupted(rows: pd.DataFrame, name: str, seed: int = 0) -> pd.DataFrame:
    """Rows with one of :data:`CORRUPTIONS`."""
    return CORRUPTIONS[name](rows, np.random.default_rng(seed))


def rows_of(item: Item) -> pd.DataFrame:
    """The recorded rows by which an item is judged: its replays, or else its own."""
    parts = [read(name) for name in item.experiment]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    again = replays_of(item, rows, read)
    return item.select(rows if again.empty else again)


def falls(item: Item, rows: pd.DataFrame) -> Callable[[pd.DataFrame], bool]:
    """Whether other rows lose the verdict that these get: theirs is a worse one.

    Args:
        item: an experiment.
        rows: that it is judged by.

    Raises:
        ValueError: the item is not judged by these rows.
    """
    judged = item.judge(rows, read)
    if not judged.statements:
        raise ValueError(f"{item.name} of {item.paper} is not judged: its rows are not complete.")
    before = _RANKS.index(judged.verdict)
    reasons = [reason.covering(read) for reason in item.explanations]

    def fall(sample: pd.DataFrame) -> bool:
        numbers = [one for one in item.compared_with(sample) if isinstance(one, Comparison)]
        apart = [one for one in numbers if not (one.agrees or one.undecided)]
        if not all(any(covers(one) for covers in reasons) for one in apart):
            return judged.verdict != "differs"  # whatever the sentences say, which takes longer to find
        return _RANKS.index(item.judge(sample, read).verdict) > before

    return fall


def strength(item: Item, rows: pd.DataFrame, samples: int = SAMPLES, seed: int = 0) -> Strength:
    """The strength of an item that is judged by these rows.

    Args:
        item: an experiment.
        rows: that it is judged by.
        samples: how many samples of seeds are judged; corruptions are drawn a quarter as often.
        seed: of the draws.

    Raises:
        ValueError: as of :func:`falls`.
    """
    rows = item.select(rows).reset_index(drop=True)
    fall, generator = falls(item, rows), np.random.default_rng(seed)
    times = dict.fromkeys(CORRUPTIONS, 1) | dict.fromkeys(RANDOM, max(1, samples // 4))
    lost = {
        name: float(np.mean([fall(corruption(rows, generator)) for _ in range(times[name])]))
        for name, corruption in CORRUPTIONS.items()
    }
    again = islice(drawn_again(rows, item.by, item.shared, seed), samples)
    return Strength(1 - float(np.mean([fall(sample) for sample in again])), lost)


_RANKS: tuple[Verdict, ...] = (
    "replayed",
    "reproduced",
    "reproduced so far",
    "open",
    "differs, explained",
    "differs",
)
"""The best first."""


def measured(item: Item, samples: int = SAMPLES) -> dict[str, str | int | float] | None:
    """A line on an item, none if it is not judged."""
    if item.kind != "experiment" or not item.comparable:
        return None
    rows = rows_of(item)
    if not item.judge(rows, read).statements:
        return None
    found = strength(item, rows, samples)
    return {"paper": item.paper, "item": item.name, "samples": samples, "kept": found.kept} | found.lost


def recorded(file: Path = FILE) -> dict[tuple[str, str], Strength]:
    """The strengths as they were last measured, by paper and item; none where there is no file."""
    return {
        (one["paper"], one["item"]): Strength(one["kept"], {name: one[name] for name in CORRUPTIONS})
        for one in _lines(file)
    }


def main(names: Sequence[str] = (), file: Path = FILE) -> None:
    """Measure the strength of every item, or of some, ``"division Figure 3"``, with at least as many samples
    as before, and write each at once.
    """
    for name in names:
        choose("item", name, [f"{one.paper} {one.name}" for one in ITEMS])
    lines = {(one["paper"], one["item"]): one for one in _lines(file)}
    for item in [one for one in ITEMS if not names or f"{one.paper} {one.name}" in names]:
        before = lines.pop((item.paper, item.name), {})
        line = measured(item, max(SAMPLES, int(before.get("samples", 0))))
        if line:
            lines[item.paper, item.name] = line
            print(line, flush=True)
        ordered = [lines[place] for one in ITEMS if (place := (one.paper, one.name)) in lines]
        sealed.write_text(file, pd.DataFrame(ordered).round(3).to_csv(index=False, lineterminator="\n"))


def _lines(file: Path) -> list[dict]:
    return pd.read_csv(io.StringIO(sealed.read_text(file))).to_dict("records") if file.is_file() else []


def _command() -> int:
    try:
        main(sys.argv[1:])
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":  # make strength
    exit_with(_command)
