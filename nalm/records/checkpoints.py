"""Checkpoints that notice damage: what is read is what was written, bit for bit, or nothing.

``torch.load`` does not compare the checksums of the file that it reads, so training would go on from a flipped bit to a wrong row.
"""

from __future__ import annotations

import hashlib
import io
from contextlib import suppress
from typing import Any

import torch

from nalm.training import Checkpoint

__all__ = ["SealedCheckpoint"]


class SealedCheckpoint(Checkpoint):
    """A checkpoint whose file holds the SHA-256 of its content. Reading it runs no code.

    Args:
        path: the file; its folder is made when it is first written.
        every: seconds between two writings, at least.
        warn: is told in one sentence when the file cannot be written, once.
    """

    def write(self, content: dict[str, Any]) -> None:
        """Replace the file; where that fails, warn and keep the file that was there."""
        buffer = io.BytesIO()
        torch.save(content, buffer)
        sealed = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
        super().write({"sha256": _digest(sealed), "bytes": sealed})

    def read(self) -> dict[str, Any] | None:
        """The content; ``None`` if there is none, or not exactly what was written: then training starts anew, nothing recorded is touched."""
        with suppress(Exception):  # whatever the file holds instead, it is worth only time
            match super().read():
                case {"sha256": str(digest), "bytes": torch.Tensor() as sealed} if digest == _digest(sealed):
                    return torch.load(io.BytesIO(_bytes(sealed)), map_location="cpu", weights_only=True)
        return None


def _digest(sealed: torch.Tensor) -> str:
    return hashlib.sha256(_bytes(sealed)).hexdigest()


def _bytes(sealed: torch.Tensor) -> memoryview:
    return memoryview(sealed.numpy())
