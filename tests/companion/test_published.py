"""Every published table loads, is as long as it should be, and agrees with what the papers print."""

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
