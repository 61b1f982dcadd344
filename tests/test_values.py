"""Values: one canonical form, one key, one sentence for what is wrong."""

import inspect
import json
from typing import get_args

import numpy as np
import pytest

from nalm import tasks
from nalm.models import DigitSequence, Layer, Stack
from nalm.tasks import (
    DigitSequenceTask,
    SimpleArithmeticTask,
    SingleModuleTask,
    SubsetArithmeticTask,
    TenParameterTask,
    Uniform,
)
from nalm.training import L1, SGD, Adam, Discretisation, Norms, Recipe, RMSProp, Run

RECIPE = Recipe(iterations=10, optimiser=Adam(lr=1e-3))
MODIFIED = Layer(unit="RealNPU", options={"clip": ("weight", "gate"), "init": "capped-glorot"})
RUNS = [
    Run(
        task=SingleModuleTask.on("U[-2,2)", "div"),
        model=Stack(layers=(MODIFIED,)),
        recipe=RECIPE,
        seed=3,
        threshold=1e-5,
    ),
    Run(
        task=SubsetArithmeticTask(operation="mul"), model=Stack.of("NAU", 2, "NMU", 1), recipe=RECIPE, seed=0
    ),
    Run(
        task=TenParameterTask(),
        model=Stack.of("NALU", 2, "NALU", 1),
        recipe=RECIPE,
        seed=1,
        labels={"model": "NALU"},
    ),
    Run(
        task=SimpleArithmeticTask(),
        model=Stack.of("NPU", 6),
        seed=2**32 - 1,
        recipe=Recipe(
            iterations=5,
            optimiser=RMSProp(lr=0.1),
            penalties=(L1(start=1e-9, end=1e-7), Norms(start=1.0, end=1.0)),
        ),
    ),
    Run(task=DigitSequenceTask(operation="sum"), model=DigitSequence(cell=None), recipe=RECIPE, seed=0),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.task.kind)
def test_a_run_is_rebuilt_from_its_stored_configuration(run):
    stored = json.loads(json.dumps(run.full_configuration))
    again = Run.from_json(json.dumps(stored | {"seed": run.seed}))
    assert again.key == run.key and again.canonical() == run.model_copy(update={"labels": {}}).canonical()
    assert again.task == run.task and again.recipe == run.recipe


def test_keys_tell_runs_apart_and_labels_do_not():
    keys = {run.key for run in RUNS}
    assert len(keys) == len(RUNS)
    run = RUNS[0]
    assert run.model_copy(update={"labels": {"model": "x"}}).key == run.key
    assert run.model_copy(update={"seed": 4}).configuration_key == run.configuration_key
    for changed in ({"threshold": 1e-4}, {"recipe": Recipe(iterations=11, optimiser=Adam(lr=1e-3))}):
        assert run.model_copy(update=changed).configuration_key != run.configuration_key


def test_keys_are_those_of_the_recorded_rows():
    """If this fails, every recorded row would be trained again: a default has changed its meaning or a field
    its name.
    """
    assert RUNS[0].key == "913a08d05ff4-3" and RUNS[1].key == "1f9e6e964859-0"


def test_every_task_is_entered():
    """A run knows its task by its kind."""
    public = [getattr(tasks, name) for name in tasks.__all__]
    found = {one for one in public if inspect.isclass(one) and issubclass(one, tasks.Task)}
    found = {one for one in found if not inspect.isabstract(one)}
    assert found == set(get_args(tasks._Ours)), "enter the task in _Ours of nalm/tasks/__init__.py"


def test_values_cannot_be_changed():
    with pytest.raises(
        ValueError, match=r"^A Recipe is frozen: make another one with but\(iterations=20\)\.$"
    ):
        RECIPE.iterations = 20
    assert RECIPE.iterations == 10


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Adam(0.1),
            r"Adam takes its fields by name, as in Adam\(lr=0.1\): it has lr, beta1, beta2, eps",
        ),
        (lambda: Layer("NMU", unit="NMU"), r"as in Layer\(unit='NMU'\): it has unit, out_features, options"),
        (lambda: TenParameterTask("mul"), r"as in TenParameterTask\(operation='mul'\)"),
    ],
)
def test_fields_have_names(make, sentence):
    with pytest.raises(TypeError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Recipe(iterations=0, optimiser=Adam(lr=1.0)), "iterations is 0"),
        (lambda: Recipe(iterations=2.5, optimiser=Adam(lr=1.0)), "iterations is 2.5"),
        (
            lambda: Recipe(iteration=5, optimiser=Adam(lr=1.0)),
            "no field 'iteration': did you mean 'iterations'",
        ),
        (lambda: Recipe(iterations=5), "Recipe needs the field 'optimiser'"),
        (
            lambda: Recipe(iterations=5, optimiser=Adam(lr=1.0), loss="rmse"),
            "Unknown loss 'rmse': did you mean 'mse'",
        ),
        (
            lambda: Recipe(iterations=5, optimiser=Adam(lr=1.0), penalties=(L1(start=1.0, end=1.0),) * 2),
            "at most one penalty",
        ),
        (lambda: Adam(lr="fast"), "lr is 'fast'"),
        (lambda: Adam(lr=float("inf")), "lr is inf: input should be a finite number"),
        (lambda: Adam(lr=0.1, beta2=1.0), "beta2 is 1.0: input should be less than 1"),
        (lambda: RMSProp(lr=0.1, eps=-1.0), "eps is -1.0"),
        (lambda: Uniform(low=0.0, high=float("inf")), "high is inf: input should be a finite number"),
        (lambda: Uniform(low=float("nan"), high=1.0), "low is nan: input should be a finite number"),
        (lambda: RUNS[0].but(threshold=0.0), "threshold is 0.0: input should be greater than 0"),
        (lambda: SGD(lr=-1.0), "lr is -1.0"),
        (lambda: Discretisation(weight=1.0, start=10, end=10), "the ramp must end after it starts"),
        (lambda: L1(start=1.0, end=0.5), "end must be at least start"),
        (lambda: Stack.of("NMUU", 1), "Unknown unit 'NMUU': did you mean 'NMU'"),
        (lambda: Stack(layers=()), "at least one layer"),
        (lambda: Stack(layers=("NMU",)), r"^Stack: layers.0 must be Layer\(...\), but it is 'NMU'.$"),
        (
            lambda: SingleModuleTask(operation="mul", interpolation="U[1,2)", extrapolation="U[2,3)"),
            r"^SingleModuleTask: interpolation must be Uniform\(...\), Halves\(...\), "
            r"TruncatedNormal\(...\) or Benford\(...\), but it is 'U\[1,2\)'.$",
        ),
        (
            lambda: TenParameterTask(extrapolation={"kind": "Unifrm"}),
            "^TenParameterTask: extrapolation has no field 'kind'.$",
        ),
        (
            lambda: Recipe(iterations=5, optimiser="Adam"),
            r"^Recipe: optimiser must be Adam\(...\), SGD\(...\) or RMSProp\(...\), but it is 'Adam'.$",
        ),
        (
            lambda: Run(task="mul", model=RUNS[0].model, recipe=RECIPE, seed=0),
            r"^Run: task must be SingleModuleTask\(...\), .* or a subclass of Task, but it is 'mul'.$",
        ),
        (lambda: Stack.of("NAU"), "followed by its number of outputs, .* but given are 1 values"),
        (lambda: Layer(unit="square.py"), "names a file only: write FILE:CLASS, as 'square.py:SquareUnit'"),
        (
            lambda: Layer(unit="NRU", options={"seperate_sign": True}),
            "no option 'seperate_sign': did you mean 'separate_sign'",
        ),
        (lambda: Layer(unit="RealNPU", options={"clip": ("gaet",)}), "did you mean 'gate'"),
        (lambda: RUNS[0].model_copy().__class__(**(dict(RUNS[0]) | {"seed": -1})), "seed is -1"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_seed_of_numpy_is_a_seed():
    (run, *_) = RUNS
    for seed in np.arange(2, dtype=np.int64):
        assert run.but(seed=seed).key == run.but(seed=int(seed)).key and type(run.but(seed=seed).seed) is int


def test_letters_of_any_language_stand_in_a_canonical_form_as_they_are():
    assert '"unit":"größe"' in Layer.model_construct(unit="größe").canonical()
