"""The four files of MNIST, read and compared with what was published."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

__all__ = ["SHA256", "DamagedMNIST", "read_mnist"]

SHA256 = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
"""Of each file as published, unpacked."""


class DamagedMNIST(ValueError):
    """A file is missing, cannot be read or is not the published one; the message begins with its path."""


def read_mnist(folder: Path) -> tuple[Tensor, Tensor]:
    """The 60,000 training images and after them the 10,000 test images, (70000, 28, 28) uint8, and their
    labels, (70000,) int64.

    Args:
        folder: holds the four files as published, each unpacked or with ``.gz``.

    Raises:
        DamagedMNIST: a file that is missing, cannot be read, or is not the published one.

    >>> from nalm.tasks.digit_images import REPOSITORY
    >>> images, labels = read_mnist(REPOSITORY)
    >>> images.shape, labels[:8].tolist()
    (torch.Size([70000, 28, 28]), [5, 0, 4, 1, 9, 2, 1, 3])
    """
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    images, labels = (
        np.concatenate([_array(_content(folder, f"{part}-{kind}")) for part in ("train", "t10k")])
        for kind in kinds
    )
    return torch.from_numpy(images), torch.from_numpy(labels).to(torch.int64)


def _content(folder: Path, name: str) -> bytes:
    """The bytes of a file, unpacked; they are those that were published."""
    packed = folder / f"{name}.gz"
    file = packed if packed.exists() else folder / name
    if not file.exists():
        raise DamagedMNIST(f"{packed} is missing")
    try:
        content = gzip.decompress(file.read_bytes()) if file == packed else file.read_bytes()
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DamagedMNIST(f"{file} is damaged, it cannot be unpacked") from None
    except OSError as error:
        raise DamagedMNIST(f"{file} cannot be read ({error.strerror})") from None
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise DamagedMNIST(f"{file} is damaged, its SHA-256 is not that of the published file")
    return content


def _array(content: bytes) -> np.ndarray:
    """Of an idx file: two zeros, the type (8, a byte), the number of dimensions, each dimension in four
    bytes, the values.
    """
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4).tolist()
    return np.frombuffer(content, np.uint8, count=math.prod(shape), offset=4 + 4 * dimensions).reshape(shape)
