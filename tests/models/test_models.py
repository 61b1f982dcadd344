"""Models as values."""

import numpy as np
import pytest
import torch
from companion.nau_nmu import settings as nau_nmu

from nalm.models import NODE, GatedStack, Layer, Stack
from nalm.training import Ensemble


def test_the_last_draw_of_the_initial_weights_is_kept():
    layers = (Layer(unit="RealNPU"),)
    torch.manual_seed(7)
    first, second = (Stack(layers=layers).build(2)[0].weight for _ in range(2))
    torch.manual_seed(7)
    assert torch.equal(Stack(layers=layers, draws=2).build(2)[0].weight, second)
    assert not torch.equal(first, second)


def test_one_draw_is_the_key_it_always_was():
    assert "draws" not in Stack.of("NMU", 1).canonical()


@pytest.mark.parametrize("name", nau_nmu.gate_arms())
def test_the_mean_gate_is_observed_and_changes_no_training(name):
    (gated,) = nau_nmu.gate_runs([name], ["mul"], seeds=1, iterations=20)
    plain = gated.but(model=Stack(layers=gated.model.layers))
    with_gate, without = (Ensemble([run]).train() for run in (gated, plain))
    weights = {parameter: torch.from_numpy(values[0]) for parameter, values in with_gate.weights.items()}
    assert all(
        torch.equal(values, torch.from_numpy(without.weights[parameter][0]))
        for parameter, values in weights.items()
    )

    x = gated.task.evaluation(seed=0)["valid"].inputs
    first, second = gated.model.build(100)
    first.load_state_dict(
        {name.removeprefix("0."): values for name, values in weights.items() if name.startswith("0.")}
    )
    expected = torch.sigmoid(first(x) @ weights["1.gate_weight"].T).mean().item()
    assert gated.model.observed(weights, x) == {"gate": pytest.approx(expected, rel=1e-5)}
    assert 0 < expected < 1


def test_the_gate_is_that_of_the_evaluated_model():
    model = GatedStack.of("SNMU", 2, "NALU", 1)
    module, x = model.build(4).eval(), torch.rand(9, 4)
    expected = module[1].gate(module[0](x)).mean().item()
    assert model.observed(module.state_dict(), x)["gate"] == pytest.approx(expected, rel=1e-6)


def test_a_unit_without_a_gate_is_refused():
    with pytest.raises(
        ValueError, match="The last unit is NMU, which has no gate that depends on the input; allowed: .*NALU"
    ):
        GatedStack.of("NALU", 2, "NMU", 1)


@pytest.mark.parametrize("number", [np.float64(0.5), np.float32(0.5)])
def test_numbers_of_numpy_are_options_as_others(number):
    plain = Layer(unit="NMU", options={"init_scale": 0.5})
    given = Layer(unit="NMU", options={"init_scale": number})
    assert given == plain and given.canonical() == plain.canonical()
    assert Layer(unit="NMU", options={"init_scale": np.int64(1)}).canonical().count("1") == 1


def test_a_positive_right_hand_side_sees_no_negative_state():
    layers = (Layer(unit="NAU", out_features=2),)
    free, positive = (
        NODE(layers=layers, initial_state=(1.0, 1.0), **options).build(1)
        for options in ({}, {"positive": True})
    )
    positive.load_state_dict(free.state_dict())
    state = torch.tensor([[-1.0, 2.0]], dtype=torch.float64)
    assert torch.equal(positive.derivative(state), free.derivative(state.clamp(min=0)))
    assert not torch.equal(positive.derivative(state), free.derivative(state))


def test_to_observe_a_gate_draws_no_number_of_others():
    model = GatedStack.of("NALU", 1)
    weights, inputs = model.build(2).state_dict(), torch.ones(3, 2)
    before = torch.get_rng_state()
    model.observed(weights, inputs)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["device", "dtype"])
def test_where_and_how_parameters_are_kept_is_no_option(name):
    with pytest.raises(ValueError, match=f"NMU has no option '{name}'"):
        Layer(unit="NMU", options={name: None})


def test_numbers_of_numpy_in_a_tuple_are_options_as_others():
    options = {"discretise_to": (np.int64(-1), np.int64(0), np.int64(1))}
    assert all(type(one) is int for one in Layer(unit="NPU", options=options).options["discretise_to"])


def test_options_that_are_lists_are_those_of_a_tuple():
    layer = Layer(unit="NPU", options={"discretise_to": [np.int64(-1), np.int64(1)]})
    assert all(type(one) is int for one in layer.options["discretise_to"])
    assert repr(layer.build(1)) == repr(Layer(unit="NPU", options={"discretise_to": (-1, 1)}).build(1))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Layer(unit="NMU", out_features=2**31), "out_features is 2147483648"),
        (lambda: Layer(unit="square.py"), "'square.py' names a file only: write FILE:CLASS"),
        (lambda: Stack(layers=()), "A model needs at least one layer"),
        (lambda: NODE(layers=(), initial_state=(1.0,)), "as many outputs as the state has entries, 1"),
        (lambda: Stack.of("NAU", 2, "NMU"), "Each unit is followed by its number .* given are 3 values"),
    ],
)
def test_a_model_that_is_none_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_each_value_of_an_option_is_looked_at():
    Layer(unit="NAU", options={"clamp": "forward"})
    with pytest.raises(ValueError, match="clamp"):
        Layer(unit="NAU", options={"clamp": "forwards"})
