"""What chapters ask of rows: counts, rates and figures that say "not run" where there is nothing."""

import pandas as pd
import pytest
from companion.experiment import rows as module
from companion.experiment.rows import NOT_RUN, Rows, counted, say, with_numbers
from companion.experiment.tables import text, within
from companion.measures import Interval, Spread


@pytest.fixture
def rows():
    lines = [
        {
            "model": model,
            "range": place,
            "seed": seed,
            "success": seed < solved,
            "solved_at": 1000.0 * (seed + 1),
        }
        for model, place, solved in (("NRU", "U[1,2)", 3), ("NMRU", "U[1,2)", 1), ("NRU", "U[-2,2)", 0))
        for seed in range(4)
    ]
    return Rows(pd.DataFrame(lines).assign(solved_at=1000.0, sparsity_error=1e-6))


@pytest.fixture
def said(monkeypatch):
    glued = {}
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: glued.update({name: value}))
    return glued


def test_counts_and_rates_have_a_cell_for_each_place_and_model(rows):
    counts, rates = rows.counts(["U[1,2)", "U[-2,2)"], ["NRU", "NMRU"]), rows.rates(["U[1,2)"], ["NMRU"])
    assert counts.frame.to_dict("records") == [
        {"range": "U[1,2)", "NRU": "3 of 4", "NMRU": "1 of 4"},
        {"range": "U[-2,2)", "NRU": "0 of 4", "NMRU": NOT_RUN},
    ]
    assert rates.frame["NMRU"].tolist() == [rows.rate(model="NMRU", range="U[1,2)")]
    by_model = rows.counts(["NMRU"], ["NMRU"], "Solved", by="model")
    assert by_model.caption == "Solved" and by_model.frame.to_dict("records") == [
        {"model": "NMRU", "NMRU": "1 of 4"}
    ]


def drawn(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_figure_of_some_models_and_of_all_where_none_of_these_ran(rows):
    assert drawn(rows.by_range(["NMRU"])) == ["NMRU"]
    everything = rows.by_range(["Real NPU (modified)"], xlabel="training range")
    assert {"NRU", "NMRU"} <= set(drawn(everything))
    assert everything.axes[-1].get_xlabel() == "training range"
    assert len(rows.by_range(panels=("success",)).axes) == 1
    assert rows.of(model="NAU").by_range() == NOT_RUN


def test_numbers_are_said_as_text(said):
    say({"a-rate": 0.123456, "word": "none"}, runs=50_000)
    assert said == {"a-rate": "0.123", "word": "none", "runs": "50,000"}


def test_what_is_shown_comes_back_and_its_numbers_are_said(said):
    class Judged:
        count = "3 of 4"

    judged = Judged()
    assert counted("claims", judged) is judged and said == {"claims": "3 of 4"}
    assert with_numbers("a table", {"n": 2}) == "a table" and said["n"] == "2"


def test_the_page_calls_for_nothing_that_is_not_there():
    assert set(module.__all__) <= set(vars(module))


def test_numbers_that_are_negative_infinite_or_without_an_end_as_text():
    nan, inf = float("nan"), float("inf")
    assert [text(one) for one in (-1500.0, -inf, inf)] == ["-1,500", "−∞", "∞"]
    assert [text(Interval(1.0, *ends, 3)) for ends in ((nan, 2.0), (0.5, nan))] == ["1", "1"]
    assert [text(Spread(*one, 3)) for one in ((inf, 2.0), (1234.5, 15.0))] == ["∞", "1234 ± 15"]
    assert within(0.07) == "7%"
    assert [text(999.6), text(99.7, 2), text(50.0, 1), text(1e7)] == ["1,000", "99.7", "50", "1e+07"]


def test_middles_means_and_shares_leave_out_what_is_missing():
    frame = pd.DataFrame({"success": [True, False, None, True], "error": [1.0, 2.0, 6.0, None]})
    rows = Rows(frame.assign(iterations=[1000, 2000, 9000, 4000]))
    assert (rows.middle("error"), rows.middle("error", statistic=max)) == ("2", "6")
    assert (rows.whole("iterations"), rows.whole("iterations", max)) == ("4,000", "9,000")
    assert (rows.share(frame["error"] > 5), rows.count()) == ("1 of 4", "2 of 4")
    assert len(rows.solved) == len(rows.failed) == 2  # without an answer it is not solved
    none = Rows(frame[:0].assign(iterations=[]))
    assert {none.middle("error"), none.whole("iterations"), none.share([]), none.cost} == {NOT_RUN}
