"""The leaderboard: its runs, thresholds, ranks, table, and the search that tunes all units alike."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from companion import sealed
from companion.beyond import board, board_page, leaderboard, tuned
from companion.beyond.leaderboard import OPERATIONS, UNITS, arms, benchmark_threshold, expresses, tasks
from companion.division import settings as division
from companion.missing import QUEUE, Job, left, train

from nalm.models import Stack
from nalm.records import Store
from nalm.records.keys import keys_of
from nalm.tasks import UNIFORM_RANGES
from nalm.training import L1, Adam, Discretisation, Ensemble, Recipe

EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "root": lambda a, b: a**0.5,
    "squared": lambda a, b: a * a,
    "reciprocal": lambda a, b: 1 / a,
}


def test_recipes_are_those_of_the_papers():
    for inputs in (2, 10):
        of_division = division.arms(inputs)
        found = arms("div", inputs)
        assert all(found[name] == of_division[name] for name in of_division)
        for operation in OPERATIONS:
            for arm in arms(operation, inputs).values():
                assert arm.recipe.iterations == (50_000 if inputs == 2 else 100_000)
    assert arms("sub", 10)["NAU"].recipe.penalties == (Discretisation(weight=0.01, start=50_000, end=75_000),)
    assert arms("mul", 2)["NMU"].recipe.penalties == (Discretisation(weight=10.0, start=20_000, end=35_000),)
    assert arms("mul", 2)["NPU"].recipe.penalties == (L1(start=1e-7, end=1e-5),)
    assert arms("div", 2)["NPU"].recipe.penalties == (L1(start=1e-9, end=1e-7),)
    assert arms("div", 2)["NPU"].recipe.optimiser == Adam(lr=5e-3)
    assert UNITS.keys() == leaderboard.RECIPES.keys()


def test_each_run_is_asked_for_once_and_some_are_recorded_for_the_division_paper():
    runs = [run for inputs in (2, 10) for one in OPERATIONS for run in leaderboard.runs_of(one, inputs)]
    keys = set(keys_of(runs))
    assert (
        len(keys)
        == len(runs)
        == 25
        * sum(
            len(tasks(one, inputs)) * expresses(unit, one, inputs)
            for inputs in (2, 10)
            for one in OPERATIONS
            for unit in UNITS
        )
    )
    division_rows = board.recorded()
    assert len(division_rows) >= 1800 and not division_rows["key"].duplicated().any()
    four = division_rows[division_rows["model"].isin(["NRU", "NMRU"])]
    assert set(four["operation"]) >= {"div"} and set(four["inputs"].astype(int)) == {2, 10}


@pytest.mark.parametrize("inputs", [2, 4])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_threshold_is_what_the_benchmark_simulates(operation, inputs):
    for name in ("U[-2,2)", "U[0.1,0.2)") if operation != "root" else ("U[0.1,0.2)",):
        task = tasks(operation, inputs)[name]
        x = task.extrapolation.sample(np.random.RandomState(0), (200_000, inputs))

        def solution(eps, x=x):
            a, b, near = x[:, 0], x[:, 1], 1 - eps
            if operation in ("add", "sub"):
                return EXACT[operation](a, b) - eps * np.abs(x).sum(1)
            off = {"mul": near**2, "div": near / (1 + eps), "root": near**0.5, "squared": near**2}
            others = x[:, 2:] if operation in ("mul", "div") else x[:, 1:]
            factor = off.get(operation, 1 / (1 + eps)) * np.prod(1 - eps * np.abs(others), axis=1)
            return EXACT[operation](a, b) * factor

        simulated = np.mean((solution(1e-3) - EXACT[operation](x[:, 0], x[:, 1])) ** 2)
        assert benchmark_threshold(task, 1e-3) == pytest.approx(simulated, rel=0.02)


def rows_of(unit, solved, operation="add", arm=board.ARMS[0], seeds=25, test_mse=1.0):
    """Rows of a unit that solves, on each range, the first of its seeds."""
    return pd.DataFrame(
        [
            {
                "key": f"{unit}-{operation}-{name}-{seed}",
                "arm": arm,
                "model": unit,
                "operation": operation,
                "inputs": 2,
                "range": name,
                "seed": seed,
                "success": seed < solved,
                "solved_at": 1000.0 if seed < solved else np.nan,
                "sparsity_error": 1e-3,
                "test_mse": 1e-9 if seed < solved else test_mse,
                "seconds": 36.0,
                "iterations": 50_000,
            }
            for name in tasks(operation, 2)
            for seed in range(seeds)
        ]
    )


def test_a_rate_is_known_by_seeds_and_not_by_runs():
    line = leaderboard.summary(rows_of("NAU", 5), ranges=False).iloc[0]
    assert list(leaderboard.summary(rows_of("NAU", 5))) == leaderboard.COLUMNS
    assert (line["runs"], line["solved"], line["range"]) == (225, 45, "all")
    alone = leaderboard.summary(rows_of("NAU", 5)).iloc[0]
    assert alone["runs"] == 25 and line["low"] == pytest.approx(alone["low"])  # all ranges say the same


def test_ranks_say_how_sure_they_are():
    units = {"NAU": 20, "NAC+": 12, "NALU": 11, "iNALU": 0}
    found = board.ranks(pd.concat([rows_of(unit, solved) for unit, solved in units.items()]))
    assert found["rank"].to_dict() == {"NAU": 1, "NAC+": 2, "NALU": 3, "iNALU": 4}
    assert found.loc["iNALU", ["rank_low", "rank_high"]].tolist() == [4, 4]
    assert (found["rank_low"] <= found["rank"]).all() and (found["rank"] <= found["rank_high"]).all()
    # The same seeds are drawn of all units, so one more solved seed is never one less.
    assert found.loc["NALU", "rank_high"] == 3 and found.loc["NAC+", "rank_high"] < 3
    equal = board.ranks(pd.concat([rows_of("NAU", 9), rows_of("NAC+", 9)]))
    assert equal["rank"].tolist() == equal["rank_low"].tolist() == [1.5, 1.5]
    one = rows_of("NAU", 9)
    other = rows_of("NAC+", 9).assign(seed=lambda rows: 24 - rows["seed"])
    apart = board.ranks(pd.concat([one, other]))
    assert apart["rank_low"].tolist() == [1, 1] and apart["rank_high"].tolist() == [2, 2]


def test_the_table_has_a_line_for_every_unit():
    rows = pd.concat([rows_of("NAU", 20), rows_of("NAC+", 3, seeds=5), rows_of("Mine", 25, seeds=30)])
    table = board.board(rows)
    assert list(table) == board.COLUMNS and len(table) == 2 * 7 * 2 * len(UNITS) + 1
    part = table[(table["arm"] == board.ARMS[0]) & (table["operation"] == "add") & (table["inputs"] == 2)]
    states = dict(zip(part["unit"], part["state"], strict=True))
    assert part["unit"].tolist()[:2] == ["Mine", "NAU"] and part["rank"].tolist()[:2] == [1, 2]
    assert states["NAU"] == board.RUN and states["NAC+"] == "partly run" and states["NMU"] == board.CANNOT
    assert states["NALU"] == board.NOT_RUN and np.isnan(part.set_index("unit")["rank"]["NAC+"])
    line = part.set_index("unit").loc["NAU"]
    assert (line["solved"], line["runs"], line["hours"], line["solved_at"]) == (180, 225, 2.25, 1000)
    plus, minus = board.head(table).splitlines()[3:5]
    assert plus == "| + | Mine 225 of 270, NAU 180 of 225; 2 of 7 units are run |" and "not run" in minus


def test_the_benchmark_has_a_threshold_of_its_own():
    """On U[10,20) it is 3.7e-5 for sums, on the others of positive numbers at most 6.7e-7."""
    table = board.board(rows_of("NAU", 0, test_mse=3e-5))
    line = table[table["state"] == board.RUN].iloc[0]
    assert line["solved"] == 0 and line["benchmark_solved"] == 2 * 25


def test_what_no_unit_solves_is_said_of_tasks_that_all_have_tried():
    able = [unit for unit in UNITS if expresses(unit, "sub", 2)]
    rows = pd.concat([rows_of(unit, 0, "sub", test_mse=1.0 + place) for place, unit in enumerate(able)])
    found = board.best(rows)
    assert set(found["range"]) == set(UNIFORM_RANGES) and set(found["solved"]) == set(found["units"]) == {0}
    assert set(found["nearest"]) == {able[0]}
    one = (rows["range"] == "U[1,2)") & (rows["model"] == able[1]) & (rows["seed"] == 3)
    last = board.best(rows.assign(success=one)).iloc[-1]
    assert (last["range"], last["unit"], last["solved"], last["units"]) == ("U[1,2)", able[1], 1, 1)
    assert board.best(rows[rows["model"] != able[2]]).empty


def test_the_overview_tells_what_is_not_run_from_what_cannot_be():
    table = board.board(rows_of("NAU", 20, seeds=20), seeds=20)
    assert table["state"].eq(board.RUN).sum() == 1
    line = board_page.overview(table, board.ARMS[0], 2).frame.set_index("unit").loc["NAU"]
    assert line.tolist() == ["180 of 180", "not run", "·", "·", "·", "·", "·"]


def test_the_written_table_is_current():
    assert board.main(["--check"]) == 0
    sealed.read_text(board.FILE)


def test_the_table_is_not_checked_beside_a_unit(capsys):
    with pytest.raises(SystemExit):
        board.main(["NMU", "--check"])
    assert "leave the unit out" in capsys.readouterr().err


def test_a_unit_of_ones_own_stands_among_the_others(tmp_path, monkeypatch, capsys):
    own = tmp_path / "summing_of_mine.py"
    own.write_text(
        "import torch\nfrom nalm import Unit\n\n\n"
        "class Summing(Unit):\n"
        "    def __init__(self, in_features, out_features, *, device=None, dtype=None):\n"
        "        super().__init__(in_features, out_features, device=device, dtype=dtype)\n"
        "        self.weight = self.new_weight()\n"
        "        self.reset_parameters()\n\n"
        "    def reset_parameters(self):\n"
        "        torch.nn.init.ones_(self.weight)\n\n"
        "    def forward(self, x):\n"
        "        return torch.nn.functional.linear(x, self.weight)\n"
    )
    monkeypatch.setattr("companion.beyond.leaderboard.UNIFORM_RANGES", dict([*UNIFORM_RANGES.items()][:2]))
    asked = [f"{own}:Summing", "--operation", "add", "--iterations", "4", "--results", str(tmp_path)]
    assert board.main(asked) == 0
    said = capsys.readouterr().out
    assert "50 of 50" in next(line for line in said.splitlines() if "Summing" in line)
    assert " NAU " in said and " NMU " not in said
    assert board.main([f"{own}:Summing", "--operation", "plus"]) == 2
    assert "Unknown operation 'plus'" in capsys.readouterr().err


# The search


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (["--seeds", "10001"], "seeds is 10001, but must be at most 10,000"),
        (["--iterations", "0"], "iterations"),
    ],
)
def test_numbers_of_a_unit_of_ones_own_are_refused(number, sentence, capsys):
    assert board.main(["NMU", *number]) == 2
    assert sentence in capsys.readouterr().err


def test_every_unit_has_the_same_budget_and_settings_of_its_own():
    for operation in OPERATIONS:
        sizes = {
            (len(tuned.settings(unit, operation)), len(set(tuned.settings(unit, operation))))
            for unit in UNITS
            if expresses(unit, operation, 2)
        }
        assert sizes == {(tuned.RUNGS[0].settings,) * 2}
    spent = sum(run.recipe.iterations for run in tuned.rung_runs("NAC+", "add", 0, pd.DataFrame()))
    later = 4 * 9 * 2 * 20_000
    assert spent + later == tuned.budget("add") and tuned.budget("root") == tuned.budget("add") * 4 / 9
    assert {one.weight for one in tuned.settings("NAC+", "add")} == {0.0}
    assert {one.init for one in tuned.settings("NRU", "div")} == {""}


def test_a_setting_is_what_is_trained():
    setting = tuned.Setting("SGD", 0.1, 1.0, "uniform")
    arm = tuned.tuned("NMU", "mul", 2, setting, 5_000)
    assert arm.recipe.penalties == (Discretisation(weight=1.0, start=2000, end=3500),)
    assert arm.recipe.optimiser.kind == "SGD" and arm.model.layers[0].options == {"init": "uniform"}
    growing = tuned.tuned("NPU", "div", 2, tuned.Setting("Adam", 0.1, 1e-5, "glorot"), 5_000).recipe
    assert growing.penalties[0].end == 1e-5 and growing.penalties[0].every == 1000
    both = tuned.tuned("Real NPU (modified)", "div", 2, tuned.Setting("Adam", 0.1, 0.1, "glorot"), 5_000)
    assert [one.kind for one in both.recipe.penalties] == ["L1", "Discretisation"]
    assert both.model.layers[0].options["clip"] == ("weight", "gate")
    assert tuned.tuned("NAC+", "add", 2, tuned.Setting("Adam", 0.1, 0.0, "nac"), 50).recipe.penalties == ()


def search_rows(runs, error):
    return pd.DataFrame([{"key": run.key, "valid_mse": error(run), "test_mse": 0.0} for run in runs])


def test_the_search_goes_on_from_what_is_recorded():
    """By ranks of the validation error: one range with huge errors does not decide, nor does the test."""
    nothing = pd.DataFrame()
    first = tuned.rung_runs("NMU", "mul", 0, nothing)
    names = [str(one) for one in tuned.settings("NMU", "mul")]

    def error(run):
        place = names.index(run.labels["setting"])
        return 1e9 * (20 - place) if run.task.label() == "U[1,2)" else float(place)

    rows = search_rows(first, error)
    diverged = [run.key for run in first if run.labels["setting"] == names[0]]
    rows.loc[rows["key"].isin(diverged), "valid_mse"] = np.nan
    assert tuned.rung_runs("NMU", "mul", 1, rows.iloc[1:]) == []  # one is missing
    second = tuned.rung_runs("NMU", "mul", 1, rows)
    assert list(dict.fromkeys(run.labels["setting"] for run in second)) == names[1:5]
    assert {run.recipe.iterations for run in second} == {20_000} and len(second) == 4 * 9 * 2
    assert tuned.chosen("NMU", "mul", rows) is None and tuned.final_runs("NMU", "mul", 2, rows) == []
    rows = pd.concat([rows, search_rows(second, lambda run: -error(run))])
    assert str(tuned.chosen("NMU", "mul", rows)) == names[4]
    final = tuned.final_runs("NMU", "mul", 10, rows)
    assert len(final) == 225 and {run.labels["arm"] for run in final} == {"tuned alike"}
    seeds = {run.seed for run in final}
    assert len(seeds) == 25 and not seeds & {run.seed for run in (*first, *second)}


def test_what_is_recorded_as_tuned_are_the_settings_that_the_search_chose():
    """By their keys, which say what was trained, and by their labels, from which the table is made."""
    rows, search = tuned.recorded()
    every = pd.concat([rows, search])
    asked = [run for inputs in (2, 10) for run in tuned.all_runs(None, inputs, every)]
    expected = pd.DataFrame([run.labels for run in asked], index=keys_of(asked)).sort_index()
    assert len(expected) == 23_450
    recorded = rows.set_index("key")[expected.columns].astype(str).sort_index()
    pd.testing.assert_frame_equal(recorded, expected, check_names=False, check_dtype=False)
    for unit, operation in (("NMU", "mul"), ("NRU", "div")):
        part = search[(search["model"] == unit) & (search["operation"] == operation)]
        runs = part["iterations"].sum()
        assert part["setting"].nunique() == tuned.RUNGS[0].settings and runs == tuned.budget(operation)


def test_the_table_says_what_the_search_took():
    search = rows_of("NAU", 1, seeds=2).assign(setting=["a", "b"] * 9, arm="tuned alike, rung 1")
    rows = rows_of("NAU", 20, arm=board.ARMS[1]).assign(setting="a")
    table = board.board(rows, search=search)
    line = table[table["setting"].notna()].iloc[0]
    assert (line["setting"], line["tried"], line["search_hours"], line["hours"]) == ("a", 2, 0.18, 2.25)
    assert table.loc[table["setting"].isna(), ["tried", "search_hours"]].isna().all(axis=None)
    both = board.board(pd.concat([rows_of("NAU", 10), rows]), search=search)
    said = board_page.numbers(
        both, board.best(rows[:0]), board.best(rows[:0]), rows_of("NAU", 1).assign(weights="{}"), 1
    )
    assert (said["more"], said["less"], said["kept-lead"], said["pairs-tuned"]) == (1, 0, 1, 1)
    assert said["gain"] == "the NAU on + with 2 inputs, from 0.40 to 0.80"


def test_a_tiny_search_is_trained_to_its_end(tmp_path, monkeypatch):
    two = [*UNIFORM_RANGES.items()][5:7]
    monkeypatch.setattr(leaderboard, "UNIFORM_RANGES", dict(two))
    monkeypatch.setattr(tuned, "RUNGS", (tuned.Rung(3, 4), tuned.Rung(2, 6)))
    monkeypatch.setattr(tuned, "SEARCH_SEEDS", range(1000, 1002))
    monkeypatch.setattr(tuned, "FRESH_SEEDS", range(2000, 2003))
    monkeypatch.setattr(tuned, "ITERATIONS", {2: 8, 10: 8})
    monkeypatch.setattr(tuned, "UNITS", {"NAU": UNITS["NAU"]})
    monkeypatch.setattr(tuned, "OPERATIONS", {"add": "+"})
    queue = [job for job in QUEUE if job.what.startswith("leaderboard tuned")]
    trained = [int(one.split(": ")[1].split()[0]) for one in train(tmp_path, queue)]
    assert trained == [3 * 4, 2 * 4, 6, 6]
    rows = Store(tmp_path, tuned.RESULTS).read()
    assert set(rows["arm"]) == {"tuned alike, rung 1", "tuned alike, rung 2", "tuned alike"}
    (setting,) = set(rows["setting"][rows["arm"] == "tuned alike"])
    errors = rows[rows["arm"] == "tuned alike, rung 2"].groupby(["range", "setting"])["valid_mse"].mean()
    assert setting == errors.unstack().rank(axis=1).mean().idxmin()
    assert [0, 0, 0, 0] == [int(one.split(": ")[1].split()[0]) for one in train(tmp_path, queue)]


def test_a_job_whose_runs_follow_from_rows_trains_them_once_these_are_there(tmp_path):
    def staged(rows):
        first = leaderboard.runs_of("add", 2, 2, ["NAU"], ["U[1,2)"], 10)
        known = len(rows) and rows["key"].isin([run.key for run in first]).sum() == 2
        return [run.but(seed=run.seed + 10) for run in first] if known else []

    def begun():
        return leaderboard.runs_of("add", 2, 2, ["NAU"], ["U[1,2)"], 10)

    first, second = Job("first", "demo/tuned", begun), Job("second", "demo/tuned", staged, staged=True)
    assert left(second, tmp_path) == ({}, {})
    said = [one.partition(" runs")[0] for one in train(tmp_path, [first, second])]
    assert said == ["first: 2", "second: 2"]


def test_an_snmu_is_trained_alike_alone_and_beside_others():
    runs = leaderboard.runs_of("mul", 2, 2, ["sNMU"], ["U[1,2)", "U[-2,2)"], 20)
    together = Ensemble(runs, compiled=False).train()
    for place, run in enumerate(runs):
        alone = Ensemble([run], compiled=False).train()
        assert np.array_equal(together.errors["test"][:, place], alone.errors["test"][:, 0])
    nmu = Ensemble(leaderboard.runs_of("mul", 2, 1, ["NMU"], ["U[1,2)"], 20), compiled=False).train()
    assert nmu.errors["test"][-1, 0] != together.errors["test"][-1, 0]


def test_fresh_noise_is_refused_in_an_ensemble():
    recipe = Recipe(iterations=5, optimiser=Adam(lr=1e-3))
    run = leaderboard.runs_of("mul", 2, 1, ["sNMU"], ["U[1,2)"])[0]
    layer = Stack.of("SNMU", 1).layers[0].but(options={"noise": "fresh"})
    with pytest.raises(ValueError, match="noise='fresh' draws anew in each forward pass"):
        Ensemble([run.but(model=Stack(layers=(layer,)), recipe=recipe)], compiled=False).train()


def test_a_unit_of_ones_own_is_not_taken_for_one_of_the_book(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from nalm import NAU\n\n\nclass NMU(NAU):\n    pass\n")
    (run, *_) = board.own_runs(f"{tmp_path}/mine.py:NMU", "mul", 2, 1, lr=0.1, penalty=0.0, iterations=10)
    assert run.labels["model"] == "NMU (yours)"


def test_tuned_rows_of_another_length_are_left_out():
    rows, _ = tuned.recorded()
    page = {"units": UNITS, "operations": list(OPERATIONS), "inputs": [2, 10], "ranges": list(UNIFORM_RANGES)}
    asked = [tuned.part(rows, SimpleNamespace(**page, seeds=5, iterations=n)) for n in (0, 1000)]
    assert len(asked[0]) and set(asked[0]["iterations"]) == {50_000, 100_000} and asked[1].empty


def test_the_penalty_of_a_unit_of_ones_own_grows_from_40_to_70_percent():
    (run, *_) = board.own_runs("NMU", "mul", 2, 1, lr=0.1, penalty=2.0, iterations=100)
    assert run.recipe.penalties == (Discretisation(weight=2.0, start=40, end=70),)


def test_of_tuned_rows_the_first_seeds_are_shown():
    rows, _ = tuned.recorded()
    page = {"units": UNITS, "operations": list(OPERATIONS), "inputs": [2, 10], "ranges": list(UNIFORM_RANGES)}
    asked = tuned.part(rows, SimpleNamespace(**page, seeds=5, iterations=0))
    assert set(asked["seed"]) == set(tuned.FRESH_SEEDS[:5])
