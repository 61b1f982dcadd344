"""Sweeps that are killed at random moments and restarted until they are done, for some minutes: ``make soak MINUTES=10``.

Every sweep ends with exactly the rows of an uninterrupted one. Killed is, at random, the whole sweep, its main process alone, or one of its worker
processes; sometimes two sweeps share the store. Odd sweeps are many short ensembles in one process, even sweeps few long, compiled ones in several.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from nalm.models import Stack
from nalm.records import Store, run_all, workers
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Discretisation, Recipe, Run

# The worker processes import this file as well.
workers.CHECKPOINT_SECONDS = 0.2

EXPERIMENTS = {"soak/short": (6, 2000), "soak/long": (4, 20_000)}  # name: ensembles, iterations


def runs(experiment: str) -> list[Run]:
    ensembles, iterations = EXPERIMENTS[experiment]
    penalties = (Discretisation(weight=1.0, start=100, end=1000),)
    recipes = [Recipe(iterations=iterations + i, optimiser=Adam(lr=1e-2), log_interval=100, penalties=penalties) for i in range(ensembles)]
    task = SingleModuleTask.on("U[1,2)", operation="div")
    return [Run(task=task, model=Stack.of("NMRU", 1), recipe=recipe, seed=seed, threshold=1e-5) for recipe in recipes for seed in range(3)]


def start(experiment: str, folder: Path) -> subprocess.Popen:
    """The sweep in a process group of its own."""
    command = [sys.executable, __file__, experiment, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)


def members(group: int) -> list[int]:
    """The processes of a process group that are not its leader."""
    found = subprocess.run(["ps", "-e", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True).stdout.split("\n")
    fields = [line.split() for line in found if line]
    return [int(pid) for pid, pgid, state in fields if int(pgid) == group and int(pid) != group and not state.startswith("Z")]


def kill(process: subprocess.Popen, chance: random.Random) -> None:
    others = members(process.pid)
    what = chance.choice(("everything", "main process", "worker process"))
    try:
        if what == "everything":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.kill(process.pid if what == "main process" or not others else chance.choice(others), signal.SIGKILL)
    except ProcessLookupError:
        pass  # done in the meantime


def read(folder: Path, experiment: str) -> pd.DataFrame:
    rows = Store(folder, experiment).read().drop(columns=["seconds", "batch"])
    return rows.sort_values("key", ignore_index=True)


def ended(process: subprocess.Popen) -> bool:
    """Whether nothing is left of a killed sweep; processes see soon that their parent is gone."""
    for _ in range(200):
        if process.poll() is not None and not members(process.pid):
            return True
        time.sleep(0.1)
    return False


def sweep(experiment: str, folder: Path, chance: random.Random, end: float) -> int:
    """Run a sweep until it is done; the number of kills, which end with the time."""
    kills = 0
    while True:
        processes = [start(experiment, folder) for _ in range(chance.choice((1, 1, 1, 2)))]
        moment = time.monotonic() + chance.uniform(3, 25)
        while any(process.poll() is None for process in processes) and (time.monotonic() < moment or time.monotonic() > end):
            time.sleep(0.05)
        for process in processes:
            if process.poll() is None:
                kill(process, chance)
                kills += 1
        codes = [process.wait() for process in processes]
        assert all(map(ended, processes)), "a killed sweep left processes behind"
        if 0 in codes:
            return kills


def main(minutes: float) -> None:
    seed = int(time.time())
    chance, end, kills, sweeps = random.Random(seed), time.monotonic() + 60 * minutes, 0, 0
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as whole:
        for experiment in EXPERIMENTS:
            assert start(experiment, Path(whole)).wait() == 0
        while sweeps < 2 or time.monotonic() < end:
            experiment = list(EXPERIMENTS)[sweeps % 2]
            with tempfile.TemporaryDirectory() as folder:
                killed = sweep(experiment, Path(folder), chance, end)
                pd.testing.assert_frame_equal(read(Path(folder), experiment), read(Path(whole), experiment), check_exact=True)
                left = {path.suffix for path in Path(folder).rglob("*") if path.is_file() and path.parent.name != ".checkpoints"}
                assert left == {".csv", ".json", ".lock"}, f"files were left behind: {left}"
            kills, sweeps = kills + killed, sweeps + 1
            print(f"{experiment}: {killed} kills, all {len(runs(experiment))} rows as expected", flush=True)
    print(f"{sweeps} sweeps, {kills} kills: every row as in uninterrupted sweeps")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_all(runs(sys.argv[1]), sys.argv[1], results=sys.argv[2])
    else:
        main(float(sys.argv[1]))
