"""Checkpoints: an interrupted ensemble goes on where it was, to the same result.

A checkpoint is one file, replaced as a whole. It holds tensors, numbers and text only, and reading it runs no code. Batches are functions of seed and
iteration, so there is no position of a stream to keep.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

__all__ = ["Checkpoint"]


class Checkpoint:
    """The checkpoint file of one ensemble.

    Args:
        path: the file; its folder is made when it is first written.
        every: seconds between two writings, at least.
    """

    def __init__(self, path: Path, every: float = 30.0) -> None:
        self.path, self.every = path, every
        self._written = time.monotonic()

    def due(self) -> bool:
        """Whether the last writing was long enough ago."""
        return time.monotonic() - self._written >= self.every

    def write(self, content: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with open(temporary, "wb") as stream:
            torch.save(content, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, self.path)
        self._written = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """The content; ``None`` if there is none or it cannot be read: then training starts anew, nothing recorded is touched."""
        try:
            return torch.load(self.path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return None
        except Exception:  # a damaged file may fail in any way inside of torch.load; it is worth only time
            return None

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
