"""Verification confirms rows that are right and no others. tests/book/test_reruns.py draws from the published
ones.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from companion.nau_nmu import digit_runs as digits
from companion.verification import __main__ as verify

from nalm.models import GatedStack, Stack
from nalm.records import Store, run_all, verification, verify_rows
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run

pytestmark = pytest.mark.usefixtures("each_sample_is_trained_once")
EXPERIMENT = "demo/verified"
OTHER = "demo/other"


def runs(unit, seeds, range_="U[1,2)"):
    task = SingleModuleTask.on(range_, operation="mul")
    recipe = Recipe(iterations=100, optimiser=Adam(lr=1e-1), log_interval=10)
    return [
        Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=s, threshold=1e-5, labels={"arm": unit})
        for s in seeds
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    run_all(
        runs("NMU", range(4)) + runs("NMU", range(3), "U[-2,2)") + runs("NAC", range(3)),
        EXPERIMENT,
        str(folder),
        progress=False,
    )
    run_all(runs("NAU", range(2)), OTHER, str(folder), progress=False)
    return folder


@pytest.fixture
def store(recorded, tmp_path):
    """A copy of the recorded rows, to be changed."""
    for name in (EXPERIMENT, OTHER):
        source, target = Store(recorded, name), Store(tmp_path, name)
        target.rows_file.parent.mkdir(exist_ok=True)
        target.rows_file.write_bytes(source.rows_file.read_bytes())
        target.sidecar_file.write_bytes(source.sidecar_file.read_bytes())
    return Store(tmp_path, EXPERIMENT)


def check(folder, rows=100, experiment=EXPERIMENT, seed=0, **options):
    return verify_rows(rows, experiment, seed, folder=folder, progress=False, **options)


def change(store, column, value):
    """Change one cell of the first row, which is a solved NMU; return its key."""
    rows = store.read().astype(object)
    assert rows["success"][0]
    rows.loc[0, column] = value(rows.loc[0, column]) if callable(value) else value
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    return rows.loc[0, "key"]


def failed(outcome):
    return {row.key: row.differences for row in outcome.rows if not row.passed}


def test_rows_from_a_gpu_are_drawn_for_one_or_by_their_key(store):
    sidecar = json.loads(store.sidecar_file.read_text())
    rows = store.read()
    theirs = rows["batch"].iloc[0]
    sidecar["batches"][theirs]["device"] = "NVIDIA H200"
    store.sidecar_file.write_text(json.dumps(sidecar))
    folder, from_gpu = store.rows_file.parents[1], rows.loc[rows["batch"] == theirs, "key"]
    assert 0 < len(from_gpu) < len(rows)
    drawn = check(folder)
    assert not {row.key for row in drawn.rows} & set(from_gpu) and drawn.candidates == len(rows) - len(
        from_gpu
    )
    assert [row.key for row in check(folder, key=from_gpu.iloc[0]).rows] == [from_gpu.iloc[0]]
    for batch in sidecar["batches"].values():
        batch["device"] = "NVIDIA H200"
    store.sidecar_file.write_text(json.dumps(sidecar))
    with pytest.raises(ValueError, match="All rows of demo/verified come from a GPU: name one by its key"):
        check(folder)


def test_right_rows_are_confirmed(recorded):
    outcome = check(recorded, experiment="")
    assert outcome.passed and len(outcome.rows) == outcome.candidates == 12 and len(outcome.ensembles) == 3
    assert all(row.freshness == "fresh" and len(row.twins) == 8 for row in outcome.rows)
    assert str(outcome).splitlines()[-1] == "PASS: 12 of 12 rows are confirmed."


@pytest.mark.parametrize("right", [True, False])
def test_a_row_of_compiled_code_that_differs_is_trained_by_compiled_code(right, tmp_path, monkeypatch):
    run_all(runs("NMU", range(1)), EXPERIMENT, str(tmp_path), progress=False, compiled=True)
    if not right:
        change(Store(tmp_path, EXPERIMENT), "solved_at", lambda at: at + 20)
    row_of = verification.whole_row_of

    def rounded(run, column, log, *about):
        row = row_of(run, column, log, *about)
        return row if log.compiled else row | {"weights": '{"0.weight":[[0.5],[0.5]]}'}

    monkeypatch.setattr(verification, "whole_row_of", rounded)
    outcome = check(tmp_path)
    assert outcome.passed == right == outcome.rows[0].identical
    assert [ensemble["compiled"] for ensemble in outcome.ensembles] == [False, True]
    assert outcome.rows[0].ensemble == 1


def test_a_changed_row_of_an_unknown_batch_is_not_confirmed(store):
    key = change(store, "success", False)
    rows = store.read(checked=False).astype(object)
    rows.loc[0, "batch"] = "nowhere"
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    assert set(failed(check(store.rows_file.parents[1]))) == {key}


def test_a_row_alone_is_confirmed_as_well(recorded):
    assert check(recorded, rows=1).passed


def test_a_row_that_only_its_twins_confirm_says_so(recorded, monkeypatch):
    def apart(row, again, twins, run, tolerances):
        return [] if tolerances.spread else ["apart"]

    monkeypatch.setattr(verification, "differences", apart)
    (row,) = check(recorded, rows=1).rows
    assert row.passed and row.within_spread and row.beyond == ("apart",)
    for failing in (replace(row, differences=("apart",)), replace(row, differences=("apart",), retrained={})):
        assert not (failing.within_spread or failing.identical)
    assert str(replace(row, retrained={})).endswith("within the spread of its twins")


def test_numbers_that_json_has_not_are_named():
    row = {"valid_mse": float("nan"), "test_mse": float("inf"), "sparsity_error": np.float64("-inf")}
    assert verification.results_of(row, row) == {
        "valid_mse": None,
        "test_mse": "inf",
        "sparsity_error": "-inf",
    }


@pytest.mark.parametrize(
    ("column", "value", "phrase"),
    [
        ("weights", lambda text: text.replace("[[", "[[0.9,").replace(",0.9", "", 1), "weights"),
        (
            "weights",
            lambda text: json.dumps(
                {name: [[w + 0.01 for w in row] for row in v] for name, v in json.loads(text).items()}
            ),
            "weights differ",
        ),
        ("weights", '{"0.weight":[[1.0]]}', "not those of its model"),
        ("weights", '{"other":[[1.0,1.0]]}', "not those of its model"),
        ("weights", "nonsense", "not those of its model"),
        ("weights", None, "not those of its model"),
        ("solved_at", lambda at: at + 20, "solved_at is recorded as"),
        ("solved_at", None, "solved_at is recorded as"),
        ("success", False, "success is recorded as False, retrained True"),
        ("success", None, "success is recorded as"),
        ("seed", 17, "seed is recorded as 17"),
        ("iterations", 3000, "iterations is recorded as 3000"),
        ("threshold", 1.0, "threshold is recorded as 1.0"),
        ("stream", "common", "stream is recorded as common"),
        ("model", "NRU", "model is recorded as NRU, its configuration is called"),
        ("range", "U[-2,2)", "range is recorded as"),
        ("test_mse", 0.5, "test_mse is recorded as"),
        ("sparsity_error", 0.3, "sparsity_error differ by up to"),
        ("selected_at", lambda at: at - 30, "selected_at is recorded as"),
        ("nan_at", 10, "nan_at is recorded as"),
    ],
)
def test_a_changed_row_is_not_confirmed(store, column, value, phrase):
    key = change(store, column, value)
    outcome = check(store.rows_file.parents[1])
    assert not outcome.passed and set(failed(outcome)) == {key}
    assert phrase in " ".join(failed(outcome)[key])
    assert str(outcome).splitlines()[-1] == "FAIL: 9 of 10 rows are confirmed."
    assert f"FAIL {EXPERIMENT}: " in str(outcome)


def test_a_changed_gate_is_not_confirmed(tmp_path):
    (run,) = runs("NAC", [0])
    run_all([run.but(model=GatedStack.of("NAC", 2, "NALU", 1))], EXPERIMENT, str(tmp_path), progress=False)
    store = Store(tmp_path, EXPERIMENT)
    assert 0 < store.read()["gate"][0] < 1 and check(tmp_path).passed
    rows = store.read().assign(gate=lambda rows: 1 - rows["gate"])
    rows.to_csv(store.rows_file, index=False, lineterminator="\n")
    (differences,) = failed(check(tmp_path)).values()
    assert len(differences) == 1 and differences[0].startswith("gate differ")


def last_halved(lows):
    return [*lows[:-1], [lows[-1][0], lows[-1][1] / 2]]


def known_from_the_start(lows):
    return [[place, error] for place, (_, error) in enumerate(lows)]


def only_the_last(lows):
    return [[0, lows[-1][1]]]


@pytest.fixture(scope="module")
def digits_recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    asked = digits.digit_runs("product", ["NMU"], 1, epochs=3, source="sklearn", longest=3)
    run_all(asked, EXPERIMENT, str(folder), progress=False)
    return folder, Store(folder, EXPERIMENT).read()


@pytest.mark.parametrize("change", [None, last_halved, known_from_the_start, only_the_last])
def test_changed_lows_are_not_confirmed(digits_recorded, change):
    folder, rows = digits_recorded
    lows = json.loads(rows["lows"][0])
    assert set(lows) == {"test_1", "test_2", "test_3"}
    if change is not None:
        name = max(lows, key=lambda name: len(lows[name]))
        assert len(lows[name]) > 1
        rows = rows.assign(lows=json.dumps(lows | {name: change(lows[name])}))
    rows.to_csv(Store(folder, EXPERIMENT).rows_file, index=False, lineterminator="\n")
    found = failed(check(folder))
    assert bool(found) == (change is not None)
    if found:
        ((difference,),) = found.values()
        assert difference.startswith("lows of the test errors are others")


@pytest.mark.parametrize(
    ("replace", "phrase"),
    [
        (lambda own, other: None, "its configuration is not stored"),
        (lambda own, other: other, "is that of another run"),
        (lambda own, other: own | {"threshold": 1e-4}, "is that of another run"),
        (
            lambda own, other: own | {"recipe": own["recipe"] | {"optimiser": {"kind": "Adam", "lr": 0.2}}},
            "is that of another run",
        ),
        (lambda own, other: own | {"recipe": {}}, "is not that of a run"),
        (lambda own, other: "text", "is not that of a run"),
    ],
)
def test_a_foreign_configuration_is_not_confirmed(store, replace, phrase):
    sidecar = store.sidecar()
    own = store.read()["key"][0].rpartition("-")[0]
    other = next(key for key in sidecar["configurations"] if key != own)
    replacement = replace(sidecar["configurations"][own], sidecar["configurations"][other])
    sidecar["configurations"] |= {own: replacement}
    store.sidecar_file.write_text(
        json.dumps(
            {
                **sidecar,
                "configurations": {k: v for k, v in sidecar["configurations"].items() if v is not None},
            }
        )
    )
    outcome = check(store.rows_file.parents[1])
    assert {key.rpartition("-")[0] for key in failed(outcome)} == {own}
    assert all(phrase in differences[0] for differences in failed(outcome).values())


def test_the_sample_is_fresh_each_time_and_follows_its_seed(recorded, store):
    keys = [{row.key for row in check(recorded, rows=3, seed=None).rows} for _ in range(4)]
    assert all(len(drawn) == 3 for drawn in keys) and len({frozenset(drawn) for drawn in keys}) > 1
    first = check(recorded, rows=3, seed=7)
    store.read().iloc[::-1].to_csv(store.rows_file, index=False, lineterminator="\n")
    assert [row.key for row in check(store.rows_file.parents[1], rows=3, seed=7).rows] == [
        row.key for row in first.rows
    ]
    assert first.seed == 7


def test_stale_rows_are_drawn_first(store):
    sidecar = store.sidecar()
    rows = store.read()
    batch = rows["batch"].iloc[-1]
    sidecar["batches"][batch]["code"] = "older"
    store.sidecar_file.write_text(json.dumps(sidecar))
    stale = set(rows.loc[rows["batch"] == batch, "key"])
    outcome = check(store.rows_file.parents[1], rows=len(stale), stale_first=True)
    assert {row.key for row in outcome.rows} == stale
    assert {row.freshness for row in outcome.rows} == {"older than the code it depends on"}
    assert outcome.passed


def test_only_short_runs_are_drawn_if_so_asked(recorded):
    with pytest.raises(ValueError, match="no rows of at most 99 iterations to verify in demo/verified"):
        check(recorded, iterations=99)
    assert len(check(recorded, rows=1, iterations=100).rows) == 1
    with pytest.raises(
        ValueError, match="no rows of at most 100 iterations and 1e-06 seconds to verify in demo/verified"
    ):
        check(recorded, iterations=100, seconds=1e-6)
    # what an ensemble takes is that of its rows
    together = Store(recorded, EXPERIMENT).read().groupby("batch")["seconds"].sum()
    with pytest.raises(ValueError, match="no rows of at most"):
        check(recorded, seconds=0.9 * together.min())
    assert check(recorded, seconds=float(together.min())).passed


def test_one_row_is_verified_by_its_key(recorded):
    key = Store(recorded, EXPERIMENT).read()["key"].iloc[3]
    outcome = check(recorded, key=key)
    assert outcome.passed and [row.key for row in outcome.rows] == [key]
    with pytest.raises(ValueError, match="There is no row of the key 'abc-0' to verify in demo/verified"):
        check(recorded, key="abc-0")
    for keys, named in {3: "'0', '1', '2' to", 4: r"'0', '1', '2', \.\.\. to"}.items():
        with pytest.raises(ValueError, match=f"no row of the key {named} verify"):
            check(recorded, key=map(str, range(keys)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rows": -1}, "rows must be an integer of at least 0, but it is -1"),
        ({"experiment": "demo/verifed"}, "Unknown experiment 'demo/verifed': did you mean 'demo/verified'"),
        (
            {"experiment": ["demo/other", "x"]},
            "Unknown experiment 'x': allowed: 'demo/other', 'demo/verified'",
        ),
        ({"device": "cuda:99"}, "Device 'cuda:99' is not there"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(recorded, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        check(recorded, **options)


def test_a_folder_without_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="There are no rows to verify"):
        check(tmp_path, experiment="")


def test_the_receipt_holds_what_was_done_and_found(store, tmp_path):
    key = change(store, "success", False)
    outcome = check(store.rows_file.parents[1], seed=3)
    receipt = json.loads(outcome.write(tmp_path / "own" / "receipt.json").read_text())
    assert receipt["verdict"] == "FAIL" and receipt["sample"] == {
        "seed": 3,
        "rows": 10,
        "of": 10,
        "experiments": [EXPERIMENT],
    }
    assert (
        receipt["tolerances"] | {"solved_at": 1, "weights": 1e-3} == receipt["tolerances"]
        and receipt["date"]
        and receipt["seconds"] > 0
    )
    # each with its twins
    assert (
        len(receipt["ensembles"]) == 2
        and sum(ensemble["runs"] for ensemble in receipt["ensembles"]) == 10 * 9
    )
    assert all(
        ensemble["versions"]["torch"] and ensemble["device"] and ensemble["threads"] >= 1
        for ensemble in receipt["ensembles"]
    )
    rows = {row["key"]: row for row in receipt["rows"]}
    assert {row["verdict"] for other, row in rows.items() if other != key} == {"PASS"}
    assert rows[key]["verdict"] == "FAIL" and "success is recorded as" in rows[key]["differences"][0]
    assert rows[key]["recorded"]["success"] is False and rows[key]["retrained"]["success"] is True
    assert rows[key]["recorded"]["weights"] == rows[key]["retrained"]["weights"]


def test_from_the_command_line(recorded, store, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("nalm.records.verification.RECEIPTS", tmp_path / "receipts")
    common = ["--quiet", "--experiment", EXPERIMENT]
    assert verify.main([*common, "--folder", str(recorded), "--rows", "3", "--seed", "5", "--stale"]) == 0
    said = capsys.readouterr().out
    (receipt,) = (tmp_path / "receipts").iterdir()
    assert said.startswith("Sample 5: 3 of 10 rows\nPASS ") and said.endswith(f"Receipt: {receipt}\n")
    change(store, "solved_at", 200)
    assert (
        verify.main(
            [
                *common,
                "--folder",
                str(store.rows_file.parents[1]),
                "--rows",
                "99",
                "--receipt",
                str(tmp_path / "r.json"),
            ]
        )
        == 1
    )
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "FAIL"
    assert verify.main(["--rows", "-1"]) == 2
    assert capsys.readouterr().err == "rows must be an integer of at least 0, but it is -1.\n"
