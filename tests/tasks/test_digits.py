"""Sequences of digits on scikit-learn's images."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from nalm.models import DigitSequence
from nalm.tasks import DigitSequenceTask
from nalm.tasks.digit_images import digit_images
from nalm.training import Adam, Ensemble, Recipe, Run

PRODUCT = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1, 2, 5))


def test_an_epoch_shows_every_sequence_once():
    batches = [PRODUCT.host_draw(3, step, 64) for step in range(PRODUCT.steps_per_epoch(64))]
    groups = torch.cat(batches)
    assert len(groups) == len(groups.unique(dim=0)) == len(groups.flatten().unique()) // 2
    assert len(batches[-1]) < 64 == len(batches[0])  # the last batch of an epoch is smaller
    again = torch.cat([PRODUCT.host_draw(3, step, 64) for step in range(len(batches), 2 * len(batches))])
    assert not torch.equal(groups, again)
    # fixed groups, shuffled order
    assert {tuple(g) for g in groups.tolist()} == {tuple(g) for g in again.tolist()}


def test_targets_are_running_products_of_digits_without_zero():
    shared = PRODUCT.shared()
    x, target = PRODUCT.batch(PRODUCT.host_draw(0, 0, 64), {}, shared)
    labels = shared["labels"][PRODUCT.host_draw(0, 0, 64)]
    assert x.shape == (64, 2, 28, 28) and labels.min() >= 1
    assert torch.equal(target, torch.stack([labels[:, 0], labels[:, 0] * labels[:, 1]], 1).float())
    grey = shared["images"][PRODUCT.host_draw(0, 0, 64)] / 255
    torch.testing.assert_close(x, (grey - 0.1307) / 0.3081)


def test_sums_include_zeros():
    task = DigitSequenceTask(operation="sum", source="sklearn", length=3, test_lengths=(4,))
    examples = task.evaluation(0)["test_4"]
    labels = digit_images("sklearn").labels[examples.inputs]
    assert labels.min() == 0 and torch.equal(examples.targets, labels.cumsum(1).float())


def test_the_splits_do_not_share_images():
    train = set(PRODUCT.host_draw(0, 0, 10**6).flatten().tolist())
    valid, test = (set(PRODUCT.evaluation(0)[name].inputs.flatten().tolist()) for name in ("valid", "test_1"))
    assert train and valid and test and not (train & valid or train & test or valid & test)
    assert [len(split) for split in digit_images("sklearn").splits.values()] == [1300, 200, 297]


def test_sources_are_known_by_name():
    for asked in (digit_images, lambda source: PRODUCT.but(source=source)):
        with pytest.raises(ValueError, match="Unknown source of digits 'mnits': did you mean 'mnist'"):
            asked("mnits")


def test_there_is_a_test_length():
    with pytest.raises(ValueError, match="needs at least one test length"):
        PRODUCT.but(test_lengths=())


def test_tasks_of_other_digits_share_no_ensemble():
    others = {"operation": "sum"}, {"length": 3}, {"test_lengths": (1, 2)}, {"source": "mnist"}
    assert len({PRODUCT.but(**other).structure() for other in ({}, *others)}) == 5


def test_an_example_counts_as_the_maps_that_are_made_of_its_images():
    maps = DigitSequence(cell=None).build(1).reader.first(torch.zeros(2, 1, 28, 28))
    assert PRODUCT.model_numbers_per_example(torch.zeros(5, 2)) >= maps.numel()


@pytest.mark.parametrize("lengths", [{"length": 5000}, {"test_lengths": (1, 5000)}], ids=str)
def test_a_sequence_is_no_longer_than_there_are_digits(lengths):
    recipe = Recipe(iterations=1, optimiser=Adam(lr=1e-3))
    run = Run(task=PRODUCT.but(**lengths), model=DigitSequence(cell=None), recipe=recipe, seed=0)
    with pytest.raises(
        ValueError, match=r"^There is no sequence of 5000 digits: the \w+ digits of 'sklearn' are \d+.$"
    ):
        Ensemble([run], compiled=False)


def test_groups_and_their_order_are_those_of_the_seed():
    """The groups of one seed are not those of another; the order in an epoch is drawn from seed and epoch."""
    first, second = (PRODUCT.host_draw(seed, 0, 10**6) for seed in (3, 4))
    assert {tuple(group) for group in first.tolist()} != {tuple(group) for group in second.tolist()}
    groups = PRODUCT._split("train", 2, 3)
    for epoch in (0, 2):
        order = np.random.RandomState([3, epoch]).permutation(len(groups))
        steps = PRODUCT.steps_per_epoch(64)
        np.testing.assert_array_equal(PRODUCT.host_draw(3, epoch * steps, 64), groups[order[:64]])


@pytest.mark.parametrize(
    ("name", "split", "seed"), [("valid", "valid", 47430696), ("test_2", "test", 88253339)]
)
def test_evaluated_groups_are_those_of_the_published_seeds(name, split, seed):
    data = digit_images("sklearn")
    digits = [index for index in data.splits[split] if data.labels[index] > 0]
    expected = np.random.RandomState(seed).permutation(digits)[: len(digits) // 2 * 2].reshape(-1, 2)
    np.testing.assert_array_equal(PRODUCT.evaluation(3)[name].inputs, expected)


def test_a_sequence_may_be_as_long_as_there_are_digits():
    digits = len(digit_images("sklearn").splits["test"])
    task = DigitSequenceTask(operation="sum", source="sklearn", test_lengths=(digits, 1))
    sets = task.evaluation(0)
    assert sets["test"].targets.shape == sets[f"test_{digits}"].targets.shape == (1, digits)


def test_small_digits_are_enlarged_to_the_nearest_grey():
    small = torch.from_numpy(load_digits().images[:50]).float().unsqueeze(1) * (255 / 16)
    large = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear").squeeze(1)
    assert (digit_images("sklearn").images[:50] - large).abs().max() <= 0.5
