"""Images of handwritten digits: MNIST, or scikit-learn's digits where the reader asks for them.

MNIST comes with the repository, in ``book/data/mnist``. The environment variable ``NALM_MNIST`` names another
folder, a torchvision root (i.e. one that holds ``MNIST/raw``). Where the library is installed without its
repository, and the variable is not set, torchvision downloads MNIST once into the user's cache folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nalm.tasks.mnist import DamagedMNIST, read_mnist
from nalm.units.checks import choose

__all__ = ["MNIST_VARIABLE", "REPOSITORY", "SOURCES", "DigitImages", "digit_images"]

MNIST_VARIABLE = "NALM_MNIST"
REPOSITORY = Path(__file__).resolve().parents[2] / "book" / "data" / "mnist"
"""The digits that come with the book; there where the library is used from its repository."""
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
    folder, remedy = _folder_of_mnist()
    try:
        images, labels = read_mnist(folder)
    except DamagedMNIST as error:
        raise ValueError(f"{error}: {remedy}, or use the source 'sklearn'.") from None
    # As in the papers: the last 5,000 training images are for validation.
    return DigitImages(
        images,
        labels,
        {"train": np.arange(55_000), "valid": np.arange(55_000, 60_000), "test": np.arange(60_000, 70_000)},
    )


def _folder_of_mnist() -> tuple[Path, str]:
    """The folder of the four files, and what to do if one of them is damaged."""
    if named := os.environ.get(MNIST_VARIABLE):
        if not Path(named).is_dir():
            raise ValueError(
                f"{MNIST_VARIABLE} names {named!r}, which is not a folder; "
                "it must hold MNIST/raw as torchvision writes it."
            )
        return Path(named) / "MNIST" / "raw", f"fetch it again, or name another folder in {MNIST_VARIABLE}"
    if REPOSITORY.is_dir():
        return REPOSITORY, "restore it with 'git checkout -- book/data/mnist'"
    return _downloaded(), "delete it, so that it is downloaded again"


def _downloaded() -> Path:
    from platformdirs import user_cache_path

    from nalm.extras import digits as _  # noqa: F401

    # isort: split
    from torchvision.datasets import MNIST

    root = user_cache_path("nalm")
    try:
        MNIST(str(root), download=True)
    except (RuntimeError, ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"MNIST cannot be downloaded into {root} ({' '.join(str(error).split())}): "
            f"name a folder that holds it in {MNIST_VARIABLE}, "
            "or use the source 'sklearn'."
        ) from None
    return root / "MNIST" / "raw"


def _sklearn() -> DigitImages:
    from nalm.extras import digits as _  # noqa: F401

    # isort: split
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = torch.from_numpy(digits.images).to(torch.float32).unsqueeze(1) * (255 / 16)
    images = (
        torch.nn.functional.interpolate(small, size=(28, 28), mode="bilinear")
        .squeeze(1)
        .round()
        .to(torch.uint8)
    )
    splits = {"train": np.arange(1300), "valid": np.arange(1300, 1500), "test": np.arange(1500, 1797)}
    return DigitImages(images, torch.from_numpy(digits.target).to(torch.int64), splits)
