"""Where compiled code is kept, so that a process need not compile again what an earlier one has compiled. It
changes no number.

Inductor keeps what it compiles under a hash of the graph, its own settings and PyTorch's version. Here this
is put into a folder of the user's that lives longer than a temporary one. Its name stands for what the hash
leaves out: the processor, and what :mod:`nalm.training.compiler` changes in inductor.

``make clean-cache`` empties it.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import os
import platform
import shlex
import shutil
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import torch
from platformdirs import user_cache_path

from nalm.training.instructions import take_the_first
from nalm.training.ownership import is_own

__all__ = ["KEPT", "LARGEST", "clean", "elsewhere", "keep"]

KEPT = user_cache_path("nalm") / "compiled"
"""The folder of all compiled code."""
LARGEST = 2 * 2**30
"""Bytes that it may hold; beyond them the oldest files go."""
VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


@cache
def keep() -> None:
    """Have inductor keep what it compiles in this process in :data:`KEPT`, unless the user has named a folder
    in ``TORCHINDUCTOR_CACHE_DIR``.

    What is kept is unpickled when it is read, so a folder that somebody else owns or may write to is left
    alone. Inductor reads its own commands as a shell would, so a folder with a space or a quote in its path
    is of no use. Both is told; then, and where nothing can be written, it is kept for this process only.
    """
    _build_whole_files()
    _look_for_headers()
    take_the_first()
    if os.environ.get(VARIABLE, _default()) != _default():
        return
    folder = KEPT / _key()
    if not _is_one_word(folder):
        warnings.warn(
            f"Each process compiles anew, as the compiler cannot read the space or quote in {KEPT}: name "
            f"another folder in {VARIABLE}.",
            stacklevel=2,
        )
        return _keep_in(_until_the_end())
    try:
        for part in (KEPT, folder):  # with parents=True alone, KEPT would have the mode that the user has set
            part.mkdir(parents=True, exist_ok=True, mode=0o700)
        foreign = [part for part in (KEPT, folder) if not is_own(part)]
        own = not foreign and os.access(folder, os.W_OK)
    except OSError:
        foreign, own = [], False
    if foreign:
        warnings.warn(
            f"Each process compiles anew, as others than you may write to {foreign[0]}: remove that folder.",
            stacklevel=2,
        )
    if own:
        with suppress(OSError):
            if any(map(_is_cut_off, folder.rglob("*.so"))):
                _empty(folder)
        _trim(KEPT, LARGEST)
    _keep_in(str(folder) if own else _until_the_end())


def _is_one_word(path: Path) -> bool:
    with suppress(ValueError):  # a quote has no other
        return shlex.split(str(path)) == [str(path)]
    return False


def _until_the_end() -> str:
    """A new folder for this process alone."""
    folder = tempfile.mkdtemp(prefix="nalm-compiled-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _keep_in(folder: str) -> None:
    """Name the folder to inductor, also for C++ headers, which are compiled beforehand in seconds and would
    lie in the system's temporary folder.

    Where inductor is built otherwise, they do.
    """
    from torch._inductor import codecache

    os.environ[VARIABLE] = folder
    if hasattr(codecache, "_HEADER_DIR") and hasattr(
        precompile := getattr(codecache, "_precompile_header", None), "cache_clear"
    ):
        codecache._HEADER_DIR = os.path.join(folder, "precompiled_headers")
        codecache._HEADER_LOCK_DIR = os.path.join(codecache._HEADER_DIR, "locks")
        precompile.cache_clear()  # type: ignore[union-attr]


def _default() -> str:
    """Where inductor keeps what it compiles if nobody says otherwise; it sets the variable itself when it is
    loaded.
    """
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    return default_cache_dir()


def clean() -> None:
    """Remove all compiled code that is kept. Processes that run meanwhile may compile again."""
    for folder in KEPT.glob("*/"):
        _empty(folder)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Compile without what is kept, after that has failed; if it works this time, what is kept is damaged and
    is removed.
    """
    from torch._inductor.utils import clear_caches

    named = os.environ.get(VARIABLE, "")
    _keep_in(_until_the_end())
    clear_caches()  # what has failed is remembered, and would fail again
    try:
        yield
        if Path(named).parent == KEPT:
            _empty(Path(named))
    finally:
        _keep_in(named)


def _empty(folder: Path) -> None:
    """Remove what is in a folder. It stays: another process would make it anew, with another mode."""
    with suppress(OSError):  # it may be gone itself
        for inner in folder.iterdir():
            if inner.is_dir():
                shutil.rmtree(inner, ignore_errors=True)
            else:
                inner.unlink(missing_ok=True)


def _key() -> str:
    """Of the versions, the processor and the changes to the compiler that compiled code depends on."""
    from nalm.training import compiler

    parts = (
        torch.__version__,
        platform.python_version(),
        platform.machine(),
        _instructions(),
        inspect.getsource(compiler),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _instructions() -> str:
    """What the processor can do: code is compiled for just this."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.processor()} {torch.backends.cpu.get_cpu_capability()}"


def _is_cut_off(library: Path) -> bool:
    """Whether a library does not hold all that its first bytes say; to load it would end the process."""
    with open(library, "rb") as stream:
        head = stream.read(64)
    if head[:5] != b"\x7fELF\x02":
        return not head or sys.platform == "linux"
    # the table of sections, which comes last
    start, size, count = (int.from_bytes(head[a:b], "little") for a, b in ((40, 48), (58, 60), (60, 62)))
    return len(head) < 64 or library.stat().st_size < start + size * count


def _trim(folder: Path, largest: int) -> None:
    """Delete the oldest files until a quarter is free again, if all together are too large; a file that is
    gone is compiled anew.
    """
    files = []
    for file in folder.rglob("*"):
        with suppress(OSError):
            found = file.lstat()
            if stat.S_ISREG(found.st_mode):
                files.append((found.st_mtime, found.st_size, file))
    size = sum(size for _, size, _ in files)
    if size <= largest:
        return
    for _, of_file, file in sorted(files):
        if size <= largest * 3 // 4:
            break
        with suppress(OSError):
            file.unlink()
            size -= of_file


@cache
def _look_for_headers() -> None:
    """Have a header compiled again that has been removed since, as :func:`clean` in another process does:
    inductor remembers for which it has done so.

    Where inductor is built otherwise, this is left out.
    """
    from torch._inductor import codecache

    precompile: Any = getattr(codecache, "_precompile_header", None)
    if not hasattr(precompile, "cache_clear"):
        return

    @wraps(precompile)
    def found(*arguments: Any, **options: Any) -> str:
        if os.path.exists(header := precompile(*arguments, **options)):
            return header
        precompile.cache_clear()
        return precompile(*arguments, **options)

    found.cache_clear = precompile.cache_clear  # type: ignore[attr-defined]
    codecache._precompile_header = found


@cache
def _build_whole_files() -> None:
    """Have the C++ compiler write under another name first: one that is killed leaves no half file that would
    be loaded later. And have it find PyTorch where that is in a folder with a space or a quote in its path.

    Where inductor is built otherwise, this is left out.
    """
    from torch._inductor import cpp_builder

    build = getattr(cpp_builder, "_run_compile_cmd", None)
    if build is None or list(inspect.signature(build).parameters) != ["cmd_line", "cwd"]:
        return

    libraries = f"-L{Path(torch.__file__).parent / 'lib'}"

    def whole(cmd_line: str, cwd: str) -> None:
        cmd_line = cmd_line.replace(f"{libraries} ", f"{shlex.quote(libraries)} ")
        words = shlex.split(cmd_line)
        place = words.index("-o") + 1 if "-o" in words[:-1] else 0
        if not place:
            return build(cmd_line, cwd)
        target, new = words[place], f"{words[place]}.{os.getpid()}-{threading.get_ident()}.new"
        build(shlex.join([*words[:place], new, *words[place + 1 :]]), cwd)
        os.replace(new, target)

    cpp_builder._run_compile_cmd = whole
