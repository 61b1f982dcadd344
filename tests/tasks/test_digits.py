"""Sequences of digits on scikit-learn's images, and the network that reads them."""


import numpy as np
import pytest
import torch

from nalm.models import DigitSequence, Layer
from nalm.networks import DigitSequenceNetwork, activation_penalty
from nalm.tasks import DigitSequenceTask
from nalm.tasks.digit_images import MNIST_VARIABLE, digit_images
from nalm.training import ActivationPenalty, Adam, Discretisation, Ensemble, Recipe, Run
from nalm.units import NAU, NMU, NALU

PRODUCT = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1, 2, 5))


def test_an_epoch_shows_every_sequence_once():
    batches = [PRODUCT.host_draw(3, step, 64) for step in range(PRODUCT.steps_per_epoch(64))]
    groups = torch.cat(batches)
    assert len(groups) == len(groups.unique(dim=0)) == len(groups.flatten().unique()) // 2
    assert len(batches[-1]) < 64 == len(batches[0])  # the last batch of an epoch is smaller
    again = torch.cat([PRODUCT.host_draw(3, step, 64) for step in range(len(batches), 2 * len(batches))])
    assert not torch.equal(groups, again)
    assert {tuple(g) for g in groups.tolist()} == {tuple(g) for g in again.tolist()}  # fixed groups, shuffled order


def test_targets_are_running_products_of_digits_without_zero():
    shared = PRODUCT.shared()
    x, target = PRODUCT.batch(PRODUCT.host_draw(0, 0, 64), {}, shared)
    labels = shared["labels"][PRODUCT.host_draw(0, 0, 64)]
    assert x.shape == (64, 2, 28, 28) and labels.min() >= 1
    assert torch.equal(target, torch.stack([labels[:, 0], labels[:, 0] * labels[:, 1]], 1).float())


def test_sums_include_zeros():
    task = DigitSequenceTask(operation="sum", source="sklearn", length=3, test_lengths=(4,))
    examples = task.evaluation(0)["test_4"]
    labels = digit_images("sklearn").labels[examples.inputs]
    assert labels.min() == 0 and torch.equal(examples.targets, labels.cumsum(1).float())


def test_the_splits_do_not_share_images():
    train = set(PRODUCT.host_draw(0, 0, 10**6).flatten().tolist())
    valid, test = (set(PRODUCT.evaluation(0)[name].inputs.flatten().tolist()) for name in ("valid", "test_1"))
    assert train and valid and test and not (train & valid or train & test or valid & test)


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
def test_the_activation_penalty_is_that_of_the_paper():
    mean, nmu, nau = torch.tensor([0.5, 3.0]), NMU(2, 1), NAU(2, 1)
    nmu.weight.copy_(torch.tensor([[1.0, 0.25]]))
    nau.weight.copy_(torch.tensor([[-1.0, 0.25]]))
    assert float(activation_penalty(nmu, mean)) == pytest.approx(0.75 * (1 - 3.0) ** 2 / 2)
    assert float(activation_penalty(nau, mean)) == pytest.approx(0.75 * 3.0**2 / 2)
    with pytest.raises(ValueError, match="not for NALU"):
        activation_penalty(NALU(2, 1), mean)


def test_the_engine_trains_it_as_an_ordinary_loop():
    penalties = (Discretisation(weight=10.0, start=0, end=100), ActivationPenalty(weight=1.0))
    recipe = Recipe(iterations=6, optimiser=Adam(lr=1e-3), batch_size=16, log_interval=6, penalties=penalties, selection="last")
    runs = [Run(task=PRODUCT, model=DigitSequence(cell=Layer(unit="NMU")), recipe=recipe, seed=seed) for seed in range(2)]
    log = Ensemble(runs).train()
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
    log = Ensemble([Run(task=PRODUCT, model=DigitSequence(cell=None), recipe=recipe, seed=0)]).train()
    assert np.isnan(log.sparsity_errors).all() and np.isfinite(log.errors["test_5"]).all()


def test_a_missing_or_damaged_mnist_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(MNIST_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="not a folder"):
        digit_images("mnist")
    raw = tmp_path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (raw / f"{name}-ubyte").write_bytes(b"damaged")
    monkeypatch.setenv(MNIST_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="cannot be read"):
        digit_images("mnist")
    with pytest.raises(ValueError, match="Unknown source of digits 'mnits': did you mean 'mnist'"):
        digit_images("mnits")


def test_the_reader_is_the_network_of_the_paper():
    reader = DigitSequenceNetwork(None, initial_state=1.0).reader
    first, second, head = reader.first, reader.second, reader.head
    pool, relu = torch.nn.MaxPool2d(2), torch.nn.ReLU()
    ordinary = torch.nn.Sequential(first, relu, pool, second, relu, pool, torch.nn.Flatten(), head)
    images = torch.randn(6, 2, 28, 28)
    torch.testing.assert_close(reader(images), ordinary(images.reshape(12, 1, 28, 28)).reshape(6, 2))
