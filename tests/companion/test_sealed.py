"""Files of results that are not rows: what is not what was written is refused in a sentence."""

import errno
import json
import os
import shutil
import subprocess

import pytest
from companion import sealed
from companion.benchmark import recorded_measurement
from companion.benchmark.measurement import Measurement
from companion.scoreboard import load
from companion.scoreboard.strength import recorded

from nalm.records import PUBLISHED

CONTENT = {"a-0": {"error": 1e-9, "path": [[24, 0.1], [10, float("1e-300")]], "said": "λ̂"}, "b": None}


def test_what_was_written_is_read(tmp_path):
    sealed.write_json(tmp_path / "some.json", CONTENT)
    assert sealed.read_json(tmp_path / "some.json") == CONTENT
    sealed.write_text(tmp_path / "some.csv", "a,b\n1,λ\n")
    assert sealed.read_text(tmp_path / "some.csv") == "a,b\n1,λ\n"
    subprocess.run(["sha256sum", "--check", "--quiet", "some.csv.sha256"], cwd=tmp_path, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"some.json", "some.csv", "some.csv.sha256"}


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "board.csv"
    sealed.write_text(path, "a\n1\n")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        sealed.write_text(path, "a\n2\n")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_book_s_are_whole():
    assert not sealed.broken() and all((PUBLISHED / name).is_file() for name in sealed.SEALED)


@pytest.mark.parametrize("name", sealed.SEALED)
def test_a_changed_digit_a_cut_and_nonsense_are_noticed(name, tmp_path):
    shutil.copytree(PUBLISHED / "beyond", tmp_path / "beyond")
    for file in PUBLISHED.glob("*.csv*"):
        shutil.copy(file, tmp_path)
    file = tmp_path / name
    whole = file.read_text(encoding="utf-8")
    place = max(whole.rfind(digit, 0, len(whole) // 2) for digit in "123456789")
    for damaged in (
        whole[:place] + ("7" if whole[place] != "7" else "3") + whole[place + 1 :],
        whole[: len(whole) // 2],
        "",
        "[1, 2]",
        "{}",
    ):
        file.write_text(damaged, encoding="utf-8")
        if damaged == "{}" and file.suffix == ".json":
            continue  # a file without a digest, which only the book's own have to hold
        (sentence,) = sealed.broken(tmp_path)
        assert str(file) in sentence and "\n" not in sentence


def test_the_book_s_files_need_their_digests(tmp_path, monkeypatch):
    file = tmp_path / "beyond" / "equations.json"
    file.parent.mkdir()
    file.write_text(json.dumps(CONTENT))
    assert sealed.read_json(file) == CONTENT
    monkeypatch.setattr(sealed, "PUBLISHED", tmp_path)
    with pytest.raises(ValueError, match="is not what was recorded"):
        sealed.read_json(file)


@pytest.mark.parametrize(
    ("name", "read"),
    [("beyond/how-fast.json", Measurement.read), ("scoreboard.csv", load), ("strength.csv", recorded)],
)
def test_readers_refuse(name, read, tmp_path):
    for file in PUBLISHED.glob(f"{name}*"):
        shutil.copy(file, tmp_path)
    file = tmp_path / name.rpartition("/")[2]
    assert len(str(read(file)))
    file.write_text(file.read_text(encoding="utf-8").replace("0", "1", 1), encoding="utf-8")
    with pytest.raises(ValueError, match="is not what was recorded"):
        read(file)


def test_a_measurement_that_the_book_shows_is_read():
    assert recorded_measurement().measures
