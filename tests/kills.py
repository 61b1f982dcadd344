"""Processes that are killed at random moments while they compile, or keep what they have compiled:
``python tests/kills.py 100``.

Some are killed one after another that share a folder; at random alone, so that the C++ compiler goes on
behind them, or with all that they have started. Whatever they leave there, the next process finds the numbers
that come out of an empty folder, and the one after it reads what that one has kept.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

from nalm.training import kept
from nalm.training.compiler import Compiled

FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Found:
    """What a process found that compiled a function: where all is kept, the hash of its values, how many
    functions it read and how many it compiled.
    """

    folder: str
    bits: str
    read: int
    compiled: int


def load() -> None:
    """Load the compiler, and compile nothing: the processes here are forked from one that has done this, so
    that each need not do it by itself.
    """
    import sympy.physics.units  # noqa: F401
    import torch._inductor.compile_fx  # noqa: F401
    import torch.fx.experimental.proxy_tensor  # noqa: F401
    from torch._inductor import codecache, lowering  # noqa: F401
    from torch._inductor.codegen import cpp  # noqa: F401

    codecache.torch_key()  # hashes of what is installed
    codecache.CacheBase.get_system()


def begin(folder: Path, cxx: str = "", all_of_it: bool = False) -> tuple[BaseProcess, Connection]:
    """Begin a process that compiles a function where everything is kept in ``folder``; and what it sends when
    it has :class:`Found` its values.

    Args:
        folder: in place of :data:`nalm.training.kept.KEPT`.
        cxx: the C++ compiler; the usual one if not given.
        all_of_it: probe the processor's instructions and compile headers beforehand, which takes longer than
            everything else.
    """
    receiver, sender = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_compile, args=(folder, sender, cxx, all_of_it))
    process.start()
    sender.close()
    return process, receiver


def _compile(folder: Path, sender: Connection, cxx: str, all_of_it: bool) -> None:
    from torch._dynamo.utils import counters
    from torch._inductor import config, cpu_vec_isa

    os.setsid()
    torch.set_num_threads(1)
    warnings.filterwarnings("error", category=UserWarning, module="nalm")
    config.cpp.cxx = (cxx,) if cxx else config.cpp.cxx
    config.cpp_cache_precompile_headers = all_of_it
    if not all_of_it:
        cpu_vec_isa.VecISA.check_build = lambda isa, code: True
    os.environ.pop(kept.VARIABLE, None)
    kept.KEPT = folder
    x = torch.linspace(0.1, 2, 96).reshape(8, 12)
    (values,) = Compiled(lambda a: ((a.log() * a).cos().sum(1) + torch.tensor(0.25),))(x)
    bits, known = hashlib.sha256(values.numpy().tobytes()).hexdigest(), counters["inductor"]
    sender.send(
        Found(os.environ[kept.VARIABLE], bits, known["fxgraph_cache_hit"], known["fxgraph_cache_miss"])
    )


def compile_in(folder: Path, processes: int = 1, cxx: str = "", all_of_it: bool = False) -> list[Found]:
    """What some processes find that begin at the same time."""
    begun = [begin(folder, cxx, all_of_it) for _ in range(processes)]
    codes = [process.join() or process.exitcode for process, _ in begun]
    assert codes == [0] * processes, f"processes that nobody killed ended with {codes}"
    return [receiver.recv() for _, receiver in begun]


def exit_code(folder: Path, cxx: str) -> int:
    """How a process ends whose C++ compiler is another one."""
    process, _ = begin(folder, cxx)
    process.join()
    return process.exitcode


def kill(process: BaseProcess, with_group: bool) -> bool:
    """Kill a process, and with its group what it has started; whether it had not ended before."""
    if with_group and process.is_alive():
        with suppress(ProcessLookupError):  # it may have no group yet
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    return process.exitcode == -signal.SIGKILL


def sweep(
    folder: Path, kills: int, chance: random.Random, seconds: float, all_of_it: bool = False
) -> tuple[int, list[Found]]:
    """Kill processes that share a folder, each within so many seconds, until one ends before; how many, and
    what the next two find.
    """
    killed, begun = 0, []
    try:
        while killed < kills:
            begun.append(begin(folder, all_of_it=all_of_it)[0])
            begun[-1].join(chance.uniform(0, seconds))
            if not kill(begun[-1], with_group=chance.random() < 0.5):
                break
            killed += 1
        return killed, [compile_in(folder, all_of_it=all_of_it)[0] for _ in range(2)]
    finally:
        for process in begun:
            with suppress(ProcessLookupError):  # C++ compilers that still run
                os.killpg(process.pid, signal.SIGKILL)


def check(found: list[Found], undisturbed: Found) -> None:
    """Two processes after one that was killed found what an undisturbed one did, and the second of them had
    to compile nothing.
    """
    assert [one.bits for one in found] == [undisturbed.bits] * 2, f"other numbers after a kill: {found}"
    assert (found[1].read, found[1].compiled) == (1, 0), (
        f"what was compiled after a kill was not kept: {found}"
    )


def main(number: int) -> None:
    """Kill so many processes; every fourth folder with all that a process compiles."""
    seed = int(time.time())
    chance, killed, folders = random.Random(seed), 0, 0
    print(f"seed {seed}", flush=True)
    load()
    undisturbed, seconds = {}, {}
    while killed < number:
        all_of_it = folders % 4 == 3
        with tempfile.TemporaryDirectory() as folder:
            if all_of_it not in undisturbed:
                start = time.monotonic()
                (undisturbed[all_of_it],) = compile_in(Path(folder) / "undisturbed", all_of_it=all_of_it)
                seconds[all_of_it] = time.monotonic() - start
            kills, found = sweep(
                Path(folder) / "killed", min(6, number - killed), chance, seconds[all_of_it], all_of_it
            )
            check(found, undisturbed[all_of_it])
        killed, folders = killed + kills, folders + 1
        print(f"{killed} kills in {folders} folders: the numbers of an empty one", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
