"""Philox against the known answers of its authors' library Random123; streams belong to runs."""

import pytest
import torch
from scipy import stats

from nalm.training import streams
from nalm.training.streams import philox, uniforms

KNOWN_ANSWERS = [  # counter, key, output of philox4x32 with 7 rounds
    ((0, 0, 0, 0), (0, 0), (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A),
    ),
]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers(counter, key, expected):
    words = philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, key)))
    assert tuple(int(word) for word in words) == expected


def test_a_run_sees_the_same_numbers_in_any_company():
    alone = uniforms(torch.tensor([7]), torch.tensor(123), rows=3, batch_size=10)
    together = uniforms(torch.tensor([1, 7, 2**32 - 1]), torch.tensor(123), rows=3, batch_size=10)
    assert torch.equal(together[1], alone[0])


@pytest.mark.parametrize(
    ("iteration", "later"),
    [(0, 1), (1, 2), (2**31, 1), (2**32 - 1, 1), (2**33 + 5, 1), (0, 2**32), (7, 2**33)],
)
def test_iterations_and_seeds_give_different_numbers(iteration, later):
    """Also iterations that differ only beyond 32 bits."""
    first = uniforms(torch.tensor([0, 1]), torch.tensor(iteration), 2, 64)
    second = uniforms(torch.tensor([0, 1]), torch.tensor(iteration + later), 2, 64)
    assert len(torch.cat([first.flatten(), second.flatten()]).unique()) > 500  # of 512 draws of 2**23 values


def test_nothing_repeats_within_a_batch():
    """Philox gives four numbers at a time; a batch of 100 inputs is 3,200 times four."""
    blocks = uniforms(torch.tensor([3]), torch.tensor(5), 100, 128).reshape(4, -1).T
    assert len(blocks.unique(dim=0)) == len(blocks) == 3200


def test_no_word_gives_zero_or_one(monkeypatch):
    """Few draws would show it: zero would be one of 2**23."""
    words = (0, 0x1FF, 0x80000000, 0xFFFFFFFF)
    monkeypatch.setattr(streams, "philox", lambda counter, key: tuple(torch.tensor([[w]]) for w in words))
    u = uniforms(torch.tensor([7]), torch.tensor(0), rows=1, batch_size=4)
    assert u.flatten().tolist() == [2.0**-24, 2.0**-24, 0.5 + 2.0**-24, 1 - 2.0**-24]


def test_the_numbers_are_uniform():
    u = torch.cat([uniforms(torch.arange(50), torch.tensor(i), 2, 128).flatten() for i in range(20)])
    assert stats.kstest(u.numpy(), "uniform").pvalue > 1e-3
    columns = u.reshape(-1, 2, 128)
    assert abs(torch.corrcoef(torch.stack([columns[:, 0].flatten(), columns[:, 1].flatten()]))[0, 1]) < 0.01
