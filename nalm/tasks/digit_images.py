"""Images of handwritten digits: MNIST where it is (or can be downloaded), scikit-learn's digits where the reader asks for them.

MNIST is looked for under the folder named by the environment variable ``NALM_MNIST`` (a torchvision root, i.e. the folder that holds
``MNIST/raw``). Without that variable torchvision downloads it once into the user's cache folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nalm.values import choose

__all__ = ["MNIST_VARIABLE", "SOURCES", "DigitImages", "digit_images"]

MNIST_VARIABLE = "NALM_MNIST"
SOURCES = ("mnist", "sklearn")


@dataclass(frozen=True, eq=False)
class DigitImages:
    """All images of a source, with the indices of its three splits.

    Args:
        images: (images, 28, 28) uint8.
        labels: (images,) int64.
        splits: ``"train"``, ``"valid"`` and ``"test"`` -> indices into the images.
    """

    images: Tensor
    labels: Tensor
    splits: dict[str, np.ndarray]


@lru_cache(maxsize=2)
def digit_images(source: str) -> DigitImages:
    """The images of ``"mnist"`` (70,000) or ``"sklearn"`` (1,797 digits of 8 x 8 pixels, enlarged).

    Raises:
        ValueError: unknown source, or an MNIST folder that is missing, incomplete or damaged.
    """
    choose("source of digits", source, SOURCES)
    return _mnist() if source == "mnist" else _sklearn()


def _mnist() -> DigitImages:
    from torchvision.datasets import MNIST

    named = os.environ.get(MNIST_VARIABLE)
    if named and not Path(named).is_dir():
        raise ValueError(f"{MNIST_VARIABLE} names {named!r}, which is not a folder; it must hold MNIST/raw as torchvision writes it.")
    try:
        train, test = (MNIST(named or _cache(), train=part, download=not named) for part in (True, False))
        images, labels = torch.cat([train.data, test.data]), torch.cat([train.targets, test.targets])
        complete = images.shape == (70_000, 28, 28) and labels.shape == (70_000,)
    except (RuntimeError, ValueError, OSError, EOFError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"MNIST in {named or 'the cache folder'} cannot be read ({reason}): fetch its files again, name their folder in {MNIST_VARIABLE}, "
            "or use the source 'sklearn'."
        ) from None
    if not complete:
        raise ValueError(f"MNIST in {named or 'the cache folder'} holds {len(images)} images and {len(labels)} labels instead of 70000 each.")
    # As in the papers: the last 5,000 training images are for validation.
    return DigitImages(images, labels, {"train": np.arange(55_000), "valid": np.arange(55_000, 60_000), "test": np.arange(60_000, 70_000)})


def _cache() -> str:
    from platformdirs import user_cache_dir

    return user_cache_dir("nalm")


def _sklearn() -> DigitImages:
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = torch.from_numpy(digits.images).to(torch.float32).unsqueeze(1) * (255 / 16)
    images = torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear").squeeze(1).round().to(torch.uint8)
    splits = {"train": np.arange(1300), "valid": np.arange(1300, 1500), "test": np.arange(1500, 1797)}
    return DigitImages(images, torch.from_numpy(digits.target).to(torch.int64), splits)
