"""Sweeps that are killed at random moments and restarted until they are done, for some minutes:
``make soak MINUTES=10``.

Every sweep ends with exactly the rows of an uninterrupted one. Killed is, at random, the whole sweep, its
main process alone, or one of its worker processes; sometimes two sweeps share the store. Sweeps are, in turn,
many short ensembles in one process, few long, compiled ones in several, and differential equations with a
second stage. A sweep that ends otherwise than by a kill or with success fails at once, with what it wrote.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
from companion.npu.settings import fsir_arm

from nalm.models import Stack
from nalm.records import Store, groups, run_all
from nalm.tasks import FractionalSIRTask, SingleModuleTask
from nalm.training import Adam, Discretisation, Recipe, Run

# The worker processes import this file as well.
groups.CHECKPOINT_SECONDS = 0.2

# name: ensembles, iterations
EXPERIMENTS = {"soak/short": (6, 2000), "soak/long": (4, 20_000), "soak/equations": (4, 40)}


def runs(experiment: str) -> list[Run]:
    ensembles, iterations = EXPERIMENTS[experiment]
    if experiment == "soak/equations":
        arms = [
            fsir_arm("NPU", hidden=3 + i, penalty=0.01, iterations=iterations, finish=iterations)
            for i in range(ensembles)
        ]
        recipes = [arm.recipe.but(log_interval=2) for arm in arms]
        return [
            Run(task=FractionalSIRTask(), model=arm.model.but(step=20.0), recipe=recipe, seed=seed)
            for arm, recipe in zip(arms, recipes, strict=True)
            for seed in range(3)
        ]
    penalties = (Discretisation(weight=1.0, start=100, end=1000),)
    recipes = [
        Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=100, penalties=penalties)
        for i in range(ensembles)
    ]
    task = SingleModuleTask.on("U[1,2)", operation="div")
    return [
        Run(task=task, model=Stack.of("NMRU", 1), recipe=recipe, seed=seed, threshold=1e-5)
        for recipe in recipes
        for seed in range(3)
    ]


def start(experiment: str, folder: Path) -> subprocess.Popen:
    """The sweep in a process group of its own; what it writes goes to :func:`said`."""
    command = [sys.executable, __file__, experiment, str(folder / "results")]
    with open(folder / "stderr", "a") as stderr:
        return subprocess.Popen(command, stderr=stderr, start_new_session=True)


def said(folder: Path) -> str:
    return (folder / "stderr").read_text(encoding="utf-8", errors="replace")


def members(group: int) -> list[int]:
    """The processes of a process group that are not its leader."""
    found = subprocess.run(
        ["ps", "-e", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    fields = [line.split() for line in found if line]
    return [
        int(pid)
        for pid, pgid, state in fields
        if int(pgid) == group and int(pid) != group and not state.startswith("Z")
    ]


def kill(process: subprocess.Popen, chance: random.Random) -> bool:
    """Kill a part of a sweep or all of it; whether there was something left to kill."""
    others = members(process.pid)
    what = chance.choice(("everything", "main process", "worker process"))
    try:
        if what == "everything":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(
                process.pid if what == "main process" or not others else chance.choice(others), signal.SIGKILL
            )
    except ProcessLookupError:
        return False  # done in the meantime
    return True


def read(folder: Path, experiment: str) -> pd.DataFrame:
    rows = Store(folder / "results", experiment).read().drop(columns=["seconds", "batch"])
    return rows.sort_values("key", ignore_index=True)


def ended(process: subprocess.Popen) -> bool:
    """Whether nothing is left of a killed sweep; processes see soon that their parent is gone."""
    for _ in range(200):
        if process.poll() is not None and not members(process.pid):
            return True
        time.sleep(0.1)
    return False


def going(processes: list[subprocess.Popen]) -> bool:
    """Whether some are running and none has failed."""
    codes = {process.poll() for process in processes}
    return None in codes and codes <= {None, 0}


def attempt(experiment: str, folder: Path, chance: random.Random, longest: float) -> tuple[bool, int]:
    """Run a sweep, or two at once, until they are done or, after ``longest`` seconds at most, killed; whether
    one was done, and the number of kills.

    Raises:
        AssertionError: one failed that nobody had killed; with what was written.
    """
    (folder / "stderr").unlink(missing_ok=True)  # killed sweeps complain as well, but not of what is wrong
    processes = [start(experiment, folder) for _ in range(chance.choice((1, 1, 1, 2)))]
    moment = time.monotonic() + chance.uniform(longest / 10, longest)
    try:
        while time.monotonic() < moment and going(processes):
            time.sleep(0.05)
        killed = [process for process in processes if process.poll() is None and kill(process, chance)]
        codes = {process: process.wait() for process in processes}
        failed = [code for process, code in codes.items() if process not in killed and code != 0]
        assert not failed, (
            f"a sweep of {experiment} failed that nobody had killed (exit code {failed[0]}):\n{said(folder)}"
        )
        assert all(map(ended, processes)), (
            f"a killed sweep of {experiment} left processes behind:\n{said(folder)}"
        )
    except BaseException:
        for process in processes:
            stop(process)
        raise
    return 0 in codes.values(), len(killed)


def stop(process: subprocess.Popen) -> None:
    """Leave nothing of a sweep behind."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def sweep(experiment: str, folder: Path, chance: random.Random, seconds: float) -> int:
    """Restart a sweep, which takes so many seconds if undisturbed, until it is done; the number of kills."""
    done, kills = False, 0
    while not done:
        # At first too short to be done even where the machine has become faster, at last long enough even
        # where it has become slower.
        done, killed = attempt(experiment, folder, chance, longest=seconds * (0.5 + kills / 20))
        kills += killed
    return kills


def undisturbed(experiment: str, folder: Path) -> float:
    """Run a sweep once; the seconds that it takes."""
    began = time.monotonic()
    code = start(experiment, folder).wait()
    assert code == 0, f"an undisturbed sweep of {experiment} failed (exit code {code}):\n{said(folder)}"
    return time.monotonic() - began


def check(experiment: str, folder: Path, whole: Path) -> None:
    """A killed sweep has the rows of the undisturbed one, and left no other files."""
    pd.testing.assert_frame_equal(read(folder, experiment), read(whole, experiment), check_exact=True)
    files = (
        path
        for path in (folder / "results").rglob("*")
        if path.is_file() and path.parent.name != ".checkpoints"
    )
    left = {path.suffix for path in files}
    assert left == {".csv", ".json", ".lock"}, f"files were left behind: {left}"


def main(minutes: float) -> None:
    """After undisturbed sweeps, begin others for so many minutes, at least one of each kind, and kill each
    until it is done.
    """
    seed = int(time.time())
    chance, kills, sweeps = random.Random(seed), 0, 0
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as whole:
        seconds = {experiment: undisturbed(experiment, Path(whole)) for experiment in EXPERIMENTS}
        end = time.monotonic() + 60 * minutes
        while sweeps < len(EXPERIMENTS) or time.monotonic() < end:
            experiment = list(EXPERIMENTS)[sweeps % len(EXPERIMENTS)]
            with tempfile.TemporaryDirectory() as folder:
                killed = sweep(experiment, Path(folder), chance, seconds[experiment])
                check(experiment, Path(folder), Path(whole))
            kills, sweeps = kills + killed, sweeps + 1
            print(f"{experiment}: {killed} kills, all {len(runs(experiment))} rows as expected", flush=True)
    assert kills, f"nothing was killed in {sweeps} sweeps, so nothing was tested"
    print(f"{sweeps} sweeps, {kills} kills: every row as in uninterrupted sweeps")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_all(runs(sys.argv[1]), sys.argv[1], results=sys.argv[2], progress=False)
    elif len(sys.argv) == 2 and re.fullmatch(r"\d+(\.\d+)?", sys.argv[1]):
        main(float(sys.argv[1]))
    else:
        sys.exit(f"MINUTES is {' '.join(sys.argv[1:])!r}, but must be a number of minutes, such as 10.")
