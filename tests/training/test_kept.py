"""Compiled code is kept: a second process reads it, and whatever is wrong with it is compiled anew."""

import multiprocessing
import os
import random
import re
import shlex
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import kills
import pytest
import torch

from nalm.training import kept

KILLS = """#!/usr/bin/env bash
[ "$1" = --version ] && exec c++ --version
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo half > "$2" && kill -9 $PPID; shift; done
"""
"""A compiler that writes half a file and kills who called it."""


@pytest.fixture(scope="module")
def loaded():
    """Calls a function in a process that has loaded the compiler, so that those which it forks are as good as
    fresh ones and start at once.
    """
    with ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), initializer=kills.load
    ) as process:
        yield lambda function, *arguments: process.submit(function, *arguments).result()


@pytest.fixture(scope="module")
def first(loaded, tmp_path_factory):
    """A folder, and what two processes have found that began with nothing there, at the same time."""
    folder = tmp_path_factory.mktemp("cache") / "compiled"
    return folder, loaded(kills.compile_in, folder, 2)


def test_processes_that_compile_at_the_same_time_do_not_disturb_each_other(first):
    folder, found = first
    assert found[0] == found[1] and Path(found[0].folder).parent == folder
    # neither came late enough to read what the other kept
    assert (found[0].read, found[0].compiled) == (0, 1)


def test_a_later_process_reads_what_they_compiled(loaded, first):
    folder, found = first
    (later,) = loaded(kills.compile_in, folder)
    assert later == kills.Found(found[0].folder, found[0].bits, read=1, compiled=0)


@pytest.fixture
def kept_in(tmp_path, monkeypatch):
    """As in a process that has compiled nothing, whose user's folder of compiled code is this one."""
    from torch._inductor import codecache

    monkeypatch.setattr(kept, "KEPT", tmp_path / "compiled")
    monkeypatch.setattr(kept, "_default", lambda: str(tmp_path / "default"))
    monkeypatch.setenv(kept.VARIABLE, kept._default())
    for name in ("_HEADER_DIR", "_HEADER_LOCK_DIR"):
        monkeypatch.setattr(codecache, name, getattr(codecache, name))
    kept.keep.cache_clear()
    yield tmp_path / "compiled"
    kept.keep.cache_clear()


def named() -> Path:
    kept.keep()
    return Path(os.environ[kept.VARIABLE])


@pytest.mark.parametrize("umask", [0o022, 0o002, 0])
def test_it_is_kept_in_a_folder_of_the_user(kept_in, umask):
    before = os.umask(umask)
    try:
        assert named() == kept_in / kept._key()
    finally:
        os.umask(before)
    assert not (kept_in.stat().st_mode | named().stat().st_mode) & 0o77


def test_a_folder_that_the_user_names_is_used(kept_in, tmp_path, monkeypatch):
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "named"))
    assert named() == tmp_path / "named" and not kept_in.exists()


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_may_write_to_is_left_alone(kept_in, mode, inner):
    folder = kept_in / kept._key()
    for part in (kept_in, folder):
        part.mkdir(mode=0o700)
    (foreign := folder if inner else kept_in).chmod(mode)
    with pytest.warns(UserWarning, match=f"others than you may write to {foreign}: remove that folder"):
        kept.keep()
    assert kept_in not in named().parents and named().stat().st_mode & 0o77 == 0


def test_a_folder_of_somebody_else_is_left_alone(kept_in, monkeypatch):
    (kept_in / kept._key()).mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: kept_in.stat().st_uid + 1)
    with pytest.warns(UserWarning, match=f"others than you may write to {kept_in}"):
        kept.keep()
    assert kept_in not in named().parents


@pytest.mark.parametrize("part", ["a b", "a'b", 'a"b', "a\\b"])
def test_a_folder_that_the_compiler_cannot_read_is_told(kept_in, tmp_path, monkeypatch, part):
    monkeypatch.setattr(kept, "KEPT", tmp_path / part / "compiled")
    with pytest.warns(
        UserWarning, match=f"space or quote in {re.escape(str(kept.KEPT))}: name another folder"
    ):
        kept.keep()
    assert kept.KEPT not in named().parents and named().is_dir() and not kept.KEPT.exists()


@pytest.mark.parametrize("part", ["ab", "a b", "a'b", "ü"])
def test_pytorch_is_found_in_any_folder(tmp_path, monkeypatch, part):
    from torch._inductor import cpp_builder

    called = []

    def _run_compile_cmd(cmd_line, cwd):
        called.append(shlex.split(cmd_line))
        Path(called[-1][-1]).touch()

    monkeypatch.setattr(cpp_builder, "_run_compile_cmd", _run_compile_cmd)
    monkeypatch.setattr(torch, "__file__", str(tmp_path / part / "torch" / "__init__.py"))
    kept._build_whole_files.__wrapped__()
    folder = f"{tmp_path}/{part}/torch/lib"
    cpp_builder._run_compile_cmd(f"g++ a.cpp -L{folder} -ltorch -o {tmp_path}/a.so", ".")
    assert called[0][:4] == ["g++", "a.cpp", f"-L{folder}", "-ltorch"] and (tmp_path / "a.so").exists()


def test_where_there_can_be_no_folder_it_is_kept_for_this_process(kept_in):
    kept_in.write_text("a file")
    assert kept_in not in named().parents and named().is_dir()


def test_headers_are_kept_with_it(kept_in):
    from torch._inductor import codecache

    folder = named()
    assert Path(codecache._HEADER_DIR).parent == Path(codecache._HEADER_LOCK_DIR).parents[1] == folder
    with kept.elsewhere():
        assert Path(codecache._HEADER_DIR).parent != folder
    assert Path(codecache._HEADER_DIR).parent == folder


def test_a_header_that_is_gone_is_compiled_again(kept_in, monkeypatch):
    from torch._inductor import codecache

    compiled = []

    @cache
    def precompile(header, **options):
        (file := named() / header).write_text("")
        compiled.append(options)
        return str(file)

    monkeypatch.setattr(codecache, "_precompile_header", precompile)
    kept._look_for_headers.__wrapped__()
    for _ in range(2):
        file = codecache._precompile_header("prefix.h", device="cpu")
    assert len(compiled) == 1
    kept.clean()
    assert not os.path.exists(file) and named().stat().st_mode & 0o77 == 0
    assert codecache._precompile_header("prefix.h", device="cpu") == file and os.path.exists(file)
    assert compiled == [{"device": "cpu"}] * 2
    codecache._precompile_header.cache_clear()
    codecache._precompile_header("prefix.h", device="cpu")
    assert len(compiled) == 3


def test_a_folder_that_is_gone_is_empty(tmp_path):
    kept._empty(tmp_path / "gone")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    for file in ("folder/inner/a", "folder/b"):
        (tmp_path / file).touch()
    kept._empty(tmp_path / "folder")
    assert not list((tmp_path / "folder").iterdir())


def test_what_could_not_be_compiled_is_compiled_elsewhere(loaded, first, tmp_path):
    cxx = tmp_path / "c++"
    cxx.write_text(f'#!/usr/bin/env bash\n[[ "$*" = *{tmp_path}/compiled/* ]] && exit 1\nexec c++ "$@"\n')
    cxx.chmod(0o755)
    (found,) = loaded(kills.compile_in, tmp_path / "compiled", 1, str(cxx))
    assert found.bits == first[1][0].bits


def test_what_is_damaged_is_compiled_anew(loaded, first):
    folder, found = first
    files = [file for file in Path(found[0].folder).rglob("*") if file.is_file()]
    assert {".so", ".py"} <= {file.suffix for file in files}
    for file in files:
        os.truncate(file, file.stat().st_size // 3)
    kills.check([loaded(kills.compile_in, folder)[0] for _ in range(2)], found[0])


def test_a_compiler_that_is_killed_leaves_no_half_file(loaded, tmp_path):
    cxx = tmp_path / "c++"
    cxx.write_text(KILLS)
    cxx.chmod(0o755)
    assert loaded(kills.exit_code, tmp_path / "compiled", str(cxx)) == -9
    left = [
        file.name
        for file in (tmp_path / "compiled").rglob("*")
        if file.is_file() and file.read_bytes() == b"half\n"
    ]
    assert left and all(name.endswith(".new") for name in left)


def test_a_process_that_is_killed_leaves_nothing_to_stumble_over(loaded, first, tmp_path):
    """Twice, at most; ``python tests/kills.py 100`` does it more often."""
    killed, found = loaded(kills.sweep, tmp_path / "compiled", 2, random.Random(1), 2.0)
    assert killed, "nothing was killed, so nothing was tested"
    kills.check(found, first[1][0])


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
    monkeypatch.undo()
    monkeypatch.setattr(kept.inspect, "getsource", lambda module: f"# {module.__name__}")
    assert kept._key() != key


@pytest.mark.parametrize("left", [0, 4, 5, 16, 40, 63, 1000])
def test_the_first_bytes_of_a_library_are_cut_off(tmp_path, left):
    library = Path(torch.__file__).parent / "lib" / "libshm.so"
    (part := tmp_path / "part.so").write_bytes(library.read_bytes()[:left])
    assert kept._is_cut_off(part) and not kept._is_cut_off(library)
