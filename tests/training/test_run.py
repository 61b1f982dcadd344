"""A run's key: whatever could change its result is in it, its labels are not."""

import pytest

from nalm.models import Layer, Stack
from nalm.tasks import SingleModuleTask
from nalm.training import L1, LBFGS, SGD, Adam, Recipe, Run

RECIPE = Recipe(iterations=100, optimiser=Adam(lr=1e-2), log_interval=10)
RUN = Run(
    task=SingleModuleTask.on("U[1,2)", operation="mul"),
    model=Stack.of("NMU", 1),
    recipe=RECIPE,
    seed=0,
    threshold=1e-5,
)

OF_RECIPE = {
    "iterations": 101,
    "optimiser": SGD(lr=1e-2),
    "batch_size": 64,
    "log_interval": 20,
    "loss": "pcc",
    "penalties": (L1(start=1e-3, end=1e-3),),
    "clip_gradient_norm": 1.0,
    "finish": LBFGS(),
    "selection": "last",
    "stream": "common",
}
OF_RUN = {
    "task": SingleModuleTask.on("U[10,20)", operation="mul"),
    "model": Stack(layers=(Layer(unit="NMU", options={"clamp": "forward"}),)),
    "threshold": 1e-6,
}


def test_every_field_is_tried():
    assert set(OF_RECIPE) == set(Recipe.model_fields) and {*OF_RUN, "recipe", "seed", "labels"} == set(
        Run.model_fields
    )


@pytest.mark.parametrize("name", OF_RECIPE)
def test_each_field_of_the_recipe_changes_the_key(name):
    other = RUN.but(recipe=RECIPE.but(**{name: OF_RECIPE[name]}))
    assert other.key != RUN.key and other.configuration_key != RUN.configuration_key


@pytest.mark.parametrize("name", OF_RUN)
def test_each_field_of_a_run_changes_the_key(name):
    other = RUN.but(**{name: OF_RUN[name]})
    assert other.key != RUN.key and other.configuration_key != RUN.configuration_key


def test_the_learning_rate_changes_the_key():
    assert RUN.but(recipe=RECIPE.but(optimiser=Adam(lr=1e-3))).key != RUN.key


def test_the_seed_is_beside_the_configuration_and_labels_are_nowhere():
    other = RUN.but(seed=7, labels={"model": "another name"})
    assert other.configuration_key == RUN.configuration_key and (RUN.key, other.key) == tuple(
        f"{RUN.configuration_key}-{seed}" for seed in (0, 7)
    )


@pytest.mark.parametrize("name", [name for name in OF_RECIPE if name != "penalties"])
def test_runs_of_other_recipes_share_no_ensemble(name):
    assert RUN.but(recipe=RECIPE.but(**{name: OF_RECIPE[name]})).structure() != RUN.structure()


def test_rates_and_penalties_may_differ_in_an_ensemble():
    """But no other number of an optimiser, and none is clipped beside one that is not."""
    for may in ({"optimiser": Adam(lr=1.0)}, {"penalties": OF_RECIPE["penalties"]}):
        assert RUN.but(recipe=RECIPE.but(**may)).structure() == RUN.structure()
    clipped = [RECIPE.but(clip_gradient_norm=norm).structure() for norm in (1.0, 2.0)]
    assert clipped[0] == clipped[1]
    assert RECIPE.but(optimiser=Adam(lr=1e-2, beta1=0.5)).structure() != RECIPE.structure()
