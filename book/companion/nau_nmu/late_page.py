"""What the chapter on late runs says: tables, and the numbers of its text.

``rows`` are its runs; a line is an operation and a model of Table 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd

from companion import measures, published
from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.tables import Table, text, within
from companion.measures import Interval
from companion.nau_nmu import late
from companion.nau_nmu.late import LateRuns, by_seed, late_runs, thousands
from companion.nau_nmu.merged_order import LAYOUTS, first_read, read_in_merged_order, table_6
from companion.nau_nmu.settings import SIGNS
from companion.nau_nmu.subset_arithmetic import TABLE_2, published_cell

Line = tuple[str, str]

_ADD, _SUB = ("add", "NAU"), ("sub", "NAU")
_Numbers = dict[str, object]
_held = partial(measures.solved_at, variance="sample")


@cache
def _theirs() -> dict[Line, Mapping]:
    """What Table 2 prints of each line."""
    return {(by, model): published_cell(by, model) for by, models in TABLE_2.items() for model in models}


def _won(rows: Rows) -> dict[Line, np.ndarray]:
    """First solved iterations of the runs of each line."""
    table_2 = rows.of(experiment="nau-nmu/arithmetic").frame
    return {
        line: Rows(part).solved.frame["solved_at"].to_numpy(float)
        for line, part in table_2.groupby(["operation", "model"])
    }


def _known(rows: Rows) -> list[Line]:
    """Lines with several solved runs, in the order of Table 2."""
    won = _won(rows)
    return [line for line in _theirs() if len(won.get(line, ())) > 1]


def _alike(rows: Rows) -> list[Line]:
    """Lines whose published mean is within the interval of ours."""
    won = _won(rows)
    return [line for line in _known(rows) if _theirs()[line]["average"] in measures.solved_at(won[line])]


def _apart(rows: Rows) -> dict[Line, LateRuns | None]:
    """Lines whose published mean is a tenth larger than ours or more: the late runs that would make it."""
    won, alike = _won(rows), _alike(rows)
    return {
        line: late_runs(
            won[line], round(100 * theirs["success"].estimate), theirs["average"], theirs["fit"].estimate
        )
        for line, theirs in _theirs().items()
        if line in _known(rows) and line not in alike and theirs["average"] >= 1.1 * won[line].mean()
    }


def _name(line: Line) -> str:
    return f"{line[1]} on {SIGNS[line[0]]}"


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2 / interval.estimate


def fits(rows: Rows) -> tuple[Table, _Numbers]:
    """Lines whose mean is the published one: fits over means, and how wide intervals are."""
    won, lines, names = _won(rows), [], ("ours", "theirs", "searched", "held", "printed")
    numbers: _Numbers = {f"sub-{name}": NOT_RUN for name in names}
    for line in _alike(rows):
        fit, theirs = _held(won[line]), _theirs()[line]
        ratios = fit.estimate / won[line].mean(), theirs["fit"].estimate / theirs["average"]
        halves = [_half(one) for one in (measures.solved_at(won[line]), fit, theirs["fit"])]
        lines.append([_name(line), *map("{:.3f}".format, ratios), *map("{:.1%}".format, halves)])
        if line == ("sub", "NAC+"):
            shown = [*map("{:.2f}".format, ratios), *map("{:.0%}".format, halves)]
            numbers = {f"sub-{name}": number for name, number in zip(names, shown, strict=True)}
    columns = ["line", "fit / mean: ours", "theirs", "±: searched for", "held", "printed"]
    caption = (
        "Table 2: fit over mean, and half the width of the interval with the variance searched for or held, "
        "and as printed"
    )
    return Table(lines, caption, columns=columns), numbers


def late_lines(rows: Rows) -> tuple[Table, _Numbers]:
    """Lines whose published mean is larger than ours, and the late runs that it tells of."""
    won, apart, lines = _won(rows), _apart(rows), []
    for line, found in apart.items():
        times = thousands(won[line].max(), _theirs()[line]["average"])
        printed = thousands(found.at, found.printed, _theirs()[line]["fit"])
        lines.append([_name(line), *times, f"{found.count}", *printed])
    counts, ats = [one.count for one in apart.values()], [one.at / 1e6 for one in apart.values()]
    ends = [
        abs(getattr(one.printed, end) / getattr(_theirs()[line]["fit"], end) - 1)
        for line, one in apart.items()
        for end in ("low", "high")
    ]
    nau, sums = apart.get(_ADD), won.get(_ADD, np.array([]))
    numbers = {
        "few": min(counts, default=NOT_RUN),
        "most": max(counts, default=NOT_RUN),
        "first-late": f"{min(ats):.1f}" if ats else NOT_RUN,
        "last-late": f"{max(ats):.1f}" if ats else NOT_RUN,
        "ends": within(max(ends)) if ends else NOT_RUN,
        "nau-late": f"{nau.count} of 100" if nau else NOT_RUN,
        "nau-median": f"{np.median(sums):,.0f}" if len(sums) else NOT_RUN,
        "nau-mean": text(sums.mean()) if len(sums) else NOT_RUN,
    }
    for name, line in {"nau-count": _ADD, "sub-count": _SUB}.items():
        numbers[name] = apart[line].count if line in apart else "an unknown number"
    columns = ["line", "our last", "their mean", "late", "at", "fit", "printed"]
    caption = "late runs that the authors' mean and fit tell of (thousands of iterations)"
    return Table(lines, f"Table 2: {caption}", columns=columns), numbers


def followed(rows: Rows, p: SimpleNamespace) -> tuple[Table, _Numbers]:
    """Ten times as many seeds of the NAU: when those that are not solved soon are."""
    screened = rows.of(experiment="nau-nmu/late")
    rest, lines, numbers = late.followed(screened, p), [], {}
    until = f"{screened.frame['iterations'].max():,}"
    for operation in ("add", "sub"):
        part = screened.of(operation=operation)
        soon, later = part.solved.frame["solved_at"], rest.of(operation=operation).frame["solved_at"]
        mean = pd.concat([soon, later]).mean()
        lines.append([_name((operation, "NAU")), len(part), len(soon), later.min(), later.max(), mean])
        numbers[f"late-{operation}"] = f"{len(part.failed):,} of {len(part):,}"
    soonest, differences = rest.frame["solved_at"].min(), _won(rows).get(_SUB)
    ready = differences is not None and np.isfinite(soonest)
    nau = _apart(rows).get(_ADD)
    numbers |= {
        "screened": f"{10 * p.seeds:,}",
        "screen": until,
        "one-of-fifty": text((49 * differences.mean() + soonest) / 50, 2) if ready else NOT_RUN,
        "soonest": rest.whole("solved_at", min),
        "rarest": rest.whole("solved_at", max),
        "expected": f"{nau.count * 10 * p.seeds // 100} of {10 * p.seeds:,}" if nau else NOT_RUN,
    }
    columns = ["model", "seeds", f"solved by {until}", "first later", "last later", "mean of all"]
    return Table(lines, "Iterations at which runs of the NAU are solved", columns=columns), numbers


def first_rows(rows: Rows) -> tuple[Table, _Numbers]:
    """Published runs whose logs do not begin with their first row after R's merge."""
    sums = published.load("nau_nmu_runs").query("model in ['NAU', 'NAC+'] and operation in ['add', 'sub']")
    begins, won = first_read(table_6()), _won(rows)
    sums = sums.assign(begins=[begins[run.model, run.operation][run.seed] for run in sums.itertuples()])
    moved = sums[sums["begins"] > 0]
    last = {line: max(won.get(line, ()), default=np.inf) for line in _theirs()}
    until = np.array([last[line] for line in zip(sums["operation"], sums["model"], strict=True)])
    late_ones = sums["solved_at"] > 5 * until
    rest = sums[~late_ones].groupby(["model", "operation"])["solved_at"].max()
    numbers = {
        "named": int((sums["solved_at"] == sums["begins"])[late_ones].sum()),
        "named-of": int(late_ones.sum()),
        **{f"next-{model}-{operation}": f"{at:,.0f}" for (model, operation), at in rest.items()},
        "exact": f"{(moved['begins'] == moved['solved_at']).sum()} of {len(moved)}",
        "all-nau": int((begins["NAU", "add"] > last[_ADD]).sum()),
        "all-sub": int((begins["NAU", "sub"] > last[_SUB]).sum()),
    }
    columns = {"model": "unit", "operation": "on", "seed": "seed", "begins": "first row read"}
    columns |= {"solved_at": "solved at, published"}
    shown = moved[list(columns)].replace({"operation": SIGNS}).rename(columns=columns)
    return Table(shown, "Published runs whose logs do not begin with their first row", digits=7), numbers


def read_out_of_order(rows: Rows) -> tuple[Table, _Numbers]:
    """Our runs of Table 2, read in order and as the authors' analysis reads theirs."""
    layout, lines, count, means = table_6(), [], {}, {}
    table_2 = rows.of(experiment="nau-nmu/arithmetic").frame
    in_order = {
        (model, operation): by_seed(Rows(part), layout.runs)
        for (operation, model), part in table_2.groupby(["operation", "model"])
    }
    as_read = read_in_merged_order(in_order, layout)
    last = np.nan
    for line in _known(rows):
        times, read = in_order[line[::-1]], as_read[line[::-1]]
        later, theirs = read[read > times], _theirs()[line]["average"]
        count[line] = len(later)
        means[line] = thousands(np.nanmean(times), np.nanmean(read), theirs)
        if line == _ADD:
            last = max(later, default=np.nan)
        latest = thousands(later.max())[0] if len(later) else "–"
        lines.append([_name(line), f"{len(later)}", latest, *means[line]])
    read_means = [means[line][1] if line in means else NOT_RUN for line in (_ADD, _SUB)]
    numbers = {
        "read-means": " and ".join(read_means),
        "their-means": " and ".join(thousands(*(_theirs()[line]["average"] for line in (_ADD, _SUB)))),
        "read-late": count.get(_ADD, 0),
        "read-last": f"{last / 1e6:.1f} million",
        "read-nac": count.get(("add", "NAC+"), 0),
        "read-sub": count.get(_SUB, 0),
        "read-linear": count.get(("add", "Linear"), 0) or "none",
        "short": int((layout.rows() < layout.logs).sum()),
    }
    columns = ["line", "late", "last", "mean in order", "out of order", "authors' mean"]
    caption = "our runs, read out of order and in order (thousands of iterations)"
    return Table(lines, f"Table 2: {caption}", columns=columns), numbers


def elsewhere(rows: Rows, p: SimpleNamespace) -> Table:
    """Lines of Table 5 and Figure 3: our runs read in order and out of order."""
    lines = []
    for (item, model, key), (part, solved, theirs) in late.elsewhere(rows).items():
        layout = LAYOUTS[item]
        times = by_seed(part, layout.runs)
        soon = times[np.isfinite(times)]
        if len(soon) < 2:
            continue
        read = read_in_merged_order({(model, key): times}, layout)[model, key]
        fewest = late.fewest_late_runs(soon, solved, theirs.estimate, p.iterations)
        counts = f"{(read > times).sum()}", f"{fewest.count}" if fewest else "–"
        found = thousands(_held(times), _held(read), theirs)
        lines.append([f"{model} on {SIGNS.get(key, key)}", *counts, *found])
    columns = ["line", "late", "fewest", "fit in order", "out of order", "published"]
    caption = "our late runs when read out of order, the fewest of the authors', and fits"
    return Table(lines, f"Table 5 and Figure 3: {caption} (thousands of iterations)", columns=columns)
