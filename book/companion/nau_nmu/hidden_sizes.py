"""What *Neural Arithmetic Units* says of hidden sizes, beside recorded rows: its Figure 7, the ablation, and the upper half of Figure 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import beside_drawn, measured
from companion.statements import Claim, Comparison, Judge
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ABLATED", "JUDGES", "figure_3_sizes", "figure_7", "with_sizes"]

ABLATED = ("NMU", *nau_nmu.ABLATIONS)
"""The models of Figure 7."""

_FREE, _UNCLAMPED, _NEITHER = nau_nmu.ABLATIONS

_Lines = dict[tuple[str, str], "pd.DataFrame"]


def with_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the column ``hidden`` as text; those without it have two hidden units."""
    sizes = rows["hidden"] if "hidden" in rows else None
    return rows.assign(hidden="2" if sizes is None else sizes.fillna(2).astype(float).astype(int).astype(str))


def figure_7(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """What the figure draws and what appendix C.3 says of it, as far as rows hold what is compared.

    Args:
        rows: with the columns ``hidden``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
    """
    lines = _lines(rows, ABLATED)
    headline = ("10", _FREE)
    yield from beside_drawn(
        "Fig7", "at hidden size", dict(sorted(lines.items(), key=lambda line: line[0] != headline))
    )
    found = {line: measured(part) for line, part in lines.items()}
    sizes = _complete(lines, ABLATED)
    if "2" in sizes:
        rates = [found["2", model]["success"] for model in ABLATED]
        claim = "no constraint is needed at hidden size 2"
        yield Claim(
            claim,
            all(one.overlaps(rates[0]) for one in rates),
            text(min(rates, key=lambda one: one.estimate), 2),
        )
    larger = [size for size in sizes if size != "2"]
    pairs = {
        model: [(found[size, model], found[size, "NMU"]) for size in larger] for model in nau_nmu.ABLATIONS
    }
    if larger:
        judged = f"at {', '.join(larger)}"
        failing = all(one["success"].high < whole["success"].low for one, whole in pairs[_FREE])
        yield Claim("without R_sparse, the NMU fails at larger hidden sizes", failing, judged)
        equal = all(one["success"].overlaps(whole["success"]) for one, whole in pairs[_UNCLAMPED])
        yield Claim("without the clamp, as many runs are solved", equal, judged)
        for measure, claim in {"solved_at_mean": "solved later", "sparsity_error": "less sparse"}.items():
            more = all(one[measure].estimate > whole[measure].estimate for one, whole in pairs[_NEITHER])
            yield Claim(f"without both, runs are {claim} at larger hidden sizes", more, judged)


def figure_3_sizes(rows: pd.DataFrame) -> Iterator[Comparison | Claim]:
    """What the upper half of the figure draws and what section 4.1 says of it, as far as rows hold what is compared.

    Args:
        rows: as of :func:`figure_7`.
    """
    lines = _lines(rows, nau_nmu.MULTIPLIERS)
    yield from beside_drawn("Fig3-top", "at hidden size", lines)
    if "10" in _complete(lines, nau_nmu.MULTIPLIERS):
        rates = {model: measured(lines["10", model])["success"] for model in nau_nmu.MULTIPLIERS}
        best = max((one for model, one in rates.items() if model != "NMU"), key=lambda one: one.high)
        shown = f"{text(rates['NMU'], 2)} and {text(best, 2)}"
        yield Claim(
            "at hidden size 10, the NMU solves more runs than all others", rates["NMU"].low > best.high, shown
        )


def _lines(rows: pd.DataFrame, models: tuple[str, ...]) -> _Lines:
    """Hidden size and model -> rows, in the order of models and sizes."""
    parts = dict(iter(rows.groupby(["hidden", "model"])))
    return {
        (str(size), model): parts[str(size), model]
        for model in models
        for size in nau_nmu.HIDDEN
        if (str(size), model) in parts
    }


def _complete(lines: _Lines, models: tuple[str, ...]) -> list[str]:
    """The hidden sizes of which all models are there."""
    return [size for size in map(str, nau_nmu.HIDDEN) if all((size, model) in lines for model in models)]


def _of_figure_7(rows: pd.DataFrame) -> pd.DataFrame:
    """NMUs with two hidden units are those of Table 2, which has more seeds."""
    rows = with_sizes(rows)
    return rows[(rows["operation"] == "mul") & rows["model"].isin(ABLATED) & (rows["seed"] < 50)]


JUDGES = {("nau-nmu", "Figure 7"): Judge(_of_figure_7, ("hidden", "model"), figure_7)}
