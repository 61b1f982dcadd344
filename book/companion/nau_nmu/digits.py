"""Sequences of handwritten digits in *Neural Arithmetic Units*: how its Figures 4 and 13 to 15 are judged.

Whether a run is solved is not known when it is trained: the threshold of a length comes from reference
runs, the exact product or sum.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
from nalm.models import Layer
from nalm.records.row import first_below

from companion.experiment.rows import Rows
from companion.experiment.statements import Claim, Item, Later
from companion.experiment.tables import Table, text
from companion.measures import Interval, summarise
from companion.nau_nmu.digit_runs import EPOCHS, HORIZON, ITERATIONS, LENGTHS, MODELS, TRAINED_ON, digit_arms
from companion.nau_nmu.drawn import beside_drawn, drawn, measured, values
from companion.recorded import read

__all__ = [
    "FIGURES",
    "REFERENCE",
    "as_drawn",
    "by_length",
    "decided",
    "figure",
    "in_print",
    "item",
    "longest",
    "models",
    "references",
    "solved_by_length",
    "thresholds",
    "with_recorded",
]

REFERENCE = {"product": "exact product", "sum": "exact sum"}
"""Operation -> the model whose reader is all there is to learn."""

FREEDOM = 8
"""Degrees of freedom of Student's quantile, in the authors' code for any number of reference runs."""

DIGIT_VARIANCE = {"product": 20 / 3, "sum": 33 / 4}
"""Operation -> the variance of its digits, 1 to 9 or 0 to 9, if all are equally frequent.

It is the error of a reader that always says their mean.
"""

FIGURES: dict[str, tuple[str, dict[str, str]]] = {
    "Figure 4": (
        "product",
        {
            "NMU": "NMU",
            "NAC•,NMU": "NAC•,NMU",
            "NAC•,σ": "NAC•,σ",
            "NAC•": "NAC•",
            "NALU": "NALU",
            "LSTM": "LSTM",
        },
    ),
    "Figure 13": (
        "sum",
        {"NAU": "NAU", "NAC+,Rz": "NAC+,Rz", "NAC+": "NAC+", "NALU": "NALU", "LSTM": "LSTM"},
    ),
    "Figure 14": (
        "sum",
        {"NAU, no R_z": "NAU", "NAC+,Rz": "NAC+,Rz", "NAC+": "NAC+", "NALU": "NALU", "LSTM": "LSTM"},
    ),
    "Figure 15": (
        "product",
        {
            "NMU, no R_z": "NMU",
            "NAC•,NMU, no R_z": "NAC•,NMU",
            "NAC•,σ": "NAC•,σ",
            "NAC•": "NAC•",
            "NALU": "NALU",
            "LSTM": "LSTM",
        },
    ),
}
"""Item -> operation, and our names of its models -> those in the figure."""


def references(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """The reference runs that have learned to read: on single digits they beat always saying the mean.

    The authors leave out three of ten, which had failed, by hand.
    """
    exact = rows[rows["model"] == REFERENCE[operation]]
    return exact[exact["test_1"] < DIGIT_VARIANCE[operation]]


def thresholds(rows: pd.DataFrame, operation: str) -> dict[int, float]:
    r"""Length -> the test error below which a run is solved: :math:`\bar m + t_{0.99}\, s / \sqrt n`.

    The upper end of a one-sided 99% interval for the mean error of the reference runs. Source: the
    paper's section 4.2 and appendix D.1; Student's quantile has the 8 degrees of freedom of the authors'
    code.

    Args:
        rows: with the columns ``model``, ``test_1`` and the error of each length.
        operation: ``"product"`` or ``"sum"``.

    Raises:
        ValueError: fewer than two reference runs that have learned to read.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"model": "exact product", "test_1": [0.3, 0.5, 99.0]})
    >>> {length: round(error, 4) for length, error in thresholds(rows, "product").items()}
    {1: 0.6896}
    """
    from scipy.stats import t

    known = references(rows, operation)
    if len(known) < 2:
        raise ValueError(
            f"A threshold needs two runs of the {REFERENCE[operation]} that have learned to read; "
            f"there are {len(known)}."
        )
    errors = {length: known[f"test_{length}"] for length in LENGTHS[operation] if f"test_{length}" in known}
    reach = t.ppf(0.99, FREEDOM) / np.sqrt(len(known))
    return {length: float(error.mean() + reach * error.std()) for length, error in errors.items()}


def by_length(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """A row for each run and length, but those of the reference.

    Columns: ``length`` (text), ``model``, ``seed``, ``success``, ``solved_at`` and ``sparsity_error``.

    Raises:
        ValueError: as :func:`thresholds`.
    """
    runs = rows[rows["model"] != REFERENCE[operation]].to_dict("records")
    lows = [json.loads(row["lows"]) for row in runs]
    return pd.DataFrame(
        [
            {
                "length": str(length),
                "model": row["model"],
                "seed": row["seed"],
                "success": row[f"test_{length}"] < threshold,
                "solved_at": first_below(low[f"test_{length}"], threshold),
                "sparsity_error": row["sparsity_error"],
            }
            for length, threshold in thresholds(rows, operation).items()
            for row, low in zip(runs, lows, strict=True)
        ]
    )


def with_recorded(rows: Rows, experiment: str) -> Rows:
    """The rows of a chapter and all that the book has recorded, of any length."""
    every = pd.concat([rows.frame, read(experiment)], ignore_index=True)
    return Rows(every.drop_duplicates("key"), rows.results)


JUDGED_FROM = {operation: updates * HORIZON // EPOCHS for operation, updates in ITERATIONS.items()}
"""Operation -> the updates of :data:`~companion.nau_nmu.digit_runs.HORIZON` epochs."""


def longest(rows: pd.DataFrame, operation: str) -> pd.DataFrame:
    """The longest of the runs, if they are long enough to stand beside the figures; else none."""
    return rows[rows["iterations"] == max(rows["iterations"].max(), JUDGED_FROM[operation])]


def decided(item: str, iterations: int) -> set[tuple[str, str]]:
    """The lengths and models of a figure of which runs of so many updates can say how many are solved: those
    solved by then in the figure, going by the mean, and those of which none is.

    >>> len(decided("Figure 4", 388_388)), len(decided("Figure 4", 42_680))
    (120, 77)
    >>> ("20", "NMU") in decided("Figure 4", 42_680), ("20", "NAC•,NMU") in decided("Figure 4", 42_680)
    (True, False)
    """
    printed = values(item.replace("Figure ", "Fig"))
    whole = iterations >= ITERATIONS[FIGURES[item][0]]
    found = set()
    for length, model, measure in printed:
        at = printed.get((length, model, "solved_at_mean"))
        if measure == "success" and (whole or at is None or at.estimate <= iterations):
            found.add((length, model))
    return found


def as_drawn(item: str, rows: pd.DataFrame) -> pd.DataFrame | None:
    """The measures of a figure's models over lengths.

    Of the longest runs; ``None`` if these are too short, or of none of its models, or if there are no two
    reference runs.

    Args:
        item: name in :data:`FIGURES`.
        rows: some of its models, and the reference runs.
    """
    operation, names = FIGURES[item]
    rows = longest(rows, operation)
    if not rows["model"].isin(names).any() or len(references(rows, operation)) < 2:
        return None
    lengths = by_length(rows, operation)
    return summarise(lengths[lengths["model"].isin(names)], ["length", "model"])


def in_print(item: str) -> pd.DataFrame:
    """What a figure draws, under our names: its models without R_z say so.

    >>> [model for model in in_print("Figure 15")["model"].unique() if "NMU" in model]
    ['NAC•,NMU, no R_z', 'NMU, no R_z']
    """
    _, names = FIGURES[item]
    ours = {theirs: name for name, theirs in names.items()}
    return drawn(item.replace("Figure ", "Fig"), "length").replace({"model": ours})


def _renamed(item: str, lengths: pd.DataFrame) -> pd.DataFrame:
    """The rows of a figure's models, under the names that it has for them."""
    _, names = FIGURES[item]
    part = lengths[lengths["model"].isin(names)]
    return part.assign(model=part["model"].map(names))


def figure(item: str, rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """What a figure draws and what the text says of it.

    Of runs that are shorter than the paper's only what is :func:`decided`: success rates, neither means of
    *solved at*, to which later runs add, nor sparsity errors, which the penalty has not made yet. Nothing if
    the first of its numbers is not decided.

    Args:
        item: name in :data:`FIGURES`.
        rows: all its models and the reference runs, of one length.
    """
    operation, names = FIGURES[item]
    if len(references(rows, operation)) < 2:  # as of some samples of seeds
        return
    iterations = int(rows["iterations"].max())
    known, whole = decided(item, iterations), iterations >= ITERATIONS[operation]
    headline = str(LENGTHS[operation][-1]), next(iter(names.values()))
    if headline not in known:
        return
    parts = dict(iter(_renamed(item, by_length(rows, operation)).groupby(["length", "model"], sort=False)))
    parts = {at: parts[at] for at in sorted(parts, key=lambda at: at != headline) if at in known}
    yield lambda: (
        one
        for one in beside_drawn(item.replace("Figure ", "Fig"), "at length", parts)
        if whole or one.what.endswith("success rate")
    )
    measures = None if whole else ["success"]
    found = {(int(length), model): measured(part, measures) for (length, model), part in parts.items()}
    yield from _CLAIMS[item](found, whole)


_Found = dict[tuple[int, str], dict[str, Interval]]


def _rates(found: _Found, model: str, lengths: Iterable[int]) -> dict[int, Interval]:
    """Length -> success rate of a model, where it is decided."""
    return {length: found[length, model]["success"] for length in lengths if (length, model) in found}


def _unsolved(found: _Found, lengths: Iterable[int]) -> Iterator[Claim]:
    """That neither NALU nor LSTM is solved, once both are trained."""
    rates = [_rates(found, model, lengths) for model in ("NALU", "LSTM")]
    if all(rates):
        solved = [rate for of_model in rates for rate in of_model.values() if rate.low > 0]
        yield Claim("NALU and LSTM are not solved", not solved)


def _mostly(what: str, rates: dict[int, Interval]) -> Iterator[Claim]:
    """That most runs are solved at every length, with the rate at the last."""
    if rates:
        least = min(rate.estimate for rate in rates.values())
        yield Claim(what, least > 0.5, text(rates[max(rates)], 2))


def _figure_4(found: _Found, whole: bool) -> Iterator[Claim]:
    lengths, trained_on = LENGTHS["product"], TRAINED_ON["product"]
    rates = _rates(found, "NMU", lengths)
    short, long = (
        {length: rate for length, rate in rates.items() if (length <= trained_on) is within}
        for within in (True, False)
    )
    yield from _mostly(
        "the NMU does not hinder the network before it: most runs are solved on 1 and 2 digits", short
    )
    yield from _mostly("the NMU extrapolates: most runs are solved on 3 to 20 digits", long)
    yield from _unsolved(found, lengths)
    if whole:
        yield Claim(
            "what the NMU learns is sparse",
            all(found[length, "NMU"]["sparsity_error"].estimate < 1e-3 for length in lengths),
        )


def _figure_15(found: _Found, whole: bool) -> Iterator[Claim]:
    for model in ("NMU", "NAC•,NMU") if whole else ():
        errors = [found[length, model]["sparsity_error"].estimate for length in LENGTHS["product"]]
        yield Claim(
            f"without R_z, the {model} is less sparse",
            float(np.nanmin(errors)) > 1e-3,
            text(float(np.nanmedian(errors)), 2),
        )


def _figure_13(found: _Found, whole: bool) -> Iterator[Claim]:
    lengths = LENGTHS["sum"]
    yield from _mostly("most NAUs are solved, at any length", _rates(found, "NAU", lengths))
    with_penalty, without = (_rates(found, model, lengths) for model in ("NAC+,Rz", "NAC+"))
    both = with_penalty.keys() & without
    if both:
        more = all(with_penalty[length].high > without[length].low for length in both)
        yield Claim("NAC+ gains from R_z, if anything", more)
    yield from _unsolved(found, lengths)


def _figure_14(found: _Found, whole: bool) -> Iterator[Claim]:
    rates = _rates(found, "NAU", LENGTHS["sum"])
    short, long = (rates[length].estimate for length in (LENGTHS["sum"][0], LENGTHS["sum"][-1]))
    yield Claim(
        "without R_z, the success rate of the NAU increases for longer sequences",
        long > short,
        f"{text(short, 2)} and {text(long, 2)}",
    )


_CLAIMS = {"Figure 4": _figure_4, "Figure 13": _figure_13, "Figure 14": _figure_14, "Figure 15": _figure_15}


def _of(item: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of its models and of the reference, if they were tested on all lengths."""
    operation, names = FIGURES[item]
    if any(f"test_{length}" not in rows for length in LENGTHS[operation]):
        return rows.iloc[:0]
    return rows[rows["model"].isin([*names, REFERENCE[operation]])]


def item(name: str, title: str, headline: str, published: str) -> Item:
    """One of the figures, to be judged."""
    operation, names = FIGURES[name]
    return Item(
        "nau-nmu",
        name,
        title,
        "experiment",
        partial(figure, name),
        headline=headline,
        published=published,
        seeds=10,
        iterations=ITERATIONS[operation],
        epochs=EPOCHS,
        from_iterations=JUDGED_FROM[operation],
        from_seeds=5,
        runs=10 * (len(names) + 1),
        experiment=("nau-nmu/sequential-mnist" if operation == "product" else "nau-nmu/sequential-sums",),
        rows=partial(_of, name),
        by=("model",),
    )


def models(operation: str, folded: str = "") -> Table:
    """The models of an operation as they are run here, and the figures in which they are.

    Args:
        operation: ``"product"`` or ``"sum"``.
        folded: see :class:`companion.experiment.tables.Table`.
    """
    lines, arms = [], digit_arms(operation, iterations=1, log_interval=1)
    for name in MODELS[operation]:
        cell, penalties = arms[name].model.cell, [one.kind for one in arms[name].recipe.penalties]
        unit = ", ".join([cell.unit, *cell.options.values()]) if isinstance(cell, Layer) else cell or "none"
        places = [one.split()[1] for one, (of, names) in FIGURES.items() if of == operation and name in names]
        line = {"model": name, "unit": unit, "first state": arms[name].model.initial_state}
        line |= {"R_sparse": "Discretisation" in penalties, "R_z": "ActivationPenalty" in penalties}
        lines.append(line | {"Figure": " and ".join(places) or "reference"})
    return Table(pd.DataFrame(lines), "Models", folded=folded)


def solved_by_length(rows: pd.DataFrame, operation: str, lengths: Sequence[int]) -> pd.DataFrame:
    """How many runs of each model are solved, ``"2 of 3"``, a column for each length.

    It says "not known" where there are no two reference runs.
    """
    names = [name for name in dict.fromkeys(rows["model"]) if name != REFERENCE[operation]]
    if len(references(rows, operation)) < 2 or not names:
        return pd.DataFrame({"model": names, "solved": "not known without reference runs"})
    solved = by_length(rows, operation).groupby(["model", "length"], sort=False)["success"]
    counts = solved.agg(lambda won: f"{won.sum()} of {len(won)}").unstack()
    return counts.loc[names, [str(length) for length in lengths]].reset_index()
