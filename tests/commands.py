"""The commands that a reader starts, refused and killed: ``python tests/commands.py``, part of ``make soak``.

Bad parameters of all chapters are given to ``make rerun``: each is refused in at most five lines, and nothing
is written. Reruns, discoveries, benchmarks and trainings on a Dask cluster are killed at random moments, the
process that was started, another one of theirs, or all of them: after 15 seconds none is left, and the same
command, undisturbed, ends with the rows of one that was never killed.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
from companion.sealed import read_json

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES, MOST_SECONDS = 5, 15
MARK = "NALM_SOAK"

CHAPTERS = [
    "division/losses", "division/redundancy", "division/small-numbers", "nau-nmu/ten-parameter",
    "nau-nmu/gates", "nau-nmu/sequential-mnist", "nau-nmu/subset-arithmetic", "npu/fractional-sir",
    "npu/large-scale", "npu/simple-arithmetic",
]  # fmt: skip
NONSENSE = [
    "seeds 0", "seeds abc", "seeds 1000000000000", "sedes 3", "device cuda:99", "results ~no-such-user/x",
]  # fmt: skip
"""Ten chapters times six."""

RERUN = "-p seeds 2 -p iterations 12000 -p models NRU,NMRU -p losses mse -p ranges U[1,2),U[-2,2)"
DISCOVERY = """
import sys
from companion.discovery import discover_all, search
from companion.npu.settings import fsir_arm
from nalm.tasks import FractionalSIRTask
from nalm.training import Run
if __name__ == "__main__":
    arm = fsir_arm("RealNPU", 2, 0.0)
    runs = [Run(task=FractionalSIRTask(), model=arm.model, recipe=arm.recipe, seed=seed) for seed in range(2)]
    discover_all(runs, results=sys.argv[1], progress=False)
"""
DASK = """
import sys
from dask.distributed import LocalCluster
from nalm.models import Stack
from nalm.records import run_all
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Recipe, Run
if __name__ == "__main__":
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    runs = [
        Run(task=task, model=Stack.of("NMU", 1), seed=seed, threshold=1e-5,
            recipe=Recipe(iterations=4000 + more, optimiser=Adam(lr=1e-2), log_interval=100))
        for more in range(6) for seed in range(4)
    ]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        run_all(runs, "soak/dask", results=sys.argv[1], scheduler=cluster.scheduler_address, progress=False)
"""


def commands(folder: Path) -> dict[str, list[str]]:
    """What is started, by name; each writes to ``folder`` alone."""
    python, results = sys.executable, str(folder / "results")
    chapter = str(ROOT / "book/division/losses.ipynb")
    rerun = [python, "-m", "companion.rerun", chapter, str(folder / "executed.ipynb"), *RERUN.split()]
    record = str(folder / "measured.json")
    measures = ["division-2-one-core", "division-2", "--share", "0.02", "--record", record]
    return {
        "rerun": [*rerun, "-p", "results", results],
        "discovery": [python, "-c", DISCOVERY, results],
        "benchmark": [python, "-m", "companion.benchmark", *measures],
        "dask": [python, "-c", DASK, results],
    }


def start(command: list[str], folder: Path, mark: str) -> subprocess.Popen[bytes]:
    with open(folder / "said", "ab") as said:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=os.environ | {MARK: mark},
        )


def of(mark: str) -> Iterator[int]:
    """The processes that come from the command with this mark, whatever their group and parent."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if f"{MARK}={mark}\0".encode() in (entry / "environ").read_bytes():
                yield int(entry.name)


def kill(process: subprocess.Popen[bytes], mark: str, chance: random.Random) -> str:
    """Kill a part of a command or all of it; what."""
    there = sorted(of(mark))
    others = [pid for pid in there if pid != process.pid]
    what = chance.choice(("everything", "the command", "one of its processes"))
    chosen = {"everything": there, "the command": [process.pid]}.get(
        what, [chance.choice(others)] if others else [process.pid]
    )
    for pid in chosen:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return what


def results(folder: Path) -> dict[str, pd.DataFrame]:
    """What was recorded, but for how long it took and when."""
    found = {}
    for file in sorted((folder / "results").rglob("*.csv")):
        rows = pd.read_csv(file).drop(columns=["seconds", "batch"])
        assert rows["key"].is_unique, f"{file} holds a row twice"
        found[file.name] = rows.sort_values("key", ignore_index=True)
    for file in sorted((folder / "results").rglob("equations.json")):
        lines = {
            key: json.dumps(one | {"seconds": 0, "surroundings": {}}) for key, one in read_json(file).items()
        }
        found[file.name] = pd.DataFrame({"key": lines.keys(), "found": lines.values()})
    return found


def undisturbed(name: str, folder: Path) -> float:
    """Run a command to its end; the seconds that it takes."""
    began = time.monotonic()
    code = start(commands(folder)[name], folder, uuid.uuid4().hex).wait()
    assert code == 0, f"{name} ended with {code}:\n{(folder / 'said').read_text()[-3000:]}"
    return time.monotonic() - began


def killed_often(name: str, times: int, chance: random.Random) -> int:
    """Kill a command so many times, let it end, and compare."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        seconds, folder = undisturbed(name, Path(one)), Path(other)
        for _ in range(times):
            mark = uuid.uuid4().hex
            process = start(commands(folder)[name], folder, mark)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.1, 0.9) * seconds)
            what = kill(process, mark, chance)
            until = time.monotonic() + (MOST_SECONDS if what != "one of its processes" else seconds * 3 + 60)
            process.wait(max(1.0, until - time.monotonic()))
            until = time.monotonic() + MOST_SECONDS
            while (left := list(of(mark))) and time.monotonic() < until:
                time.sleep(0.1)
            assert not left, f"{name}, {what} killed, left {left} behind"
        undisturbed(name, folder)
        expected, found = results(Path(one)), results(folder)
        assert expected.keys() == found.keys()
        for file, rows in expected.items():
            pd.testing.assert_frame_equal(found[file], rows, check_exact=True)
    print(f"{name}: {times} kills, nothing is lost, doubled or left behind", flush=True)
    return times


def refused(chapter: str, parameter: str) -> None:
    """A bad parameter is refused in few lines, and nothing is written."""
    ended = subprocess.run(
        ["make", "rerun", f"CHAPTER=book/{chapter}.ipynb", f"ARGS=-p {parameter}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = [line for line in ended.stdout.decode().split("\n") if line]
    assert ended.returncode and 1 < len(said) <= MOST_LINES, (chapter, parameter, said)
    assert not any("Traceback" in line for line in said), (chapter, parameter, said)


def main(kills: int, refusals: int) -> None:
    seed = int(time.time())
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    asked = list(itertools.product(CHAPTERS, NONSENSE))[:refusals]
    for chapter, parameter in asked:
        refused(chapter, parameter)
    print(f"{len(asked)} bad parameters: each refused in at most {MOST_LINES} lines", flush=True)
    names = list(commands(Path()))
    for place, name in enumerate(names):
        killed_often(name, kills * (place + 1) // len(names) - kills * place // len(names), chance)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("100", "60")))
