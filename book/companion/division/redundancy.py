"""Division with eight redundant inputs: Figure 6."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import Run

from companion import thresholds
from companion.division import settings
from companion.division.compared import (
    MIXED,
    MODIFIED,
    NEGATIVE,
    POSITIVE,
    REAL_NPU,
    UNITS,
    Compared,
    experiment_item,
    faster,
    of,
    part,
    stated,
    success,
)
from companion.division.states import initial_of_ten, shown, with_states
from companion.experiment import Experiment, runs_of
from companion.experiment.parameters import some_of
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Claim, solved
from companion.experiment.tables import Table, text
from companion.measures import operands_first

MAIN = [REAL_NPU, *UNITS]

MIRRORS = {
    name: f"U[{-UNIFORM_RANGES[name][0].high:g},{-UNIFORM_RANGES[name][0].low:g})" for name in NEGATIVE
}
"""Negative range -> the positive range whose numbers it has with a minus sign."""


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    arms = settings.arms(inputs=10, iterations=p.iterations)
    tasks = [SingleModuleTask.on(place, operation="div", inputs=10) for place in p.ranges]
    asked = {name: arms[name] for name in p.models}
    return {"division/redundancy": runs_of(asked, tasks, p.seeds, thresholds.FIXED)}


def left_out(rows: pd.DataFrame) -> dict[str, float]:
    """How the solved runs of a Real NPU leave their redundant inputs out: the share of each way."""
    rows = solved(rows)
    weight = np.abs(operands_first(rows)[:, 0, 2:])
    closed = operands_first(rows, "0.gate")[:, 0, 2:].clip(0, 1) < 0.01
    zero, one = weight < 0.01, np.abs(weight - 1) < 0.01
    ways = {
        "gate 0, weight ±1": closed & one,
        "gate 0, weight 0": closed & zero,
        "gate 0, weight between": closed & ~one & ~zero,
        "gate open, weight 0": ~closed & zero,
        "neither": ~closed & ~zero,
    }
    return {way: float(where.mean()) if where.size else np.nan for way, where in ways.items()}


def ways_out(rows: Rows, said: Mapping[str, str]) -> tuple[Table, dict[str, object]]:
    """:func:`left_out` of Real NPUs.

    Args:
        rows: of these and others.
        said: what the text calls them -> their names.
    """
    models = [name for name in said.values() if len(rows.of(model=name))]
    kinds = {name: left_out(rows.of(model=name).frame) for name in models}
    lines = [
        {"model": name, "inputs": 8 * len(rows.of(model=name).solved)} | kind for name, kind in kinds.items()
    ]
    exploit = {name: f"{100 * kind['gate 0, weight ±1']:.0f}%" for name, kind in kinds.items()}
    numbers = {f"exploit_{short}": exploit.get(name, NOT_RUN) for short, name in said.items()}
    return Table(lines, "How the redundant inputs of solved runs are left out, shares"), numbers


def with_sums(rows: Rows) -> Rows:
    """The runs of the NMRU, with the sum of their weights, ``start`` and ``total``; with ``pairs``, how many
    redundant inputs are selected with their reciprocals; and ``shared``, the sums m + d of these inputs.
    """
    nmru = rows.of(model="NMRU").frame.reset_index(drop=True)
    W, start = operands_first(nmru, parts=2), initial_of_ten("NMRU", nmru["seed"], parts=2).sum((1, 2))
    pairs, sums = W[:, :, 2:].round().all(1).sum(1), np.sort(W.sum(1)[:, 2:])
    shared = ["  ".join(map("{:.2f}".format, one)) for one in sums]
    return Rows(nmru.assign(start=start, total=W.sum((1, 2)), pairs=pairs, shared=shared))


def pairs(nmru: Rows, places: Iterable[str]) -> tuple[Table, dict[str, object]]:
    """What solved NMRUs select, and whether the sum of their weights stays at the next even number."""
    kept = np.abs(nmru.frame["total"] - 2 * np.round(nmru.frame["start"] / 2)) < 0.5
    won = Rows(nmru.frame.assign(kept=kept)).solved
    lines = []
    for place in places:
        here = won.of(range=place)
        line = {"range": place, "solved": nmru.count(range=place)}
        line |= {f"{count}": len(here.of(pairs=count)) for count in range(9)}
        line["sum ended at the even number next to its start"] = here.share(here.frame["kept"])
        lines.append(line)
    positive, negative = won.of(range=POSITIVE), won.of(range=NEGATIVE)
    numbers = {
        "pairs_least": positive.middle("pairs", statistic=min),
        "pairs_most": positive.middle("pairs", statistic=max),
        "pairs_share": f"{100 * won.frame['pairs'].mean() / 8:.0f}%" if len(won) else NOT_RUN,
        "sum_kept": negative.share(negative.frame["kept"]),
    }
    caption = "NMRU: how many solved runs selected 0 to 8 redundant inputs with their reciprocals"
    return Table(lines, caption), numbers


def lost_nmrus(nmru: Rows) -> tuple[Table, dict[str, object]]:
    """The failed ones on negative ranges."""
    lost = nmru.of(range=NEGATIVE).failed
    narrow = lost.of(range="U[-1.2,-1.1)")
    numbers = {
        "lost_valid": narrow.middle("valid_mse", 1, max),
        "lost_test": narrow.middle("test_mse", 2, min),
        "lost_early": lost.share(lost.frame["selected_at"] < 51_000),
    }
    room = ((lost.frame["total"] - 2) / 2).round().astype(int)
    names = {"start": "sum at start", "total": "sum", "shared": "m + d of the redundant inputs"}
    few = lost.frame.assign(**{"room for": room}).rename(columns=names).groupby("range", sort=False).head(3)
    columns = ["range", "seed", "sum at start", "sum", "room for", "m + d of the redundant inputs"]
    caption = "Some of the NMRU's failed runs on negative ranges: sums of weights, errors"
    return Table(shown(few, [*columns, "valid_mse", "test_mse"]), caption), numbers


def nearly_solved(rows: Rows, places: Iterable[str]) -> tuple[Table, dict[str, object]]:
    """Failed NRUs that divide once their weights are rounded; what the signs of initial weights say."""
    nru = rows.of(model="NRU").frame.reset_index(drop=True)
    W, W0 = operands_first(nru)[:, 0], initial_of_ten("NRU", nru["seed"])[:, 0]
    divides = (W.round() == [1, -1] + [0] * 8).all(1)
    told = (W0[:, 0] > 0) & (W0[:, 1] < 0)
    others = np.abs(W[:, 2:])
    nru = nru.assign(divides=divides, told=told, W_b=np.abs(W[:, 1]), least=others.min(1), most=others.max(1))

    def span(runs: pd.DataFrame, low: str, high: str) -> str:
        return f"{runs[low].min():.4f} to {runs[high].max():.4f}" if len(runs) else "–"

    lines = []
    for place in places:
        failed = Rows(nru).of(range=place).failed
        corner = failed.of(divides=True).frame
        line = {"range": place, "solved": Rows(nru).count(range=place)}
        line["failed, but divide if rounded"] = f"{len(corner)} of {len(failed)}"
        line["their redundant |W|"] = span(corner, "least", "most")
        line["their test errors"] = span(corner, "test_mse", "test_mse")
        line["other failed runs: median |W_b|"] = failed.of(divides=False).frame["W_b"].median()
        lines.append(line)
    negative = Rows(nru).of(range=NEGATIVE)
    numbers = {
        "nru_rounded": negative.failed.share(negative.failed.frame["divides"]),
        "nru_follow": negative.share(negative.frame["divides"] == negative.frame["told"]),
    }
    caption = "NRU: failed runs that divide exactly once their weights are rounded, and the others"
    return Table(lines, caption), numbers


def ended_on(rows: Rows, model: str) -> pd.DataFrame:
    """The failed runs of a Real NPU, with the weights and gates of the operands as they ended, and the
    largest product of the two of a redundant input.
    """
    failed = rows.of(model=model).failed.frame.reset_index(drop=True)
    W, g = operands_first(failed)[:, 0], operands_first(failed, "0.gate")[:, 0]
    return with_states(failed, inputs=10).assign(**{"largest redundant g|W|": np.abs(W * g)[:, 2:].max(1)})


def _figure_6(rows: pd.DataFrame) -> Compared:
    yield lambda: reversed(stated(rows, "Fig 6"))
    found = success(rows, "NMRU", [MIXED])
    yield Claim(f"the NMRU solves some of {MIXED}", found.estimate > 0, text(found))
    lowest = min(success(rows, "NRU", [place]).estimate for place in POSITIVE)
    yield Claim("the NRU performs well on every positive range", lowest > 0.75, f"at least {text(lowest)}")

    shares = {
        model: {place: success(rows, model, [place]).estimate for place in UNIFORM_RANGES} for model in MAIN
    }
    room = [place for place in UNIFORM_RANGES if place != MIXED and shares[REAL_NPU][place] < 1]
    better = sum(shares[MODIFIED][place] > shares[REAL_NPU][place] for place in room)
    what = f"the repairs raise success wherever the baseline is below 1, but on {MIXED}"
    yield Claim(what, better == len(room), f"on {better} of {len(room)} ranges")
    what = "ranges of these on which the repairs also gain speed"
    yield partial(faster, rows, MODIFIED, REAL_NPU, room, what)
    beaten = sum(shares["NMRU"][place] < shares[MODIFIED][place] for place in NEGATIVE)
    what = "the modified Real NPU can beat the NMRU on negative ranges"
    yield Claim(what, beaten > 0, f"on {beaten} of {len(NEGATIVE)} ranges")

    sparsity = solved(rows).groupby(["model", "range"])["sparsity_error"].mean()
    old, new = sparsity[REAL_NPU], sparsity[MODIFIED]
    worse = [place for place in new.index.intersection(old.index) if new[place] >= old[place]]
    what = "the repairs make it sparser everywhere but on U[10,20)"
    yield Claim(what, worse == ["U[10,20)"], f"not on {', '.join(worse) or 'none'}")
    largest = sparsity.groupby("model").max()
    shown = f"{text(largest[REAL_NPU], 2)} at most, others {text(largest[UNITS].max(), 2)}"
    yield Claim("the baseline's sparsity errors are the highest", largest.idxmax() == REAL_NPU, shown)
    medians = solved(part(rows, "NMRU")).groupby("range")["solved_at"].median()
    near = int(medians.between(45_000, 55_000).sum())
    yield Claim("the NMRU is solved around 50,000 iterations on several ranges", near > 1, f"on {near}")


_item = partial(experiment_item, iterations=100_000, experiment=("division/redundancy",))

EXPERIMENT = Experiment(
    chapter="book/division/redundancy.ipynb",
    rules={"models": some_of(MAIN), "ranges": some_of(UNIFORM_RANGES)},
    runs=_runs,
    items=(
        _item(
            "Figure 6",
            "Division with eight redundant inputs",
            statements=_figure_6,
            headline="success rate of the NMRU over nine ranges",
            published="91.6%",
            runs=900,
            rows=of(*MAIN),
        ),
    ),
)
