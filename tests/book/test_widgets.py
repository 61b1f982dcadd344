"""The widgets in a browser, opened from a file: they compute what Python computes, take the keyboard, and
can be read on a desk and on a phone, light and dark.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pydata_sphinx_theme
import pytest
import sphinx_book_theme
import torch
from companion import widgets
from companion.beyond.which_unit import (
    OPERATIONS,
    OTHERS,
    SIGNS,
    cell,
    measured,
    numbers,
    others,
    picker_data,
    recipes,
)
from companion.division.compared import MODIFIED
from companion.division.no_redundancy import FIGURE_3, arms
from companion.division.states import initial
from companion.figures import unit_style
from companion.recorded import read
from companion.widgets import COLOURS, WIDGETS, pairs, surface

from nalm import NAU, NMRU, NMU, NPU, NRU, NACMul, RealNPU
from nalm.training import SGD, Adam

STATIC = Path(__file__).parents[2] / "book" / "_static"
SCRIPTS = ["drawing", *WIDGETS]
THEMES = [
    Path(package.__file__).parent / "theme" / name / "static" / "styles" / f"{name.replace('_', '-')}.css"
    for package in (pydata_sphinx_theme, sphinx_book_theme)
    for name in [package.__name__]
]
EPS = 2.0**-23
UNITS = {
    "NAC•": NACMul(2, 1, eps=EPS),
    "NAU": NAU(2, 1),
    "NMU": NMU(2, 1),
    "NPU": NPU(2, 1, eps=EPS),
    "Real NPU": RealNPU(2, 1, eps=EPS),
    "NRU": NRU(2, 1),
    "NMRU": NMRU(2, 1, eps=EPS),
}


def test_the_figure_of_units_shows_what_they_compute():
    x = np.linspace(-5, 5, 400)
    figure = widgets.draw_units()
    for axis, share in zip(figure.axes, (0.5, 1.0), strict=True):
        assert axis.get_title() == f"weights {share:g}"
        lines = dict(zip(["NAC•", "NMU", "Real NPU", "NRU", "NMRU"], axis.lines, strict=True))
        for name, line in lines.items():
            assert (line.get_color(), line.get_marker()) == unit_style(name)
            np.testing.assert_allclose(line.get_xdata(), x)
        product = (1 - share + share * x) * (1 + share)
        np.testing.assert_allclose(lines["NMU"].get_ydata(), product, atol=1e-6)
        power = (2 * np.abs(x)) ** share
        np.testing.assert_allclose(lines["NAC•"].get_ydata(), power, rtol=1e-4)
        turned = power * np.where(x < 0, np.cos(np.pi * share), 1)
        np.testing.assert_allclose(lines["Real NPU"].get_ydata(), turned, rtol=1e-4, atol=1e-6)
        for name in ("NRU", "NMRU") if share == 1 else ():
            np.testing.assert_allclose(lines[name].get_ydata(), 2 * x, rtol=1e-4)


def test_the_figure_of_runs_has_errors_over_the_difference_of_the_weights(monkeypatch):
    """Solved and failed ones apart; half of an NMRU's weights are those of the reciprocals."""
    starts = {name: {0: [0.5, 0.1], 1: [-0.2, 0.3]} for name in FIGURE_3}
    starts["NMRU"] = {0: [0.5, 0.1, 0.3, 0.4], 1: [0.2, 0.3, 0.1, 0.0]}
    rows = [[0, True, 5, 1e-9, 1.0, [], []], [1, False, None, 2.0, 3.0, [], []]]
    data = {"runs": {name: {"U[1,2)": {"rows": rows}} for name in FIGURE_3}, "starts": starts}
    monkeypatch.setattr(widgets, "recorded_runs", lambda: data)
    for axis, name in zip(widgets.draw_runs().axes, FIGURE_3, strict=True):
        solved, failed = axis.lines
        apart = [0.5, -0.2] if name == "NMRU" else [0.4, -0.5]
        assert axis.get_title() == name
        found = [*solved.get_xydata().ravel(), *failed.get_xydata().ravel()]
        assert found == pytest.approx([apart[0], 1e-9, apart[1], 2.0])
        assert [line.get_marker() for line in axis.lines] == ["o", "x"]
        assert [line.get_color() for line in axis.lines] == ["#009E73", "#D55E00"]


def test_the_figure_of_the_saddle_leads_from_the_starts_of_runs_to_their_ends(monkeypatch):
    rows = read("division/no-redundancy")
    rows = rows[(rows["model"] == MODIFIED) & (rows["range"] == "U[-2,2)")]
    rows = pd.concat([part[:2] for _, part in rows.groupby("success")])
    asked = []
    monkeypatch.setattr(widgets, "read", lambda name: rows)
    monkeypatch.setattr(
        widgets, "surface", lambda line, gates, _: asked.append(gates) or np.zeros((line.size, line.size))
    )
    (axis, _) = widgets.draw_saddle().axes
    assert asked == [(0.5, 0.5)]
    starts = initial(arms()[MODIFIED].model, 2, rows["seed"])
    ends = [json.loads(one)["0.weight"][0] for one in rows["weights"]]
    failed, solved = slice(0, 2), slice(2, 4)
    marks = {line.get_marker(): line.get_xydata() for line in axis.lines if line.get_linestyle() == "None"}
    np.testing.assert_allclose(marks["X"], starts[failed], rtol=1e-6)
    np.testing.assert_allclose(marks["o"], starts[solved], rtol=1e-6)
    ways = [line.get_xydata() for line in axis.lines if line.get_linestyle() == "-"]
    expected = [
        *zip(starts[solved], ends[solved], strict=True),
        *zip(starts[failed], ends[failed], strict=True),
    ]
    np.testing.assert_allclose(ways, expected, rtol=1e-6)
    assert {text.get_text(): text.xy for text in axis.texts} == {"a / b": (1, -1), "b / a": (-1, 1)}
    assert all((end[0] > 0 > end[1]) == won for end, won in zip(ends, rows["success"], strict=True))


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """All widgets, in the theme's styles; `page.said` is what the browser complained about or asked for."""
    styles = "".join(f'<link rel="stylesheet" href="{path.as_uri()}">' for path in THEMES)
    boxes = "".join(
        f"<div data-widget='{name}' data-colours='{json.dumps(COLOURS)}'><p class='figure'>a figure</p></div>"
        for name in WIDGETS
    )
    folder = tmp_path_factory.mktemp("widgets")
    file, data = folder / "page.html", []
    for name, one in WIDGETS.items():
        if one.data:
            data.append(folder / f"{name}-data.js")
            data[-1].write_text(f"window.nalm.{name}Data = {json.dumps(one.data())};", encoding="utf-8")
    loaded = [STATIC / "drawing.js", *data, *(STATIC / f"{name}.js" for name in WIDGETS)]
    scripts = "".join(f'<script src="{path.as_uri()}"></script>' for path in loaded)
    file.write_text(
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">{styles}'
        f'<link rel="stylesheet" href="{(STATIC / "widgets.css").as_uri()}">'
        f'<body><main style="max-width: 46rem; padding: 1rem">{boxes}</main>{scripts}</body></html>',
        encoding="utf-8",
    )
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: request.url.startswith("file:") or page.said.append(request.url))
    page.goto(file.as_uri())
    yield page
    context.close()


def test_the_widgets_take_the_place_of_the_figures(page):
    assert page.locator(".nalm").count() == len(WIDGETS)
    assert page.locator(".figure").count() == 0
    assert page.said == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_small(name):
    assert (STATIC / f"{name}.js").stat().st_size <= 40_000


def states(unit, count=8):
    """Parameters inside, on and outside their bounds."""
    torch.manual_seed(0)
    corners = [0.0, 1.0, -1.0, 0.5]
    for number in range(count):
        state = {}
        for name, parameter in unit.named_parameters():
            low = 0.0 if isinstance(unit, NMRU) else -1.2
            state[name] = torch.empty_like(parameter, dtype=torch.float64).uniform_(low, 1.2)
            if number < len(corners):
                state[name].fill_(max(low, corners[number]))
        yield state


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("name", UNITS)
def test_units_and_gradients(page, name, training):
    unit = UNITS[name].double().train(training)
    inputs = torch.tensor([[1.5, 2.0], [-1.5, 2.0], [-0.3, -4.0], [0.01, 0.7]], dtype=torch.float64)
    asked, expected = [], []
    for state in states(unit):
        sent = {key: values.flatten().tolist() for key, values in state.items()}
        for x in inputs:
            own = {key: values.requires_grad_() for key, values in state.items()}
            y = torch.func.functional_call(unit, own, x)[0]
            slopes = torch.autograd.grad(y, list(own.values()), allow_unused=True, materialize_grads=True)
            asked.append([sent, x.tolist()])
            expected.append([y.item(), *torch.cat([slope.flatten() for slope in slopes]).tolist()])
    found = page.evaluate(
        """([unit, eps, training, asked]) => asked.map(([state, x]) => {
            const { evaluate } = nalm.playground;
            const places = Object.entries(state).flatMap(([name, values]) => values.map((_, i) => [name, i]));
            return [evaluate(unit, state, x, {eps, training})[0],
                    ...places.map((by) => evaluate(unit, state, x, {eps, training}, by)[1])];
        })""",
        [name, EPS, training, asked],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_parameters_are_those_of_the_units(page):
    found = page.evaluate(
        """Object.entries(nalm.playground.UNITS).map(([unit, {parameters}]) => [unit,
            Object.entries(parameters).map(([name, [,,, initial]]) => [name, initial.length])])"""
    )
    expected = {name: {key: p.numel() for key, p in unit.named_parameters()} for name, unit in UNITS.items()}
    assert {name: dict(parameters) for name, parameters in found} == expected


def test_solutions_compute_their_operation(page):
    found = page.evaluate(
        """Object.entries(nalm.playground.UNITS).flatMap(([name, {solves, always}]) =>
            Object.entries(solves).map(([operation, state]) => {
                const setting = {eps: 1e-7, training: false};
                return [name, operation,
                        nalm.playground.evaluate(name, {...always, ...state}, [3, 2], setting)[0]];
            }))"""
    )
    right = {"x₁ · x₂": 6, "x₁ / x₂": 1.5, "x₁ + x₂": 5, "x₁ − x₂": 1}
    assert {name for name, *_ in found} == set(UNITS)
    for _, operation, value in found:
        assert value == pytest.approx(right[operation], rel=2e-4)  # the NAC•'s weights only come close to 1


def test_examples_are_those_of_python(page):
    found = page.evaluate("nalm.landscape.generator(7)(50)")
    np.testing.assert_array_equal(found, pairs(50, seed=7))


def test_surface(page):
    line, gates, examples = np.linspace(-1.1, 1.1, 6), (0.3, 0.9), pairs(40, seed=0)
    found = page.evaluate(
        "([line, gates, examples]) => nalm.landscape.surface(line, gates, examples)",
        [line.tolist(), gates, examples.tolist()],
    )
    np.testing.assert_allclose(found, surface(line, gates, examples), rtol=1e-6, atol=1e-9)


def trained(start, steps, seed, optimiser, clip, hold):
    """The states of a Real NPU that an optimiser of the library trains on the batches of the widget."""
    unit = RealNPU(2, 1, eps=EPS, clip=("weight", "gate") if hold else ()).double()
    unit.weight.data = torch.tensor([start], dtype=torch.float64)
    parameters = dict(unit.named_parameters())
    slots = {key: tuple(torch.zeros_like(p) for _ in optimiser.slots) for key, p in parameters.items()}
    rate = torch.tensor(optimiser.lr, dtype=torch.float64)
    batches = torch.from_numpy(pairs(128 * steps, seed).reshape(steps, 128, 2))
    found = [torch.cat([p.detach().flatten() for p in parameters.values()])]
    for step, batch in enumerate(batches):
        unit.zero_grad()
        (unit(batch)[:, 0] - batch[:, 0] / batch[:, 1]).square().mean().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(unit.parameters(), 1.0)
        for key, p in parameters.items():
            p.data, *rest = optimiser.update(p.data, p.grad, slots[key], rate, torch.tensor(step))
            slots[key] = tuple(rest)
        unit.project_()
        found.append(torch.cat([p.detach().flatten() for p in parameters.values()]))
    return torch.stack(found).numpy()


@pytest.mark.parametrize(
    ("optimiser", "clip", "hold"),
    [
        (Adam(lr=0.005), True, True),
        (Adam(lr=0.02), False, False),
        (SGD(lr=0.02), True, True),
        (SGD(lr=0.005), False, True),
    ],
    ids=repr,
)
def test_path(page, optimiser, clip, hold):
    start, steps, seed = [-0.1, 0.3], 200, 3
    found = page.evaluate(
        "settings => nalm.landscape.path(settings)",
        {"from": start, "steps": steps, "seed": seed, "optimiser": optimiser.kind, "rate": optimiser.lr}
        | {"clip": clip, "hold": hold},
    )
    expected = trained(start, steps, seed, optimiser, clip, hold)
    assert np.abs(np.diff(expected, axis=0)).max() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_the_keyboard_moves_a_weight(page):
    """Tab reaches every control, which shows its focus; an arrow key changes output and text."""
    playground = page.locator(".nalm").first
    controls = playground.locator("select:enabled, input:visible, button:enabled")
    controls.first.focus()
    reached = set()
    for _ in range(controls.count()):
        active = page.evaluate(
            "() => [document.activeElement.id || document.activeElement.textContent, "
            "getComputedStyle(document.activeElement).outlineStyle, "
            "document.activeElement.labels?.[0]?.textContent || document.activeElement.textContent]"
        )
        assert active[1] != "none", active
        assert active[2].strip()
        reached.add(active[0])
        page.keyboard.press("Tab")
    assert len(reached) == controls.count()
    said, weight = playground.locator("output"), playground.get_by_label("W₁")
    before, drawn = said.text_content(), playground.locator(".nalm-line").first.get_attribute("d")
    weight.focus()
    page.keyboard.press("ArrowRight")
    assert weight.input_value() == "0.51"
    state = {"weight": [[0.51, -0.5]], "gate": [0.5, 0.5]}
    state = {key: torch.tensor(values, dtype=torch.float64) for key, values in state.items()}
    unit = RealNPU(2, 1, eps=1e-7).double()
    y = torch.func.functional_call(unit, state, torch.tensor([1.5, 2.0], dtype=torch.float64)).item()
    assert said.text_content() != before and f"output {y:.4g}".rstrip("0") in said.text_content()
    assert playground.locator(".nalm-line").first.get_attribute("d") != drawn
    assert said.get_attribute("aria-live") == "polite"


def test_every_unit_is_drawn(page):
    playground = page.locator(".nalm").first
    for name in UNITS:
        playground.get_by_label("Unit", exact=True).select_option(name)
        playground.get_by_text("Set the solution").click()
        line = playground.locator(".nalm-line").first
        assert "NaN" not in line.get_attribute("d") and len(line.get_attribute("d")) > 1000
        for mode in ("evaluation", "training"):  # where some units have no value
            if playground.get_by_label("Mode").is_enabled():
                playground.get_by_label("Mode").select_option(mode)
            playground.get_by_label("x₂").fill("0")
            playground.get_by_label("x₁ (point)").fill("0")
            assert "NaN" not in playground.locator(".nalm-plots").inner_html()
        playground.get_by_label("x₂").fill("2")
    assert page.said == []


def test_a_run_that_overflows_says_so(page):
    landscape = page.locator(".nalm").nth(1)
    landscape.get_by_label("Hold weights").uncheck()
    landscape.get_by_label("Optimiser").select_option("SGD")
    landscape.get_by_label("Learning rate").select_option("0.1")
    assert "overflows" in landscape.locator("output").text_content()
    assert "NaN" not in landscape.locator(".nalm-plots").inner_html()
    landscape.get_by_label("Learning rate").select_option("0.005")
    landscape.get_by_label("Optimiser").select_option("Adam")
    landscape.get_by_label("Hold weights").check()
    assert page.said == []


def test_a_start_is_chosen_by_key_and_by_click(page):
    landscape = page.locator(".nalm").nth(1)
    said = landscape.locator("output")
    assert "on the side of b / a" in said.text_content()
    start = landscape.get_by_label("Start: weight of b")
    start.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    assert start.input_value() == "-0.2"
    assert "It divides a by b." in said.text_content()
    landscape.get_by_label("Iteration", exact=True).focus()
    page.keyboard.press("Home")
    assert said.text_content().startswith("Iteration 0: weights −0.1, −0.2, gates 0.5, 0.5")
    box = landscape.locator(".nalm-map image").bounding_box()
    page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 0.75 * box["height"])
    assert landscape.get_by_label("Start: weight of a").input_value() == "0.55"
    assert "It divides a by b." in said.text_content()
    assert page.said == []


# Contrast of every text to the ground and of every line to it, and the size of text in plots, on the screen.
READABLE = """() => {
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const luminance = (colour) => {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255)
            .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
        const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
    };
    const ground = getComputedStyle(document.body).backgroundColor;
    const css = (node, name) => getComputedStyle(node)[name];
    const all = (selector) => [...document.querySelectorAll(selector)];
    const svgs = all('.nalm-plot text:not(.nalm-goal-name)');
    const lowest = (nodes, name) => Math.min(...nodes.map((node) => contrast(css(node, name), ground)));
    return {
        text: Math.min(lowest(all('.nalm output, .nalm label, .nalm-value, .nalm-scale'), 'color'),
                       lowest(svgs, 'fill')),
        line: lowest(all('.nalm-line, .nalm-exact, .nalm-course, .nalm-zero'), 'stroke'),
        size: Math.min(...svgs.map((n) => parseFloat(css(n, 'fontSize')) * n.getScreenCTM().a)),
        wide: document.documentElement.scrollWidth - innerWidth,
    };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everything_can_be_read(page, width, theme):
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    for name in UNITS:
        page.locator(".nalm").first.get_by_label("Unit", exact=True).select_option(name)
        found = page.evaluate(READABLE)
        assert found["text"] >= 4.5 and found["line"] >= 3, (name, found)
        assert found["size"] >= 9 and found["wide"] <= 0, (name, found)


def test_what_the_page_says_of_the_saddle(page):
    """The side of the start decides; SGD arrives only with a clipped gradient."""
    ends = page.evaluate(
        """(runs) => runs.map(([from, optimiser, clip]) => nalm.landscape.path(
            {from, seed: 1, optimiser, rate: 0.005, clip, hold: true}).at(-1))""",
        [[[0.3, -0.1], "Adam", False], [[-0.1, 0.3], "Adam", False]]
        + [[[0.3, -0.1], "SGD", clip] for clip in (False, True)],
    )
    right, wrong, thrown, clipped = (np.abs(np.subtract(end, [1, -1, 1, 1])).max() < 0.05 for end in ends)
    assert right and not wrong and ends[1][0] < 0 < ends[1][1]
    assert clipped and not thrown


def test_every_run_has_its_row_and_its_command(page):
    found = page.evaluate(
        """() => {
            const data = nalm.seedsData, {runs, command} = nalm.seeds;
            return Object.keys(data.runs).flatMap((model) => Object.keys(data.runs[model]).flatMap((range) =>
                runs(data, model, range).map((run) => ({...run, command: command(data, run)}))));
        }"""
    )
    rows = read("division/no-redundancy").set_index("key")
    rows = rows[rows["model"].isin(FIGURE_3)]
    assert sorted(run["key"] for run in found) == sorted(rows.index)
    starts = {name: initial(arms()[name].model, 2, range(25)) for name in FIGURE_3}
    for run in found:
        row = rows.loc[run["key"]]
        state = json.loads(row["weights"])
        assert [run["seed"], run["solved"]] == [row["seed"], row["success"]]
        assert run["test"] == pytest.approx(row["test_mse"], rel=1e-5)
        ends = state["0.weight"][0] + state.get("0.gate", [])
        assert run["weights"] + run["gates"] == pytest.approx(ends, rel=1e-5)
        assert run["start"] == pytest.approx(starts[row["model"]][row["seed"]], rel=1e-5)
        assert run["command"].endswith(f'ARGS="--key {run["key"]}"')


def test_data_is_small():
    for one in WIDGETS.values():
        assert not one.data or len(json.dumps(one.data(), separators=(",", ":"))) <= 300_000


def test_a_run_is_chosen_by_key_and_by_click(page):
    seeds = page.locator(".nalm").nth(2)
    said, command, run = (
        seeds.locator("output"),
        seeds.locator("code"),
        seeds.get_by_label("Run", exact=True),
    )
    assert seeds.locator("svg").first.locator(".nalm-run").count() == 25
    seeds.get_by_label("Unit", exact=True).select_option(MODIFIED)
    run.focus()
    page.keyboard.press("Home")
    first = said.text_content(), command.text_content()
    assert "failed" in first[0] and "--key" in first[1]
    page.keyboard.press("End")
    assert "solved at iteration" in said.text_content() and command.text_content() != first[1]
    box = seeds.locator("svg").first.locator(".nalm-failed.nalm-run").last.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "failed" in said.text_content()
    assert page.said == []


def test_the_picker_finds_what_the_tables_say(page):
    """Every cell, by its answers, and sizes that were not measured."""
    found, data = measured(), picker_data()
    signs, kinds = list(SIGNS), {}
    for line in found.itertuples():
        place = numbers(line.range)
        answers = (
            list(OPERATIONS).index(line.operation),
            signs.index(place.signs),
            data["sizes"].index(place.size),
            list(OTHERS).index(others(line.operation, line.inputs)),
        )
        kinds.setdefault(answers, []).append([line.unit, line.solved, line.runs, line.recipe, line.source])
    shown = page.evaluate(
        "asked => asked.map(answers => window.nalm.picker.cell(window.nalm.pickerData, answers)"
        ".map(one => [one.unit, one.solved, one.runs, one.recipe, one.source]))",
        [list(answers) for answers in kinds],
    )
    assert [sorted(units) for units in shown] == [sorted(units) for units in kinds.values()]
    sizes_of_division = page.evaluate("window.nalm.picker.measured(window.nalm.pickerData, 3, 2, 0)")
    assert sizes_of_division == sorted(
        answers[2] for answers in kinds if answers[:2] + answers[3:] == (3, 2, 0)
    )


def test_the_picker_says_what_nobody_has_measured(page):
    """By the keyboard, as all of it."""
    box = page.locator("[data-widget=picker]")
    assert box.locator("output").inner_text().startswith("NRU, NMRU: 25 of 25 runs. ")
    box.get_by_label("Signs").focus()
    page.keyboard.press("ArrowDown")  # a negative, b positive
    assert (
        box.locator("output").inner_text().startswith("Not measured. With these signs and inputs there are: ")
    )
    assert box.locator("table tr").count() == 0
    page.keyboard.press("ArrowUp")
    assert box.locator("tbody tr").count() == len(cell(measured(), "div", "either", "−2 to 2", "none"))
    assert "Network of the NRU" in box.locator("dl").inner_text()


def test_the_network_of_a_recipe_is_that_of_the_runs():
    found = measured()
    lines = recipes(found)
    for one in found.drop_duplicates(["unit", "operation", "network", "recipe"]).itertuples():
        kind = OPERATIONS[one.operation]
        assert any(
            (line["unit"], line["network"], line["recipe"]) == (one.unit, one.network, one.recipe)
            and kind in line["for (other inputs)"]
            for line in lines
        ), (one.unit, one.operation)
