"""Verdicts on *Exploring the Learning Mechanisms of Neural Division Modules*.

The figures print no numbers. Compared are the rates that the text states and, one by one, the statements that it draws from a figure. Where it counts
the ranges on which one model beats another, ours is the count with the 95 % interval of what another 25 seeds would give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch
from nalm.models import Layer
from nalm.tasks import UNIFORM_RANGES, SingleModuleTask, Uniform
from nalm.training.losses import mape, mse, pcc

from companion import measures, published
from companion.division import settings as division
from companion.division.golden import golden_error
from companion.measures import Interval
from companion.rules import Claim, Comparison, Judge, exactly, rate, solved
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]

REAL_NPU, MODIFIED = "Real NPU (baseline)", "Real NPU (modified)"
UNITS = [MODIFIED, "NRU", "NMRU"]
NEGATIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.high <= 0]
POSITIVE = [name for name, (trained, _) in UNIFORM_RANGES.items() if trained.low >= 0]
MIXED = "U[-2,2)"

SMALL = ["U[0,1e-4)", "U[0,1e-3)", "U[0,1e-2)", "U[0,0.1)", "U[0,1)"]
QUESTIONS = {"1/a from a": ("reciprocal", 1), "1/a from a, b": ("reciprocal", 2), "a/b from a, b": ("div", 2)}

Compared = Iterable[Comparison | Claim]


def _of(*models: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows[rows["model"].isin(models)]


def _part(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> pd.DataFrame:
    rows = rows[rows["model"] == model]
    return rows if ranges is None else rows[rows["range"].isin(list(ranges))]


def _success(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> Interval:
    return measures.success_rate(_part(rows, model, ranges)["success"])


def _solved_at(rows: pd.DataFrame, model: str, ranges: Iterable[str] | None = None) -> float:
    return float(solved(_part(rows, model, ranges))["solved_at"].mean())


def _stated(rows: pd.DataFrame, item: str, names: dict[str, str] | None = None) -> list[Comparison]:
    """The success rates that the text states for one figure, the lowest first."""
    import pandas as pd

    table = published.load("division_values").query("item == @item and metric == 'success rate'")
    numbers = pd.to_numeric(table["value"], errors="coerce")
    table = table[numbers.notna()].assign(value=numbers).sort_values("value", kind="stable")
    found = []
    for one in table.to_dict("records"):
        model = (names or {}).get(one["model"], one["model"])
        part = _part(rows, model, [one["range"]])
        found.append(
            Comparison(
                f"{model} on {one['range']}", measures.success_rate(part["success"]), rate(one["value"], 25)
            )
        )
    return found


def _ranges_where(
    rows: pd.DataFrame, one: str, other: str, relation: Callable, stated: int, what: str
) -> Comparison:
    """On how many ranges ``relation(successes of one, successes of other)`` holds.

    The interval: what another such experiment would count, each success rate drawn from its posterior under Jeffreys' prior.
    """
    ranges = [name for name in UNIFORM_RANGES if name in set(rows["range"])]
    parts = [
        [_part(rows, model, [name])["success"].astype(bool) for name in ranges] for model in (one, other)
    ]
    counts = np.array([[part.sum() for part in of_model] for of_model in parts])
    sizes = np.array([[part.size for part in of_model] for of_model in parts])
    generator = np.random.default_rng(0)
    rates = generator.beta(counts + 0.5, sizes - counts + 0.5, size=(10_000, *counts.shape))
    again = generator.binomial(sizes, rates)
    low, high = np.quantile(relation(again[:, 0], again[:, 1]).sum(1), [0.025, 0.975])
    return Comparison(
        what, Interval(int(relation(*counts).sum()), int(low), int(high), len(ranges)), exactly(stated)
    )


def _higher(
    rows: pd.DataFrame, one: str, other: str, what: str, ranges: Iterable[str] | None = None
) -> Claim:
    first, second = _success(rows, one, ranges), _success(rows, other, ranges)
    return Claim(
        what,
        bool(first.estimate > second.estimate),
        f"{text(first.estimate)} against {text(second.estimate)}",
    )


def _alike(rows: pd.DataFrame, one: str, other: str, what: str) -> Claim:
    first, second = _success(rows, one), _success(rows, other)
    return Claim(what, first.overlaps(second), f"{text(first.estimate)} against {text(second.estimate)}")


def _figure_1(rows: pd.DataFrame) -> Compared:
    yield _ranges_where(
        rows, "no L1", "L1 1e-09 to 1e-07", np.less, 5, "ranges on which removing L1 is worse"
    )
    yield _ranges_where(
        rows, "no L1", "L1 1e-09 to 1e-07", np.greater, 2, "ranges on which removing L1 is better"
    )
    pairs = [name for name in rows["model"].unique() if name.startswith("L1")]
    rates = {name: _success(rows, name) for name in pairs}
    best = max(pairs, key=lambda name: rates[name].estimate)
    yield Claim("the best strength is 1e-9 to 1e-7", rates["L1 1e-09 to 1e-07"].overlaps(rates[best]), best)
    for name in ("L1 0.001 to 0.1", "L1 0.1 to 10"):
        yield _higher(rows, "L1 1e-09 to 1e-07", name, f"{name} is worse")


def _figure_2(rows: pd.DataFrame) -> Compared:
    base, clipped, gate, both = "L1 1e-09 to 1e-07", "clip both", "discretise gate", "discretise both"
    yield _ranges_where(rows, both, clipped, np.less, 1, "ranges on which discretising is worse than not")
    lost = [
        name
        for name in UNIFORM_RANGES
        if _success(rows, both, [name]).estimate < _success(rows, clipped, [name]).estimate
    ]
    yield Claim(
        "discretising loses on U[10,20) and nowhere else", lost == ["U[10,20)"], ", ".join(lost) or "nowhere"
    )
    last = rows[rows["range"] == "U[10,20)"]
    yield _ranges_where(last, clipped, both, np.subtract, 2, "seeds lost by discretising on U[10,20)")
    for name in ("clip weight", clipped):
        yield _ranges_where(rows, name, base, np.greater, 8, f"{name}: ranges on which it is better")
    yield _higher(rows, gate, clipped, "discretising the gate is better than not")
    yield _higher(rows, both, gate, "discretising the weight too is better than the gate alone")
    gains = {
        name: _success(rows, both, [name]).estimate - _success(rows, gate, [name]).estimate
        for name in UNIFORM_RANGES
    }
    most = max(gains.values())
    yield Claim(
        "discretising the weight too gains most on U[-0.2,-0.1)",
        gains["U[-0.2,-0.1)"] == most > 0,
        max(gains, key=gains.get),
    )
    start = "constrained start"
    better = [
        name
        for name in UNIFORM_RANGES
        if _success(rows, start, [name]).estimate > _success(rows, both, [name]).estimate
    ]
    yield Claim("the constrained start is better on several ranges", len(better) > 1, f"{len(better)} ranges")


def _figure_4(rows: pd.DataFrame) -> Compared:
    sets = [name for name in division.MIXED_SIGNS if "paper" not in name]
    for name in sets:
        found = _success(rows, MODIFIED, [name])
        yield Claim(
            f"the modified Real NPU fails sometimes on data set {name}", found.estimate < 1, text(found)
        )
    fast, slow = _solved_at(rows, MODIFIED, ["1", "2"]), _solved_at(rows, MODIFIED, ["4", "5"])
    yield Claim(
        "positive divisors are solved faster than negative ones",
        fast < slow,
        f"{text(fast)} against {text(slow)}",
    )


def _figure_5() -> Compared:
    """The errors with golden weights that the authors recorded; those of the Real NPU without epsilon are rounding noise and left out."""
    recorded = published.load("division_golden_errors").query(
        "item == 'Figure 5' and model != 'Real NPU, ε = 0'"
    )
    for one in recorded.to_dict("records"):
        operation, inputs = QUESTIONS[one["task"]]
        drawn = Uniform(low=0.0, high=float(one["range"][4:-1]))
        task = SingleModuleTask(operation=operation, interpolation=drawn, extrapolation=drawn, inputs=inputs)
        unit, options = {
            "Real NPU": ("RealNPU", {}),
            "NRU": ("NRU", {}),
            "NMRU": ("NMRU", {"rounding": "sequential"}),
        }[one["model"]]
        found = golden_error(unit, task, **options)
        same = abs(found - one["value"]) <= 2e-4 * one["value"]
        yield Claim(
            f"{one['model']}, {one['task']}, {one['range']}", same, f"{text(found, 4)} (NRU, {one['range']})"
        )


def _asked(rows: pd.DataFrame) -> pd.Series:
    """What runs on small numbers were asked; missing for all others."""
    return rows.reindex(columns=["question"])["question"]


def _question(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: _of(*UNITS)(rows[_asked(rows) == name])


def _later(rows: pd.DataFrame) -> Claim:
    """Whether most units that solve two ranges or more take longer on the smallest of these than on the largest."""
    slower = []
    for unit in UNITS:
        means = [mean for place in SMALL if not np.isnan(mean := _solved_at(rows, unit, [place]))]
        slower += [means[0] > means[-1]] if len(means) > 1 else []
    return Claim(
        "smaller ranges are solved later",
        2 * sum(slower) > len(slower),
        f"{sum(slower)} of {len(slower)} units",
    )


def _figure_11(rows: pd.DataFrame) -> Compared:
    found = _success(rows, "NRU", [SMALL[0]])
    yield Claim(f"the NRU begins to struggle at {SMALL[0]}", found.estimate < 1, text(found))
    for unit in UNITS:
        for place in SMALL[unit == "NRU" :]:
            found = _success(rows, unit, [place])
            yield Claim(f"{unit} with ease on {place}", found.estimate > 0.9, text(found))
    yield _later(rows)


def _figure_12(rows: pd.DataFrame) -> Compared:
    for place in SMALL[2:]:
        rates = {unit: _success(rows, unit, [place]) for unit in UNITS}
        yield Claim(f"the NMRU is reasonable on {place}", rates["NMRU"].estimate > 0.5, text(rates["NMRU"]))
        yield Claim(
            f"only the NMRU is on {place}", max(rates[MODIFIED].estimate, rates["NRU"].estimate) < 0.5
        )
    found = _success(rows, MODIFIED, [SMALL[0]])
    yield Claim(f"false positives of the Real NPU on {SMALL[0]}", found.estimate > 0, text(found))
    yield _later(rows)


def _figure_13(rows: pd.DataFrame) -> Compared:
    for unit in ("NMRU", "NRU"):
        first, second = (
            _success(rows[rows["question"] == name], unit, SMALL[3:])
            for name in ("a/b from a, b", "1/a from a, b")
        )
        shown = f"{text(first.estimate)} against {text(second.estimate)}"
        yield Claim(
            f"the {unit} improves on Figure 12 on the larger ranges",
            bool(first.estimate > second.estimate),
            shown,
        )
    yield _later(rows[rows["question"] == "a/b from a, b"])


def _figure_6(rows: pd.DataFrame) -> Compared:
    printed = published.load("division_values").query("item == 'abstract/Fig 6' and metric == 'success rate'")
    for one in reversed(printed.to_dict("records")):
        yield Comparison(
            f"{one['model']} over nine ranges", _success(rows, one["model"]), rate(float(one["value"]), 225)
        )
    yield from _stated(rows, "Fig 6")
    found = _success(rows, "NMRU", [MIXED])
    yield Claim(f"the NMRU solves some of {MIXED}", found.estimate > 0, text(found))
    found = _success(rows, "NRU", POSITIVE)
    yield Claim("the NRU performs well on positive ranges", found.estimate > 0.75, text(found))


def _figure_7(rows: pd.DataFrame) -> Compared:
    yield from sorted(_stated(rows, "Fig 7"), key=lambda one: one.what != f"{MODIFIED} on U[-100,100)")
    for unit in UNITS:
        found = _success(rows, unit, ["B[10,100)"])
        yield Claim(f"{unit} on B[10,100) above 0.75", found.estimate > 0.75, text(found))


def _figure_8(rows: pd.DataFrame) -> Compared:
    yield from sorted(_stated(rows, "Fig 8"), key=lambda one: one.what != "NMRU on TN(1,3)[-10,5)")


def _figure_10(rows: pd.DataFrame) -> Compared:
    yield from _stated(rows, "Fig 10", {"NRU lr 1": "NRU"})
    for lr in ("1e-1", "1e-2", "1e-3"):
        yield _higher(rows, "NRU", f"NRU, lr {lr}", f"learning rate {lr} is worse than 1")


def _figure_14(rows: pd.DataFrame) -> Compared:
    l2, l1, none = "L2 1e-07 to 1e-05", "L1 1e-09 to 1e-07", "no L1"
    for other, name, worse, equal, better in ((l1, "L1", 5, 4, 0), (none, "no penalty", 3, 3, 3)):
        yield _ranges_where(rows, l2, other, np.less, worse, f"ranges on which L2 is worse than {name}")
        yield _ranges_where(rows, l2, other, np.equal, equal, f"ranges on which L2 equals {name}")
        yield _ranges_where(rows, l2, other, np.greater, better, f"ranges on which L2 is better than {name}")


def _figure_15(rows: pd.DataFrame) -> Compared:
    yield _higher(
        rows,
        MODIFIED,
        "NPU (no constraints)",
        "complex weights lower the success on negative ranges",
        NEGATIVE,
    )
    fast, slow = _solved_at(rows, MODIFIED, NEGATIVE), _solved_at(rows, "NPU (no constraints)", NEGATIVE)
    yield Claim(
        "complex weights are slower on negative ranges",
        bool(fast < slow),
        f"{text(fast)} against {text(slow)}",
    )
    first, second = _success(rows, "NPU (clip & reg)"), _success(rows, MODIFIED)
    yield Claim(
        "clipped and penalised complex weights are not significantly better",
        first.low <= second.high,
        f"{text(first)}",
    )


def _figure_16(rows: pd.DataFrame) -> Compared:
    yield _alike(
        rows,
        f"{MODIFIED}, {{-1,0,1}}",
        MODIFIED,
        "the set that weights are pulled to has no effect on success",
    )


def _figure_17(rows: pd.DataFrame) -> Compared:
    clipped = "NMRU, clipped gradient"
    found = _success(rows, clipped, [MIXED])
    yield Comparison(f"{clipped} alone on {MIXED}", found, rate(1.0, 25))
    for name in NEGATIVE:
        yield Comparison(f"{clipped} alone on {name}", _success(rows, clipped, [name]), rate(0.0, 25))
    yield _higher(rows, "NMRU, sign", clipped, "the sign alone gains on negative ranges", NEGATIVE)
    yield _higher(rows, clipped, "NMRU, sign", f"the sign alone loses on {MIXED}", [MIXED])
    for other in ("NMRU, vanilla", clipped, "NMRU, sign", "NMRU, gate to 0"):
        yield _higher(
            rows, "NMRU", other, f"clipping and sign together are better than {other.removeprefix('NMRU, ')}"
        )


def _figure_18(rows: pd.DataFrame) -> Compared:
    none = [name for name in UNIFORM_RANGES if _success(rows, "NMRU, lr 1e-1", [name]).estimate == 0]
    yield Claim(
        "learning rate 0.1 has no success on several ranges", len(none) > 1, f"0 on {len(none)} ranges"
    )
    yield _higher(rows, "NMRU", "NMRU, lr 1e-3", f"learning rate 1e-3 is worse than 1e-2 on {MIXED}", [MIXED])


def _figure_19(rows: pd.DataFrame) -> Compared:
    yield _ranges_where(rows, "NMRU, SGD", "NMRU", np.equal, 2, "ranges with equal success")
    yield _ranges_where(rows, "NMRU, SGD", "NMRU", np.less, 7, "ranges on which Adam is better")


def _figure_20(rows: pd.DataFrame) -> Compared:
    yield _alike(rows, "NRU, separate sign", "NRU", "a separate sign makes no difference in success")


def _losses(unit: str) -> dict[str, str]:
    return {"MSE": unit, "PCC": f"{unit}, PCC", "MAPE": f"{unit}, MAPE"}


def _figure_21(rows: pd.DataFrame) -> Compared:
    names = _losses(MODIFIED)
    yield Comparison(f"MSE on {MIXED}", _success(rows, MODIFIED, [MIXED]), rate(0.0, 25))
    for loss in ("PCC", "MAPE"):
        found = _success(rows, names[loss], [MIXED])
        yield Claim(f"{loss} solves some of {MIXED}", found.estimate > 0, text(found))
        yield _higher(rows, MODIFIED, names[loss], f"{loss} is worse than MSE on negative ranges", NEGATIVE)
    fastest = sum(
        min(names, key=lambda loss: np.nan_to_num(_solved_at(rows, names[loss], [place]), nan=np.inf))
        == "PCC"
        for place in UNIFORM_RANGES
    )
    yield Claim(
        "PCC is the fastest on all ranges",
        fastest == len(UNIFORM_RANGES),
        f"on {fastest} of {len(UNIFORM_RANGES)}",
    )


def _figure_22(rows: pd.DataFrame) -> Compared:
    for loss, name in _losses("NRU").items():
        found = _success(rows, name, POSITIVE)
        yield Claim(f"{loss} performs well on positive ranges", found.estimate > 0.75, text(found))
    for loss in ("PCC", "MAPE"):
        yield _alike(rows, f"NRU, {loss}", "NRU", f"{loss} has little effect on success")
    times = {
        unit: {place: _solved_at(rows, f"{unit}, PCC", [place]) for place in NEGATIVE}
        for unit in ("NRU", MODIFIED)
    }
    solved_ranges = [place for place in NEGATIVE if not np.isnan(times["NRU"][place])]
    slower = sum(times["NRU"][place] > times[MODIFIED][place] for place in solved_ranges)
    what = "with PCC, negative ranges take longer than with the Real NPU"
    yield Claim(what, slower == len(solved_ranges) > 0, f"on {slower} of {len(solved_ranges)} ranges")


def _figure_23(rows: pd.DataFrame) -> Compared:
    names = _losses("NMRU")
    overall = {loss: _success(rows, name).estimate for loss, name in names.items()}
    yield Claim(
        "PCC is the worst of the three losses",
        min(overall, key=overall.get) == "PCC",
        min(overall, key=overall.get),
    )
    near = sum(_success(rows, name, [MIXED]).estimate >= 0.9 for name in names.values())
    yield Claim(f"two of the losses are near 1 on {MIXED}", near == 2, f"{near} losses at 0.9 or more")
    for loss, name in names.items():
        hardest = min(UNIFORM_RANGES, key=lambda place: _success(rows, name, [place]).estimate)
        yield Claim(f"U[-20,-10) is the hardest range with {loss}", hardest == "U[-20,-10)", hardest)


def _table_1() -> Compared:
    printed = {
        "U[-20,-10)": "U[-40,-20)", "U[-2,-1)": "U[-6,-2)", "U[-1.2,-1.1)": "U[-6.1,-1.2)", "U[-0.2,-0.1)": "U[-2,-0.2)", MIXED: "U[-6,-2)|U[2,6)",
        "U[0.1,0.2)": "U[0.2,2)", "U[1,2)": "U[2,6)", "U[1.1,1.2)": "U[1.2,6)", "U[10,20)": "U[20,40)",
    }  # fmt: skip
    ours = {name: str(tested) for name, (_, tested) in UNIFORM_RANGES.items()}
    yield Claim("the ranges", ours == printed, f"{len(ours)} of {len(printed)} ranges")


def _table_2() -> Compared:
    printed = {
        "TN(-1,3)[-5,10)": "TN(-10,3)[-15,-5)", "TN(0,1)[-5,5)": "TN(10,1)[5,15)", "TN(1,3)[-10,5)": "TN(10,3)[5,15)",
        "B[10,100)": "B[100,1000)", "U[-100,100)": "U[-200,-100)|U[100,200)", "U[-50,50)": "U[-100,-50)|U[50,100)",
    }  # fmt: skip
    ours = {name: str(tested) for name, (_, tested) in division.DISTRIBUTIONS.items()}
    yield Claim("the distributions", ours == printed, f"{len(ours)} of {len(printed)} distributions")


def _table_4() -> Compared:
    for inputs, iterations in ((2, 50_000), (10, 100_000)):
        for name, arm in division.arms(inputs).items():
            recipe, strength = arm.recipe, 1.0 if name == MODIFIED else 10.0
            fits = (
                recipe.iterations == iterations
                and recipe.batch_size == 128
                and recipe.optimiser.kind == "Adam"
                and len(arm.model.layers) == 1
            )
            fits &= all(
                penalty.weight == strength for penalty in recipe.penalties if penalty.kind == "Discretisation"
            )
            yield Claim(f"{name} with {inputs} inputs", fits, f"{recipe.iterations:,} iterations")


def _table_5() -> Compared:
    for name in (REAL_NPU, MODIFIED):
        growing = division.arms(2)[name].recipe.penalties[0]
        fits = (growing.start, growing.end, growing.growth, growing.every) == (1e-9, 1e-7, 10.0, 10_000)
        yield Claim(
            name,
            fits,
            f"{growing.start:g} to {growing.end:g}, times {growing.growth:g} every {growing.every:,}",
        )


def _table_6() -> Compared:
    low, high = "U[-6,-2)", "U[2,6)"
    printed = {
        "1": ("U[-2,-0.1) then U[0.1,2)", f"{low} then {high}"),
        "2": ("U[-2,-1) then U[1,2)", f"{low} then {high}"),
        "3 (paper's test set)": (MIXED, f"{low} then {high}"),
        "4": ("U[0.1,2) then U[-2,-0.1)", f"{high} then {low}"),
        "5": ("U[1,2) then U[-2,-1)", f"{high} then {low}"),  # printed: U[1,-2)
    }
    for name, ranges in printed.items():
        yield Claim(f"data set {name[0]}", tuple(map(str, division.MIXED_SIGNS[name])) == ranges, ranges[0])


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


def _figure_9() -> Compared:
    """One example: the second layer multiplies z = (2.2 w₁, 6 w₁), the target is 2.2 · 6; both of its weights are w₂."""

    def error(unit: str, w1: float, w2: float) -> float:
        options = {"eps": 1e-5} if unit == "RealNPU" else {}
        module = Layer(unit=unit, options=options).build(2).eval()
        module.weight.data = torch.tensor([[w2, w2, 0.0, 0.0] if unit == "NMRU" else [w2, w2]])
        if unit == "RealNPU":
            module.gate.data.fill_(1.0)
        return abs(13.2 - module(torch.tensor([2.2 * w1, 6.0 * w1])).item())

    for unit in ("RealNPU", "NRU", "NMRU"):
        for w1 in (1.0, -1.0):
            at = error(unit, w1, 1.0)
            yield Claim(f"{unit}: solution at ({w1:g}, 1)", at < 1e-3, "(1, 1) and (-1, 1)")
    for unit in ("RealNPU", "NRU"):
        yield Claim(f"{unit}: explodes near (0, -1)", error(unit, 1e-3, -1.0) > 1e4)
    yield Claim("NMRU: bounded near (0, 1)", max(error("NMRU", 1e-3, w2 / 10) for w2 in range(11)) < 14)


def _table_3(rows: pd.DataFrame) -> Compared:
    truncated = [name for name in division.DISTRIBUTIONS if name.startswith("TN")]
    kinds = {
        "Mixed-signs; Uniform": [MIXED],
        "Mixed-signs; Truncated Normal": truncated,
        "Negative; Uniform": NEGATIVE,
        "Negative; Truncated Normal": truncated[:1],  # the one whose test numbers are all negative
        "Large magnitude; Uniform": ["U[-100,100)", "U[-50,50)"],
        "Large magnitude; Benford": ["B[10,100)"],
        "Close to 0; Uniform": SMALL,
        "Close to 0; Truncated Normal": truncated[1:2],
    }
    printed = published.load("division_values").query("item == 'Table 3'")
    ticks = sum(
        _success(rows[rows["iterations"] == 100_000], "NMRU", ranges).estimate > 0.75
        for ranges in kinds.values()
    )
    ticks += sum(
        _success(rows[rows["iterations"] == 50_000], "NMRU", ranges).estimate > 0.75
        for ranges in kinds.values()
    )
    for one in sorted(printed.to_dict("records"), key=lambda one: one["model"] != "NMRU"):
        redundancy, kind = one["setting"].removeprefix("redundancy=").split("; ", 1)
        found = _success(
            rows[rows["iterations"] == (100_000 if redundancy == "yes" else 50_000)],
            one["model"],
            kinds[kind],
        )
        fits = (found.estimate > 0.75) == (float(one["value"]) == 1)
        yield Claim(
            f"{one['model']}: {kind.replace('; ', ', ')}, redundancy {redundancy}", fits, f"{ticks} of 15"
        )


def _table_7(rows: pd.DataFrame) -> Compared:
    seconds = rows.groupby(["model", "iterations"])["seconds"].mean()
    for unit in UNITS:
        few, many = seconds[unit, 50_000], seconds[unit, 100_000]
        yield Claim(f"{unit}: ten inputs take longer than two", bool(many > few), f"{text(few, 2)} s")


JUDGES = {
    ("division", "Figure 1"): Judge(
        lambda rows: rows[rows["model"].str.match("no L1|L1 ")], ("model", "range"), _figure_1
    ),
    ("division", "Figure 2"): Judge(
        _of(
            "L1 1e-09 to 1e-07",
            "clip gate",
            "clip weight",
            "clip both",
            "discretise gate",
            "discretise both",
            "constrained start",
        ),
        ("model", "range"),
        _figure_2,
    ),
    ("division", "Figure 3"): Judge(
        lambda rows: _of(REAL_NPU, *UNITS)(rows[rows["range"].isin(UNIFORM_RANGES)]),
        ("model", "range"),
        lambda rows: _stated(rows, "Fig 3"),
    ),
    ("division", "Figure 4"): Judge(_of(MODIFIED), ("range",), _figure_4),
    ("division", "Figure 5"): _figure_5,
    ("division", "Figure 6"): Judge(_of(REAL_NPU, *UNITS), ("model", "range"), _figure_6),
    ("division", "Figure 7"): Judge(_of(*UNITS), ("model", "range"), _figure_7),
    ("division", "Figure 8"): Judge(_of(*UNITS), ("model", "range"), _figure_8),
    ("division", "Figure 9"): _figure_9,
    ("division", "Figure 10"): Judge(
        _of("NRU", "NRU, lr 1e-1", "NRU, lr 1e-2", "NRU, lr 1e-3"), ("model", "range"), _figure_10
    ),
    ("division", "Figure 11"): Judge(_question("1/a from a"), ("model", "range"), _figure_11),
    ("division", "Figure 12"): Judge(_question("1/a from a, b"), ("model", "range"), _figure_12),
    ("division", "Figure 13"): Judge(
        lambda rows: _of(*UNITS)(rows[_asked(rows).isin(list(QUESTIONS)[1:])]),
        ("model", "range", "question"),
        _figure_13,
    ),
    ("division", "Figure 14"): Judge(
        _of("no L1", "L1 1e-09 to 1e-07", "L2 1e-07 to 1e-05"), ("model", "range"), _figure_14
    ),
    ("division", "Figure 15"): Judge(
        _of(MODIFIED, "NPU (no constraints)", "NPU (clip & reg)"), ("model", "range"), _figure_15
    ),
    ("division", "Figure 16"): Judge(
        _of(MODIFIED, f"{MODIFIED}, {{-1,0,1}}"), ("model", "range"), _figure_16
    ),
    ("division", "Figure 17"): Judge(
        _of("NMRU, vanilla", "NMRU, clipped gradient", "NMRU, sign", "NMRU", "NMRU, gate to 0"),
        ("model", "range"),
        _figure_17,
    ),
    ("division", "Figure 18"): Judge(
        _of("NMRU", "NMRU, lr 1e-3", "NMRU, lr 1e-1"), ("model", "range"), _figure_18
    ),
    ("division", "Figure 19"): Judge(_of("NMRU", "NMRU, SGD"), ("model", "range"), _figure_19),
    ("division", "Figure 20"): Judge(_of("NRU", "NRU, separate sign"), ("model", "range"), _figure_20),
    ("division", "Figure 21"): Judge(
        _of(MODIFIED, f"{MODIFIED}, PCC", f"{MODIFIED}, MAPE"), ("model", "range"), _figure_21
    ),
    ("division", "Figure 22"): Judge(
        _of("NRU", "NRU, PCC", "NRU, MAPE", f"{MODIFIED}, PCC"), ("model", "range"), _figure_22
    ),
    ("division", "Figure 23"): Judge(_of("NMRU", "NMRU, PCC", "NMRU, MAPE"), ("model", "range"), _figure_23),
    ("division", "Figure 24"): _figure_9,
    ("division", "Table 1"): _table_1,
    ("division", "Table 2"): _table_2,
    ("division", "Table 3"): Judge(
        lambda rows: _of(*UNITS)(rows[_asked(rows).isna() | (_asked(rows) == "a/b from a, b")]),
        ("model", "range", "iterations"),
        _table_3,
    ),
    ("division", "Table 4"): _table_4,
    ("division", "Table 5"): _table_5,
    ("division", "Table 6"): _table_6,
    ("division", "Table 7"): Judge(_of(*UNITS), ("model", "iterations"), _table_7),
    ("division", "Table 8"): _table_8,
}
