"""Figures: readable at the width of a page, told apart by colour-blind eyes, the same on every run."""

import base64
import io
import itertools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from companion import figures
from companion.experiment import tables
from companion.figures.styles import tick
from companion.measures import Interval, Spread
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb
from nbval.plugin import get_sanitize_patterns
from PIL import Image

# units that the papers draw together
TOGETHER = [
    ["Real NPU (baseline)", "Real NPU (modified)", "NRU", "NMRU"],
    ["NPU", "RealNPU", "NMU", "NALU", "iNALU", "Dense"],
    ["NPU", "RealNPU", "NaiveNPU", "NMU", "NALU", "iNALU"],
    ["NAC•", "NAC•,σ", "NAC•,NMU", "NALU", "NMU", "Gated NAU/NMU"],
    ["NAC+", "Linear", "NALU", "NAU"],
    ["NAC•", "NAC•,σ", "NAC•,NMU", "NALU", "NMU", "LSTM", "exact product"],
    ["NAC+", "NAC+,Rz", "NALU", "NAU", "LSTM", "exact sum"],
    ["Real NPU (modified)", "NPU (no constraints)", "NPU (clip & reg)"],
    ["Gated NAU/NMU", "NALU (shared)", "NALU (separate)"],
]
# colours as seen without one kind of cone (Machado, Oliveira & Fernandes 2009, full severity), linear RGB
SIGHT = {
    "full": np.eye(3),
    "no red cones": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green cones": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
}


def _linear(colour):
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _lab(linear):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        linear, 0, 1
    )
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.fixture
def summary():
    places = ["U[-20,-10)", "U[-2,2)", "U[1,2)", "U[0.1,0.2)", "U[1.1,1.2)", "U[10,20)"]
    table = pd.DataFrame(list(itertools.product(TOGETHER[0], places)), columns=["model", "range"])
    table = table.assign(success=0.8, success_low=0.6, success_high=0.95, solved_at_mean=2e4)
    table = table.assign(solved_at_low=1e4, solved_at_high=3e4)
    return table.assign(sparsity_error=1e-6, sparsity_error_low=0.0, sparsity_error_high=np.inf)


@pytest.mark.parametrize("name", figures.UNIT_STYLES)
def test_colours_stand_out_from_the_white_ground(name):
    luminance = float(_linear(figures.UNIT_STYLES[name][0]) @ [0.2126, 0.7152, 0.0722])
    assert 1.05 / (luminance + 0.05) >= 3


@pytest.mark.parametrize("sight", SIGHT)
def test_units_drawn_together_stay_apart_for_every_eye(sight):
    for group in TOGETHER:
        for one, other in itertools.combinations(group, 2):
            (colour, marker), (second, second_marker) = figures.unit_style(one), figures.unit_style(other)
            assert marker != second_marker, (one, other)
            apart = np.linalg.norm(
                _lab(SIGHT[sight] @ _linear(colour)) - _lab(SIGHT[sight] @ _linear(second))
            )
            assert apart > 12, (one, other, sight, apart)


def test_a_unit_looks_the_same_under_all_its_names():
    assert (
        figures.unit_style("RealNPU")
        == figures.unit_style("Real NPU")
        == figures.unit_style("Real NPU (baseline)")
    )
    assert figures.unit_style("NMU, no R_sparse") == figures.unit_style("NMU")
    assert figures.unit_style("Real NPU (modified), PCC") == figures.unit_style("Real NPU (modified)")
    assert figures.unit_style("NRU (separate sign)") == figures.unit_style("NRU")
    assert figures.unit_style("unheard of") == ("#4C4C4C", "o")  # in every process


def _fonts(figure):
    figure.draw_without_rendering()
    from matplotlib.text import Text

    return [text.get_fontsize() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


@pytest.mark.parametrize(
    "names",
    [
        ["NRU", "NRU, lr 1e-1", "NRU, lr 1e-2", "NMRU"],
        ["NMU", "NMU, no R_sparse", "NMU, no W-clamp", "NMU, no R_sparse, no W-clamp"],
        ["no L1", "L1 1e-11 to 1e-09", "L1 1e-09 to 1e-07", "L1 0.1 to 10", "clip both", "L2"],
        ["Real NPU (modified)", "Real NPU (modified), PCC", "Real NPU (modified), MAPE"],
        ["Real NPU (baseline)", "Real NPU (modified)", "Real NPU (modified), {-1,0,1}"],
        ["NAC•", "NAC+", "NAC•,σ", "NAC•,NMU", "NAC•,NMU, no R_z"],
        ["NMRU, vanilla", "NMRU, sign", "NMRU", "NMRU, gate to 0", "NMRU, SGD"],
    ],
)
def test_variants_in_a_figure_are_told_apart_and_stand_out(names):
    styles = figures.styles_of(names)
    assert list(styles) == names and len({look.colour for look in styles.values()}) == len(names)
    for look in styles.values():
        assert 1.05 / (float(_linear(look.colour) @ [0.2126, 0.7152, 0.0722]) + 0.05) >= 3
    units = {name: re.match("Real NPU|NAC|NMU|NMRU|NRU|", name)[0] for name in names}
    assert len({(units[name], look.fill, look.line) for name, look in styles.items()}) == len(names)
    assert all(look.marker != "o" for look in styles.values() if look.fill == "none")  # a published value


def test_a_unit_is_filled_and_solid_and_its_variants_are_not():
    styles = figures.styles_of(["NRU, lr 1e-1", "Real NPU (modified)", "NRU", "Real NPU", "NRU, sign"])
    cues = {name: (look.fill, look.line) for name, look in styles.items()}
    assert cues["NRU"] == cues["Real NPU"] == ("full", "-")
    assert cues["NRU, lr 1e-1"] == cues["Real NPU (modified)"] == ("none", "--")
    assert cues["NRU, sign"] == ("bottom", ":")


@pytest.fixture
def variants():
    rows = list(itertools.product(["NMU", "NMU, no R_z"], ["1", "2"], range(2)))
    table = pd.DataFrame(rows, columns=["model", "length", "seed"]).assign(test_mse=1e-6, task="×")
    return table.assign(success=0.5, success_low=0.4, success_high=0.6, at=table["length"].astype(int))


@pytest.mark.parametrize(
    ("draw", "lined"),
    [
        (lambda table: figures.by_range(table, x="length", panels="success"), False),
        (lambda table: figures.scatter(table, x="at"), False),
        (lambda table: figures.distribution(table), True),
        (lambda table: figures.curves(table, x="at"), True),
        (lambda table: figures.over_lengths(table[table["seed"] == 0], panels=["success"]), True),
    ],
)
def test_figures_and_their_legends_tell_variants_apart_without_colour(variants, draw, lined):
    figure = draw(variants)
    entries = figure.legends[0].get_lines()
    marks = [line for line in figure.axes[0].lines if line.get_marker() not in ("None", None)]
    for unit, variant in (entries, marks):
        assert unit.get_markerfacecolor() == unit.get_color()
        assert variant.get_markerfacecolor() == "white" and variant.get_markeredgecolor() != "white"
    assert [entry.get_linestyle() for entry in entries] == (["-", "--"] if lined else ["None"] * 2)
    drawn = {line.get_linestyle() for line in figure.axes[0].lines if line.get_linewidth() != 0.7}
    assert not lined or {"-", "--"} <= drawn


@given(st.lists(st.sampled_from([*figures.UNIT_STYLES, "NRU, lr 1e-1", "NMRU, sign", "no L1"]), min_size=1))
def test_a_unit_has_one_look_in_the_whole_book(names):
    """But for two names of one look, such as the Real NPU and its baseline, where they meet."""
    styles = figures.styles_of(names)
    for name in set(names) & set(figures.UNIT_STYLES):
        alike = [other for other in names if figures.unit_style(other) == figures.unit_style(name)]
        if alike[0] == name:
            assert (styles[name].colour, styles[name].marker) == figures.unit_style(name)


def test_a_unit_looks_alike_whichever_is_drawn_first():
    names = ["NAC•,NMU", "NAC•,σ", "NMU", "Gated NAU/NMU", "NALU (separate)", "NALU (shared)"]
    looks = figures.styles_of(names), figures.styles_of(names[::-1])
    assert all(looks[0][name] == looks[1][name] for name in names)


def test_models_look_as_in_other_figures_of_a_chapter(summary):
    steps = ["no L1", "clip gate", "clip both", "discretise both"]
    renamed = summary.replace({"model": dict(zip(TOGETHER[0], steps, strict=True))})
    looks = []
    for part in (steps[:3], steps[2:]):
        figure = figures.by_range(renamed[renamed["model"].isin(part)], among=steps)
        looks.append({line.get_label(): line for line in figure.legends[0].get_lines()}["clip both"])
    assert looks[0].get_color() == looks[1].get_color() and looks[0].get_marker() == looks[1].get_marker()


def test_three_panels(summary):
    published = pd.DataFrame(
        {"model": ["NRU", "LSTM"], "range": ["U[-2,2)", "U[1,2)"], "success": [1.0, 1.0]}
    )
    figure = figures.by_range(summary, published=published)
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "success rate",
        "solved at iteration",
        "sparsity error",
    ]
    assert figure.axes[2].get_yscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*TOGETHER[0], "LSTM", "published"]
    rings = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    assert len(rings) == 2 and min(_fonts(figure)) >= 9


def test_each_model_has_its_own_values_in_all_three_panels():
    """One estimate per model and panel, none of which is that of another."""
    table = pd.DataFrame({"model": ["NRU", "NRU", "NMRU", "NMRU"], "range": ["U[-2,2)", "U[1,2)"] * 2})
    table = table.assign(
        success=[0.1, 0.2, 0.3, 0.4],
        solved_at_mean=[1e3, 2e3, 3e3, 4e3],
        sparsity_error=[1e-5, 2e-5, 3e-5, 4e-5],
    )
    for name in ("success", "solved_at", "sparsity_error"):
        middle = table["solved_at_mean" if name == "solved_at" else name]
        table = table.assign(**{f"{name}_low": middle * 0.9, f"{name}_high": middle * 1.1})
    figure = figures.by_range(table)
    expected = [
        ("success", [0.1, 0.2], [0.3, 0.4]),
        ("solved_at", [1e3, 2e3], [3e3, 4e3]),
        ("sparsity_error", [1e-5, 2e-5], [3e-5, 4e-5]),
    ]
    for axis, (name, *estimates) in zip(figure.axes, expected, strict=True):
        nru, nmru = (line for line in axis.lines if line.get_linestyle() == "None")
        assert [nru.get_color(), nmru.get_color()] == [
            figures.unit_style("NRU")[0],
            figures.unit_style("NMRU")[0],
        ]
        assert [list(nru.get_ydata()), list(nmru.get_ydata())] == estimates, name
        ends = [[part[:, 1].tolist() for part in bars.get_segments()] for bars in axis.collections]
        np.testing.assert_allclose(
            ends,
            [[[0.9 * middle, 1.1 * middle] for middle in of_model] for of_model in estimates],
            err_msg=name,
        )


def test_one_panel_without_solved_runs(summary):
    summary[["solved_at_mean", "solved_at_low", "solved_at_high"]] = np.nan
    figure = figures.by_range(summary, panels="solved_at")
    assert "no run was solved" in [text.get_text() for text in figure.axes[0].texts]


@pytest.mark.parametrize("others", [0.0, 1e-6])
def test_zeros_stand_on_a_logarithmic_axis_where_it_says_0(summary, others):
    for column in ("sparsity_error", "sparsity_error_low", "sparsity_error_high"):
        summary[column] = np.where(summary["model"] == "NRU", 0.0, others)
    (axis,) = figures.by_range(summary, panels="sparsity_error").axes
    (zero,) = (
        place
        for place, label in zip(axis.get_yticks(), axis.get_yticklabels(), strict=True)
        if label.get_text() == "0"
    )
    drawn = {line.get_color(): line.get_ydata() for line in axis.lines if line.get_linestyle() == "None"}
    assert (drawn[figures.unit_style("NRU")[0]] == zero).all()
    assert (drawn[figures.unit_style("NMRU")[0]] == (others or zero)).all()
    assert axis.get_ylim()[0] < zero < others or not others
    assert (len(axis.get_yticks()) > 1) == bool(others)


def test_a_place_without_solved_runs_is_no_empty_place(summary):
    summary.loc[summary["model"] == "NRU", ["solved_at_mean", "solved_at_low", "solved_at_high"]] = np.nan
    summary.loc[summary["model"] == "NRU", "success"] = 0.0
    figure = figures.by_range(summary, panels=["success", "solved_at"])
    ticks = [line for line in figure.axes[1].lines if line.get_marker() == "|"]
    assert sum(len(line.get_xdata()) for line in ticks) == (summary["model"] == "NRU").sum()
    assert "no run solved" in [text.get_text() for text in figure.legends[0].get_texts()]
    assert not [line for line in figure.axes[0].lines if line.get_marker() == "|"]


def test_the_mark_of_no_run_solved_stands_out_on_light_and_dark_pages(summary):
    summary.loc[summary["model"] == "NRU", "success"] = 0.0
    summary.loc[summary["model"] == "NRU", ["solved_at_mean", "solved_at_low", "solved_at_high"]] = np.nan
    figure = figures.by_range(summary, panels="solved_at")
    picture = Image.open(io.BytesIO(base64.b64decode(figure._repr_mimebundle_()[0]["image/png"])))
    (entry,) = (line for line in figure.legends[0].get_lines() if line.get_marker() == "|")
    (left, bottom), (right, top) = entry.get_window_extent().get_points()
    mark = picture.convert("L").crop((left, picture.height - top, right, picture.height - bottom))
    shown = np.asarray(mark.resize((mark.width // 2, mark.height // 2), Image.Resampling.BOX)) / 255
    for page in (shown, 0.9 - 0.8 * shown):  # as it is, and after the invert(0.9) of the style sheet
        dark, light = (float(_linear([one] * 3)[0]) + 0.05 for one in (page.min(), page.max()))
        assert light / dark >= 4.5  # of text: it is as thin


def test_pictures_are_sharp_and_repeatable(summary):
    shows = [figures.by_range(summary)._repr_mimebundle_() for _ in range(2)]
    assert shows[0] == shows[1]
    data, metadata = shows[0]
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert picture.width == 1400 and metadata["image/png"] == {"width": 700}
    assert set(picture.info) == {"dpi"}  # no version of matplotlib and no date
    assert picture.convert("RGBA").getpixel((0, 0)) == (255, 255, 255, 255)
    assert " at 0x" not in data["text/plain"]


def test_error_maps_keep_to_their_scale():
    grid, positive = np.arange(-4.1, 4, 0.2), np.arange(0.1, 4.05, 0.1)
    errors = {
        "x + y": {"NPU": np.full((41, 41), 1e-9), "NMU": np.full((41, 41), np.inf)},
        "√x": {"NPU": np.full((40, 40), np.nan)},
    }
    figure = figures.error_maps(errors, {"x + y": (grid, grid), "√x": (positive, positive)})
    first, second, third, empty = figure.axes[:4]
    assert first.collections[0].get_array().min() == -4 and second.collections[0].get_array().max() == 2
    assert third.collections[0].get_array().mask.all() and not empty.collections
    assert min(_fonts(figure)) >= 9
    with pytest.raises(ValueError, match=r"has shape \(40, 40\); its grid asks for \(41, 41\)"):
        figures.error_maps({"√x": errors["√x"]}, {"√x": (grid, grid)})
    with pytest.raises(ValueError, match="no task with a grid called '√x'"):
        figures.error_maps(errors, {"x + y": (grid, grid)})
    with pytest.raises(ValueError, match="no error maps"):
        figures.error_maps({}, {})


def test_learning_curves():
    logs = pd.DataFrame(
        [
            {"model": model, "seed": seed, "iteration": step, "test_mse": 10.0 ** (-step / 1000 - seed)}
            for model, seed, step in itertools.product(["NRU", "NMRU"], range(3), range(0, 5001, 1000))
        ]
    )
    figure = figures.curves(logs, threshold=1e-5)
    assert len(figure.axes[0].lines) == 2 * (3 + 1) + 1 and figure.axes[0].get_yscale() == "log"
    with pytest.raises(ValueError, match="no column of the logs called 'sed': did you mean 'seed'"):
        figures.curves(logs, run="sed")


def test_the_thick_line_of_learning_curves_is_the_median():
    rows = [(seed, step, error) for step in (0, 10) for seed, error in enumerate([1e-3, 1e-2, 1e5 + step])]
    logs = pd.DataFrame(rows, columns=["seed", "iteration", "test_mse"])
    *runs, middle = figures.curves(logs.assign(model="NMU")).axes[0].lines
    assert [list(line.get_ydata()) for line in runs] == [[1e-3] * 2, [1e-2] * 2, [1e5, 1e5 + 10]]
    assert list(middle.get_xdata()) == [0, 10] and list(middle.get_ydata()) == [1e-2, 1e-2]


def test_distribution_shows_success_rates():
    rows = pd.DataFrame(
        {"model": ["NMU"] * 4 + ["NALU"] * 2, "test_mse": [1e-9, 1e-8, 10.0, np.nan, 0.0, np.inf]}
    )
    figure = figures.distribution(rows, threshold=1e-5, published={"NMU": 0.94, "LSTM": 1.0})
    axis = figure.axes[0]
    nmu, nalu = (line for line in axis.lines if line.get_drawstyle() == "steps-post")
    assert np.interp(-5, np.log10(nmu.get_xdata()[:3]), nmu.get_ydata()[:3]) == nmu.get_ydata()[2] == 0.5
    assert nmu.get_ydata()[-1] == 0.75 and nalu.get_ydata()[-1] == 0.5  # NaN and infinity are in no share
    rings = [line for line in axis.lines if line.get_markerfacecolor() == "none"]
    assert [(ring.get_xdata()[0], ring.get_ydata()[0]) for ring in rings] == [(1e-5, 0.94)]
    assert axis.get_xscale() == "log" and min(_fonts(figure)) >= 9
    figures.distribution(rows[rows["model"] == "NALU"]).draw_without_rendering()
    alone = figures.distribution(rows[rows["test_mse"] == 10.0], threshold=1e-5)
    assert alone.axes[0].get_xlim()[0] < 1e-5 and min(_fonts(alone)) >= 9
    with pytest.raises(ValueError, match="no column of the rows called 'test': did you mean 'test_mse'"):
        figures.distribution(rows, value="test")


def test_a_scatter_of_runs_beside_published_ones():
    points = pd.DataFrame(
        [
            {"model": model, "task": task, "side": side, "count": 10 + seed, "test_mse": error}
            for model, task, side in itertools.product(["NPU", "NMU"], "+÷", ["one", "two"])
            for seed, error in enumerate([1e-7, np.inf, np.nan])
        ]
    )
    published = points[(points["side"] == "one") & (points["model"] == "NMU")]
    figure = figures.scatter(
        points,
        x="count",
        column="side",
        published=published,
        levels={"+": 0.1},
        limits={"÷": (1e-9, 1.0)},
        level_name="a constant",
        xlabel="parameters",
    )
    upper, _, left, right = figure.axes
    assert [axis.get_ylabel() for axis in (upper, left)] == [
        "+: test MSE",
        "÷: test MSE",
    ] and upper.get_title() == "one"
    assert (left.get_xscale(), left.get_yscale(), left.get_ylim(), right.get_xlabel()) == (
        "log",
        "log",
        (1e-9, 1.0),
        "parameters",
    )
    assert [len(axis.lines) for axis in figure.axes] == [4, 3, 3, 2]  # with a dashed line, without rings
    assert all(list(line.get_ydata()) == [1e-7, 1.0] for line in left.lines)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "NPU",
        "NMU",
        "published",
        "a constant",
    ]
    assert min(_fonts(figure)) >= 9
    assert len(figures.scatter(points, x="count").axes) == 2
    with pytest.raises(ValueError, match="no column of the points called 'counts': did you mean 'count'"):
        figures.scatter(points, x="counts")


def test_gates_are_counted_in_bins_around_the_choices():
    rows = pd.DataFrame(
        [
            {"operation": operation, "model": model, "gate": gate, "success": success}
            for operation, model in itertools.product(["mul", "add"], ["NALU (shared)", "NALU (separate)"])
            for gate, success in [(0.0, True), (0.02, True), (0.022, False), (1.0, False), (np.nan, False)]
        ]
    )
    published = rows.dropna().assign(count=3).iloc[:1]
    figure = figures.gate_histograms(rows, published)
    assert [axis.get_title() for axis in figure.axes] == ["NALU (shared)", "NALU (separate)", "", ""]
    heights = [[bar.get_height() for bar in axis.patches] for axis in figure.axes]
    assert heights == [[2, 1, 1]] * 4  # solved near 0; not solved around 1/24 and at 1
    centres = [bar.get_x() + bar.get_width() / 2 for bar in figure.axes[0].patches]
    np.testing.assert_allclose(centres, [-1 / 96, 1 / 24 + 1 / 96, 1 + 1 / 96])
    assert [list(line.get_ydata()) for line in figure.axes[0].lines] == [[3], []]
    assert min(_fonts(figure)) >= 9
    with pytest.raises(ValueError, match="no column of the rows called 'gates': did you mean 'gate'"):
        figures.gate_histograms(rows, row="gates")


def test_bad_input_is_one_sentence(summary):
    with pytest.raises(ValueError, match="no panel called 'sucess': did you mean 'success'"):
        figures.by_range(summary, panels=("sucess",))
    with pytest.raises(ValueError, match="no column of the summary called 'ranges': did you mean 'range'"):
        figures.by_range(summary, x="ranges")


def test_style_is_left_as_it_was():
    import matplotlib

    before = dict(matplotlib.rcParams)
    with figures.style():
        assert matplotlib.rcParams["font.size"] == 10
    assert dict(matplotlib.rcParams) == before


def test_a_table_takes_lines_as_they_come():
    as_mappings = tables.Table([{"unit": "NRU", "n": 1}, {"unit": "NMRU", "n": 2}])
    as_sequences = tables.Table([["NRU", 1], ["NMRU", 2]], columns=["unit", "n"])
    as_columns = tables.Table({"unit": ["NRU", "NMRU"], "n": [1, 2]})
    assert as_mappings._repr_html_() == as_sequences._repr_html_() == as_columns._repr_html_()
    for nothing in ([], iter([])):
        assert repr(tables.Table(nothing, "Runs", columns=["unit"])).split("\n")[0::2] == ["Runs", "not run"]


def test_what_the_processor_decides_is_not_compared():
    """However many digits it has, or powers of ten."""
    patterns = get_sanitize_patterns((Path(__file__).parents[1] / "book" / "sanitize.cfg").read_text())

    def compared(number):
        shown = tables.Table({"error of the NMU": [tables.about(number)], "of": ["the last"]})
        html, plain = shown._repr_html_(), repr(shown)
        for regex, replace in patterns:
            html, plain = re.sub(regex, replace, html), re.sub(regex, replace, plain)
        return html, plain

    assert "ABOUT</td>" in compared("0.5")[0] and "ABOUTthe last" in compared("0.5")[1]
    assert compared("0.5") == compared("9e-06") == compared("1.25e-05") == compared("7e+03")


def test_a_table_as_a_page_and_as_text():
    frame = pd.DataFrame(
        {
            "model": ["NRU", "N<M>RU"],
            "here": [Interval(0.64, 0.44518, 0.79752, 25), Interval(1.0, np.nan, np.nan, 1)],
            "published": [Spread(0.08, 0.021, 20), Spread(1.0, 0.5, 20)],
            "iterations": [50000, 200000],
            "agrees": [True, False],
        }
    )
    table = tables.Table(frame, "Success rates")
    page = table._repr_html_()
    for part in (
        '<p class="nalm-caption">Success rates</p>',
        "0.64 [0.445, 0.798]",
        "0.080 ± 0.021",
        "50,000",
        "N&lt;M&gt;RU",
        "overflow-x:auto",
        "<td>yes</td>",
        '<td class="number">200,000</td>',
        '<td class="number">0.080 ± 0.021</td>',
        'scope="col"',
    ):
        assert part in page
    assert repr(table).splitlines()[2].split()[0] == "NRU"


@pytest.mark.parametrize(
    ("estimate", "spread", "expected"),
    [
        (11.43389, 0.03391, "11.434 ± 0.034"),
        (0.0023, 0.0996, "0.002 ± 0.100"),
        (5.7234e-5, 5.6e-5, "0.000057 ± 0.000056"),
        (5.7234e-7, 5.6e-7, "5.72e-07 ± 5.6e-07"),
        (285.44, 12.34, "285 ± 12"),
        (3750.0, 870.0, "3,750 ± 870"),
        (2.9e83, 2.9e83, "2.9e+83 ± 2.9e+83"),
        (2.84, float("nan"), "2.84 ± –"),
        (2.84, 0.0, "2.84 ± 0"),
        (float("nan"), float("nan"), "– ± –"),
    ],
)
def test_spreads_end_at_their_second_digit(estimate, spread, expected):
    assert tables.text(Spread(estimate, spread, 20)) == expected


def test_lines_over_lengths_are_in_order_with_bands_and_rings():
    places = ["1", "10", "2"]
    table = pd.DataFrame(
        {
            "length": places,
            "model": "NMU",
            "success": [0.9, 0.5, 0.7],
            "success_low": 0.1,
            "success_high": 1.0,
        }
    )
    (axis,) = figures.over_lengths(table, table[["length", "model", "success"]], panels=["success"]).axes
    rings, ours = axis.lines
    assert ours.get_ydata().tolist() == rings.get_ydata().tolist() == [0.9, 0.7, 0.5]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["1", "2", "10"]
    assert len(axis.collections) == 1 and rings.get_markerfacecolor() == "none"
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.over_lengths()
    with pytest.raises(ValueError, match="no panel called 'succes'"):
        figures.over_lengths(table, panels=["succes"])


def test_the_text_of_a_figure_are_the_numbers_that_it_draws(summary):
    published = pd.DataFrame({"model": ["NRU"], "range": ["U[-2,2)"], "success": [0.0]})
    figure = figures.by_range(summary.assign(sparsity_error=0.0), published=published)
    said = figure._repr_mimebundle_()[0]["text/plain"]
    assert said == figure.numbers()
    rates = summary[summary["model"] == "NMRU"].set_index("range")["success"].dropna()
    shown = "; ".join(f"{place} {rate:.3g}" for place, rate in rates.items())
    assert f"  NMRU: {shown}" in said.splitlines() and "  NRU, published: U[-2,2) 0" in said.splitlines()
    errors = said[said.index("sparsity error:") :].splitlines()[1:]
    assert all(number == "0" for line in errors for number in re.findall(r"\) ([^;]+)", line))
    many = pd.DataFrame(
        {"x": np.arange(1.0, 100), "test_mse": np.arange(1.0, 100), "model": "NMU", "task": "×"}
    )
    assert "NMU: 99 marks, medians 50 and 50" in figures.scatter(many, x="x").numbers()
    figure = figures.Figure()
    axis = figure.subplots()
    axis.plot([0.5, 1.0], [0, 1], "o", gid="NRU")
    axis.set_yticks([0, 1], ["U[1,2)", "U[-2,2)"])
    assert "  NRU: U[1,2) 0.5; U[-2,2) 1" in figure.numbers().splitlines()


def test_functions_share_looks_and_mark_points():
    x = np.linspace(0, 1, 5)
    panels = {"one": {"a": (x, x), "b": (x, x**2)}, "two": {"b": (x, 1 - x)}}
    figure = figures.functions(panels, {"two": [(0.5, 0.5)]}, xlabel="u", ylabel="v", xlim=(0, 1))
    first, second = figure.axes
    assert [line.get_color() for line in second.lines][0] == first.lines[1].get_color()
    assert [axis.get_xlabel() for axis in figure.axes] == ["u", "u"] and first.get_ylabel() == "v"
    assert second.lines[-1].get_xydata().tolist() == [[0.5, 0.5]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def _marks(axis):
    """Name of the marks -> what they look like and where they are."""
    return {line.get_gid(): line for line in axis.lines if line.get_gid()}


def test_two_ways_of_training_stand_beside_each_other_in_a_panel_of_their_own():
    rates = {("+", 2): (0.1, 0.2), ("+", 10): (0.3, 0.4), ("×", 2): (0.5, 0.6), ("×", 10): (0.7, 0.8)}
    lines = pd.DataFrame(
        {"arm": arm, "unit": unit, "operation": operation, "inputs": inputs}
        | {"rate": rate + shift, "low": rate + shift - 0.01, "high": rate + shift + 0.02}
        for (operation, inputs), pair in rates.items()
        for unit, shift in (("NMU", 0.0), ("NAU", 0.05))
        for arm, rate in zip(("paper", "own"), pair, strict=True)
    )
    figure = figures.changes(lines, "paper", "own")
    for axis, (place, (first, second)) in zip(figure.axes, rates.items(), strict=True):
        marks = _marks(axis)
        for at, (unit, shift) in enumerate((("NMU", 0.0), ("NAU", 0.05))):
            ring, dot = marks[f"{unit}, paper"], marks[f"{unit}, own"]
            assert ring.get_markerfacecolor() == "none" != dot.get_markerfacecolor()
            np.testing.assert_allclose(ring.get_xydata(), [(first + shift, at)], err_msg=place)
            np.testing.assert_allclose(dot.get_xydata(), [(second + shift, at)], err_msg=place)
            assert ring.get_color() == dot.get_color() == figures.unit_style(unit)[0]
            (span,) = axis.collections[at].get_segments()
            np.testing.assert_allclose(span, [(second + shift - 0.01, at), (second + shift + 0.02, at)])
    names = [[label.get_text() for label in axis.get_yticklabels()] for axis in figure.axes]
    assert names == [["NMU", "NAU"], ["", ""]] * 2
    assert [axis.get_title() for axis in figure.axes] == ["2 inputs", "10 inputs", "", ""]
    assert [axis.get_ylabel() for axis in figure.axes] == ["+", "", "×", ""]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["paper", "own"]


def test_a_bar_is_as_long_as_its_value_says_and_hollow_if_it_is_a_limit():
    (axis,) = figures.bars({"measured": 10.0, "possible": 4000.0}, "rate", limits=["possible"]).axes
    measured, possible = axis.patches
    assert [bar.get_width() for bar in axis.patches] == [10.0, 4000.0]
    assert measured.get_facecolor()[3] == 1 and possible.get_facecolor()[3] == 0
    assert [text.get_text() for text in axis.texts] == ["10", "4,000"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["measured", "possible"]
    with pytest.raises(ValueError, match="need positive numbers"):
        figures.bars({"nothing": 0.0}, "rate")


def test_costs_stand_over_the_number_that_they_are_of():
    pairs = {"runs": [(1, 40.0), (10, 5.0)], "inputs": [(2, 1.0), (100, 3.0)]}
    figure = figures.cost_curves(pairs, "cost")
    found = {axis.get_xlabel(): list(map(tuple, axis.lines[0].get_xydata())) for axis in figure.axes}
    assert found == pairs and [axis.get_ylabel() for axis in figure.axes] == ["cost", ""]


def test_bands_over_lengths_are_intervals_and_rates_alone_stand_aside():
    table = pd.DataFrame(itertools.product(["NMU", "NALU"], ["1", "20"]), columns=["model", "length"])
    table["success"] = [0.9, 0.7, 0.5, 0.3]
    table["solved_at_mean"] = [1e3, 2e3, 3e3, 4e3]
    for name, middle in (("success", "success"), ("solved_at", "solved_at_mean")):
        table[f"{name}_low"], table[f"{name}_high"] = 0.9 * table[middle], 1.2 * table[middle]
    rates, times = figures.over_lengths(table).axes
    for axis, column in ((rates, "success"), (times, "solved_at_mean")):
        for model, band in zip(["NMU", "NALU"], axis.collections, strict=True):
            expected = table.loc[table["model"] == model, column].to_numpy()
            line = _marks(axis)[model]
            assert line.get_ydata().tolist() == expected.tolist()
            band = band.get_paths()[0].vertices
            for at, middle in zip(line.get_xdata(), expected, strict=True):
                ends = band[np.isclose(band[:, 0], at), 1]
                assert (ends.min(), ends.max()) == pytest.approx((0.9 * middle, 1.2 * middle))
    aside = [(_marks(axis)["NALU"].get_xdata() - _marks(axis)["NMU"].get_xdata()) for axis in (rates, times)]
    assert (0 < aside[0]).all() and (aside[0] < 0.2).all() and (aside[1] == 0).all()


def test_the_threshold_of_learning_curves_stands_where_it_is():
    logs = pd.DataFrame({"model": "NMU", "seed": 0, "iteration": [0, 10], "test_mse": [1.0, 1e-9]})
    (axis,) = figures.curves(logs, threshold=1e-5).axes
    assert [list(line.get_ydata()) for line in axis.lines if line.get_linestyle() == "--"] == [[1e-5] * 2]


def test_points_of_one_panel_of_functions_are_in_no_other():
    x = np.linspace(0, 1, 5)
    panels = {"one": {"a": (x, x)}, "two": {"a": (x, 1 - x)}}
    first, second = figures.functions(panels, {"two": [(0.5, 0.5)]}).axes
    assert (len(first.lines), len(second.lines)) == (1, 2)


def test_each_entry_of_a_course_has_its_panel():
    times, states = np.arange(4.0), np.arange(12.0).reshape(4, 3)
    figure = figures.courses(
        {"true": (times, states), "found": (times, -states)}, "SIR", (times, states + 0.5)
    )
    for entry, (axis, name) in enumerate(zip(figure.axes, "SIR", strict=True)):
        points, true, found = axis.lines
        assert axis.get_title() == name and points.get_linestyle() == "None"
        assert points.get_ydata().tolist() == (states[:, entry] + 0.5).tolist()
        assert true.get_ydata().tolist() == states[:, entry].tolist()
        assert found.get_ydata().tolist() == (-states[:, entry]).tolist()
    entries = {one.get_label(): one for one in figure.legends[0].get_lines()}
    assert list(entries) == ["true", "found", "data"]
    assert (entries["found"].get_color(), entries["found"].get_linestyle()) == (found.get_color(), "--")


def test_an_error_map_lies_on_its_grid_and_is_light_where_errors_are_small():
    x, y = np.array([-1.0, 0.0, 3.0]), np.array([-1.0, 0.0, 0.5])
    errors = np.full((3, 3), 1e-3)
    errors[0, 2] = -10.0  # at x = 3, y = -1
    figure = figures.error_maps({"x + y": {"NPU": errors, "NMU": errors.T}}, {"x + y": (x, y)})
    first, second, bar = figure.axes
    assert [axis.get_title() for axis in (first, second)] == ["NPU", "NMU"]
    (image,) = first.collections
    assert image.get_array().reshape(3, 3).tolist() == np.log10(np.abs(errors)).tolist()
    corners = image.get_coordinates()
    assert corners[0, -1, 0] > 3 > corners[0, 0, 0] and corners[-1, 0, 1] < 1
    dark, light = (sum(image.cmap(image.norm(power))[:3]) for power in (2.0, -4.0))
    assert dark < light
    labels = [
        [one.get_text() for one in ticks] for ticks in (first.get_xticklabels(), first.get_yticklabels())
    ]
    assert labels == [["-1", "3"], ["-1", "0.5"]]
    powers = [f"$10^{{{power}}}$" for power in range(-4, 3)]
    assert [one.get_text() for one in bar.get_yticklabels()] == powers


def test_published_rings_stand_at_their_model_in_its_colour(summary):
    places = list(dict.fromkeys(summary["range"]))
    published = pd.DataFrame(itertools.product(TOGETHER[0], places[:2]), columns=["model", "range"])
    published["sparsity_error"] = [0.0, 1e-3] * 4
    errors = np.where(summary["range"] == places[0], 0.0, 1e-6)
    summary = summary.assign(
        sparsity_error=errors, sparsity_error_low=errors / 2, sparsity_error_high=2 * errors
    )
    (axis,) = figures.by_range(summary, panels="sparsity_error", published=published).axes
    marks = _marks(axis)
    (zero,) = {marks[model].get_ydata()[0] for model in TOGETHER[0]}
    assert 0 < zero < 1e-6
    for model in TOGETHER[0]:
        ring, ours = marks[f"{model}, published"], marks[model]
        assert list(ring.get_xdata()) == list(ours.get_xdata()[:2])
        assert list(ring.get_ydata()) == [zero, 1e-3]
        assert ring.get_markeredgecolor() == ours.get_color()


def test_an_interval_without_an_end_ends_at_its_estimate_and_one_of_0_at_the_place_of_0():
    table = pd.DataFrame({"model": "NMU", "range": ["a", "b", "c"], "success": 1.0})
    table = table.assign(sparsity_error=[1e-5, 1e-5, 0.0], sparsity_error_low=[1e-6, 0.0, 0.0])
    table["sparsity_error_high"] = [np.inf, 1e-4, 0.0]
    (axis,) = figures.by_range(table, panels="sparsity_error").axes
    zero = _marks(axis)["NMU"].get_ydata()[2]
    ends = [part[:, 1].tolist() for part in axis.collections[0].get_segments()]
    assert ends == [[1e-6, 1e-5], [zero, 1e-4], [zero, zero]]


def test_sizes_are_in_order_and_a_run_that_is_solved_without_a_time_is_not_unsolved():
    table = pd.DataFrame({"model": "NMU", "hidden": ["10", "2", "0.5"], "success": [0.5, 1.0, 0.0]})
    table = table.assign(solved_at_mean=[1e3, np.nan, np.nan], solved_at_low=1e3, solved_at_high=1e3)
    (axis,) = figures.by_range(table, x="hidden", panels="solved_at").axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0.5", "2", "10"]
    (none,) = (line for line in axis.lines if line.get_marker() == "|")
    assert none.get_xdata().tolist() == [0]


def test_marks_of_a_distribution_are_at_the_share_of_runs_up_to_there():
    rows = pd.DataFrame({"model": ["NMU"] * 3 + ["NAU"] * 2, "test_mse": [1e-9, 1e-8, np.nan, 1e-7, 1e-6]})
    (axis,) = figures.distribution(rows, threshold=1e-5, published={"NAU": 0.9, "NMU": 0.6}).axes
    marks = _marks(axis)
    np.testing.assert_allclose(marks["NMU"].get_xydata(), [(1e-9, 1 / 3), (1e-8, 2 / 3)])
    for model in ("NMU", "NAU"):
        assert marks[f"{model}, published"].get_markeredgecolor() == figures.unit_style(model)[0]


def test_levels_and_limits_of_a_scatter_are_those_of_its_row():
    points = pd.DataFrame(itertools.product("+÷", ["one", "two"]), columns=["task", "side"])
    points = points.assign(model="NPU", count=[10, 20, 30, 40], test_mse=[1e-20, 1e-7, 1e9, 1e-3])
    asked = {"levels": {"+": 0.1, "÷": 0.2}, "limits": {"+": (1e-9, 1.0), "÷": (1e-6, 10.0)}}
    figure = figures.scatter(points, "count", column="side", **asked)
    found = [
        (axis.lines[0].get_ydata()[0], list(map(tuple, _marks(axis)["NPU"].get_xydata())))
        for axis in figure.axes
    ]
    assert found == [(0.1, [(10, 1e-9)]), (0.1, [(20, 1e-7)]), (0.2, [(30, 10.0)]), (0.2, [(40, 1e-3)])]
    assert [axis.get_title() for axis in figure.axes] == ["one", "two", "", ""]
    (axis,) = figures.scatter(
        points[:1].assign(count=1e3), "count", limits={"+": (1e-9, 1.0)}, square=True
    ).axes
    assert axis.lines[0].get_xydata().tolist() == [[1e-9, 1e-9], [1.0, 1.0]]
    assert _marks(axis)["NPU"].get_xydata().tolist() == [[1.0, 1e-9]] and axis.get_xlim() == (1e-9, 1.0)


def test_gate_histograms_are_named_and_solved_runs_are_filled():
    rows = pd.DataFrame({"operation": ["mul", "add"], "model": "NALU", "gate": [0.0, 1.0]})
    figure = figures.gate_histograms(rows.assign(success=[True, False]))
    assert [axis.get_ylabel() for axis in figure.axes] == ["mul\nruns", "add\nruns"]
    solved, lost = (axis.patches[0] for axis in figure.axes)
    assert solved.get_facecolor()[3] == 1 and lost.get_facecolor()[3] == 0
    faces = {one.get_label(): one.get_markerfacecolor() for one in figure.legends[0].get_lines()}
    assert faces == {"solved": "#4C4C4C", "not solved": "none"}


def test_numbers_beside_an_axis_have_a_comma_from_a_thousand_on():
    assert [tick(number) for number in (999, 1000, -2000, 0.25)] == ["999", "1,000", "-2,000", "0.25"]


def test_of_more_than_thirty_marks_their_medians_are_said():
    x = np.arange(1.0, 32) ** 2
    for count, said in ((30, "1 1; 4 4;"), (31, "31 marks, medians 256 and 256")):
        table = pd.DataFrame({"x": x, "test_mse": x, "model": "NMU", "task": "×"})[:count]
        assert f"  NMU: {said}" in figures.scatter(table, x="x").numbers()
