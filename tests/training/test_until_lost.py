"""Runs whose parameters are all NaN: what is skipped changes nothing that is recorded."""

import numpy as np
import own_units
import pytest
import torch
from companion.nau_nmu.subset_shapes import SHAPES, shape_runs
from companion.replay import all_replayed

from nalm.models import Stack
from nalm.records.groups import train_group
from nalm.tasks import SingleModuleTask, Uniform
from nalm.training import SGD, Adam, Ensemble, Recipe, RMSProp, Run
from nalm.training.checkpoint import Checkpoint
from nalm.training.until_lost import EnsembleUntilLost
from nalm.training.update import Update
from nalm.units import UNITS


def assert_same(log, expected):
    assert (log.iterations == expected.iterations).all()
    np.testing.assert_array_equal(log.nan_at, expected.nan_at)
    np.testing.assert_array_equal(log.selected, expected.selected)
    np.testing.assert_array_equal(log.sparsity_errors, expected.sparsity_errors)
    for ours, theirs in [(log.errors, expected.errors), (log.weights, expected.weights)]:
        for name in theirs:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def shortened(runs, iterations=30):
    return [run.but(recipe=run.recipe.but(iterations=iterations, log_interval=5)) for run in runs]


@pytest.fixture
def counted(monkeypatch):
    """How many updates and evaluations there were."""
    counts = {"updates": 0, "evaluations": 0}
    advance, prepare = Ensemble._advance, Ensemble._prepare

    def counting(self, first, last):
        counts["updates"] += last - first
        advance(self, first, last)

    def prepared(self):
        prepare(self)
        evaluate = self.evaluate

        def counted(parameters):
            counts["evaluations"] += 1
            return evaluate(parameters)

        self.evaluate = counted

    monkeypatch.setattr(Ensemble, "_advance", counting)
    monkeypatch.setattr(Ensemble, "_prepare", prepared)
    return counts


def gated(inputs, seeds, iterations=30):
    shape = next(shape for shape in SHAPES if shape.inputs == inputs)
    return shortened(all_replayed(shape_runs(["Gated NAU/NMU"], [shape], seeds), "common"), iterations)


def test_wide_gated_units_are_recorded_as_if_they_had_been_trained(counted):
    """With 150 inputs all seeds are lost at once."""
    runs = gated(150, seeds=3)
    log = EnsembleUntilLost(runs, compiled=False).train()
    assert counted == {"updates": 10, "evaluations": 2}
    assert_same(log, Ensemble(runs, compiled=False).train())
    assert np.isnan(log.errors["valid"][-1]).all()


@pytest.mark.parametrize(("stream", "living"), [("common", 4), ("numpy", 5)])
def test_the_others_go_on_where_half_are_lost(stream, living, monkeypatch):
    """With 100 inputs five of ten seeds are lost within 30 updates, on the common stream one more later."""
    recipe = {"stream": stream, "log_interval": 25}  # to evaluate takes more time than 25 updates
    runs = [run.but(recipe=run.recipe.but(**recipe)) for run in gated(100, seeds=10, iterations=100)]
    expected, widths = Ensemble(runs, compiled=False).train(), []
    update = Update.__call__
    monkeypatch.setattr(
        Update, "__call__", lambda self, *of: widths.append(len(self.runs)) or update(self, *of)
    )
    ensemble = EnsembleUntilLost(runs, compiled=False)
    log = ensemble.train()
    assert set(widths) == {10, 5} and len(widths) == 100
    assert np.isnan(log.nan_at).sum() == living
    np.testing.assert_array_equal(log.nan_at, expected.nan_at)
    lost = np.isfinite(log.nan_at)
    for name, errors in expected.errors.items():
        np.testing.assert_array_equal(log.errors[name][:, lost], errors[:, lost])
        np.testing.assert_allclose(log.errors[name], errors, rtol=1e-3)
    assert all(p.shape[0] == 10 for p in ensemble.parameters.values())
    assert_same(ensemble.train(), log)  # and again from the start


ADAM = Adam(lr=1e-2)


def lost(unit="NMU", optimiser=ADAM, stream="own"):
    """Products that are infinite in float32."""
    huge = Uniform(low=1e30, high=2e30)
    task = SingleModuleTask(operation="mul", interpolation=huge, extrapolation=huge, targets="float64")
    recipe = Recipe(iterations=30, optimiser=optimiser, log_interval=5, stream=stream)
    return [Run(task=task, model=Stack.of(unit, 1), recipe=recipe, seed=seed) for seed in range(2)]


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("stream", ["own", "common", "numpy"])
def test_a_training_that_was_lost_goes_on_from_its_checkpoint(stream, tmp_path, counted):
    runs, checkpoint = lost(stream=stream), Checkpoint(tmp_path / "training.pt", every=0)

    def interrupt(iterations):
        nonlocal reached
        reached += iterations
        if reached > 20:
            raise KeyboardInterrupt

    reached = 0
    with pytest.raises(KeyboardInterrupt):
        EnsembleUntilLost(runs, compiled=False).train(interrupt, checkpoint)
    assert checkpoint.read()["iteration"] == 20
    log = EnsembleUntilLost(runs, compiled=False).train(checkpoint=checkpoint)
    assert counted == {"updates": 15, "evaluations": 3}
    assert_same(log, Ensemble(runs, compiled=False).train())


@pytest.mark.parametrize("optimiser", [SGD(lr=1e-2), ADAM, RMSProp(lr=1e-2)], ids=lambda o: o.kind)
@pytest.mark.parametrize("unit", sorted(UNITS))
def test_no_optimiser_and_no_unit_makes_a_number_of_nan(unit, optimiser):
    ensemble = Ensemble(lost(unit, optimiser), compiled=False)
    ensemble.parameters = {name: torch.full_like(p, torch.nan) for name, p in ensemble.parameters.items()}
    ensemble._advance(0, 3)
    assert all(p.isnan().all() for p in ensemble.parameters.values())


class Reviving(own_units.SquareUnit):
    """Begins anew when it is lost."""

    def project_(self):
        self.weight.data.nan_to_num_(0.5)


def test_a_unit_that_makes_numbers_of_nan_goes_on():
    runs = lost(Reviving)
    ensemble = EnsembleUntilLost(runs, compiled=False)
    ensemble.parameters = {name: torch.full_like(p, torch.nan) for name, p in ensemble.parameters.items()}
    ensemble._advance(0, 5)
    assert ensemble.is_whole() and all(p.isfinite().all() for p in ensemble.parameters.values())


def test_recorded_runs_are_trained_with_it(monkeypatch):
    trained = []
    monkeypatch.setattr("nalm.records.groups.provenance", lambda runs, log: {})
    train = EnsembleUntilLost.train
    monkeypatch.setattr(
        EnsembleUntilLost, "train", lambda self, *of: trained.append(type(self)) or train(self, *of)
    )
    train_group({0: lost()}, "cpu", None, lambda news: None)
    assert trained == [EnsembleUntilLost]
