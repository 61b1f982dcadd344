"""The network that reads sequences of digits, and the ensemble that trains it, on scikit-learn's images."""

import numpy as np
import pytest
import torch
from companion.nau_nmu import digit_runs as digits
from hypothesis import given
from hypothesis import strategies as st

from nalm.models import DigitSequence, Layer
from nalm.models.digit_sequence import DigitSequenceNetwork, activation_penalty
from nalm.records.row import first_below, first_solved, record_lows
from nalm.tasks import DigitSequenceTask
from nalm.training import ActivationPenalty, Adam, Checkpoint, Discretisation, Ensemble, Recipe, Run
from nalm.training.sequences import SequenceEnsemble
from nalm.training.side_by_side import SideBySide
from nalm.training.trainers import trainer_of
from nalm.units import NALU, NAU, NMU, NACMul

PRODUCT = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1, 2, 5))
SUM = DigitSequenceTask(operation="sum", length=3, source="sklearn", test_lengths=(1, 10, 100))


def test_a_perfect_cell_multiplies():
    network = DigitSequenceNetwork(NMU(2, 1), initial_state=1.0)
    with torch.no_grad():
        network.cell.weight.fill_(1.0)
    images = torch.randn(4, 3, 28, 28)
    torch.testing.assert_close(network(images), network.reader(images).cumprod(1))
    exact = DigitSequenceNetwork(None, initial_state=1.0)
    exact.reader = network.reader
    torch.testing.assert_close(exact(images), network(images))


@torch.no_grad()
def test_a_cell_sees_the_number_before_the_state():
    network, numbers = DigitSequenceNetwork(NAU(2, 1), initial_state=0.0), torch.randn(4, 3)
    network.cell.weight.copy_(torch.tensor([[1.0, 0.0]]))
    assert torch.equal(network.accumulate(numbers), numbers)


def test_an_exact_sum_starts_from_zero():
    exact = DigitSequenceNetwork(None, initial_state=0.0)
    images = torch.randn(4, 3, 28, 28)
    torch.testing.assert_close(exact(images), exact.reader(images).cumsum(1))


def test_an_lstm_accumulates_as_that_of_torch():
    network, numbers = DigitSequence(cell="LSTM", initial_state=0.0).build(1), torch.randn(4, 7)
    whole = torch.nn.LSTM(1, 1, batch_first=True)
    whole.load_state_dict({f"{name}_l0": values for name, values in network.cell.state_dict().items()})
    torch.testing.assert_close(network.accumulate(numbers), whole(numbers.unsqueeze(-1))[0].squeeze(-1))


@torch.no_grad()
def test_the_activation_penalty_is_that_of_the_paper():
    nmu, nau, nac = NMU(2, 1), NAU(2, 1), NACMul(2, 1, weight="linear")
    inputs = torch.tensor([[[0.0, 2.0], [1.0, 4.0]]])  # one sequence of two steps, the means are 0.5 and 3
    nmu.weight.copy_(torch.tensor([[1.0, 0.25]]))
    nac.weight.copy_(torch.tensor([[1.0, 0.25]]))
    nau.weight.copy_(torch.tensor([[-1.0, 0.25]]))
    assert float(activation_penalty(nmu, inputs)) == pytest.approx(0.75 * (1 - 3.0) ** 2 / 2)
    # of logarithms
    assert float(activation_penalty(nac, inputs)) == pytest.approx(
        0.75 * (1 - (np.log(2) + np.log(4)) / 2) ** 2 / 2
    )
    assert float(activation_penalty(nau, inputs)) == pytest.approx(0.75 * 3.0**2 / 2)
    with pytest.raises(ValueError, match="not for NALU"):
        activation_penalty(NALU(2, 1), inputs)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"cell": Layer(unit="NMU", out_features=2)}, "one output, its next state, but out_features=2"),
        ({"cell": None, "initial_state": 2.0}, "must be 1 .products. or 0 .sums., but is 2"),
        ({"cell": "GRU"}, "Unknown cell 'GRU': allowed are a Layer, 'LSTM' and None"),
    ],
)
def test_what_cannot_accumulate_is_refused(given, match):
    with pytest.raises(ValueError, match=match):
        DigitSequence(**given)


def test_the_engine_trains_it_as_an_ordinary_loop():
    penalties = (Discretisation(weight=10.0, start=0, end=100), ActivationPenalty(weight=1.0))
    recipe = Recipe(
        iterations=6,
        optimiser=Adam(lr=1e-3),
        batch_size=16,
        log_interval=6,
        penalties=penalties,
        selection="last",
    )
    runs = [
        Run(task=PRODUCT, model=DigitSequence(cell=Layer(unit="NMU")), recipe=recipe, seed=seed)
        for seed in range(2)
    ]
    log = SequenceEnsemble(runs).train()
    torch.manual_seed(1)
    network, shared = runs[1].model.build(1), PRODUCT.shared()
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for iteration in range(6):
        x, target = PRODUCT.batch(PRODUCT.host_draw(1, iteration, 16), {}, shared)
        output, r_z = network.forward_with_activation_penalty(x)
        loss = (output - target).square().mean() + 10 * iteration / 100 * network.cell.penalty() + r_z
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        network.cell.project_()
    with torch.no_grad():
        examples = PRODUCT.evaluation(1)["test_2"]
        error = (network(PRODUCT.model_inputs(examples.inputs, shared)) - examples.targets).square().mean()
    assert log.errors["test_2"][-1, 1] == pytest.approx(float(error), rel=1e-3)
    np.testing.assert_allclose(log.weights["cell.weight"][1], network.cell.weight.detach().numpy(), atol=1e-5)


def test_the_exact_product_is_trained_without_any_unit():
    recipe = Recipe(iterations=2, optimiser=Adam(lr=1e-3), batch_size=16, log_interval=2)
    log = SequenceEnsemble([Run(task=PRODUCT, model=DigitSequence(cell=None), recipe=recipe, seed=0)]).train()
    assert np.isnan(log.sparsity_errors).all() and np.isfinite(log.errors["test_5"]).all()


def test_the_reader_is_the_network_of_the_paper():
    reader = DigitSequenceNetwork(None, initial_state=1.0).reader
    first, second, head = reader.first, reader.second, reader.head
    pool, relu = torch.nn.MaxPool2d(2), torch.nn.ReLU()
    ordinary = torch.nn.Sequential(first, relu, pool, second, relu, pool, torch.nn.Flatten(), head)
    images = torch.randn(6, 2, 28, 28)
    torch.testing.assert_close(reader(images), ordinary(images.reshape(12, 1, 28, 28)).reshape(6, 2))


def _run(task, cell, start, seed=0, **recipe):
    recipe = {"iterations": 4, "optimiser": Adam(lr=1e-3), "batch_size": 16, "log_interval": 2} | recipe
    return Run(
        task=task, model=DigitSequence(cell=cell, initial_state=start), recipe=Recipe(**recipe), seed=seed
    )


CELLS = {"NMU": (PRODUCT, Layer(unit="NMU"), 1.0), "LSTM": (SUM, "LSTM", 0.0), "exact sum": (SUM, None, 0.0)}


@pytest.mark.parametrize(("task", "cell", "start"), CELLS.values(), ids=CELLS.keys())
def test_reading_each_image_once_changes_no_error(task, cell, start):
    runs = [_run(task, cell, start, seed) for seed in range(2)]
    once, each = SequenceEnsemble(runs).train(), Ensemble(runs).train()
    assert once.errors.keys() == each.errors.keys()
    for name, errors in each.errors.items():
        np.testing.assert_allclose(once.errors[name], errors, rtol=1e-5)
    for name, weights in each.weights.items():
        assert (once.weights[name] == weights).all()


def test_digit_sequences_are_trained_with_it_on_cpus():
    run = _run(PRODUCT, None, 1.0)
    assert [trainer_of(run, device) for device in ("cpu", "cuda")] == [SequenceEnsemble, SideBySide]


@given(
    errors=st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, np.nan, np.inf]), min_size=1, max_size=12),
    threshold=st.sampled_from([0.5, 0.75, 1.0, 1.25, 3.0]),
)
def test_record_lows_tell_when_any_threshold_was_passed(errors, threshold):
    iterations = 10 * np.arange(len(errors))
    lows = record_lows(iterations, np.array(errors))
    np.testing.assert_equal(
        first_below(lows, threshold), first_solved(iterations, np.array(errors), threshold)
    )


@pytest.mark.parametrize("operation", digits.LENGTHS)
def test_every_model_of_the_paper_learns_from_its_first_batch(operation):
    runs = digits.digit_runs(
        operation, digits.MODELS[operation], seeds=1, epochs=1, source="sklearn", longest=10
    )
    assert [run.labels["model"] for run in runs] == list(digits.MODELS[operation])
    for run in runs:
        ensemble = SequenceEnsemble([run])
        before = {name: values.clone() for name, values in ensemble.parameters.items()}
        ensemble.warm_up()
        ensemble._advance(0, 2)
        changed = {
            name.split(".")[0]
            for name, values in ensemble.parameters.items()
            if not torch.equal(values, before[name])
        }
        assert "reader" in changed and all(values.isfinite().all() for values in ensemble.parameters.values())


def test_penalties_and_first_states_are_those_of_the_authors_code():
    def of(operation):
        arms = digits.digit_arms(operation, iterations=10, log_interval=5)
        return {
            name: ([penalty.kind for penalty in arm.recipe.penalties], arm.model.initial_state)
            for name, arm in arms.items()
        }

    both, sparse, activation = (
        ["Discretisation", "ActivationPenalty"],
        ["Discretisation"],
        ["ActivationPenalty"],
    )
    assert of("product") == {
        "NMU": (both, 1.0),
        "NMU, no R_z": (sparse, 1.0),
        "NAC•,NMU": (both, 1.0),
        "NAC•,NMU, no R_z": (sparse, 1.0),
        "NAC•,σ": ([], 1.0),
        "NAC•": ([], 1.0),
        "NALU": ([], 0.0),
        "LSTM": ([], 0.0),
        "exact product": ([], 1.0),
    }
    assert {name: penalties for name, (penalties, _) in of("sum").items()} == {
        "NAU": both,
        "NAU, no R_z": sparse,
        "NAC+,Rz": activation,
        "NAC+": [],
        "NALU": [],
        "LSTM": [],
        "exact sum": [],
    }
    assert {start for _, start in of("sum").values()} == {0.0}
    assert {
        name: tuple(arms) for name, arms in {"product": of("product"), "sum": of("sum")}.items()
    } == digits.MODELS


def test_an_interrupted_training_goes_on(tmp_path):
    asked, checkpoint = (
        [_run(SUM, Layer(unit="NAU"), 0.0, iterations=6)],
        Checkpoint(tmp_path / "training.pt", every=0),
    )
    reached = 0

    def interrupt(iterations):
        nonlocal reached
        reached += iterations
        if reached > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SequenceEnsemble(asked).train(interrupt, checkpoint)
    assert checkpoint.read()["iteration"] == 4
    resumed, whole = SequenceEnsemble(asked).train(checkpoint=checkpoint), SequenceEnsemble(asked).train()
    assert all((resumed.errors[name] == errors).all() for name, errors in whole.errors.items())
    assert all((resumed.weights[name] == weights).all() for name, weights in whole.weights.items())
