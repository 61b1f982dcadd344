"""Old and new code side by side: a change that is meant to keep every bit is shown to, on every structure
that rows have.

``make compare-code AGAINST=COMMIT`` lists, for each structure that older rows have, the tensor operations of
an update and of an evaluation with the code of the commit and with the present one, and all tensors that they
start from; of a differential equation all operations of a short training, with their results. Where these
differ or are not to be had (digits), and for one structure of each experiment in any case, it trains a few
runs with both and compares all weights and errors bit for bit.
Where they are equal, rows that were as new as the code of the commit count as confirmed, with this comparison
as their receipt.

``make compare-code WITH=PYTHON`` compares what another interpreter makes of the same code, whose PyTorch is
another one: for rows from a machine that has an older version.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from nalm.commands import exit_with
from nalm.models import NODE, DigitSequence
from nalm.records.code import OLDER, PACKAGE, code, freshness_of, sources_in, with_torch
from nalm.records.folders import PUBLISHED
from nalm.records.provenance import surroundings
from nalm.records.store import Store
from nalm.records.verification import experiments
from nalm.training import Run
from nalm.units.checks import choose
from tqdm import tqdm

from companion.verification import steps

__all__ = ["Structure", "compare_code", "library_at"]

DATA = "book/data"
UPDATES, UPDATES_OF_NODES, UPDATES_OF_DIGITS = 2000, 60, 20
"""A run's updates in a comparison. Those of a differential equation take a thousand times as long, those of
digits five thousand times.
"""


@dataclass(eq=False)
class Structure:
    """Runs of one structure, but for how long they are, with the same kinds of penalty, trained in one way:
    what is compared at once.

    Args:
        run: one of them.
        compiled: whether they are trained compiled.
        updates: how many.
        codes: of their configurations, the code at the commit and the present one, each with its PyTorch.
        experiments: where they are recorded.
        trained: whether runs were trained; else their operations are compared.
        equal: whether all operations, or all weights and errors, are the same.
        on_a_bound: how many weights ended on -1, 0 or 1.
    """

    run: Run
    compiled: bool
    updates: int
    codes: set[tuple[str, str]] = field(default_factory=set)
    experiments: set[str] = field(default_factory=set)
    trained: bool = True
    equal: bool = False
    on_a_bound: int = 0

    def asked(self) -> dict[str, Any]:
        """What is sent to both; without fields at their default, which the older code may not have."""
        return {
            "run": json.loads(self.run.canonical()),
            "updates": self.updates,
            "compiled": self.compiled,
            "trained": self.trained,
        }

    def __str__(self) -> str:
        units = "-".join(layer.unit for layer in getattr(self.run.model, "layers", ())) or self.run.model.kind
        verdict = "the same to the last bit" if self.equal else "DIFFERENT"
        how = (
            f"{self.updates} updates, {self.on_a_bound} weights on a bound" if self.trained else "operations"
        )
        return f"{units} on {self.run.task.kind}, {', '.join(sorted(self.experiments))}: {verdict} ({how})"


def updates_of(run: Run) -> int:
    """How many updates runs like this one are compared over."""
    return (
        UPDATES_OF_NODES
        if isinstance(run.model, NODE)
        else UPDATES_OF_DIGITS
        if isinstance(run.model, DigitSequence)
        else UPDATES
    )


def library_at(commit: str, folder: Path) -> Path:
    """Unpack the library as it was at a commit into a folder, with the book's data if there were any: that is
    where it looks for digits.

    Raises:
        ValueError: the library is not used from its repository, or this has no such commit.
    """
    data = not subprocess.run(
        ["git", "cat-file", "-e", f"{commit}:{DATA}"], cwd=PACKAGE.parent, capture_output=True
    ).returncode
    found = subprocess.run(
        ["git", "archive", "--format=zip", commit, "nalm", *([DATA] if data else [])],
        cwd=PACKAGE.parent,
        capture_output=True,
    )
    if found.returncode:
        raise ValueError(f"There is no library at commit {commit!r}: {found.stderr.decode().strip()}.")
    with zipfile.ZipFile(io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder)
    return folder


def _hash_of(commit: str) -> str:
    """Seven digits of it: a branch, or HEAD, is another commit tomorrow."""
    found = subprocess.run(
        ["git", "rev-parse", "--short=7", commit], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    return commit if found.returncode else found.stdout.strip()


def torch_of(python: str) -> str:
    """The version of PyTorch that an interpreter has.

    Raises:
        ValueError: it is none, or has none.
    """
    if python == sys.executable:
        return torch.__version__
    asked = [python, "-c", "import torch; print(torch.__version__)"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise ValueError(f"{python!r} is no Python that has PyTorch.") from None


def compare_code(
    against: str | None = None,
    names: Sequence[str] = (),
    folder: str | Path = PUBLISHED,
    progress: bool = True,
    processes: int = 2,
    compiled: bool = True,
    updates: int | None = None,
    python: str = sys.executable,
) -> list[Structure]:
    """Compare what the code of a commit and the present one make of every structure of older rows, and note
    in the sidecars which codes are equal.

    Args:
        against: a commit of the repository; ``None``: the present code.
        names: experiments; all if empty.
        folder: the folder of results; the published ones if not given.
        progress: show how far it is.
        processes: how many train at once; a multiple of two keeps the old code beside the new.
        compiled: compile the updates of structures whose rows were trained compiled; takes most of the time.
        updates: how many; as many as their kind of model allows if not given.
        python: the interpreter that runs the older code; this one if not given.

    Returns:
        What was compared. A code counts as equal to the one at the commit if all structures that have it are.

    Raises:
        ValueError: no such experiment, commit or interpreter, or code that does not train there.
    """
    known = experiments(folder)
    names, version = [choose("experiment", name, known) for name in names] or known, torch_of(python)
    with tempfile.TemporaryDirectory() as scratch:
        library = library_at(against, Path(scratch) / "old") if against else PACKAGE.parent
        old = _Side(library, python, version)
        structures = _structures(names, folder, sources_in(library / "nalm"), compiled, updates, version)
        first = {next((s for s in structures if name in s.experiments), None) for name in names}
        for structure in structures:
            structure.trained = structure in first or isinstance(structure.run.model, DigitSequence)
        _compare(structures, old, Path(scratch), progress, max(1, processes // 2))
        differing = [structure for structure in structures if not structure.trained and not structure.equal]
        for structure in differing:
            structure.trained = True
        _compare(differing, old, Path(scratch), progress, max(1, processes // 2))
    unequal = {codes for structure in structures if not structure.equal for codes in structure.codes}
    for name in names:
        here = [structure for structure in structures if name in structure.experiments]
        pairs = {codes for structure in here for codes in structure.codes} - unequal
        if pairs:
            note = {
                "against": _hash_of(against) if against else f"torch {version}",
                "codes": dict(sorted(pairs)),
                "on a bound": sum(structure.on_a_bound for structure in here),
                "structures": len(here),
                "trained": sum(structure.trained for structure in here),
                "compiled": sum(structure.compiled for structure in here if structure.trained),
                "updates": sorted({structure.updates for structure in here if structure.trained}),
            }
            Store(folder, name).note("comparisons", note | surroundings())
    return structures


@dataclass(frozen=True)
class _Side:
    """What runs the code of one side: the folder of the library, and the interpreter with its PyTorch."""

    library: Path = PACKAGE.parent
    python: str = sys.executable
    torch: str = torch.__version__


def _structures(
    names: Sequence[str],
    folder: str | Path,
    old: dict[str, str],
    compile_them: bool,
    updates: int | None,
    version: str = torch.__version__,
) -> list[Structure]:
    found: dict[tuple, Structure] = {}
    for name in names:
        store = Store(folder, name)
        rows, sidecar = store.read(), store.sidecar()
        rows = rows[freshness_of(rows, sidecar) == OLDER]
        if rows.empty:
            continue
        compiled = rows["batch"].map(
            {batch: of["compiled"] and compile_them for batch, of in sidecar["batches"].items()}
        )
        for (key, so), _ in rows.groupby([rows["key"].str.rpartition("-")[0], compiled]):
            run = Run.from_json(json.dumps(sidecar["configurations"][key] | {"seed": 0}))
            codes = with_torch(code(run, old), version), with_torch(code(run), torch.__version__)
            number = updates or updates_of(run)
            if codes[0] != codes[1]:
                # Runs of one structure may have different penalties, which are part of what an update
                # computes.
                kind = (
                    steps.short(run, number).structure(),
                    tuple(sorted(penalty.kind for penalty in run.recipe.penalties)),
                    so,
                )
                structure = found.setdefault(kind, Structure(run, bool(so), number))
                structure.codes.add(codes)
                structure.experiments.add(name)
    return list(found.values())


def _compare(structures: list[Structure], old: _Side, scratch: Path, progress: bool, shares: int) -> None:
    """Enter in each structure whether the old and the present code make the same of it."""
    if not structures:
        return
    for structure, (before, now) in zip(
        structures, _answers(structures, old, scratch, progress, shares), strict=True
    ):
        structure.equal, structure.on_a_bound = before == now, now["on a bound"]


def _answers(
    structures: list[Structure], old: _Side, scratch: Path, progress: bool, shares: int
) -> list[tuple[dict, dict]]:
    """What the old and the present code make of each structure."""
    parts = [structures[share::shares] for share in range(shares)]
    started = []
    for share, part in enumerate(parts):
        asked = scratch / f"asked-{share}.json"
        asked.write_text(json.dumps([structure.asked() for structure in part]))
        for name, side in (("before", old), ("now", _Side())):
            command = [
                side.python,
                str(Path(steps.__file__)),
                str(asked),
                str(scratch / f"{name}-{share}.json"),
            ]
            environment = os.environ | {
                "PYTHONPATH": str(side.library),
                "OMP_NUM_THREADS": "1",
                "PYTHONSAFEPATH": "1",
            }
            errors = open(scratch / f"errors-{name}-{share}.txt", "w+")  # noqa: SIM115 - read below, closed with the folder
            started.append(
                (
                    subprocess.Popen(
                        command,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                        env=environment,
                        cwd=scratch,
                    ),
                    errors,
                    name,
                )
            )
    try:
        with tqdm(total=2 * len(structures), unit=" structures", disable=not progress) as bar:
            # a line of each in turn: read one after the other, the first would seem to be all
            for lines in zip_longest(*(process.stdout for process, _, _ in started)):
                bar.update(sum(map(bool, lines)))
                _refuse_failed(started, [process.poll() for process, _, _ in started])
        _refuse_failed(started, [process.wait() for process, _, _ in started])
    finally:
        for process, errors, _ in started:
            process.kill()
            errors.close()
    answers = [
        [
            json.loads((scratch / f"{name}-{share}.json").read_text()) if part else []
            for name in ("before", "now")
        ]
        for share, part in enumerate(parts)
    ]
    return [
        tuple(answers[index % shares][side][index // shares] for side in (0, 1))
        for index in range(len(structures))
    ]


def _refuse_failed(started: list[tuple], status: list[int | None]) -> None:
    for (_, errors, name), ended in zip(started, status, strict=True):
        if ended:
            errors.seek(0)
            said = errors.read().strip().splitlines() or [f"it ended with status {ended} and said nothing"]
            raise ValueError(f"The code {name} does not train: {said[-1]}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m companion.verification.sidebyside",
        description="Compare the code of a commit, or another PyTorch, with the present one.",
    )
    parser.add_argument(
        "against", nargs="?", help="a commit of this repository; the present code if not given"
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the older code")
    parser.add_argument(
        "--experiment",
        action="append",
        default=[],
        help="only this experiment, e.g. division/no-redundancy; may be repeated",
    )
    parser.add_argument("--processes", type=int, default=2, help="how many train at once (2)")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument(
        "--updates", type=int, help="how many; as many as their kind of model allows if not given"
    )
    options = parser.parse_args(arguments)
    try:
        found = compare_code(
            options.against,
            options.experiment,
            processes=options.processes,
            compiled=not options.eager,
            updates=options.updates,
            python=options.python,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    for structure in found:
        print(structure)
    print(
        f"{sum(structure.equal for structure in found)} of {len(found)} structures "
        "are the same to the last bit."
    )
    return int(not all(structure.equal for structure in found))


if __name__ == "__main__":
    exit_with(main)
