"""The store: nothing recorded is lost or doubled, whatever else happens."""

import errno
import json
import os
import signal
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from forked import PROCESSES

from nalm.records import Store
from nalm.records import store as stores

EXPERIMENT = "demo/store"
# whose processes need not import torch each by themselves


def row(key, **values):
    return {
        "key": key, "experiment": EXPERIMENT, "paper": "demo", "model": "NMU", "task": "SingleModuleTask",
        "range": "U[1,2)", "seed": 0, "stream": "own", "iterations": 10, "threshold": 1e-5, "success": True,
        "solved_at": 10.0, "sparsity_error": 0.1, "valid_mse": 1e-6, "test_mse": 0.1 + 0.2, "selected_at": 10,
        "nan_at": None, "seconds": 0.1, "batch": "b", "weights": '{"0.weight":[[1.0]]}',
    } | values  # fmt: skip


def add(store, *keys, batch="b"):
    store.add([row(key, batch=batch) for key in keys], {"c": {"task": {}}}, batch, {"device": "test"})


def test_rows_of_another_batch_are_refused(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    with pytest.raises(ValueError, match="The row a-1 is not of the batch 'b' that it is added with"):
        store.add([row("a-0"), row("a-1", batch="c")], {}, "b", {"device": "test"})
    assert not store.rows_file.exists()


def test_several_batches_at_once_are_as_one_after_another(tmp_path, monkeypatch):
    rows = [row("a-0"), row("b-0", batch="b2"), row("a-1", factor=2.0)]
    batches = {"b": {"device": "test"}, "b2": {"device": "other"}}
    one, other = (Store(tmp_path / name, EXPERIMENT) for name in ("one", "other"))
    for name, of in batches.items():
        one.add([line for line in rows if line["batch"] == name], {"c": {"task": {}}}, name, of)
    written = []
    replace = stores._replace
    monkeypatch.setattr(stores, "_replace", lambda file, text: (written.append(file), replace(file, text)))
    other.add_batches(rows, {"c": {"task": {}}}, batches)
    assert written.count(other.rows_file) == 1
    assert other.sidecar() == one.sidecar() and other.damaged() == []
    with pytest.raises(ValueError, match="The row c-0 is not of the batch 'b', 'b2'"):
        other.add_batches([row("c-0", batch="c")], {}, batches)
    other.add_batches(rows, {}, batches)
    assert len(other.read()) == 3 and other.sidecar() == one.sidecar()


def test_a_digest_notices_any_change(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", "a-1")
    add(store, "b-0", batch="b2")
    assert store.damaged() == []
    rows = store.read()
    for column, value in {
        "test_mse": 0.3,
        "success": False,
        "seconds": 0.2,
        "weights": '{"0.weight":[[1.5]]}',
        "selected_at": 0,
    }.items():
        store.rows_file.write_text(
            rows.assign(**{column: rows[column].where(rows["key"] != "a-1", value)}).to_csv(index=False)
        )
        assert store.damaged() == ["b"], column
    moved = rows.rename(columns={"nan_at": "model", "model": "nan_at"})  # to an empty column beside it
    store.rows_file.write_text(moved.to_csv(index=False))
    assert store.damaged() == ["b", "b2"]
    store.rows_file.write_text(rows[::-1].to_csv(index=False))
    assert store.damaged() == []


@pytest.mark.parametrize("digest", [None, 7, ["a"], {"a": "b"}])
def test_a_digest_that_is_none_is_that_of_no_row(tmp_path, digest):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    for edited in ("digest", "coming"):
        sidecar = store.sidecar()
        sidecar["batches"]["b"]["digest"] = digest
        sidecar |= {"coming": {"b": digest}} if edited == "coming" else {}
        store.sidecar_file.write_text(json.dumps(sidecar))
        assert store.damaged() == ["b"]


@pytest.mark.parametrize("changed", [{"success": None, "threshold": None}, {"clipped": "no"}])
def test_rows_keep_their_digest_whatever_is_added(tmp_path, changed):
    """True is read as text where another row has none, or has another text."""
    store = Store(tmp_path, EXPERIMENT)
    store.add([row("a-0", clipped="True")], {"c": {"task": {}}}, "b", {"device": "test"})
    others = row("a-1", batch="b2", clipped="True") | changed
    store.add([others], {"c": {"task": {}}}, "b2", {"device": "test"})
    assert all("digest" in batch for batch in store.sidecar()["batches"].values())
    assert store.damaged() == []
    text = store.rows_file.read_text()
    assert text.count("True") > 1
    store.rows_file.write_text(text.replace("True", "False", 1))
    assert store.damaged() == ["b"]


def test_rows_without_a_digest_get_none_when_others_are_added(tmp_path):
    """Nobody knows whether they are as they were recorded."""
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    sidecar = store.sidecar()
    del sidecar["batches"]["b"]["digest"]
    store.sidecar_file.write_text(json.dumps(sidecar))
    add(store, "b-0", batch="b2")
    assert {name: "digest" in batch for name, batch in store.sidecar()["batches"].items()} == {
        "b": False,
        "b2": True,
    }


def test_what_is_added_is_read(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", "a-1")
    store.add(
        [row("a-2", batch="b2", arm="code", success=None, solved_at=None)], {}, "b2", {"device": "test"}
    )
    rows = Store(tmp_path, EXPERIMENT).read()
    assert rows["key"].tolist() == ["a-0", "a-1", "a-2"] and rows["test_mse"][0] == 0.1 + 0.2
    assert rows["arm"].isna().tolist() == [True, True, False] and pd.isna(rows["success"][2])
    assert set(store.sidecar()["batches"]) == {"b", "b2"} and store.sidecar()["configurations"] == {
        "c": {"task": {}}
    }


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_are_read_to_the_last_bit(tmp_path, kind):
    bits = np.random.default_rng(0).integers(
        0, 2 ** (8 * kind(0).nbytes), 20_000, dtype=f"u{kind(0).nbytes}", endpoint=False
    )
    some = np.concatenate([bits.view(kind), np.random.default_rng(1).random(20_000).astype(kind)])
    values = [float(value) for value in some if np.isfinite(value)]
    store = Store(tmp_path, EXPERIMENT)
    rows = [row(f"a-{n}", test_mse=value) for n, value in enumerate(values)]
    store.add(rows[:-1], {}, "b", {"device": "test"})
    store.add(rows[-1:], {}, "b", {"device": "test"})  # reads and writes what is there once more
    assert store.read()["test_mse"].tolist() == values


def test_a_key_is_recorded_once(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    before = store.rows_file.read_bytes()
    add(store, "a-0", batch="later")
    assert store.rows_file.read_bytes() == before and "later" not in store.sidecar()["batches"]
    add(store, "a-0", "a-1")
    assert store.read()["key"].tolist() == ["a-0", "a-1"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a readable results file"),
        (b"\xff\xfe\x00broken", "not a readable results file|is not a results file"),
        (b"name,value\nx,1\n", "it lacks the columns key, experiment"),
    ],
)
def test_a_damaged_or_foreign_file_is_left_as_it_is(tmp_path, content, sentence):
    store = Store(tmp_path, EXPERIMENT)
    store.rows_file.parent.mkdir()
    store.rows_file.write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        add(store, "a-0")
    assert store.rows_file.read_bytes() == content


@pytest.mark.parametrize("kept", ["half a row", "whole rows"])
def test_a_truncated_file_is_left_as_it_is(tmp_path, kept):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", "a-1")
    cut = (
        store.rows_file.read_bytes()[:-60]
        if kept == "half a row"
        else b"".join(store.rows_file.read_bytes().splitlines(True)[:-1])
    )
    store.rows_file.write_bytes(cut)
    with pytest.raises(ValueError, match=r"nothing was written\."):
        add(store, "a-2")
    assert store.rows_file.read_bytes() == cut


def test_rows_of_another_experiment_or_twice_the_same_are_refused(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    text = store.rows_file.read_text()
    store.rows_file.write_text(text + text.splitlines()[1] + "\n")
    with pytest.raises(ValueError, match="keys are not unique"):
        store.read()
    store.rows_file.write_text(text.replace(EXPERIMENT, "demo/other"))
    with pytest.raises(ValueError, match="rows of another experiment"):
        store.read()


def test_a_damaged_sidecar_is_left_as_it_is(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    store.sidecar_file.write_text("{")
    before = store.rows_file.read_bytes()
    with pytest.raises(ValueError, match="not a readable sidecar"):
        add(store, "a-1")
    assert store.sidecar_file.read_text() == "{" and store.rows_file.read_bytes() == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": []},
        {"names": "x"},
        {"names": {"a": "x"}},
        {"confirmations": [{}]},
        {"confirmations": [{"recorded": "a", "current": "b", "rows": []}]},
        {"confirmations": "x"},
        {"comparisons": [{"codes": []}]},
        {"batches": []},
        {"batches": {"a": 1}},
        {"batches": {"a": {"versions": "2.12.1"}}},
        {"coming": []},
        {"rows": "one"},
        {"rows": 1.5},
    ],
    ids=str,
)
def test_a_wrong_part_of_the_sidecar_is_said_in_one_sentence(tmp_path, wrong):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    store.sidecar_file.write_text(json.dumps(json.loads(store.sidecar_file.read_text()) | wrong))
    with pytest.raises(ValueError, match=r"not a readable sidecar file \(.*\); repair or move it"):
        store.sidecar()


def test_a_lost_sidecar_is_not_replaced(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    before = store.rows_file.read_bytes()
    store.sidecar_file.unlink()
    for action in (store.read, lambda: add(store, "a-1"), lambda: store.note("confirmations", {})):
        with pytest.raises(ValueError, match=r"store\.json is lost.*; restore it, nothing was written\."):
            action()
    assert store.rows_file.read_bytes() == before and not store.sidecar_file.exists()


def test_lost_rows_are_not_begun_anew(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    before = store.sidecar_file.read_bytes()
    store.rows_file.unlink()
    for action in (store.read, lambda: add(store, "a-1"), lambda: store.note("confirmations", {})):
        with pytest.raises(
            ValueError,
            match=r"store\.csv is lost, of which .*store\.json counts 1 rows; restore it, "
            r"nothing was written\.",
        ):
            action()
    assert store.sidecar_file.read_bytes() == before and not store.rows_file.exists()


@pytest.fixture
def killed_after(monkeypatch):
    """Does something that writes three files, and is killed after some of them."""
    replace = stores._replace

    def run(writes, write):
        left = [writes]

        def killed(file, text):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            replace(file, text)

        with monkeypatch.context() as context:
            context.setattr(stores, "_replace", killed)
            try:
                write()
            except KeyboardInterrupt:
                assert writes < 3

    return run


@pytest.mark.parametrize("there", [0, 2])
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_kill_between_two_writes_harms_nothing(tmp_path, killed_after, there, writes):
    store = Store(tmp_path, EXPERIMENT)
    if there:
        add(store, "a-0", "a-1")

    killed_after(writes, lambda: add(store, "b-0", "b-1", batch="killed"))
    assert len(store.read()) == there + (2 if writes >= 2 else 0)
    add(store, "b-0", "b-1", "c-0", batch="later")
    rows, sidecar = store.read(), store.sidecar()
    assert len(rows) == there + 3 == sidecar["rows"] and set(rows["batch"]) <= set(sidecar["batches"])


@pytest.mark.parametrize(
    "write",
    [
        lambda store: add(store, "b-0"),
        lambda store: add(store, "b-0", batch="new"),
        lambda store: replaced(store, "a-0", "new"),
    ],
    ids=["of the same batch", "of another", "instead of one"],
)
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_kill_between_two_writes_leaves_no_row_unchecked(tmp_path, killed_after, writes, write):
    """Neither rows that were there nor those that came."""
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", "a-1")
    killed_after(writes, lambda: write(store))
    assert store.damaged() == []
    rows = store.read()
    for key in rows["key"]:
        changed = rows.assign(test_mse=rows["test_mse"].where(rows["key"] != key, 0.7))
        store.rows_file.write_text(changed.to_csv(index=False))
        assert store.damaged() == [rows.set_index("key")["batch"][key]]
        with pytest.raises(ValueError, match="not as they were recorded"):
            add(store, "c-0", batch="later")
    store.rows_file.write_text(rows.to_csv(index=False))
    add(store, "c-0", batch="later")
    sidecar = store.sidecar()
    assert "coming" not in sidecar
    assert all("digest" in sidecar["batches"][name] for name in set(store.read()["batch"]))


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_kill_does_no_harm_to_rows_without_a_digest(tmp_path, killed_after, writes):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    add(store, "b-0", batch="other")
    sidecar = store.sidecar()
    del sidecar["batches"]["b"]["digest"], sidecar["batches"]["other"]["digest"]
    store.sidecar_file.write_text(json.dumps(sidecar))
    killed_after(writes, lambda: add(store, "a-1"))
    assert len(store.read()) == 2 + (writes >= 2)
    killed_after(writes, lambda: replaced(store, "b-0", "new"))
    assert len(store.read()) == 2 + (writes >= 2)
    add(store, "c-0", batch="later")
    assert store.damaged() == [] and "digest" in store.sidecar()["batches"]["later"]


@pytest.fixture
def full(monkeypatch):
    """A disk that is full when rows are written."""
    replace = stores._replace

    def refused(file, text):
        if file.suffix == ".csv":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(file, text)

    @contextmanager
    def disk():
        with monkeypatch.context() as context:
            context.setattr(stores, "_replace", refused)
            with pytest.raises(OSError, match="No space left on device.*what it holds is unharmed"):
                yield

    return disk


def replaced(store, key, batch):
    store.add([row(key, batch=batch, test_mse=0.5)], {}, batch, {"device": batch}, [key])


def test_rows_that_were_not_replaced_keep_their_provenance(tmp_path, full):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", batch="old")
    add(store, "b-0", batch="other")
    before = store.rows_file.read_bytes()
    with full():
        replaced(store, "a-0", "new")
    assert store.rows_file.read_bytes() == before and store.damaged() == []
    assert store.read()["batch"].tolist() == ["old", "other"]
    assert all(store.sidecar()["batches"][name]["device"] == "test" for name in ("old", "other"))
    replaced(store, "b-0", "later")
    assert store.read()["batch"].tolist() == ["old", "later"] and store.damaged() == []
    assert store.sidecar()["batches"].keys() == {"old", "later"} and store.sidecar()["rows"] == 2
    replaced(store, "a-0", "new")
    assert store.read()["batch"].tolist() == ["later", "new"]
    batches = store.sidecar()["batches"]
    assert {name: of["device"] for name, of in batches.items()} == {"later": "later", "new": "new"}


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_a_kill_while_a_row_is_replaced_harms_nothing(tmp_path, killed_after, writes):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0", batch="old")
    add(store, "b-0", "b-1", batch="other")

    killed_after(writes, lambda: replaced(store, "a-0", "new"))
    rows, sidecar = store.read(), store.sidecar()
    assert sorted(rows["key"]) == ["a-0", "b-0", "b-1"] and sidecar["rows"] == 3
    assert set(rows["batch"]) <= set(sidecar["batches"]) and ("new" in set(rows["batch"])) == (writes >= 2)
    replaced(store, "b-0", "later")
    assert set(store.read()["batch"]) == set(store.sidecar()["batches"]) and store.damaged() == []


@pytest.mark.parametrize("batch", ["invented", ""])
def test_a_row_of_a_batch_that_nobody_recorded_is_refused(tmp_path, batch):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    by_hand = pd.read_csv(store.rows_file, dtype=str).assign(key="a-1", seed="1", batch=batch)
    by_hand.to_csv(store.rows_file, mode="a", header=False, index=False)
    assert store.damaged() == [batch or "none"]
    with pytest.raises(ValueError, match=f"not as they were recorded, of the batch {batch or 'none'};"):
        store.read()


def test_rows_without_any_batch_in_the_sidecar_are_refused(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    store.sidecar_file.write_text(json.dumps(store.sidecar() | {"batches": {}}))
    with pytest.raises(ValueError, match="of the batch b;"):
        store.read()


@pytest.mark.parametrize("file", ["rows_file", "sidecar_file"])
def test_a_folder_in_place_of_a_file_is_told(tmp_path, file):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    getattr(store, file).unlink()
    getattr(store, file).mkdir()
    with pytest.raises(ValueError, match="is not a readable"):
        store.read()


def test_a_digest_that_comes_with_a_batch_is_not_that_of_rows_to_come(tmp_path, full):
    there, here = (Store(tmp_path / name, EXPERIMENT) for name in ("there", "here"))
    add(there, "a-0")
    add(here, "b-0", batch="other")
    with full():
        here.add_batches([row("a-0")], {}, there.sidecar()["batches"])
    assert here.read()["key"].tolist() == ["b-0"] and here.damaged() == []
    here.add_batches([row("a-0")], {}, there.sidecar()["batches"])
    assert here.sidecar()["batches"]["b"] == there.sidecar()["batches"]["b"]


@pytest.mark.parametrize("there", [0, 1])
def test_a_key_that_comes_twice_at_once_is_recorded_once(tmp_path, there):
    store = Store(tmp_path, EXPERIMENT)
    if there:
        add(store, "b-0")
    twice = [row("a-0", nan_at=float("nan")), row("a-1"), row("a-0", batch="b2", seconds=0.2)]
    store.add_batches(twice, {}, {"b": {"device": "test"}, "b2": {"device": "other"}})
    assert store.read()["key"].tolist() == ["b-0"] * there + ["a-0", "a-1"]
    assert store.sidecar()["batches"].keys() == {"b"} and store.damaged() == []


def test_a_key_that_comes_twice_with_other_results_is_refused(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    twice = [row("b-0"), row("a-0"), row("a-0", test_mse=0.5)]
    with pytest.raises(
        ValueError, match=r"The row a-0 is added twice with different values; nothing was written\."
    ):
        store.add(twice, {}, "b", {"device": "test"})
    assert not store.rows_file.exists() and not store.sidecar_file.exists()
    add(store, "a-0", "b-0")
    before = store.rows_file.read_bytes(), store.sidecar_file.read_bytes()
    store.add(twice, {}, "b", {"device": "test"})  # the key is there already
    with pytest.raises(ValueError, match="The row a-0 is added twice"):
        store.add(twice, {}, "b", {"device": "test"}, ["a-0"])
    assert (store.rows_file.read_bytes(), store.sidecar_file.read_bytes()) == before


def test_no_rows_change_nothing(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store)
    assert not list(tmp_path.iterdir())
    add(store, "a-0")
    before = store.rows_file.read_bytes(), store.sidecar_file.read_bytes()
    store.add([], {}, "b2", {"device": "test"}, ["a-0"])
    assert (store.rows_file.read_bytes(), store.sidecar_file.read_bytes()) == before


def test_a_sidecar_without_a_number_of_rows_can_be_added_to(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    sidecar = store.sidecar()
    del sidecar["rows"]
    store.sidecar_file.write_text(json.dumps(sidecar))
    add(store, "b-0", batch="b2")
    assert store.read()["key"].tolist() == ["a-0", "b-0"] and store.sidecar()["rows"] == 2


@pytest.mark.parametrize("name", ["division", "Division/Fig 3", "../x/y", "a/b/c", ""])
def test_an_experiment_name_is_checked(tmp_path, name):
    with pytest.raises(ValueError, match="<paper>/<name>"):
        Store(tmp_path, name)


def _writer(folder, writer, rows):
    for number in range(rows):
        add(Store(folder, EXPERIMENT), f"{writer}-{number}", f"shared-{number}", batch=f"{writer}")


def test_two_processes_lose_and_double_nothing(tmp_path):
    writers = [PROCESSES.Process(target=_writer, args=(tmp_path, name, 20)) for name in "ab"]
    [w.start() for w in writers]
    [w.join(240) for w in writers]
    keys = Store(tmp_path, EXPERIMENT).read()["key"].tolist()
    assert sorted(keys) == sorted([f"{w}-{n}" for w in ("a", "b", "shared") for n in range(20)])


def test_a_killed_writer_leaves_whole_files(tmp_path):
    store = Store(tmp_path, EXPERIMENT)
    writer = PROCESSES.Process(target=_writer, args=(tmp_path, "a", 10_000))
    writer.start()
    while not store.rows_file.exists() or len(store.read()) < 20:
        assert writer.is_alive()
        time.sleep(0.02)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    rows, batches = store.read(), json.loads(store.sidecar_file.read_text())["batches"]
    assert set(rows["batch"]) <= set(batches) and len(rows) >= 20
    add(store, "after")  # the dead writer's lock is gone with it
    assert len(store.read()) == len(rows) + 1


def test_who_waits_for_a_lock_is_told_for_whom(tmp_path, monkeypatch, capsys):
    from nalm.records import store as module

    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    held = PROCESSES.Process(target=hold, args=(store.rows_file, 1.5))
    held.start()
    while "held" not in (file.name for file in tmp_path.iterdir()):
        assert held.is_alive()
        time.sleep(0.05)
    add(store, "b-0", batch="b2")
    held.join()
    assert f"is held by process {held.pid} on " in capsys.readouterr().err
    assert store.read()["key"].tolist() == ["a-0", "b-0"]


def hold(rows_file, seconds):
    """Locks a store as another process would."""
    with Store(rows_file.parents[1], EXPERIMENT)._locked():
        (rows_file.parents[1] / "held").touch()
        time.sleep(seconds)


def test_room_is_asked_for_all_that_will_be_written(tmp_path, monkeypatch):
    """A file is replaced as a whole, so the old rows need room a second time."""
    store, sizes = Store(tmp_path, EXPERIMENT), []
    add(store, "a-0")
    there = sum(file.stat().st_size for file in (store.rows_file, store.sidecar_file))
    written = stores._written
    monkeypatch.setattr(
        stores, "_written", lambda file, content: (sizes.append(len(content)), written(file, content))[1]
    )
    store.make_room(3)
    assert sizes == [there + 3 * stores.BYTES_PER_ROW]


@pytest.mark.parametrize(
    ("asked", "found"),
    [(lambda store: store.read()["key"].tolist(), ["a-0", "a-1"]), (Store.damaged, [])],
    ids=["read", "damaged"],
)
def test_a_row_that_is_added_while_others_are_read_is_no_damage(tmp_path, monkeypatch, asked, found):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    before, sidecar = [store.sidecar()], Store.sidecar
    add(store, "a-1")
    monkeypatch.setattr(Store, "sidecar", lambda self: before.pop() if before else sidecar(self))
    assert asked(store) == found and not before


def test_a_configuration_is_called_as_its_rows_are(tmp_path):
    """Unless all of them are given up."""
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    for number, given_up in ((1, ()), (2, ("a-0", "a-1"))):
        added = row(f"a-{number}", model="another", batch=f"b{number}")
        store.add([added], {"c": {"task": {}}}, f"b{number}", {"device": "test"}, given_up)
        name = "NMU" if number == 1 else "another"
        assert set(store.read()["model"]) == {name} == {store.sidecar()["names"]["a"]["model"]}


@pytest.mark.parametrize("column", ["seed", "iterations", "valid_mse", "test_mse"])
def test_text_in_place_of_numbers_is_refused(tmp_path, column):
    store = Store(tmp_path, EXPERIMENT)
    add(store, "a-0")
    store.rows_file.write_text(store.read().assign(**{column: "abc"}).to_csv(index=False))
    with pytest.raises(ValueError, match="its numbers cannot be read"):
        store.read(checked=False)
