"""Late runs: planted ones are found from published numbers alone; the order of rows is that of R."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from companion import measures, published
from companion.experiment.rows import Rows
from companion.nau_nmu import ranges
from companion.nau_nmu.late import fewest_late_runs, late_runs
from companion.nau_nmu.merged_order import (
    LAYOUTS,
    Layout,
    first_read,
    read_in_merged_order,
    shell_sorted,
    table_6,
)
from companion.recorded import read
from hypothesis import given
from hypothesis import strategies as st

SOON = np.random.default_rng(0).integers(15, 22, 200) * 1000.0


def _line(runs, count, at):
    """Mean and fit of runs of which some are late, the others being others than those that are known to be
    soon.
    """
    values = np.append(np.random.default_rng(1).integers(15, 22, runs - count) * 1000.0, np.full(count, at))
    return values.mean(), measures.solved_at(values, variance="sample").estimate


@pytest.mark.parametrize(
    ("runs", "count", "at"), [(100, 1, 4.9e6), (100, 5, 3.5e6), (50, 2, 8e5), (20, 3, 2e6)]
)
def test_planted_runs_are_found(runs, count, at):
    found = late_runs(SOON, runs, *_line(runs, count, at))
    assert found.count == count
    assert found.at == pytest.approx(at, rel=0.02)


@pytest.mark.parametrize(("runs", "count", "at"), [(100, 1, 4.9e6), (100, 5, 3.5e6), (50, 2, 8e5)])
def test_the_fewest_are_no_more_than_the_planted_ones_and_make_the_same_fit(runs, count, at):
    fit = _line(runs, count, at)[1]
    found = fewest_late_runs(SOON, runs, fit, 5_000_000)
    assert found.count <= count and found.at >= 0.98 * at
    assert found.printed.estimate == pytest.approx(fit, rel=1e-4)


def test_one_run_is_not_enough_for_what_three_make():
    fit = _line(50, 3, 4.5e6)[1]
    assert fewest_late_runs(SOON, 50, fit, 5_000_000).count > 1
    assert fewest_late_runs(SOON, 50, fit, 100_000) is None


def test_runs_that_are_as_soon_have_no_late_ones_among_them():
    assert late_runs(SOON, 100, SOON.mean() - 1, SOON.mean()) is None
    assert fewest_late_runs(SOON, 100, SOON.mean() / 2, 5_000_000) is None


@pytest.mark.parametrize(("soon", "runs"), [([], 10), ([1000.0], 1)])
def test_bad_input_is_one_sentence(soon, runs):
    with pytest.raises(ValueError, match="soon runs"):
        late_runs(soon, runs, 5000.0, 6000.0)
    with pytest.raises(ValueError, match="soon runs"):
        fewest_late_runs(soon, runs, 6000.0, 10_000)


# Rows of merge(rows, thresholds) in R 4.2.2: rows <- expand.grid(log = 1:9, seed = 1:2, key = c("add",
# "mul", "sub"), model = 1:3), numbered from 0.
MERGED_BY_R = """
0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 58 59 60 61 62 63 64 65 66 67 68 69 70 71 112 113 114 115 116
117 118 119 120 121 122 123 124 125 54 55 56 57 111 108 109 110 87 131 88 89 86 19 132 133 130 23 20 21 22
27 24 25 26 18 32 33 34 35 76 77 78 79 80 81 82 83 84 85 126 127 128 129 143 135 136 137 134 139 140 141 138
31 28 29 142 75 72 73 30 74 51 52 53 50 104 105 106 107 36 37 38 39 40 41 42 43 44 45 46 47 48 49 90 91 92
93 94 95 96 97 98 99 100 101 102 103 144 145 146 147 148 149 150 151 152 153 154 155 156 157 158 159 160 161
"""


def test_rows_are_in_the_order_of_r():
    keys = np.tile(np.repeat([0, 1, 2], 18), 3)
    assert shell_sorted(keys).tolist() == [int(row) for row in MERGED_BY_R.split()]


def _shell_sort_by_the_book(keys):
    values, order, gap = list(keys), list(range(len(keys))), 1
    while gap <= len(values) // 9:
        gap = 3 * gap + 1
    while gap:
        for place in range(gap, len(values)):
            while place >= gap and values[place - gap] > values[place]:
                for part in (values, order):
                    part[place - gap], part[place] = part[place], part[place - gap]
                place -= gap
        gap //= 3
    return order


@given(st.lists(st.integers(0, 5), max_size=300))
def test_the_passes_are_those_of_insertion_sorts(keys):
    assert shell_sorted(keys).tolist() == _shell_sort_by_the_book(keys)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), max_size=12))
def test_long_pieces_move_as_their_values(pieces):
    keys = [key for key, length in pieces for _ in range(length)]
    assert shell_sorted(keys).tolist() == _shell_sort_by_the_book(keys)


def test_long_columns_keep_the_order_of_equal_ones():
    """Up to 16 values NumPy's usual sort does so as well."""
    generator = np.random.default_rng(0)
    keys = generator.integers(0, 6, 3000)
    in_parts = np.sort(keys) + np.isin(np.arange(3000), generator.integers(0, 3000, 20))
    for one in (keys.tolist(), in_parts.tolist()):
        assert shell_sorted(one).tolist() == _shell_sort_by_the_book(one)


def test_a_log_is_read_at_the_first_row_below_the_threshold():
    layout = Layout(("one", "two", "three"), ("add", "mul", "sub"), runs=2, logs=9, every=10)
    order = [int(row) for row in MERGED_BY_R.split()]
    for (number, model), (place, key) in itertools.product(enumerate(layout.models), enumerate(layout.keys)):
        times = np.array([30.0, np.nan])
        start = (3 * number + place) * 18
        expected = next(10 * (row - start) for row in order if start + 3 <= row < start + 9)
        read = read_in_merged_order({(model, key): times}, layout)[model, key]
        assert read[0] == expected and np.isnan(read[1])


def test_logs_of_other_lengths_lie_in_the_order_of_the_names_of_their_seeds():
    lengths = [7, 9, 9, 2, 9, 5, 9, 9, 9, 9, 1, 9] * 4
    layout = Layout(("one", "two"), ("add", "mul"), runs=12, every=10, lengths=tuple(lengths))
    logs = [
        (model, key, seed)
        for model in ("one", "two")
        for key in ("add", "mul")
        for seed in (0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9)
    ]
    rows = [(log, row) for log, length in zip(logs, lengths, strict=True) for row in range(length)]
    merged = [
        rows[place]
        for place in _shell_sort_by_the_book([("add", "mul").index(key) for (_, key, _), _ in rows])
    ]
    expected: dict[tuple[str, str, int], int] = {}
    for log, row in merged:
        expected.setdefault(log, row)
    found = first_read(layout)
    assert {
        (*line, seed): at / 10 for line, ats in found.items() for seed, at in enumerate(ats)
    } == expected and any(expected.values())
    (read,) = read_in_merged_order({("two", "add"): [0.0] * 12}, layout).values()
    assert read.tolist() == found["two", "add"].tolist()


def test_only_nalus_have_short_logs_in_the_file_of_table_6():
    layout, rows = table_6(), published.load("nau_nmu_logged_points")
    assert len(layout.lengths) == 6000 and (layout.rows() < 5001).sum() == 27
    assert set(rows.loc[rows["logged_points"] < 5001, "model"]) == {"NALU"}


def test_rows_that_are_in_order_stay_so():
    times = np.arange(100) * 1000.0
    layout = Layout(("NMU",), table_6().keys, runs=100, logs=101)
    assert read_in_merged_order({("NMU", "sub"): times}, layout)["NMU", "sub"].tolist() == times.tolist()


@pytest.mark.parametrize(
    ("line", "runs"), [(("NRU", "add"), 100), (("NAU", "sum"), 100), (("NAU", "add"), 99)]
)
def test_lines_that_the_file_does_not_have_are_refused(line, runs):
    with pytest.raises(ValueError, match="the file has 100 of each"):
        read_in_merged_order({line: [1000.0] * runs}, table_6())


@pytest.mark.parametrize(
    ("model", "operation", "seeds"),
    [
        ("NAU", "add", [24, 30, 38]),
        ("NAU", "sub", [29, 42]),
        ("NAC+", "add", [23]),
        ("NMU", "mul", [14, 22]),
        ("NMU", "squared", [4]),
        ("NAC•,NMU", "squared", [8, 34]),
    ],
)
def test_runs_that_are_published_late_are_those_that_the_order_makes_late(model, operation, seeds):
    runs = published.load("nau_nmu_runs").query("model == @model and operation == @operation")
    theirs = runs.set_index("seed")["solved_at"]
    soon = theirs.median()
    found = read_in_merged_order({(model, operation): [soon] * 100}, table_6())[model, operation]
    assert [seed for seed in theirs.index if found[seed] > 1.5 * soon] == seeds
    assert [theirs[seed] for seed in seeds] == [found[seed] for seed in seeds]
    assert theirs.drop(seeds).max() < 2 * soon


def test_means_of_figure_3_are_explained_as_far_as_whole_logs_make_them():
    item = ranges.EXPERIMENT.item("Figure 3")
    (reason,) = item.explanations
    judged = item.judge_so_far(ranges.replays(read).frame, ranges.lower_half, read)
    late = [one for one in judged.statements if not one.agrees]
    names = [
        "NMU on U[-2,2)",
        "NMU on U[0.1,0.2)",
        *(f"{one} on U[0,1)" for one in ("NMU", "NAC•,σ", "NAC•,NMU")),
    ]
    assert {one.what for one in late} == {f"{name}, solved at, mean" for name in names}
    covers = reason.covering(read)
    explained = {one.what: covers(one) for one in late}
    assert explained["NMU on U[-2,2), solved at, mean"]
    assert not explained["NMU on U[0,1), solved at, mean"]
    assert not explained["NMU on U[0.1,0.2), solved at, mean"]


def test_logs_of_figure_3_end_where_a_unit_becomes_nan():
    layout = replace(LAYOUTS["Figure 3"], runs=11)
    nalus = pd.DataFrame({"range": "U[0,1)", "seed": [1, 0], "nan_at": [np.nan, 3000.0]})
    rows = ranges._as_short_as_ours(Rows(nalus), layout).rows().reshape(-1, layout.runs)
    short = dict(zip(layout.lines(), rows, strict=True))
    assert layout.seeds()[:4] == [0, 1, 10, 2]
    assert short.pop(("NALU", "U[0,1)")).tolist()[:4] == [3, 5001, 3, 3]
    assert (np.array(list(short.values())) == 5001).all()
