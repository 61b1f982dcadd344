r"""Streams of random numbers that belong to a run, not to a process.

A training batch is a pure function of *(seed, iteration)*: the counter-based generator Philox4x32-7 of
Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3* (SC 2011), written in torch
operations. Seven rounds are the fewest that pass all of TestU01's BigCrush (their Table 2); wide inputs make
the rounds the largest part of a training step. Hence a run sees the same batches whichever runs train beside
it, after any interruption, on any number of threads and on any device; there is no generator state to store;
and ``torch.compile`` fuses the drawing into the training step.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["philox", "uniforms", "COMMON_SEED"]

COMMON_SEED = 0x5EED
"""The seed of the common stream, on which all runs of an ensemble see the same inputs."""

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_ROUNDS = 7
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF
_TRAINING = 1  # the second key word: streams of another purpose would take another number


def philox(
    counter: tuple[Tensor, Tensor, Tensor, Tensor], key: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Philox4x32-7: four random 32-bit words for a counter of four and a key of two words.

    Args:
        counter: four int64 tensors, broadcastable, with values in [0, 2**32).
        key: two int64 tensors likewise.

    Returns:
        Four int64 tensors with values in [0, 2**32).

    The first known answer of the authors' Random123 library:

    >>> zero = torch.zeros((), dtype=torch.int64)
    >>> [hex(int(word)) for word in philox((zero,) * 4, (zero,) * 2)]
    ['0x5f6fb709', '0xd893f64', '0x4f121f81', '0x4f730a48']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        # int64 products wrap around, which leaves all 64 bits of the unsigned product in place.
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            ((p1 >> 32) & _MASK) ^ c1 ^ k0,
            p1 & _MASK,
            ((p0 >> 32) & _MASK) ^ c3 ^ k1,
            p0 & _MASK,
        )
        k0, k1 = (k0 + _WEYL[0]) & _MASK, (k1 + _WEYL[1]) & _MASK
    return c0, c1, c2, c3


def uniforms(seeds: Tensor, iteration: Tensor, rows: int, batch_size: int) -> Tensor:
    """The uniform numbers of one training batch for each of several runs.

    Args:
        seeds: (runs,) int64, each in [0, 2**32).
        iteration: scalar int64.
        rows: uniform numbers per example.
        batch_size: examples per batch.

    Returns:
        (runs, rows, batch_size) float32, uniform on the 2**23 midpoints of (0, 1): never 0 and never 1, so
        that a division by an input from U[0, u) stays finite. A run's numbers depend on its own seed and on
        the iteration only.

    >>> u = uniforms(torch.tensor([3, 4]), torch.tensor(100), rows=2, batch_size=8)
    >>> u.shape, bool((u[1:] == uniforms(torch.tensor([4]), torch.tensor(100), 2, 8)).all())
    (torch.Size([2, 2, 8]), True)
    """
    runs, numbers = seeds.shape[0], rows * batch_size
    index = torch.arange(-(-numbers // 4), device=seeds.device).unsqueeze(0)
    zero = torch.zeros_like(index)
    purpose = torch.full_like(seeds, _TRAINING).unsqueeze(1)
    words = philox(
        (index, zero + (iteration & _MASK), zero + (iteration >> 32), zero), (seeds.unsqueeze(1), purpose)
    )
    # before they are joined: half the memory to write
    parts = [((word.expand(runs, -1) >> 9).to(torch.float32) + 0.5) * 2.0**-23 for word in words]
    return torch.stack(parts, 1).reshape(runs, -1)[:, :numbers].reshape(runs, rows, batch_size)
