"""Every published table loads, is as long as it should be, and agrees with what the papers print."""

import numpy as np
import pytest
from companion import measures, published

ROWS = {
    "division_golden_errors": 108,
    "division_values": 195,
    "nau_nmu_fig9_gate_histogram": 30,
    "nau_nmu_figures": 990,
    "nau_nmu_logged_points": 6000,
    "nau_nmu_runs": 3000,
    "nau_nmu_table1": 12,
    "nau_nmu_table2": 44,
    "nau_nmu_table5": 24,
    "nau_nmu_table6": 264,
    "nau_nmu_table6_repo_fullprecision": 426,
    "npu_fig7": 195,
    "npu_pareto": 318,
    "npu_values": 147,
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_table_loads_complete(name):
    assert len(published.load(name)) == ROWS[name]


def test_a_table_that_is_changed_is_as_published_for_whoever_is_next():
    table = published.load("npu_fig7")
    table["model"], table.loc[0, "test_mse"] = "none", -1.0
    again = published.load("npu_fig7")
    assert "none" not in set(again["model"]) and again.loc[0, "test_mse"] > 0


def test_no_table_is_forgotten_here():
    assert published.names() == sorted(ROWS)


def test_printed_values():
    assert published.value("nau_nmu_table1", model="NAC•", metric="success_rate") == 0.13
    assert published.value("nau_nmu_table1", column="plus", model="NMU", metric="success_rate") == 0.03
    assert published.value("npu_values", item="Table 1", task="div", model="NPU") == 1e-7
    fig3 = dict(item="Fig 3", model="Real NPU (modified)", metric="success rate")
    assert published.value("division_values", range="U[-2,2)", **fig3) == 0.64
    top = dict(item="Fig3-top", model="NAC•,NMU", metric="success_rate", x=2)
    assert published.value("nau_nmu_figures", column="n_solved", **top) == 34


def test_read_off_counts_agree_with_the_drawn_intervals():
    table = published.load("nau_nmu_figures").query("metric == 'success_rate'")
    for _, row in table.drop_duplicates(["n_solved", "n_runs"]).iterrows():
        interval = measures.success_rate([True] * row.n_solved + [False] * (row.n_runs - row.n_solved))
        assert interval.estimate == pytest.approx(row.value, abs=2e-4)
        assert interval.high - interval.estimate == pytest.approx(row.plus, abs=4e-4)
        assert interval.estimate - interval.low == pytest.approx(row.minus, abs=4e-4)


def test_gate_histogram_panels_hold_all_hundred_runs():
    counts = published.load("nau_nmu_fig9_gate_histogram").groupby(["op", "model"])["value"].sum()
    assert set(counts) == {100}


def test_rates_and_counts_of_the_division_paper_agree():
    for model, solved in (("Real NPU (modified)", 192), ("Real NPU (baseline)", 158), ("NMRU", 206)):
        rate = published.value("division_values", item="abstract/Fig 6", model=model, metric="success rate")
        assert rate == pytest.approx(solved / 225, abs=6e-4)


def test_bad_input_is_one_sentence():
    with pytest.raises(
        ValueError, match="No published table is called 'npu_value': did you mean 'npu_values'"
    ):
        published.load("npu_value")
    with pytest.raises(ValueError, match="allowed: 'division_golden_errors', 'division_values'"):
        published.load("zzz")
    with pytest.raises(ValueError, match="no column 'modell': did you mean 'model'"):
        published.value("npu_values", modell="NPU")
    with pytest.raises(ValueError, match="0 rows of npu_values fit model='NRU'"):
        published.value("npu_values", model="NRU")
    with pytest.raises(ValueError, match="24 rows of npu_values fit item='Table A2'; exactly one must"):
        published.value("npu_values", item="Table A2")
    with pytest.raises(ValueError, match="'03:20', which is not a number"):
        published.value(
            "division_values", item="Table 7", setting="2 inputs, no redundancy", model="Real NPU"
        )


def test_the_printed_table_6_is_the_authors_file_rounded():
    places = ["op", "model", "metric"]
    exact = published.load("nau_nmu_table6_repo_fullprecision")
    both = published.load("nau_nmu_table6").merge(exact, on=places, suffixes=("", "_exact"))
    values = both.dropna(subset=["value", "value_exact"])
    assert len(values) == 123
    rounded = [float(f"{value:.2g}") for value in values["value_exact"]]
    off = values[~np.isclose(values["value"], rounded, rtol=1e-9)]
    # printed is 2.0 million, and in the file 1,932,665
    assert off[places].to_numpy().tolist() == [["mul", "NAC•,NMU", "solved_at_step_mean"]]
    rates = both[both["metric"] == "success_rate"].dropna(subset=["plus", "minus"], how="all")
    for side in ("plus", "minus"):
        known = rates.dropna(subset=[side, f"{side}_exact"])
        assert len(known) > 30
        np.testing.assert_allclose(known[side], known[f"{side}_exact"].round(2), atol=1e-9)


def test_what_is_said_of_the_points_of_figure_4_of_the_npu_paper_follows_from_them():
    points = published.load("npu_pareto").query("kind == 'run'").groupby("model")
    said = published.load("npu_values").query("item == 'Fig 4'")
    assert set(said["model"]) == set(points.groups) and (points.size() == 100).all()
    asked = {
        "best train MSE over 100 runs": lambda part: part["train_mse"].min(),
        "median train MSE over 100 runs": lambda part: part["train_mse"].median(),
        "runs with MSE < 0.1": lambda part: (part["train_mse"] < 0.1).sum(),
        "runs with MSE < 1": lambda part: (part["train_mse"] < 1).sum(),
        "runs with MSE > 1e4": lambda part: (part["train_mse"] > 1e4).sum(),
        "sparsest run: parameters": lambda part: part["n_params_abs_gt_0.001"].min(),
    }
    known = said[said["metric"].isin(asked)]
    assert len(known) == 6 * 3
    for one in known.to_dict("records"):
        found = asked[one["metric"]](points.get_group(one["model"]))
        assert one["value"] == pytest.approx(found, rel=1e-3), one


def test_the_median_sizes_of_figure_7_of_the_npu_paper_follow_from_its_points():
    points = published.load("npu_fig7").replace({"task": {"add": "+", "mult": "x"}})
    medians = points.groupby(["task", "model"])["n_params_abs_gt_0.01"].median()
    said = published.load("npu_values")
    said = said[(said["item"] == "Fig 7") & said["metric"].str.startswith("median number of parameters")]
    assert len(said) == len(medians) == 20
    for one in said.to_dict("records"):
        assert one["value"] == medians[one["task"], one["model"]], one
