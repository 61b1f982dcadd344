"""Sequences of digits: the running product or sum of the labels, from images (the nau-nmu paper's sequential
MNIST).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from nalm.tasks.digit_images import SOURCES, digit_images
from nalm.tasks.task import EvaluationSet, Task, Tensors
from nalm.units.checks import choose

__all__ = ["DigitSequenceTask"]

SPLIT_SEEDS = {"valid": 47430696, "test": 88253339}
MEAN, DEVIATION = 0.1307, 0.3081


@lru_cache(maxsize=256)
def _groups(source: str, split: str, first_digit: int, length: int, seed: int) -> np.ndarray:
    """(groups, length) indices: the split, permuted once and cut into sequences; the remainder is dropped."""
    data = digit_images(source)
    indices = data.splits[split]
    indices = indices[data.labels.numpy()[indices] >= first_digit]
    if length > len(indices):
        raise ValueError(
            f"There is no sequence of {length} digits: the {split} digits of {source!r} are {len(indices)}."
        )
    indices = np.random.RandomState(seed).permutation(indices)
    return indices[: len(indices) // length * length].reshape(-1, length)


class DigitSequenceTask(Task):
    """A sequence of digit images; the target at step t is the product (or sum) of the labels 1 to t.

    Args:
        operation: ``"product"`` (digits 1 to 9, as the authors' code; the paper does not say it) or ``"sum"``
            (0 to 9).
        length: digits per training and validation sequence.
        test_lengths: the test error is reported for each as ``test_<length>``; ``test`` is that of the
            longest.
        source: ``"mnist"`` or ``"sklearn"``.

    The groups of a training sequence are fixed for the whole run; only their order is shuffled in each epoch.
    All errors average over all steps of the sequences. Images are scaled to [0, 1], then (x - 0.1307) /
    0.3081. Source: nau-nmu paper, section 4.2 and appendix D.

    >>> task = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1, 3))
    >>> task.evaluation(seed=0)["test_3"].targets.shape
    torch.Size([90, 3])
    """

    kind: Literal["DigitSequenceTask"] = "DigitSequenceTask"
    operation: Literal["product", "sum"]
    length: PositiveInt = 2
    test_lengths: tuple[PositiveInt, ...] = tuple(range(1, 21))
    source: str = "mnist"

    @model_validator(mode="after")
    def _known(self) -> DigitSequenceTask:
        choose("source of digits", self.source, SOURCES)
        if not self.test_lengths:
            raise ValueError("DigitSequenceTask needs at least one test length.")
        return self

    @property
    def in_features(self) -> int:
        return 1

    @property
    def out_features(self) -> int:
        return self.length

    def label(self) -> str:
        return self.operation

    def structure(self) -> tuple:
        return (type(self).__name__, self.operation, self.length, self.test_lengths, self.source)

    def constants(self, seed: int) -> Tensors:
        return {}

    def shared(self) -> Tensors:
        data = digit_images(self.source)
        return {"images": data.images, "labels": data.labels}

    def steps_per_epoch(self, batch_size: int) -> int:
        """Updates in one pass over the training sequences; the last batch of an epoch may be smaller."""
        return -(-len(self._split("train", self.length, 0)) // batch_size)

    def host_draw(self, seed: int, iteration: int, batch_size: int) -> Tensor:
        groups = self._split("train", self.length, seed)
        epoch, step = divmod(iteration, self.steps_per_epoch(batch_size))
        order = _epoch_order(len(groups), seed, epoch)[step * batch_size : (step + 1) * batch_size]
        return torch.from_numpy(groups[order])

    def batch(self, noise: Tensor, constants: Tensors, shared: Tensors) -> tuple[Tensor, Tensor]:
        return self.model_inputs(noise, shared), self._targets(shared["labels"][noise])

    def model_inputs(self, inputs: Tensor, shared: Tensors) -> Tensor:
        return (shared["images"][inputs].to(torch.float32) / 255 - MEAN) / DEVIATION

    def model_numbers_per_example(self, inputs: Tensor) -> int:
        return inputs.shape[1] * 28 * 28 * 20  # twenty feature maps of the image's size

    def evaluation(self, seed: int) -> dict[str, EvaluationSet]:
        sets = {"valid": self._evaluation_set("valid", self.length)}
        sets |= {f"test_{length}": self._evaluation_set("test", length) for length in self.test_lengths}
        return sets | {"test": sets[f"test_{max(self.test_lengths)}"]}

    def _evaluation_set(self, split: str, length: int) -> EvaluationSet:
        indices = torch.from_numpy(self._split(split, length, SPLIT_SEEDS[split]))
        return EvaluationSet(indices, self._targets(digit_images(self.source).labels[indices]))

    def _split(self, split: str, length: int, seed: int) -> np.ndarray:
        return _groups(self.source, split, 1 if self.operation == "product" else 0, length, seed)

    def _targets(self, labels: Tensor) -> Tensor:
        labels = labels.to(torch.float32)
        return labels.cumprod(-1) if self.operation == "product" else labels.cumsum(-1)


@lru_cache(maxsize=64)
def _epoch_order(groups: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.RandomState([seed, epoch]).permutation(groups)
