"""Table 6 of *Neural Arithmetic Units*: judged with all its lines, and shown as far as it is trained."""

import math

import numpy as np
import pandas as pd
import pytest
from companion.experiment.tables import text
from companion.nau_nmu.settings import REPLAY
from companion.nau_nmu.subset_arithmetic import EXPERIMENT, TABLE_6, published_cell
from companion.nau_nmu.table_6 import so_far

LINES = [(operation, model) for operation, models in TABLE_6.items() for model in models]


def rows_of(lines, seeds, **columns):
    """As many runs of each line as seeds, of which the published share is solved."""
    rows = []
    for operation, model in lines:
        solved = round(seeds * published_cell(operation, model)["success"].estimate)
        for seed in range(seeds):
            row = {"operation": operation, "model": model, "seed": seed, "success": seed < solved}
            row |= {"solved_at": 1000.0 if seed < solved else np.nan, "sparsity_error": 0.0, "nan_at": np.nan}
            rows.append(row | {"stream": "common", "iterations": 5_000_000, "task": "SubsetArithmeticTask"})
    return pd.DataFrame(rows).assign(**columns)


@pytest.mark.parametrize("line", LINES, ids=" on ".join)
def test_every_line_has_a_published_success_rate(line):
    assert 0 <= published_cell(*line)["success"].estimate <= 1


def test_all_lines_can_be_judged():
    judged = EXPERIMENT.item("Table 6").judge(rows_of(LINES, 100))
    rates = [one for one in judged.statements if one.what.endswith("success rate")]
    assert judged.seeds == 100 and len(rates) == 66 and all(one.agrees for one in rates)
    assert judged.verdict != "open"


def test_what_is_trained_stands_beside_the_published_rate():
    replays = rows_of([("mul", "NMU"), ("add", "NMU")], 50)
    replays.loc[replays["operation"] == "add", "success"] = True  # in print none is solved
    gated = rows_of([("add", "Gated NAU/NMU")], 10, nan_at=[1000.0] * 6 + [np.nan] * 4)
    gated.loc[6:8, "success"] = True
    elsewhere = rows_of([("div", "NMU")], 10, iterations=1_000_000)
    found, numbers = so_far({REPLAY: pd.concat([replays, gated, elsewhere])}.get)
    shown = found.frame.set_index("model")
    assert shown.loc["NMU", ["a × b", "a + b", "a / b"]].tolist() == [
        "49 of 50 (0.98)",
        "50 of 50 (0.00)",
        "not run (0.00)",
    ]
    assert numbers["replayed_lines"] == "3 of 66" and numbers["replayed_rates"] == "2 of 3"
    assert numbers["gated_lost"] == "6 of 10" and numbers["gated_add"] == "3 of 10"
    assert numbers["gated_sub"] == "not run"


def test_before_anything_is_trained_all_lines_are_not_run():
    _, numbers = so_far({REPLAY: rows_of(LINES, 1).iloc[:0]}.get)
    assert numbers["replayed_lines"] == "0 of 66" and numbers["replayed_rates"] == "not run"


def test_the_gated_unit_is_tested_against_none_of_a_hundred():
    gated = rows_of([("add", "Gated NAU/NMU")], 10, success=[True] * 3 + [False] * 7)
    numpy = rows_of([("sub", "Gated NAU/NMU")], 10, stream="numpy")
    numbers = so_far({REPLAY: pd.concat([gated, numpy])}.get)[1]
    assert numbers["gated_chance_add"] == text(math.comb(10, 3) / math.comb(110, 3), 1)
    assert numbers["gated_chance_sub"] == numbers["gated_sub"] == "not run"
