"""Verdicts on *Exploring the Learning Mechanisms of Neural Division Modules*.

The figures print no numbers. Compared are the rates that the text states and, one by one, the statements that it draws from a figure. Where it counts
the ranges on which one model beats another, ours is the count with the 95 % interval of what another 25 seeds would give.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from nalm.tasks import UNIFORM_RANGES

from companion.division import settings as division
from companion.division.compared import (
    MIXED,
    MODIFIED,
    UNITS,
    Compared,
    higher,
    of,
    ranges_where,
    solved_at,
    stated,
    success,
)
from companion.statements import Claim, Judge
from companion.tables import text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JUDGES"]


def _figure_1(rows: pd.DataFrame) -> Compared:
    yield ranges_where(rows, "no L1", "L1 1e-09 to 1e-07", np.less, 5, "ranges on which removing L1 is worse")
    yield ranges_where(
        rows, "no L1", "L1 1e-09 to 1e-07", np.greater, 2, "ranges on which removing L1 is better"
    )
    pairs = [name for name in rows["model"].unique() if name.startswith("L1")]
    rates = {name: success(rows, name) for name in pairs}
    best = max(pairs, key=lambda name: rates[name].estimate)
    yield Claim("the best strength is 1e-9 to 1e-7", rates["L1 1e-09 to 1e-07"].overlaps(rates[best]), best)
    for name in ("L1 0.001 to 0.1", "L1 0.1 to 10"):
        yield higher(rows, "L1 1e-09 to 1e-07", name, f"{name} is worse")


def _figure_2(rows: pd.DataFrame) -> Compared:
    base, clipped, gate, both = "L1 1e-09 to 1e-07", "clip both", "discretise gate", "discretise both"
    yield ranges_where(rows, both, clipped, np.less, 1, "ranges on which discretising is worse than not")
    lost = [
        name
        for name in UNIFORM_RANGES
        if success(rows, both, [name]).estimate < success(rows, clipped, [name]).estimate
    ]
    yield Claim(
        "discretising loses on U[10,20) and nowhere else", lost == ["U[10,20)"], ", ".join(lost) or "nowhere"
    )
    last = rows[rows["range"] == "U[10,20)"]
    yield ranges_where(last, clipped, both, np.subtract, 2, "seeds lost by discretising on U[10,20)")
    for name in ("clip weight", clipped):
        yield ranges_where(rows, name, base, np.greater, 8, f"{name}: ranges on which it is better")
    yield higher(rows, gate, clipped, "discretising the gate is better than not")
    yield higher(rows, both, gate, "discretising the weight too is better than the gate alone")
    gains = {
        name: success(rows, both, [name]).estimate - success(rows, gate, [name]).estimate
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
        if success(rows, start, [name]).estimate > success(rows, both, [name]).estimate
    ]
    yield Claim("the constrained start is better on several ranges", len(better) > 1, f"{len(better)} ranges")


def _figure_4(rows: pd.DataFrame) -> Compared:
    sets = [name for name in division.MIXED_SIGNS if "paper" not in name]
    for name in sets:
        found = success(rows, MODIFIED, [name])
        yield Claim(
            f"the modified Real NPU fails sometimes on data set {name}", found.estimate < 1, text(found)
        )
    fast, slow = solved_at(rows, MODIFIED, ["1", "2"]), solved_at(rows, MODIFIED, ["4", "5"])
    yield Claim(
        "positive divisors are solved faster than negative ones",
        fast < slow,
        f"{text(fast)} against {text(slow)}",
    )


def _asked(rows: pd.DataFrame) -> pd.Series:
    """What runs on small numbers were asked; missing for all others."""
    return rows.reindex(columns=["question"])["question"]


def _figure_7(rows: pd.DataFrame) -> Compared:
    yield from sorted(stated(rows, "Fig 7"), key=lambda one: one.what != f"{MODIFIED} on U[-100,100)")
    for unit in UNITS:
        found = success(rows, unit, ["B[10,100)"])
        yield Claim(f"{unit} on B[10,100) above 0.75", found.estimate > 0.75, text(found))


def _figure_8(rows: pd.DataFrame) -> Compared:
    yield from sorted(stated(rows, "Fig 8"), key=lambda one: one.what != "NMRU on TN(1,3)[-10,5)")


def _figure_14(rows: pd.DataFrame) -> Compared:
    l2, l1, none = "L2 1e-07 to 1e-05", "L1 1e-09 to 1e-07", "no L1"
    for other, name, worse, equal, better in ((l1, "L1", 5, 4, 0), (none, "no penalty", 3, 3, 3)):
        yield ranges_where(rows, l2, other, np.less, worse, f"ranges on which L2 is worse than {name}")
        yield ranges_where(rows, l2, other, np.equal, equal, f"ranges on which L2 equals {name}")
        yield ranges_where(rows, l2, other, np.greater, better, f"ranges on which L2 is better than {name}")


def _table_2() -> Compared:
    printed = {
        "TN(-1,3)[-5,10)": "TN(-10,3)[-15,-5)", "TN(0,1)[-5,5)": "TN(10,1)[5,15)", "TN(1,3)[-10,5)": "TN(10,3)[5,15)",
        "B[10,100)": "B[100,1000)", "U[-100,100)": "U[-200,-100)|U[100,200)", "U[-50,50)": "U[-100,-50)|U[50,100)",
    }  # fmt: skip
    ours = {name: str(tested) for name, (_, tested) in division.DISTRIBUTIONS.items()}
    yield Claim("the distributions", ours == printed, f"{len(ours)} of {len(printed)} distributions")


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


JUDGES = {
    ("division", "Figure 1"): Judge(
        lambda rows: rows[rows["model"].str.match("no L1|L1 ")], ("model", "range"), _figure_1
    ),
    ("division", "Figure 2"): Judge(
        of(
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
    ("division", "Figure 4"): Judge(of(MODIFIED), ("range",), _figure_4),
    ("division", "Figure 7"): Judge(of(*UNITS), ("model", "range"), _figure_7),
    ("division", "Figure 8"): Judge(of(*UNITS), ("model", "range"), _figure_8),
    ("division", "Figure 14"): Judge(
        of("no L1", "L1 1e-09 to 1e-07", "L2 1e-07 to 1e-05"), ("model", "range"), _figure_14
    ),
    ("division", "Table 2"): _table_2,
    ("division", "Table 6"): _table_6,
}
