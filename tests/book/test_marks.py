"""The marks of the committed figures: ours are what rows say, and every published value is shown."""

import json
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from companion import measures, published
from companion.recorded import read

BOOK = Path(__file__).parents[2] / "book"

Panels = dict[str, dict[str, dict[str, float]]]


@cache
def figures() -> dict[str, str]:
    """Name of a figure -> the numbers that it shows, as its chapter was committed."""
    found = {}
    for chapter in BOOK.glob("*/*.ipynb"):
        for cell in nbformat.read(chapter, as_version=4).cells:
            name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
            for output in cell.get("outputs", []) if name else []:
                if "image/png" in output.get("data", {}):
                    found[name] = output["data"]["text/plain"]
    return found


def panels(name: str) -> Panels:
    """Panel -> name of the marks -> place -> number."""
    found: Panels = {}
    for line in figures()[name].splitlines():
        if not line.startswith("  "):
            marks = found.setdefault(line.removesuffix(":"), {})
            continue
        which, said = line.strip().rsplit(": ", 1)
        pairs = (one.rsplit(" ", 1) for one in said.split("; ")) if said else ()
        marks[which] = {place: float(value) for place, value in pairs}
    return found


Marks = dict[str, list[tuple[float, float]]]


def scattered(name: str, of: str = "") -> list[Marks]:
    """For each panel in order: name of the marks, if it ends like ``of`` -> their places and numbers, lowest
    number first.
    """
    found: list[Marks] = []
    for line in figures()[name].splitlines():
        if not line.startswith("  "):
            found.append({})
            continue
        which, said = line.strip().rsplit(": ", 1)
        if not which.endswith(of):
            continue
        pairs = (one.split(" ") for one in said.split("; "))
        found[-1][which] = sorted(((float(x), float(y)) for x, y in pairs), key=lambda mark: mark[::-1])
    return found


def rounded(number: float) -> float:
    return float(f"{number:.3g}")


DIVISION = {
    "division/no-redundancy": ["fig-division-no-redundancy", "fig-division-nru-lr"],
    "division/redundancy": [
        "fig-division-redundancy",
        "fig-division-npu",
        "fig-division-ternary",
        "fig-division-separate-sign",
    ],
    "division/redundancy division/losses": ["fig-losses-real-npu", "fig-losses-nru", "fig-losses-nmru"],
    "division/redundancy division/inside-the-nmru": [
        "fig-nmru-ablation",
        "fig-nmru-gates",
        "fig-nmru-rates",
        "fig-nmru-sgd",
    ],
    "division/no-redundancy division/robust-real-npu": [
        "fig-robust-penalty",
        "fig-robust-sweep",
        "fig-robust-clip",
        "fig-robust-discretise",
    ],
    "division/mixed-signs": ["fig-mixed-signs"],
}
"""Results files -> figures of success over ranges whose rows they hold."""
PRODUCTS = "operation == 'mul' and stream == 'common' and seed < 50"
DEFAULT = "range == 'U[1,2)' and iterations == 5000000 and factor.isna() and inputs.isna()"
OURS = {name: (files, "", "range") for files, names in DIVISION.items() for name in names} | {
    "fig-division-small-easy": ("division/small-numbers", "question == '1/a from a'", "range"),
    "fig-division-small-medium": ("division/small-numbers", "question == '1/a from a, b'", "range"),
    "fig-division-small-hard": ("division/small-numbers", "question == 'a/b from a, b'", "range"),
    "fig-division-distributions-2": ("division/distributions", "iterations == 50000", "range"),
    "fig-division-distributions-10": ("division/distributions", "iterations == 100000", "range"),
    "fig-ranges": ("nau-nmu/ranges nau-nmu/arithmetic", PRODUCTS, "range"),
    "fig-ablation": ("nau-nmu/hidden nau-nmu/arithmetic", PRODUCTS, "hidden"),
    "fig-sizes": ("nau-nmu/replay", f"{PRODUCTS} and {DEFAULT}", "hidden"),
    "fig-penalty-add": ("nau-nmu/penalty", "operation == 'add'", "factor"),
    "fig-penalty-sub": ("nau-nmu/penalty", "operation == 'sub'", "factor"),
    "fig-penalty-mul": ("nau-nmu/penalty", "operation == 'mul'", "factor"),
}
"""Figure -> the results files of its rows, which of them, and the column of its places."""
RENAMED = {"NRU, lr 1": "NRU", "3, as printed": "3 (paper's test set)"}
"""What figures call by another name than the rows."""

PRINTED = {
    "Fig 3": "fig-division-no-redundancy",
    "Fig 6": "fig-division-redundancy",
    "abstract/Fig 6": "fig-division-redundancy",
    "Fig 7": "fig-division-distributions-2",
    "Fig 8": "fig-division-distributions-10",
    "Fig 10": "fig-division-nru-lr",
    "Fig 17": "fig-nmru-ablation",
    "Fig 21": "fig-losses-real-npu",
}
"""Figure of the division paper for which its text states success rates -> the one that shows them."""
DRAWN = {
    "Fig3-bottom": "fig-ranges",
    "Fig3-top": "fig-sizes",
    "Fig4": "fig-digit-published",
    "Fig7": "fig-ablation",
    "Fig13": "fig-sum-published",
    "Fig14": "fig-sum-published-free",
    "Fig15": "fig-digit-published-free",
}
"""Figure of the first paper whose points were measured -> the one that shows them."""


def same_place(one: str, other: object) -> bool:
    """``0`` and ``0.0`` are."""
    try:
        return float(one) == float(str(other))
    except ValueError:
        return one == str(other)


@pytest.mark.parametrize("name", OURS)
def test_ours_are_what_the_rows_say(name: str) -> None:
    """Success rates of all models and places, and when their runs were solved."""
    files, which, column = OURS[name]
    rows = pd.concat([read(one) for one in files.split()], ignore_index=True)
    rows = rows.query(which) if which else rows
    if column == "hidden":
        rows = rows.fillna({"hidden": 2})  # unless another size is said
    shown = panels(name)
    for model, marks in shown["success rate"].items():
        of_model = rows[rows["model"] == RENAMED.get(model, model)]
        for place, rate in marks.items() if not model.endswith(", published") else ():
            here = [
                place == "all ranges" or same_place(RENAMED.get(place, place), one)
                for one in of_model[column]
            ]
            part = of_model[here]
            assert len(part) and rounded(part["success"].astype(float).mean()) == rate, (model, place)
            times = part.loc[part["success"].astype(bool), "solved_at"]
            if len(times) and place != "all ranges":
                found = shown["solved at iteration"][model][place]
                assert found == pytest.approx(times.mean(), rel=6e-3), (model, place)
                if "sparsity error" not in shown:
                    continue
                errors = part.loc[part["success"].astype(bool), "sparsity_error"]
                expected = measures.sparsity_error(errors, ends=False).estimate
                assert shown["sparsity error"][model][place] == pytest.approx(expected, rel=6e-3, abs=1e-12)


def marks_of(panel: dict[str, dict[str, float]]) -> list[tuple[str, float]]:
    """Place and value of the published marks of a panel."""
    found = [marks for name, marks in panel.items() if name.endswith(", published")]
    return sorted((place, value) for marks in found for place, value in marks.items())


@pytest.mark.parametrize("name", dict.fromkeys(PRINTED.values()))
def test_printed_rates_are_shown(name: str) -> None:
    table = published.load("division_values").query("metric == 'success rate'")
    table = table[table["item"].map(PRINTED) == name]
    values = pd.to_numeric(table["value"], errors="coerce")
    places = table["range"].where(~table["item"].str.startswith("abstract"), "all ranges")
    printed = sorted((place, value) for place, value in zip(places, values, strict=True) if value == value)
    assert printed and marks_of(panels(name)["success rate"]) == printed


@pytest.mark.parametrize("item", DRAWN)
def test_measured_points_are_shown(item: str) -> None:
    """All success rates and means of *solved at*; sparsity errors have two scales and are not drawn."""
    table = published.load("nau_nmu_figures").query("item == @item")
    metrics = {"success rate": "success_rate", "solved at iteration": "solved_at_step_mean"}
    for panel, metric in metrics.items():
        values = table.loc[table["metric"] == metric, "value"].dropna()
        shown = marks_of(panels(DRAWN[item])[panel])
        assert sorted(value for _, value in shown) == sorted(map(rounded, values))


SIGNS = {"mul": "a × b", "div": "a / b", "add": "a + b", "sub": "a − b", "root": "√a", "squared": "a²"}


def test_table_6_is_shown_with_all_its_models() -> None:
    table, shown = published.load("nau_nmu_table6_repo_fullprecision"), panels("fig-subset-arithmetic")
    metrics = {"success rate": "success_rate", "solved at iteration": "solved_at_step_mean"}
    for panel, metric in metrics.items():
        values = table[table["metric"] == metric].dropna(subset="value")
        found = {
            (name.removesuffix(", published"), place, value)
            for name, marks in shown[panel].items()
            if name.endswith(", published")
            for place, value in marks.items()
        }
        assert found == {(one.model, SIGNS[one.op], rounded(one.value)) for one in values.itertuples()}


def test_the_rates_of_table_1_stand_on_the_threshold() -> None:
    table = published.load("nau_nmu_table1").query("metric == 'success_rate'")
    (panel,) = scattered("fig-ten-parameter", ", published")
    found = {name: marks[0][1] for name, marks in panel.items()}
    assert found == {f"{one.model}, published": one.value for one in table.itertuples()}


OPERATIONS = {"add": "add", "mult": "mul", "div": "reciprocal", "sqrt": "root"}
"""What Figure 7 of the second paper has, from top to bottom, and its name in rows."""


@pytest.mark.parametrize("task", OPERATIONS)
def test_points_of_the_large_scale_task_are_shown(task: str) -> None:
    """Of each model the ten runs with the lowest errors; those beyond the frame stand on it."""
    left, right = scattered("fig-npu-large-scale")[2 * list(OPERATIONS).index(task) :][:2]
    errors = [error for marks in left.values() for _, error in marks]
    table = published.load("npu_fig7").query("task == @task")
    rows = read("npu/large-scale").query("operation == @OPERATIONS[@task]")
    further = (rows["model"] == "NPU") & (rows["seed"] >= 10) & (task in ("div", "sqrt"))
    for model, theirs in table.groupby("model"):
        ours = rows[(rows["model"] == model) & ~further].dropna(subset="test_mse").nsmallest(10, "test_mse")
        for part, count, marks in (
            (theirs, "n_params_abs_gt_0.01", left[f"{model}, published"]),
            (ours, "parameters_above_0.01", left.get(model, [])),
            (ours, "parameters_above_0.001", right.get(model, [])),
        ):
            if part is ours and not marks:  # the runs of the NALU on × all ended with NaN
                assert part.empty
                continue
            expected = zip(part[count], part["test_mse"].clip(min(errors), max(errors)), strict=True)
            places = ((rounded(x), rounded(y)) for x, y in expected)
            assert marks == sorted(places, key=lambda mark: mark[::-1]), (model, count)


def numbers(weights: str) -> list[float]:
    return [float(one) for part in json.loads(weights).values() for one in np.ravel(part)]


def test_points_of_the_fractional_sir_model_are_shown() -> None:
    """A figure of many marks says their number and medians."""
    said = figures()["fig-npu-fractional-sir"].splitlines()[1:]
    shown = dict(line.strip().rsplit(": ", 1) for line in said)
    theirs = published.load("npu_pareto").query("kind == 'run'")
    ours = read("npu/fractional-sir").query("solver == 'euler'")
    counted = {
        at: sum(abs(one) > 1e-3 for one in numbers(row)) for at, row in ours["weights"].dropna().items()
    }
    ours = ours.assign(size=ours["parameters_above_0.001"].fillna(pd.Series(counted)))
    for model in ("NPU", "RealNPU", "Dense"):
        for name, part, size, error in (
            (f"{model}, published", theirs, "n_params_abs_gt_0.001", "train_mse"),
            (model, ours, "size", "valid_mse"),
        ):
            part = part[part["model"] == model]
            expected = f"{len(part)} marks, medians {part[size].median():.3g} and {part[error].median():.3g}"
            assert shown[name] == expected


def test_the_golden_errors_are_shown() -> None:
    table = published.load("division_golden_errors")
    panels = scattered("fig-division-golden", ", published")
    marks = [mark for panel in panels for found in panel.values() for mark in found]
    expected = [
        (float(place.split(",")[1][:-1]), rounded(value))
        for place, value in zip(table["range"], table["value"], strict=True)
    ]
    assert sorted(marks) == sorted(expected)


def test_the_histogram_of_gates_is_shown() -> None:
    table = published.load("nau_nmu_fig9_gate_histogram")
    panels = scattered("fig-gates", ", published")
    counts = [count for panel in panels for found in panel.values() for _, count in found]
    assert sorted(counts) == sorted(table["value"])


def test_marks_that_are_moved_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "fig-division-no-redundancy"
    said = figures()[name]
    for old, new in (("U[-2,2) 0.48", "U[-2,2) 0.52"), ("published: U[-2,2) 0.64", "published: U[-2,2) 0.6")):
        assert said.count(old) == 1
        monkeypatch.setitem(figures(), name, said.replace(old, new))
        with pytest.raises(AssertionError):
            test_ours_are_what_the_rows_say(name)
            test_printed_rates_are_shown(name)
