"""More hidden units than needed: Figure 7 of *Neural Arithmetic Units*, and the upper half of Figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.models import Stack
from nalm.tasks import SubsetArithmeticTask
from nalm.training import Run

from companion.experiment import Arm, Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import one_of, some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, Item, Later, Read
from companion.experiment.tables import Table, text, within
from companion.nau_nmu import settings as nau_nmu
from companion.nau_nmu.drawn import beside_drawn, likeliest, measured, values

HIDDEN = tuple(range(2, 11))
"""The hidden sizes of Figures 3 and 7."""

ABLATIONS: dict[str, tuple[bool, dict[str, str]]] = {
    "NMU, no R_sparse": (False, {}),
    "NMU, no W-clamp": (True, {"clamp": "forward"}),
    "NMU, no R_sparse, no W-clamp": (False, {"clamp": "forward"}),
}
"""The further models of Figure 7: whether there is a sparsity penalty, and the options of both units.

"No W-clamp" does not free the weights: the authors' forward pass clamps them still, with a gradient of
zero outside.
"""

ABLATED = ("NMU", *ABLATIONS)
"""The models of Figure 7."""

_FREE, _UNCLAMPED, _NEITHER = ABLATIONS
_FIRST = "NMU at hidden size 10, success rate"
"""The number of Figure 3 that comes first: sentences are about it."""
_FULL = 5_000_000

_Lines = dict[tuple[str, str], pd.DataFrame]


def hidden_arms(hidden: int, iterations: int = 5_000_000, stream: str = "own") -> dict[str, Arm]:
    """The models of Table 6 with another hidden size, and those of :data:`ABLATIONS`.

    >>> [layer.options for layer in hidden_arms(3)["NMU, no W-clamp"].model.layers]
    [{'clamp': 'forward'}, {'clamp': 'forward'}]
    """
    found = nau_nmu.arms(hidden, iterations, stream)
    whole = found["NMU"]
    for name, (penalised, options) in ABLATIONS.items():
        layers = tuple(layer.but(options=options) for layer in whole.model.layers)
        recipe = whole.recipe if penalised else whole.recipe.but(penalties=())
        found[name] = Arm(model=Stack(layers=layers), recipe=recipe)
    return found


def hidden_runs(
    models: Sequence[str], sizes: Sequence[int], seeds: int, iterations: int = 5_000_000, stream: str = "own"
) -> list[Run]:
    """One run for each hidden size, model and seed, on products; labelled ``operation`` and ``hidden``,
    too.

    Args:
        models: names in :func:`hidden_arms`.
        sizes: outputs of the first layer.
        seeds, iterations, stream: as of :func:`companion.nau_nmu.settings.subset_runs`.

    >>> [(run.model.layers[0].out_features, run.labels) for run in hidden_runs(["NMU"], [3], seeds=1)]
    [(3, {'model': 'NMU', 'operation': 'mul', 'hidden': '3'})]
    """
    found, task = [], SubsetArithmeticTask(operation="mul")
    for size in sizes:
        arms = hidden_arms(size, iterations, stream)
        runs = runs_of({name: arms[name] for name in models}, [task], seeds, nau_nmu.THRESHOLDS["mul"])
        found += [run.but(labels=run.labels | {"operation": "mul", "hidden": str(size)}) for run in runs]
    return found


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those of the figures, and as many further seeds of the NMU with two hidden units."""
    twice = nau_nmu.subset_runs(["NMU"], ["mul"], 2 * p.seeds, p.iterations, p.stream)
    return {
        "nau-nmu/hidden": hidden_runs(p.models, p.sizes, p.seeds, p.iterations, p.stream),
        "nau-nmu/arithmetic": twice[p.seeds :],
    }


def with_sizes(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the column ``hidden`` as text; those without it have two hidden units."""
    sizes = rows["hidden"] if "hidden" in rows else None
    return rows.assign(hidden="2" if sizes is None else sizes.fillna(2).astype(float).astype(int).astype(str))


def figure_7(rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """What the figure draws and what appendix C.3 says of it, as far as rows hold what is compared.

    Args:
        rows: with the columns ``hidden``, ``model``, ``success``, ``solved_at`` and ``sparsity_error``.
    """
    lines = _lines(rows, ABLATED)
    headline = ("10", _FREE)
    yield lambda: beside_drawn(
        "Fig7", "at hidden size", dict(sorted(lines.items(), key=lambda line: line[0] != headline))
    )
    rates = {line: measured(part, ["success"])["success"] for line, part in lines.items()}
    sizes = _complete(lines, ABLATED)
    if "2" in sizes:
        small = [rates["2", model] for model in ABLATED]
        claim = "no constraint is needed at hidden size 2"
        yield Claim(
            claim,
            all(one.overlaps(small[0]) for one in small),
            text(min(small, key=lambda one: one.estimate), 2),
        )
    larger = [size for size in sizes if size != "2"]
    pairs = {model: [((size, model), (size, "NMU")) for size in larger] for model in ABLATIONS}
    if larger:
        judged = f"at {', '.join(larger)}"
        failing = all(rates[one].high < rates[whole].low for one, whole in pairs[_FREE])
        yield Claim("without R_sparse, the NMU fails at larger hidden sizes", failing, judged)
        equal = all(rates[one].overlaps(rates[whole]) for one, whole in pairs[_UNCLAMPED])
        yield Claim("without the clamp, as many runs are solved", equal, judged)
        for measure, claim in {"solved_at_mean": "solved later", "sparsity_error": "less sparse"}.items():
            more = all(
                likeliest(lines[one], measure) > likeliest(lines[whole], measure)
                for one, whole in pairs[_NEITHER]
            )
            yield Claim(f"without both, runs are {claim} at larger hidden sizes", more, judged)


def figure_3_sizes(rows: pd.DataFrame) -> Iterator[Claim | Later]:
    """What the upper half draws and what section 4.1 says of it, as far as rows hold what is compared.

    Args:
        rows: as of :func:`figure_7`.
    """
    lines = _lines(rows, nau_nmu.MULTIPLIERS)
    yield lambda: sorted(
        beside_drawn("Fig3-top", "at hidden size", lines), key=lambda one: one.what != _FIRST
    )
    if "10" in _complete(lines, nau_nmu.MULTIPLIERS):
        rates = {model: measured(lines["10", model], ["success"])["success"] for model in nau_nmu.MULTIPLIERS}
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
        for size in HIDDEN
        if (str(size), model) in parts
    }


def _complete(lines: _Lines, models: tuple[str, ...]) -> list[str]:
    """The hidden sizes of which all models are there."""
    return [size for size in map(str, HIDDEN) if all((size, model) in lines for model in models)]


def _of_figure_7(rows: pd.DataFrame) -> pd.DataFrame:
    """NMUs with two hidden units are those of Table 2, which has more seeds."""
    rows = with_sizes(nau_nmu.usual(rows, but=["hidden"]))
    return rows[(rows["operation"] == "mul") & rows["model"].isin(ABLATED) & (rows["seed"] < 50)]


JUDGED_FROM = 25
"""Seeds of every configuration from which on Figure 7 is judged: of ten, half of which are solved, samples
drawn again by seed rarely keep a verdict.
"""


def _with_enough_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of configurations by which the figure can be judged."""
    rows = _of_figure_7(rows)
    return rows[rows.groupby(["hidden", "model"])["seed"].transform("size") >= JUDGED_FROM]


def replays(read: Read) -> Rows:
    """The runs of Figure 7 from the authors' initial weights, as far as they are recorded.

    Args:
        read: recorded rows by experiment.
    """
    return Rows(_of_figure_7(read(nau_nmu.REPLAY)))


def replayed_sizes(rows: Rows, again: Rows) -> tuple[Table, dict[str, str]]:
    """The NMU over hidden sizes, published and from either draw of the weights: runs solved, and when on
    average. And with how many sizes as many are solved as in print, ``equal-first`` and ``equal-replay``, the
    mean distance of the counts, ``off-first`` and ``off-replay``, the largest distance of the means,
    ``apart-first`` and ``apart-replay``, and which sizes these are, ``sizes``.

    Args:
        rows: from the first draw.
        again: from the authors'. Sizes with fewer of them than are drawn are left out, and so are the first
            ones of a size that has fewer.
    """
    theirs = values("Fig7")
    lines: list[dict[str, object]] = []
    off: dict[str, list[float]] = {"first": [], "replay": []}
    apart: dict[str, list[float]] = {"first": [], "replay": []}
    for size in map(str, HIDDEN):
        rate, time = (theirs[size, "NMU", what] for what in ("success", "solved_at_mean"))
        arms = {"first weights": rows, "replay": again}
        parts = {name: arm.of(hidden=size, model="NMU", iterations=_FULL) for name, arm in arms.items()}
        if len(parts["replay"]) < rate.n:
            continue
        line: dict[str, object] = {"hidden size": size, "solved, published": f"{rate.estimate * rate.n:.0f}"}
        line |= {f"solved, {name}": part.count() for name, part in parts.items()}
        line["solved at, published"] = f"{time.estimate:,.0f}"
        line |= {f"solved at, {name}": part.solved.whole("solved_at") for name, part in parts.items()}
        lines.append(line)
        for arm, part in zip(off, parts.values(), strict=True):
            if len(part) >= rate.n:
                off[arm].append(abs(part.success.sum() - rate.estimate * rate.n))
                apart[arm].append(abs(part.solved.frame["solved_at"].mean() / time.estimate - 1))
    numbers = {"sizes": ", ".join(str(line["hidden size"]) for line in lines) or NOT_RUN}
    for arm in off:
        equal = sum(one < 0.5 for one in off[arm])
        numbers[f"equal-{arm}"] = f"{equal} of {len(off[arm])}" if off[arm] else NOT_RUN
        numbers[f"off-{arm}"] = text(float(np.mean(off[arm])), 2) if off[arm] else NOT_RUN
        numbers[f"apart-{arm}"] = within(np.nanmax(apart[arm])) if apart[arm] else NOT_RUN
    return Table(lines, "The NMU of Figure 7, from either draw of the weights"), numbers


EXPERIMENT = Experiment(
    chapter="book/nau-nmu/hidden-sizes.ipynb",
    rules={"models": some_of(hidden_arms(2)), "sizes": some_of(HIDDEN), "stream": one_of(["common", "own"])},
    runs=_runs,
    also=("nau-nmu/arithmetic",),
    items=(
        Item(
            "nau-nmu",
            "Figure 7",
            "Ablation of the NMU: without regulariser, without clamping",
            "experiment",
            figure_7,
            headline="success rate without the regulariser at hidden size 10",
            published="0 of 50",
            seeds=50,
            from_seeds=JUDGED_FROM,
            iterations=5_000_000,
            runs=1800,
            experiment=("nau-nmu/arithmetic", "nau-nmu/hidden"),
            replays=nau_nmu.REPLAY,
            rows=_with_enough_seeds,
            by=("hidden", "model"),
        ),
    ),
    errata=(
        Erratum(
            "Appendix C.3, no W-clamp",
            "description",
            (
                "Removing the clamping of W does not cause much difference, since the penalty also "
                "constrains W outside of [0, 1]."
            ),
            (
                "The forward pass still clamps. What is removed is the clamp in place, so that a "
                "weight beyond its bounds gets no gradient of the error any more and stays off for "
                "good. Runs are solved in this way without the penalty as well."
            ),
            "All four networks are trained; both clamps are compared on a weight at zero.",
            (
                "Figure 7 has no run without a clamp. Its odd result, that removing both "
                "constraints is better than removing the penalty alone, follows from the clamp that"
                " is left."
            ),
        ),
    ),
)
