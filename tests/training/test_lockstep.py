"""Ensembles in lockstep: the logs are those of each ensemble by itself, to the last bit."""

import numpy as np
import pandas as pd
import pytest
from companion.nau_nmu.subset_shapes import MODELS, SHAPES, shape_runs
from companion.replay import all_replayed

from nalm.records import run_all, workers
from nalm.records.groups import train_group
from nalm.records.store import Store
from nalm.training import Adam
from nalm.training.checkpoint import Checkpoint
from nalm.training.lockstep import Lockstep, batches_of
from nalm.training.until_lost import EnsembleUntilLost
from nalm.training.update import Update


def ensembles(inputs=100, seeds=2, iterations=30, models=MODELS):
    """Of Figure 8: a list of runs per model."""
    shape = next(shape for shape in SHAPES if shape.inputs == inputs)
    runs = all_replayed(shape_runs(models, [shape], seeds), "common")
    recipes = [run.recipe.but(iterations=iterations, log_interval=7) for run in runs]
    runs = [run.but(recipe=recipe) for run, recipe in zip(runs, recipes, strict=True)]
    return [[run for run in runs if run.labels["model"] == model] for model in models]


def together(groups, checkpoints=None, progress=lambda iterations: None):
    made = [EnsembleUntilLost(runs, compiled=False, together=4) for runs in groups]
    return Lockstep(made).train([progress] * len(made), checkpoints or [None] * len(made))


def by_itself(runs):
    return EnsembleUntilLost(runs, compiled=False).train()


def assert_same(log, expected):
    assert log.iterations.tolist() == expected.iterations.tolist()
    for name in ("sparsity_errors", "selected", "nan_at"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name), err_msg=name)
    for ours, theirs in [(log.errors, expected.errors), (log.weights, expected.weights)]:
        assert ours.keys() == theirs.keys()
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


@pytest.mark.parametrize(("inputs", "seeds"), [(10, 2), (100, 2), (100, 1)])
def test_all_models_have_the_logs_that_they_have_by_themselves(inputs, seeds):
    groups = ensembles(inputs, seeds)
    for log, runs in zip(together(groups), groups, strict=True):
        assert_same(log, by_itself(runs))


def test_compiled_code_gives_the_same_bits():
    (nmu,) = ensembles(models=["NMU"])
    faster = [run.but(recipe=run.recipe.but(optimiser=Adam(lr=1e-2))) for run in nmu]  # by the same code
    ours, others, alone = (EnsembleUntilLost(runs, compiled=True, together=2) for runs in (nmu, faster, nmu))
    Lockstep([ours, others])._advance([ours, others], 0, 20)
    alone._advance(0, 20)
    for name, values in alone.parameters.items():
        assert (ours.parameters[name] == values).all() and (others.parameters[name] != values).any()
        assert all((a == b).all() for a, b in zip(ours.state[name], alone.state[name], strict=True))


def test_a_batch_is_drawn_once(monkeypatch):
    from nalm.training import lockstep

    drawn, uniforms = [], lockstep.uniforms
    monkeypatch.setattr(lockstep, "uniforms", lambda *of: drawn.append(int(of[1])) or uniforms(*of))
    monkeypatch.setattr("nalm.training.update.uniforms", None)
    together(ensembles(models=["NMU", "NAC•", "NALU"]))
    assert drawn == list(range(30))


def test_what_is_lost_is_left_out_and_the_others_go_on():
    """With 150 inputs the gated unit is lost at once."""
    groups = ensembles(150, models=["Gated NAU/NMU", "NMU", "NAC•"])
    gated, *others = together(groups)
    assert np.isfinite(gated.nan_at).all()
    for log, runs in zip([gated, *others], groups, strict=True):
        assert_same(log, by_itself(runs))


def test_with_one_ensemble_left_it_is_trained_by_itself(monkeypatch):
    groups, advanced = ensembles(150, models=["Gated NAU/NMU", "NMU"]), []
    update = Update.__call__
    monkeypatch.setattr(
        Update,
        "__call__",
        lambda self, *of: advanced.append((self.runs[0].labels["model"], int(of[2]))) or update(self, *of),
    )
    logs = together(groups)
    assert [i for model, i in advanced if model == "NMU"] == list(range(30))
    monkeypatch.undo()
    for log, runs in zip(logs, groups, strict=True):
        assert_same(log, by_itself(runs))


def test_interrupted_they_go_on_to_the_same_logs(tmp_path):
    """One of them is ahead of the other then."""
    groups, reached = ensembles(models=["NMU", "NAC•"]), 0
    checkpoints = [Checkpoint(tmp_path / f"{number}.pt", every=0) for number in range(2)]

    def interrupt(iterations):
        nonlocal reached
        reached += iterations
        if reached > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together(groups, checkpoints=checkpoints, progress=interrupt)
    assert [checkpoint.read()["iteration"] for checkpoint in checkpoints] == [14, 7]
    for log, runs in zip(together(groups, checkpoints=checkpoints), groups, strict=True):
        assert_same(log, by_itself(runs))


def test_warming_up_leaves_no_trace():
    groups = ensembles(models=["NMU", "NAC•"])
    warmed = Lockstep([EnsembleUntilLost(runs, compiled=False) for runs in groups])
    warmed.warm_up()
    logs = warmed.train([lambda iterations: None] * 2, [None] * 2)
    for log, expected in zip(logs, together(groups), strict=True):
        assert_same(log, expected)


def test_seconds_are_shared():
    logs = together(ensembles(models=["NMU", "NAC•"]))
    assert logs[0].seconds == logs[1].seconds > 0


def changed(runs, **recipe):
    return [run.but(recipe=run.recipe.but(**recipe)) for run in runs]


def test_which_see_the_same_batches():
    nmu, nac = ensembles(models=["NMU", "NAC•"])
    assert batches_of(nmu) == batches_of(nac)
    others = [nac[:1], [run.but(seed=run.seed + 2) for run in nac], ensembles(125, models=["NAC•"])[0]]
    others += [changed(nac, iterations=40), changed(nac, log_interval=5), changed(nac, batch_size=64)]
    assert batches_of(nmu) not in map(batches_of, others)
    assert batches_of(ensembles(10)[0]) is None  # they gain nothing
    assert [batches_of(changed(nmu, stream=stream)) for stream in ("own", "numpy")] == [None, None]


def test_every_core_has_some():
    wide = dict(enumerate(ensembles(models=["NMU", "NAC•", "NALU"])))
    narrow = dict(enumerate(ensembles(10, models=["NMU", "NAC•"]), 3))

    def grouped(ensembles, places):
        return [list(group) for group in workers._in_lockstep(ensembles, places)]

    assert grouped(wide, 1) == [[0, 1, 2]]
    assert grouped(wide, 2) == [[0, 2], [1]]
    assert grouped(wide, 4) == [[0], [1], [2]]
    assert grouped(wide | narrow, 2) == [[0, 1, 2], [3], [4]]


def test_their_rows_are_those_of_each_by_itself(monkeypatch, tmp_path):
    groups, trained = ensembles(models=["NMU", "NAC•"]), []
    train = Lockstep.train
    monkeypatch.setattr(
        Lockstep, "train", lambda self, *of: trained.append(len(self.ensembles)) or train(self, *of)
    )
    monkeypatch.setattr(workers, "_is_long", lambda runs: True)
    monkeypatch.setattr(workers, "cores", lambda: 1)
    rows = []
    for name in ("together", "alone"):
        folder = str(tmp_path / name)
        rows.append(run_all(sum(groups, []), "demo/lockstep", folder, progress=False))
        monkeypatch.setattr(workers, "batches_of", lambda runs: None)
    assert trained == [2]
    pd.testing.assert_frame_equal(*(of.drop(columns=["seconds", "batch"]) for of in rows))
    batches = Store(tmp_path / "together", "demo/lockstep").sidecar()["batches"]
    assert [origin["runs"] for origin in batches.values()] == [2, 2]


def test_where_the_compiler_fails_each_is_trained_by_itself(monkeypatch):
    def fail(*of):
        raise InductorError("no")

    InductorError = type("InductorError", (Exception,), {"__module__": "torch._inductor.exc"})
    monkeypatch.setattr(Lockstep, "train", fail)
    groups = dict(enumerate(ensembles(models=["NMU", "NAC•"])))
    trained = train_group(groups, "cpu", None, lambda news: None, compiled=False)
    for (log, _), runs in zip(trained, groups.values(), strict=True):
        assert_same(log, by_itself(runs))


def test_one_that_fails_stops_no_other(monkeypatch, tmp_path):
    nmu, nac = ensembles(models=["NMU", "NAC•"])
    update = Update.__call__

    def fails(self, *of):
        if self.runs[0].labels["model"] == "NMU" and int(of[2]) == 20:
            raise ArithmeticError("no")
        return update(self, *of)

    monkeypatch.setattr(Update, "__call__", fails)
    monkeypatch.setattr(workers, "_is_long", lambda runs: True)
    monkeypatch.setattr(workers, "cores", lambda: 1)
    found = []
    with pytest.raises(ArithmeticError):
        for trained in workers.train_ensembles([nmu, nac], "cpu", tmp_path, lambda iterations: None):
            found.append(trained)
    ((runs, (log, _)),) = found
    assert runs == nac
    assert_same(log, by_itself(nac))
