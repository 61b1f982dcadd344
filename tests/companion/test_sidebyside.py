"""Old and new code side by side: equal code confirms rows, and one other bit does not."""

import re
import shlex
import shutil
import subprocess
import sys
from types import SimpleNamespace

import forked
import numpy as np
import pytest
from companion.verification import sidebyside, steps
from companion.verification.sidebyside import compare_code

from nalm.models import NODE, Layer, Stack
from nalm.records import PUBLISHED, Store, code, experiments, freshness, provenance, run_all
from nalm.tasks import FractionalSIRTask, SingleModuleTask
from nalm.training import LBFGS, Adam, Discretisation, Recipe, Run
from nalm.training.ode import ensemble as ode
from nalm.training.ode import lbfgs, rollout

EXPERIMENT = "demo/sidebyside"
CONFIRMED, OLDER = "confirmed", "older than the code it depends on"


@pytest.fixture(autouse=True)
def processes_start_at_once(monkeypatch):
    forking = SimpleNamespace(**vars(subprocess) | {"Popen": forked.Popen})
    monkeypatch.setattr(sidebyside, "subprocess", forking)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(sidebyside, "UPDATES", 400)
    penalty = Discretisation(weight=1.0, start=1_000_000, end=2_000_000)
    recipe = Recipe(iterations=4, optimiser=Adam(lr=1e-2), log_interval=2, penalties=(penalty,))
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    runs = [
        Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=seed, threshold=1e-5)
        for unit in ("NMU", "NRU")
        for seed in range(2)
    ]
    run_all(runs, EXPERIMENT, results=str(tmp_path / "results"), progress=False)
    return tmp_path / "results"


def compared(recorded, tmp_path, monkeypatch, module, old, new, executed):
    """What a comparison says if ``module`` had ``old`` in place of ``new`` at the commit; whether that is
    what is executed there, or only what is read.
    """
    monkeypatch.setitem(code.LOADED, module, code.LOADED[module].replace(old, new))
    assert freshness(EXPERIMENT, recorded) == OLDER

    def library_at(commit, folder):
        shutil.copytree(code.PACKAGE, folder / "nalm", ignore=shutil.ignore_patterns("__pycache__"))
        if executed:
            file = folder / (module.replace(".", "/") + ".py")
            file.write_text(file.read_text().replace(old, executed))
        return folder

    monkeypatch.setattr(sidebyside, "library_at", library_at)
    return compare_code("before", folder=recorded, progress=False)


def test_equal_code_confirms_rows(recorded, tmp_path, monkeypatch):
    found = compared(
        recorded,
        tmp_path,
        monkeypatch,
        "nalm.units.nau",
        "return identity_product(",
        "return 1 * identity_product(",
        None,
    )
    assert [(one.equal, one.on_a_bound > 0) for one in found] == [(True, True)]
    assert freshness(EXPERIMENT, recorded) == CONFIRMED
    store = Store(recorded, EXPERIMENT)
    (note,) = store.sidecar()["comparisons"]
    assert (note["against"], note["updates"], note["structures"], len(note["codes"])) == (
        "before",
        [400],
        1,
        1,
    ) and "torch" in note["versions"]
    monkeypatch.setitem(
        code.LOADED, "nalm.units.nau", code.LOADED["nalm.units.nau"].replace("1 * identity", "2 * identity")
    )
    assert code.freshness_of(store.read(), store.sidecar()).value_counts().to_dict() == {OLDER: 2, "fresh": 2}


@pytest.mark.parametrize(
    ("executed", "refused"),
    [
        ("return 1.0000001 * identity_product(", ""),
        ("raise ValueError('no product')  # ", "ValueError: no product"),
        ("import os; os.kill(os.getpid(), 9)  # ", "it ended with status -9 and said nothing"),
    ],
)
def test_other_code_confirms_nothing(recorded, tmp_path, monkeypatch, executed, refused):
    arguments = (
        recorded,
        tmp_path,
        monkeypatch,
        "nalm.units.nau",
        "return identity_product(",
        "return 1 * identity_product(",
        executed,
    )
    if refused:
        monkeypatch.setattr(sidebyside, "UPDATES", 4)  # it ends before them
        with pytest.raises(ValueError, match=f"The code before does not train: {refused}"):
            compared(*arguments)
    else:
        assert [one.equal for one in compared(*arguments)] == [False]
    assert freshness(EXPERIMENT, recorded) == OLDER
    assert "comparisons" not in Store(recorded, EXPERIMENT).sidecar()


def test_each_kind_of_penalty_is_compared(tmp_path, monkeypatch):
    recipe = Recipe(iterations=4, optimiser=Adam(lr=1e-2), log_interval=2)
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    sets = (), (Discretisation(weight=1.0, start=1, end=2),), (Discretisation(weight=2.0, start=1, end=3),)
    runs = [
        Run(
            task=task,
            model=Stack.of("NMU", 1),
            recipe=recipe.but(penalties=penalties),
            seed=0,
            threshold=1e-5,
        )
        for penalties in sets
    ]
    assert len({run.structure() for run in runs}) == 1
    run_all(runs, EXPERIMENT, results=str(tmp_path), progress=False)
    before = dict(code.LOADED)
    assert sidebyside._structures([EXPERIMENT], tmp_path, before, True, None) == []  # nothing is older
    monkeypatch.setitem(
        code.LOADED,
        "nalm.units.nau",
        before["nalm.units.nau"].replace("return identity_product(", "return 1 * identity_product("),
    )
    found = sidebyside._structures([EXPERIMENT], tmp_path, before, True, None)
    assert sorted(len(one.run.recipe.penalties) for one in found) == [0, 1]


def test_each_operation_of_a_differential_equation_is_compared(monkeypatch):
    layers = Layer(unit="RealNPU", out_features=2), Layer(unit="NAU", out_features=3)
    model = NODE(layers=layers, initial_state=(100.0, 0.01, 0.0), step=8.0, imaginary_until=1000)
    recipe = Recipe(iterations=4000, optimiser=Adam(lr=1e-2), finish=LBFGS(iterations=1000))
    run = Run(task=FractionalSIRTask(), model=model, recipe=recipe, seed=0)
    found = steps.operations(run, 60)
    assert found == steps.operations(run, 60) and found["digests"]["number of operations"] > 1000

    def halves(f, y, step):
        k1 = f(y)
        return y + step / 2 * k1 + step / 2 * k1, k1

    def next_to(*arguments):
        weights, done = lbfgs.minimise_together(*arguments)
        return np.nextafter(weights, np.inf), done

    for changed, name, by in (
        (rollout._METHODS, "euler", halves),
        (vars(ode), "minimise_together", next_to),
        (vars(ode), "IMAGINARY", "weight"),  # which weights stay as they are
    ):
        with monkeypatch.context() as patched:
            patched.setitem(changed, name, by)
            assert steps.operations(run, 60)["digests"] != found["digests"], name


@pytest.mark.parametrize(("version", "freshly"), [("2.11.3", CONFIRMED), ("2.10.0", OLDER)])
def test_another_pytorch_confirms_its_own_rows(version, freshly, tmp_path, monkeypatch):
    """The interpreter is this one, which says that it has another version."""
    monkeypatch.setattr(sidebyside, "UPDATES", 40)
    monkeypatch.setattr(provenance, "_version", lambda package: "2.11.0+cu130")
    recipe = Recipe(iterations=4, optimiser=Adam(lr=1e-2), log_interval=2)
    task = SingleModuleTask.on("U[1,2)", operation="mul")
    runs = [Run(task=task, model=Stack.of("NMU", 1), recipe=recipe, seed=0, threshold=1e-5)]
    run_all(runs, EXPERIMENT, results=str(tmp_path), progress=False)
    assert freshness(EXPERIMENT, tmp_path) == OLDER
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && echo {version} || exec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setattr(forked, "INTERPRETERS", {sys.executable, str(python)})
    found = compare_code(folder=tmp_path, progress=False, python=str(python))
    assert [one.equal for one in found] == [True] and freshness(EXPERIMENT, tmp_path) == freshly


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such-commit"], "There is no library at commit 'no-such-commit'"),
        (["HEAD", "--experiment", "division/loses"], "'division/loses': did you mean 'division/losses'?"),
        (["--python", "no-such-python"], "'no-such-python' is no Python that has PyTorch."),
    ],
)
def test_what_is_not_there_is_a_sentence(arguments, sentence, capsys):
    assert sidebyside.main(arguments) == 2
    assert sentence in capsys.readouterr().err


def test_no_published_batch_is_damaged():
    assert {name: Store(PUBLISHED, name).damaged() for name in experiments()} == {
        name: [] for name in experiments()
    }
    for store in (Store(PUBLISHED, name) for name in experiments()):
        seconds = store.read(checked=False).groupby("batch")["seconds"].agg(["size", "sum"])
        for name, batch in store.sidecar()["batches"].items():
            runs, total = seconds.loc[name]
            assert "digest" in batch and batch["runs"] == runs, name
            # a row has its share of the batch's seconds, with four decimals
            assert batch["seconds"] == pytest.approx(total, abs=0.0051 + 5.1e-5 * runs), name


def test_a_note_names_a_commit_and_not_what_moves_on():
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert sidebyside._hash_of("HEAD") == head[:7]
    notes = [one for name in experiments() for one in Store(PUBLISHED, name).sidecar().get("comparisons", [])]
    assert notes and all(re.fullmatch(r"[0-9a-f]{7,}|torch [\d.]+(\+\w+)?", one["against"]) for one in notes)
