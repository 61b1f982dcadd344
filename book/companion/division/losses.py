"""Division with other losses: Figures 21 to 23 and Table 8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask
from nalm.training import Run
from nalm.training.losses import mape, mse, pcc

from companion import published, thresholds
from companion.division import settings
from companion.division.compared import (
    MIXED,
    MODIFIED,
    NEGATIVE,
    POSITIVE,
    UNITS,
    Compared,
    alike,
    experiment_item,
    higher,
    lowest,
    of,
    part,
    solved_at,
    success,
)
from companion.experiment import Experiment, runs_of
from companion.experiment.errata import Erratum
from companion.experiment.parameters import some_of
from companion.experiment.statements import Claim, Comparison, Item, rate, solved
from companion.experiment.tables import text


def with_losses(unit: str) -> dict[str, str]:
    """Loss -> the name of the unit trained with it."""
    return {"MSE": unit, "PCC": f"{unit}, PCC", "MAPE": f"{unit}, MAPE"}


def _runs(p: SimpleNamespace) -> dict[str, list[Run]]:
    """Those with the mean squared error are the runs of division/redundancy."""
    arms = settings.arms(inputs=10, iterations=p.iterations)
    tasks = [SingleModuleTask.on(place, operation="div", inputs=10) for place in p.ranges]
    squared = {name: arms[name] for name in p.models if "mse" in p.losses}
    others = {
        with_losses(name)[loss.upper()]: arms[name].but(recipe=arms[name].recipe.but(loss=loss))
        for name in p.models
        for loss in p.losses
        if loss != "mse"
    }
    return {
        "division/redundancy": runs_of(squared, tasks, p.seeds, thresholds.FIXED),
        "division/losses": runs_of(others, tasks, p.seeds, thresholds.FIXED),
    }


def _figure_21(rows: pd.DataFrame) -> Compared:
    names = with_losses(MODIFIED)
    yield Comparison(f"MSE on {MIXED}", success(rows, MODIFIED, [MIXED]), rate(0.0, 25))
    for loss in ("PCC", "MAPE"):
        found = success(rows, names[loss], [MIXED])
        yield Claim(f"{loss} solves some of {MIXED}", found.estimate > 0, text(found))
        yield higher(rows, MODIFIED, names[loss], f"{loss} is worse than MSE on negative ranges", NEGATIVE)
    slowest = {
        loss: float(np.nanmax([solved_at(rows, name, [place]) for place in UNIFORM_RANGES]))
        for loss, name in names.items()
    }
    shown = ", ".join(f"{loss} {text(value)}" for loss, value in slowest.items())
    what = "PCC is fast on all ranges (its slowest mean is the least)"
    yield Claim(what, min(slowest, key=slowest.get) == "PCC", shown)
    every = solved(rows[["model", "range", "success", "sparsity_error"]])
    sparsity = {
        loss: float(part(every, name).groupby("range")["sparsity_error"].mean().max())
        for loss, name in names.items()
    }
    shown = ", ".join(f"{loss} {text(value, 2)}" for loss, value in sparsity.items())
    by_range = {
        loss: part(every, name).groupby("range")["sparsity_error"].mean() for loss, name in names.items()
    }
    apart = pd.concat([(by_range[loss] - by_range["MSE"]).abs() for loss in ("PCC", "MAPE")]).dropna()
    like = bool((apart < 0.01).mean() > 0.5)
    yield Claim("sparsity is mostly similar to that with MSE", like, f"largest plain mean: {shown}")


def _figure_22(rows: pd.DataFrame) -> Compared:
    for loss, name in with_losses("NRU").items():
        found = success(rows, name, POSITIVE)
        yield Claim(f"{loss} performs well on positive ranges", found.estimate > 0.75, text(found))
    for loss in ("PCC", "MAPE"):
        yield alike(rows, f"NRU, {loss}", "NRU", f"{loss} has little effect on success")
    times = {
        unit: {place: solved_at(rows, f"{unit}, PCC", [place]) for place in NEGATIVE}
        for unit in ("NRU", MODIFIED)
    }
    solved_ranges = [place for place in NEGATIVE if not np.isnan(times["NRU"][place])]
    slower = sum(times["NRU"][place] > times[MODIFIED][place] for place in solved_ranges)
    what = "with PCC, negative ranges take longer than with the Real NPU"
    yield Claim(what, slower == len(solved_ranges) > 0, f"on {slower} of {len(solved_ranges)} ranges")


def _figure_23(rows: pd.DataFrame) -> Compared:
    names = with_losses("NMRU")
    overall = {loss: success(rows, name).estimate for loss, name in names.items()}
    worst = lowest(overall)
    yield Claim("PCC is the worst of the three losses", worst == ["PCC"], ", ".join(worst))
    near = sum(success(rows, name, [MIXED]).estimate >= 0.9 for name in names.values())
    yield Claim(f"two of the losses are near 1 on {MIXED}", near == 2, f"{near} losses at 0.9 or more")
    for loss, name in names.items():
        hardest = lowest({place: success(rows, name, [place]).estimate for place in UNIFORM_RANGES})
        what = f"U[-20,-10) is the hardest range with {loss}"
        yield Claim(what, hardest == ["U[-20,-10)"], ", ".join(hardest))


def _table_8() -> Compared:
    generator = torch.Generator().manual_seed(0)
    target = torch.rand(128, 1, generator=generator, dtype=torch.float64) + 1
    output = target + 0.1 * torch.randn(128, 1, generator=generator, dtype=torch.float64)

    def same(loss: Callable, *changed: torch.Tensor) -> bool:
        return bool(torch.isclose(loss(*changed), loss(output, target), rtol=1e-5))

    shows = {
        "Batch mean": lambda loss: same(loss, torch.cat([output] * 2), torch.cat([target] * 2)),
        "Standardisation": lambda loss: same(loss, 3 * output, 3 * target),
        "Difference of prediction from target": lambda loss: not same(loss, output + 1, target),
        "Projection": lambda loss: same(loss, 3 * output, target),
        "Mean centering": lambda loss: same(loss, output + 1, target),
    }
    table = published.load("division_values").query("item == 'Table 8'")
    rows = [(name, loss, has) for name, has in shows.items() for loss in (pcc, mse, mape)]
    count = sum(has(pcc) for has in shows.values())
    for name, loss, has in rows:
        printed = table[(table["model"] == loss.__name__.upper()) | (table["range"] == loss.__name__.upper())]
        printed = printed[(printed["metric"] == name) | (printed["model"] == name)]["value"].iloc[0]
        yield Claim(
            f"{loss.__name__.upper()}, {name}", has(loss) == (float(printed) == 1), f"{count} of {len(shows)}"
        )


_item = partial(
    experiment_item, iterations=100_000, runs=675, experiment=("division/redundancy", "division/losses")
)

EXPERIMENT = Experiment(
    chapter="book/division/losses.ipynb",
    rules={
        "models": some_of(UNITS),
        "losses": some_of(["mse", "pcc", "mape"]),
        "ranges": some_of(UNIFORM_RANGES),
    },
    runs=_runs,
    items=(
        Item(
            "division",
            "Table 8",
            "Properties of the three losses",
            "analytic",
            _table_8,
            headline="properties of PCC",
            published="four of five",
        ),
        _item(
            "Figure 21",
            "Losses for the Real NPU: MSE, PCC, MAPE",
            statements=_figure_21,
            headline=f"success rate with MSE on {MIXED}",
            published="0.0",
            rows=of(*with_losses(MODIFIED).values()),
        ),
        _item(
            "Figure 22",
            "Losses for the NRU: MSE, PCC, MAPE",
            statements=_figure_22,
            headline="the three losses on positive ranges",
            published="all perform well",
            rows=of(*with_losses("NRU").values(), f"{MODIFIED}, PCC"),
        ),
        _item(
            "Figure 23",
            "Losses for the NMRU: MSE, PCC, MAPE",
            statements=_figure_23,
            headline="worst of the three losses",
            published="PCC",
            rows=of(*with_losses("NMRU").values()),
        ),
    ),
    errata=(
        Erratum(
            "Equation 14",
            "misprint",
            "MAPE divides by $y_i$.",
            "It divides by $|y_i|$; as printed it rewards errors on negative targets.",
            "The loss of the runs; a negative denominator turns its sign.",
            "Nothing; the published runs have it.",
        ),
        Erratum(
            "Appendix K, Real NPU",
            "misprint",
            "Both the Real NPU and MAPE are able to get success on U[-2,2).",
            "PCC and MAPE are.",
            "All three losses are trained.",
            "Nothing.",
        ),
    ),
)
