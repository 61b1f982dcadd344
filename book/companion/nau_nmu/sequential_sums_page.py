"""What the chapter on sums of handwritten digits says beside its statements: tables, numbers of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Statements
from companion.experiment.tables import Table, text, within
from companion.nau_nmu import digits_page
from companion.nau_nmu.digits import REFERENCE, longest, references, solved_by_length, thresholds
from companion.nau_nmu.digits_page import Numbers

EXACT = REFERENCE["sum"]


def median_numbers(middle: pd.DataFrame) -> Numbers:
    """Median errors of an exact sum and of the NAU, in percent."""

    def at(model: str, length: int) -> str:
        return digits_page.error_of(middle, model, length, "{:,.0f}".format)

    longest = middle.columns[-1]
    return {
        "exact-short": at(EXACT, 1),
        "exact-10": at(EXACT, 10),
        "exact-long": at(EXACT, longest),
        "nau-10": at("NAU", 10),
        "nau-long": at("NAU", longest),
    }


def misreadings(
    rows: Rows, lengths: Sequence[int], expected: Callable[[float, float, int], float]
) -> tuple[Table, Numbers]:
    """Variance and mean of the misreadings of exact sums, and how well they explain errors between.

    The same images are in the sequences of every length: their mean squared misreading is that on single
    digits, and the longest sequences tell the mean.

    Args:
        rows: the runs.
        lengths: numbers of digits, the first 1, the last the longest.
        expected: the error of a reader by the variance and mean of its misreadings and the number of digits.
    """
    longest, lines = lengths[-1], []
    last = [(longest + 1) / 2, (longest + 1) * (2 * longest + 1) / 6]
    for row in rows.of(model=EXACT).frame.to_dict("records"):
        v, square = np.linalg.solve([[1, 1], last], [row["test_1"], row[f"test_{longest}"]])
        b = np.sqrt(max(square, 0.0))
        between = {f"{length:,}": row[f"test_{length}"] / expected(v, b, length) for length in lengths[1:-1]}
        lines.append({"seed": row["seed"], "v": v, "b": b} | between)
    biases = pd.DataFrame(lines, columns=["seed", "v", "b", *(f"{length:,}" for length in lengths[1:-1])])
    off = abs(biases.iloc[:, 3:].to_numpy(float) - 1)
    numbers = {
        "biases": ", ".join(f"{one:.2f}" for one in biases["b"]) or NOT_RUN,
        "bias-off": within(off.max()) if off.size else NOT_RUN,
    }
    caption = "Misreadings of exact sums: variance v, mean b; recorded by expected errors at other lengths"
    return Table(biases, caption, digits=2), numbers


def weights(rows: Rows) -> tuple[Table, Numbers]:
    """The weights and errors of the selected NAUs, with the penalty R_z and without."""
    numbers: Numbers = {}
    part = rows.of(model=["NAU", "NAU, no R_z"])
    found = digits_page.weights(part)
    found["a right nine"] = 9 / found["w_z"]
    for column, name in {"test_1": "error, one digit", "test_10": "error, ten"}.items():
        found[name] = part.frame[column].to_numpy() if column in part.frame else np.nan
    for name, unit in {"held": "NAU", "free": "NAU, no R_z"}.items():
        of_unit = found[found["model"] == unit]
        for letter, column, decimals in (("w", "w_z", 2), ("y", "w_y", 2), ("nine", "a right nine", 0)):
            said = ", ".join(f"{one:,.{decimals}f}" for one in of_unit[column])
            numbers[f"{name}-{letter}"] = said or NOT_RUN
    return Table(found, "Weights of the selected NAUs, and what a nine has to be read as for them"), numbers


def solved(rows: Rows, mean: Mapping[int, float], lengths: Sequence[int]) -> tuple[Table, Numbers]:
    """How many runs of each model are solved by length, and whether always the mean would be.

    Args:
        rows: the runs.
        mean: number of digits -> the error of always the mean.
        lengths: numbers of digits that are shown.
    """
    counts, passing = solved_by_length(rows.frame, "sum", lengths), []
    if "solved" not in counts:
        levels = thresholds(rows.frame, "sum")
        passing = [length for length in lengths if mean[length] < levels[length]]
        formula = {str(one): "solved" if one in passing else "no" for one in lengths}
        counts = pd.concat([counts, pd.DataFrame([{"model": "always the mean"} | formula])])
    numbers = {"passing": " and ".join(f"{length:,}" for length in passing) or "no length"}
    return Table(
        counts, "Runs below the threshold of exact sums of as many epochs, by number of digits"
    ), numbers


def rising(every: pd.DataFrame, mean: Mapping[int, float]) -> Numbers:
    """The NAUs that are solved on longer sequences and not on single digits, how far from the threshold those
    with discrete weights are, and whether always the mean would be solved; of the longest runs.

    Args:
        every: all recorded runs.
        mean: number of digits -> the error of always the mean.
    """
    rows = longest(every, "sum")
    if len(references(rows, "sum")) < 2:
        names = ["rising", "rising-of", "rising-error", "naus", "level", "worst", "mean-passes", "mean-over"]
        return dict.fromkeys(names, NOT_RUN)
    levels = {length: level for length, level in thresholds(rows, "sum").items() if length in mean}
    naus = rows[rows["model"].str.startswith("NAU")]
    over = pd.DataFrame({length: naus[f"test_{length}"] / level for length, level in levels.items()})
    found = naus[(over[1] >= 1) & (over < 1).any(axis=1)]
    passing = [f"{length:,}" for length, level in levels.items() if mean[length] < level]
    last = max(levels)
    return {
        "rising": len(found),
        "rising-of": " and ".join(
            f"seed {seed} of {model}" for model, seed in found[["model", "seed"]].values
        ),
        "rising-error": text(found["test_1"].max(), 2),
        "naus": len(naus),
        "level": text(levels[1], 2),
        "worst": text(over[naus["sparsity_error"] == 0].max(axis=None), 2),
        "mean-passes": " and ".join(passing) or "no length",
        "mean-over": f"{mean[last] / levels[last]:.2g}",
    }


def rate(name: str, judged: Statements) -> Numbers:
    """The first of the statements on a figure: a success rate."""
    first = judged.judgements[0].statements
    return {name: str(first[0]) if first else NOT_RUN}
