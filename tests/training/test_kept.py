"""Compiled code is kept: a second process reads it, and whatever is wrong with it is compiled anew."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nalm.training import kept

SCRIPT = """
import hashlib, json, os, torch
from nalm.training.compiler import Compiled
from torch._dynamo.utils import counters

torch.set_num_threads(1)
x = torch.linspace(0.1, 2, 96).reshape(8, 12)
found = Compiled(lambda a: ((a.log() * a).cos().sum(1) + torch.tensor(0.25),))(x)
known = counters["inductor"]
print(json.dumps({
    "folder": os.environ["TORCHINDUCTOR_CACHE_DIR"],
    "bits": hashlib.sha256(found[0].numpy().tobytes()).hexdigest(),
    "read": known["fxgraph_cache_hit"],
    "compiled": known["fxgraph_cache_miss"],
}))
"""

KILLS = """#!/usr/bin/env bash
[ "$1" = --version ] && exec c++ --version
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo half > "$2" && kill -9 $PPID; shift; done
"""
"""A compiler that writes half a file and kills who called it."""


def compile_in(cache: Path) -> dict:
    """What a process finds that compiles a function, with the user's cache there."""
    inherited = {name: value for name, value in os.environ.items() if name != kept.VARIABLE}
    ran = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:nalm", "-c", SCRIPT],
        env=inherited | {"XDG_CACHE_HOME": str(cache), "HOME": str(cache)}, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return cache, compile_in(cache)


def test_a_second_process_reads_what_the_first_compiled(first):
    cache, found = first
    assert Path(found["folder"]).parent == cache / "nalm" / "compiled" and (found["read"], found["compiled"]) == (0, 1)
    assert compile_in(cache) == found | {"read": 1, "compiled": 0}


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    """As in a process that has compiled nothing, whose user's folder of compiled code is this one."""
    monkeypatch.setattr(kept, "KEPT", tmp_path / "compiled")
    monkeypatch.setenv(kept.VARIABLE, kept._default())
    kept.keep.cache_clear()
    yield tmp_path / "compiled"
    kept.keep.cache_clear()


def named() -> Path:
    kept.keep()
    return Path(os.environ[kept.VARIABLE])


def test_it_is_kept_in_a_folder_of_the_user(kept_in):
    assert named() == kept_in / kept._key() and named().stat().st_mode & 0o77 == 0


def test_a_folder_that_the_user_names_is_used(kept_in, tmp_path, monkeypatch):
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "named"))
    assert named() == tmp_path / "named" and not kept_in.exists()


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_may_write_to_is_left_alone(kept_in, mode, inner):
    folder = kept_in / kept._key()
    folder.mkdir(parents=True, mode=0o700)
    (folder if inner else kept_in).chmod(mode)
    assert kept_in not in named().parents and named().stat().st_mode & 0o77 == 0


def test_what_is_damaged_is_compiled_anew(first):
    cache, found = first
    files = [file for file in Path(found["folder"]).rglob("*") if file.is_file()]
    assert {".so", ".py"} <= {file.suffix for file in files}
    for file in files:
        os.truncate(file, file.stat().st_size // 3)
    assert compile_in(cache)["bits"] == found["bits"]
    assert compile_in(cache) == found | {"read": 1, "compiled": 0}


def test_a_compiler_that_is_killed_leaves_no_half_file(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(KILLS)
    compiler.chmod(0o755)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), "CXX": str(compiler)}
    environment.pop(kept.VARIABLE, None)
    killed = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr[-1000:]
    left = [file.name for file in (tmp_path / "nalm").rglob("*") if file.is_file() and file.read_bytes() == b"half\n"]
    assert left and all(name.endswith(".new") for name in left)


def test_the_oldest_files_go_first(tmp_path):
    for age in range(8):
        file = tmp_path / str(age) / "file"
        file.parent.mkdir()
        file.write_bytes(bytes(100))
        os.utime(file, (1000 - age, 1000 - age))
    kept._trim(tmp_path, 800)
    assert len(list(tmp_path.glob("*/file"))) == 8
    kept._trim(tmp_path, 799)
    assert sorted(file.parent.name for file in tmp_path.glob("*/file")) == ["0", "1", "2", "3", "4"]


def test_another_processor_or_compiler_has_a_folder_of_its_own(monkeypatch):
    key = kept._key()
    assert kept._key() == key
    monkeypatch.setattr(kept, "_instructions", lambda: "flags: none")
    assert kept._key() != key
    monkeypatch.undo()
    monkeypatch.setattr(kept.torch, "__version__", "2.12.2")
    assert kept._key() != key
