"""Units of a reader's own are tried before they are trained."""

import warnings
from dataclasses import replace

import numpy as np
import own_units
import pytest
import torch
from torch import nn

from nalm import NAU
from nalm.models import NODE, DigitSequence, Layer, Stack
from nalm.records import Store, run_all
from nalm.tasks import DigitSequenceTask, FractionalSIRTask, SingleModuleTask, TenParameterTask
from nalm.training import Adam, Discretisation, Ensemble, Recipe, Run
from nalm.training.trial import _Trial, couples_runs, try_units
from nalm.units import UNITS

TASK = SingleModuleTask.on("U[1,2)", operation="add")


class FlatTask(TenParameterTask):
    """Its targets lack their last dimension."""

    def evaluation(self, seed):
        return {
            name: replace(one, targets=one.targets[:, 0]) for name, one in super().evaluation(seed).items()
        }


class SetTask(TenParameterTask):
    """Its test set is changed by :data:`CHANGES`."""

    change: str

    def evaluation(self, seed):
        sets = super().evaluation(seed)
        return sets | {"test": CHANGES[self.change][0](sets["test"])}


CHANGES = {
    "error": (
        lambda one: replace(one, error="rmse"),
        "has the error 'rmse', but allowed are 'mse' and 'mae'",
    ),
    "output": (lambda one: replace(one, output=3), "compares the output 3, but outputs are 0 to 0"),
    "tuple": (lambda one: (one.inputs, one.targets), "is a tuple, but must be a nalm.tasks.EvaluationSet"),
    "array": (
        lambda one: replace(one, targets=one.targets.numpy()),
        "must have tensors as inputs and targets",
    ),
    "empty": (lambda one: replace(one, inputs=one.inputs[:0], targets=one.targets[:0]), "has 0 inputs and 0"),
    "fewer": (lambda one: replace(one, targets=one.targets[1:]), "but needs as many"),
    "double": (lambda one: replace(one, targets=one.targets.double()), "but units compute in torch.float32"),
    "infinite": (lambda one: replace(one, targets=one.targets / 0), "has targets that are no finite numbers"),
}


class NumberTask(TenParameterTask):
    def constants(self, seed):
        return super().constants(seed) | {"factor": 2.0}


class NothingTask(TenParameterTask):
    def batch(self, noise, constants, shared):
        x, t = super().batch(noise, constants, shared)
        return x, t * float("nan")


class GapTask(TenParameterTask):
    def operands(self, seed):
        return np.array([[1.0, 0, 1, 0], [0, 1, 0, 1]])


def run(unit, seed=0, task=TASK, model=None, **recipe):
    recipe = Recipe(
        **({"iterations": 20, "optimiser": Adam(lr=1e-2), "log_interval": 10, "selection": "last"} | recipe)
    )
    return Run(task=task, model=model or Stack.of(unit, 1), recipe=recipe, seed=seed, threshold=1e-5)


REFUSED = {
    "Flat": r"Flat maps inputs of shape \(7, 2\) to \(7,\): .* must return the shape \(7, 1\)\.",
    "Twice": r"Twice maps inputs of shape \(7, 2\) to \(7, 2\): .* must return the shape \(7, 1\)\.",
    "Frozen": r"Frozen freezes its parameter 'weight'.*: keep it as a number",
    "Buffered": r"Buffered has the buffer 'steps'.*: keep it as a number",
    "Branching": r"Branching lets the course of forward depend on the values .* by torch\.where",
    "Reading": r"Reading lets the course of forward depend on the values .* by torch\.where",
    "Masking": r"Masking lets the course of forward depend on the values .* by torch\.where",
    "Dropping": r"Dropping draws random numbers in forward.*: draw them in reset_parameters\(\)",
    "Penalised": r"Penalised has a penalty that is no scalar tensor: reduce it in penalty\(\)",
    "Renamed": r"Renamed fails in sparsity_error .*: define effective_weights\(\)",
    "Replacing": r"Replacing replaces a parameter in project_.*: change it in place",
    "Misshapen": r"Misshapen fails in forward with RuntimeError: .*: mend forward\(\)",
    "Misspelt": r"Misspelt fails in project_ with AttributeError: .*: mend project_\(\)",
    "Empty": r"Empty has no parameters: ",
    "Random": r"Random keeps numbers that differ from run to run .*: make them an nn\.Parameter",
    "Listed": r"Listed keeps numbers that differ from run to run .*, a module in an nn\.ModuleList",
    "Complex": r"Complex has the parameter 'weight' of type torch\.complex64, .*: make it torch\.float32",
    "Doubling": r"Doubling maps inputs of type torch\.float32 to torch\.float64: compute in the type",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_training_cannot_take_is_refused_in_one_sentence(name, tmp_path):
    asked = run(getattr(own_units, name))
    with pytest.raises(ValueError, match=REFUSED[name]) as refusal:
        run_all([asked], "demo/own", results=str(tmp_path), progress=False)
    assert "\n" not in str(refusal.value) and Store(tmp_path, "demo/own").read().empty
    with pytest.raises(ValueError, match=REFUSED[name]):
        Ensemble([asked])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Idle", r"Idle does not use its parameter 'other'.*: remove it"),
        ("Logarithm", r"Logarithm or its gradient is not finite where inputs are 0"),
    ],
)
def test_what_is_unwise_is_said_once(name, sentence):
    with pytest.warns(UserWarning, match=sentence):
        try_units(run(getattr(own_units, name)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Ensemble([run(getattr(own_units, name))]).train()


@pytest.mark.parametrize("unit", [own_units.SquareUnit, own_units.Plain, own_units.Even])
def test_a_right_unit_passes(unit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try_units(run(unit))
    assert not couples_runs(run(unit))


@pytest.mark.parametrize("name", UNITS)
def test_a_trial_of_the_units_of_the_library_refuses_none_and_couples_none(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are not finite at 0, as their pages say
        assert not _Trial(Layer(unit=name, out_features=2), 3).passed()


@pytest.mark.parametrize(
    ("unit", "compiled"), [(own_units.Normed, False), (own_units.Normed, True), (own_units.Holding, False)]
)
def test_project_acts_on_each_run_by_itself(unit, compiled):
    def trained(runs):
        (weights,) = Ensemble(runs, compiled=compiled).train().weights.values()
        return weights

    assert couples_runs(run(unit))
    runs = [run(unit, seed) for seed in range(4)]
    alone, beside = trained(runs[:1]), trained(runs)
    assert np.linalg.norm(alone[0]) == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_array_equal(alone[0], beside[0])


def test_a_unit_that_is_defined_anew_is_tried_anew(monkeypatch):
    assert not couples_runs(run(own_units.SquareUnit))
    anew = type("SquareUnit", (own_units.Normed,), {"__module__": own_units.__name__})
    monkeypatch.setattr(own_units, "SquareUnit", anew)
    assert couples_runs(run("own_units:SquareUnit"))


def test_a_trial_changes_no_number_and_no_generator():
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    try_units(run(own_units.SquareUnit, iterations=21))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_units_are_tried_wherever_a_model_has_them():
    flat = Layer(unit=own_units.Flat)
    node = NODE(layers=(Layer(unit="NAU", out_features=3), flat), initial_state=(1.0,))
    sir = run(None, task=FractionalSIRTask(), model=node, batch_size=40, stream="common")
    digits = run(
        None,
        task=DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,)),
        model=DigitSequence(cell=flat),
    )
    for asked in (sir, digits):
        with pytest.raises(ValueError, match="Flat maps"):
            try_units(asked)


def test_an_own_unit_is_trained_as_one_of_the_library(monkeypatch):
    """A copy of the NAU, found by an importable name, gives the NAU's bits."""
    ramp = Discretisation(weight=1.0, start=5, end=15)
    ours = Ensemble([run(OwnNAU, seed, penalties=(ramp,)) for seed in range(3)]).train()
    theirs = Ensemble([run("NAU", seed, penalties=(ramp,)) for seed in range(3)]).train()
    assert ours.errors["test"].tobytes() == theirs.errors["test"].tobytes()
    assert ours.weights["0.weight"].tobytes() == theirs.weights["0.weight"].tobytes()


class OwnNAU(NAU):
    """The NAU from outside of the library."""


class Positional(nn.Linear):
    """Has an option that is not keyword-only."""


def test_options_of_an_own_unit_are_those_behind_its_sizes():
    assert Layer(unit=Positional, options={"bias": False}).build(2).bias is None
    with pytest.raises(ValueError, match=r"has no option 'power': allowed: 'bias'\."):
        Layer(unit=Positional, options={"power": 2})


@pytest.mark.parametrize(
    ("model", "task", "sentence"),
    [
        (Stack.of("NMU", 2), TASK, "The model has 2 outputs, but SingleModuleTask has 1"),
        (NODE(layers=(Layer(unit="Linear"),), initial_state=(1.0,)), TASK, "A NODE does not learn a Single"),
        (Stack.of("NMU", 1), DigitSequenceTask(operation="sum", source="sklearn"), "A Stack does not learn"),
        (
            NODE(layers=(Layer(unit="Linear"),), initial_state=(1.0,)),
            FractionalSIRTask(),
            "has 1 outputs, but",
        ),
        (Stack(layers=(Layer(unit="SNMU", options={"noise": "fresh"}),)), TASK, "noise='fresh' draws anew"),
        (
            DigitSequence(cell=Layer(unit="SNMU", options={"noise": "fresh"})),
            DigitSequenceTask(operation="product", source="sklearn"),
            "noise='fresh' draws anew",
        ),
        (Stack.of("NMU", 1), FlatTask(operation="add"), "validation|valid targets of shape .'examples',."),
    ],
)
def test_a_model_that_does_not_fit_its_task_is_refused(model, task, sentence):
    with pytest.raises(ValueError, match=sentence):
        try_units(run("NMU", task=task, model=model))


def test_an_own_task_is_tried_without_drawing():
    state = torch.random.get_rng_state()
    try_units(run("NMU", task=GapTask(operation="add")))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("change", CHANGES)
def test_an_evaluation_set_that_cannot_be_used_is_refused(change):
    with pytest.raises(ValueError, match=f"The set 'test' of SetTask.evaluation .*{CHANGES[change][1]}"):
        try_units(run("NMU", task=SetTask(change=change)))


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (NumberTask(), "NumberTask.constants must be tensors, but 'factor' is none"),
        (NothingTask(), "NothingTask.batch gives no target that is a finite number"),
    ],
)
def test_what_an_own_task_cannot_be_trained_on_is_refused(task, sentence):
    with pytest.raises(ValueError, match=sentence):
        try_units(run("NMU", task=task))


def test_operands_with_gaps_are_not_summed_as_slices():
    gaps = run("NMU", task=GapTask(targets="float64"), stream="numpy")
    with pytest.raises(ValueError, match="an operand of GapTask has gaps"):
        try_units(gaps)
    try_units(gaps.but(recipe=gaps.recipe.but(stream="own")))
