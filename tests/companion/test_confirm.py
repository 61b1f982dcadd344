"""Rows that are older than their code are confirmed by a sample that comes out the same, by nothing less."""

import json

import pandas as pd
import pytest
from companion.verification import __main__ as verify
from companion.verification import confirm, confirmation

from nalm.models import Stack
from nalm.records import PUBLISHED, Store, code, freshness, run_all
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Norms, Recipe, Run

EXPERIMENT = "demo/confirm"
FRESH, CONFIRMED, OLDER = "fresh", "confirmed", "older than the code it depends on"
TASK = SingleModuleTask.on("U[1,2)", operation="mul")
RECIPE = Recipe(iterations=4, optimiser=Adam(lr=1e-2), log_interval=2)


def runs(unit, seeds):
    return [
        Run(
            task=TASK,
            model=Stack.of(unit, 1),
            recipe=RECIPE,
            seed=seed,
            threshold=1e-5,
            labels={"model": unit, "way": "of a label", "recorded": "so"},
        )
        for seed in seeds
    ]


@pytest.fixture
def recorded(tmp_path):
    run_all(
        [*runs("NMU", range(6)), *runs("NRU", range(3))], EXPERIMENT, results=str(tmp_path), progress=False
    )
    run_all(runs("NMU", range(6, 9)), EXPERIMENT, results=str(tmp_path), progress=False)
    return tmp_path


@pytest.fixture
def edit(monkeypatch):
    """Edits the source of a module of the library, on the disk and as this process knows it; what is
    executed stays the same.
    """

    def edit(module, old, new):
        assert old in code.LOADED[module]
        monkeypatch.setitem(code.LOADED, module, code.LOADED[module].replace(old, new, 1))
        monkeypatch.setattr(code, "_sources", lambda: code.LOADED)

    return edit


def test_the_sample_does_not_depend_on_the_order_of_rows():
    batches = pd.DataFrame({"batch": list("abcdefgh")})
    assert confirmation._drawn(batches, 3, seed=2) == confirmation._drawn(batches[::-1], 3, seed=2)


def test_what_was_not_compiled_is_not_compiled_again(recorded, edit, monkeypatch):
    store = Store(recorded, EXPERIMENT)
    sidecar = store.sidecar()
    first, *others = sidecar["batches"].values()
    first["compiled"] = True
    assert [batch["compiled"] for batch in others] == [False] * len(others) != []
    store.sidecar_file.write_text(json.dumps(sidecar))
    train, asked = confirmation.train_ensembles, {}

    def noted(ensembles, *arguments, compiled, **how):
        asked[compiled] = len(ensembles)
        return train(ensembles, *arguments, compiled=compiled, **how)

    monkeypatch.setattr(confirmation, "train_ensembles", noted)
    edit("nalm.training.update", "return ", "return 1 * ")
    confirm(EXPERIMENT, ensembles=9, folder=recorded, progress=False)
    assert asked == {None: 1, False: len(others)}


def test_a_change_that_changes_no_result_is_confirmed(recorded, edit):
    assert confirm(EXPERIMENT, folder=recorded, progress=False) == []
    edit("nalm.training.update", "return ", "return 1 * ")
    assert freshness(EXPERIMENT, recorded) == OLDER
    found = confirm(EXPERIMENT, ensembles=1, folder=recorded, progress=False)
    assert sorted((one.passed, one.of, one.ensembles) for one in found) == [(True, 3, 1), (True, 9, 1)]
    batch = Store(recorded, EXPERIMENT).read().set_index("key")["batch"]
    for one in found:  # whole ensembles
        (drawn,) = set(batch[list(one.rows)])
        assert sorted(one.rows) == sorted(batch[batch == drawn].index)
    assert freshness(EXPERIMENT, recorded) == CONFIRMED
    assert confirm(EXPERIMENT, folder=recorded, progress=False) == []
    notes = Store(recorded, EXPERIMENT).sidecar()["confirmations"]
    assert [(note["of"], note["rows"], "torch" in note["versions"]) for note in notes] == [
        (one.of, list(one.rows), True) for one in found
    ]


def test_new_rows_leave_confirmations_alone_and_another_change_ends_them(recorded, edit):
    edit("nalm.training.update", "return ", "return 1 * ")
    confirm(EXPERIMENT, folder=recorded, progress=False)
    run_all(runs("NMU", [70]), EXPERIMENT, results=str(recorded), progress=False)
    store = Store(recorded, EXPERIMENT)
    assert code.freshness_of(store.read(checked=False), store.sidecar()).tolist() == [CONFIRMED] * 12 + [
        FRESH
    ]
    edit("nalm.units.nau", "return identity_product", "return 1 * identity_product")  # of the NMU
    assert (
        code.freshness_of(store.read(checked=False), store.sidecar()).tolist()
        == [OLDER] * 6 + [CONFIRMED] * 3 + [OLDER] * 4
    )


def test_one_other_digit_is_enough_to_refuse(recorded, edit, capsys):
    store = Store(recorded, EXPERIMENT)
    rows = store.read()
    value = float(rows.loc[0, "test_mse"])
    text = store.rows_file.read_text()
    assert text.count(repr(value)) == 1
    store.rows_file.write_text(text.replace(repr(value), repr(value * (1 + 1e-7))))
    edit("nalm.training.update", "return ", "return 1 * ")
    arguments = ["--confirm", "--experiment", EXPERIMENT, "--folder", str(recorded), "--quiet"]
    assert verify.main([*arguments, "--rows", "9"]) == 1
    said = capsys.readouterr().out
    assert (
        "NOT CONFIRMED demo/confirm, 9 rows" in said
        and f"{rows.loc[0, 'key']} is not" in said
        and "CONFIRMED demo/confirm, 3 rows" in said
    )
    assert freshness(EXPERIMENT, recorded) == OLDER
    assert (
        code.freshness_of(store.read(checked=False), store.sidecar()).tolist()
        == [OLDER] * 6 + [CONFIRMED] * 3 + [OLDER] * 3
    )


def test_a_sample_speaks_only_for_runs_that_take_the_same_way(tmp_path, edit):
    penalised = [
        run.but(recipe=RECIPE.but(penalties=(Norms(start=1e-2, end=1e-2),))) for run in runs("NMU", range(2))
    ]
    run_all([*runs("NMU", range(3)), *penalised], EXPERIMENT, results=str(tmp_path), progress=False)
    edit("nalm.training.update", "return ", "return 1 * ")
    found = confirm(EXPERIMENT, ensembles=1, folder=tmp_path, progress=False)
    assert sorted((one.of, len(one.rows), "Norms" in one.way) for one in found) == [
        (2, 2, True),
        (3, 3, False),
    ]
    store = Store(tmp_path, EXPERIMENT)
    sidecar = store.sidecar()
    sidecar["confirmations"] = [note for note in sidecar["confirmations"] if "Norms" not in note["way"]]
    assert code.freshness_of(store.read(), sidecar).tolist() == [CONFIRMED] * 3 + [OLDER] * 2


def test_a_folder_without_results_is_said(tmp_path, capsys):
    assert verify.main(["--confirm", "--folder", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().err == f"There are no results in {tmp_path / 'nothing'}.\n"


def test_files_that_change_meanwhile_confirm_nothing(recorded, edit, monkeypatch):
    edit("nalm.training.update", "return ", "return 1 * ")
    monkeypatch.setattr(code, "_sources", lambda: code.LOADED | {"nalm.training.update": "changed = 1"})
    with pytest.raises(ValueError, match="changed while rows were trained again"):
        confirm(EXPERIMENT, folder=recorded, progress=False)
    assert freshness(EXPERIMENT, recorded) == OLDER
    with pytest.raises(ValueError, match="is 0, but must be at least 1"):
        confirm(EXPERIMENT, ensembles=0, folder=recorded)


def test_published_confirmations_name_rows_that_are_there():
    for file in PUBLISHED.glob("*/*.csv"):
        store = Store(PUBLISHED, file.relative_to(PUBLISHED).with_suffix("").as_posix())
        keys = set(store.read()["key"])
        for note in store.sidecar().get("confirmations", []):
            assert note["rows"] and set(note["rows"]) <= keys and len(note["rows"]) <= note["of"]


@pytest.mark.parametrize(
    "option",
    [["--key", "abc"], ["--stale"], ["--device", "cuda"], ["--iterations", "5"], ["--receipt", "a.json"]],
)
def test_options_that_a_confirmation_does_not_have_are_refused(option, tmp_path, capsys):
    assert verify.main(["--confirm", *option, "--folder", str(tmp_path)]) == 2
    assert f"leave out {option[0]}." in capsys.readouterr().err
