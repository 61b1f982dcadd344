"""Checkpoints: an interrupted ensemble goes on where it was, to the same result.

A checkpoint is one file, replaced as a whole. It holds tensors, numbers and text only, and reading it runs no
code. Batches are functions of seed and iteration, so there is no position of a stream to keep, but for those
that NumPy draws.

A checkpoint saves time and holds no result. Where it cannot be written, training goes on, says so once, and
tries again at the next occasion. One that another user could have written is not read: its weights would be
recorded as if they had been trained here.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from nalm.training.ownership import is_own

__all__ = ["PARTS", "Checkpoint", "SealedCheckpoint"]

PARTS = ("runs", "device", "compiled", "iteration", "seconds", "journal", "parameters", "state")
"""What an ensemble goes on from, whatever trains it."""


class Checkpoint:
    """The checkpoint file of one ensemble.

    Args:
        path: the file; its folder is made when it is first written.
        every: seconds between two writings, at least.
        warn: is told in one sentence when the file cannot be written, once.
    """

    def __init__(
        self, path: str | Path, every: float = 30.0, warn: Callable[[str], None] = warnings.warn
    ) -> None:
        self.path, self.every, self.warn = Path(path), every, warn
        self._tried, self._warned = time.monotonic(), False

    def due(self) -> bool:
        """Whether the last attempt to write was long enough ago."""
        return time.monotonic() - self._tried >= self.every

    def write(self, content: dict[str, Any]) -> None:
        """Replace the file; where that fails, warn and keep the file that was there."""
        buffer = io.BytesIO()
        torch.save(content, buffer)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb", opener=_of_this_user) as stream:
                stream.write(buffer.getbuffer())
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            _remove(temporary)
            if not self._warned:
                self._warned = True
                reason = error.strerror or error
                self.warn(
                    f"The checkpoint {self.path} cannot be written ({reason}); training goes on, "
                    "but would start anew if it were interrupted."
                )
        self._tried = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """The content; ``None`` if there is none or it cannot be read: then training starts anew, nothing
        recorded is touched.

        Raises:
            ValueError: a file of PyTorch that is something else, or one that is not this user's own.
        """
        if self._is_foreign():
            raise ValueError(
                f"{self.path} belongs to another user, or others may write it: name another file, or make it "
                "yours alone."
            )
        content = self._loaded()
        if content is not None and not (isinstance(content, dict) and "iteration" in content):
            raise ValueError(f"{self.path} is no checkpoint of an ensemble: name another file.")
        return content

    def _is_foreign(self) -> bool:
        with suppress(OSError):  # there may be none
            return not is_own(self.path)
        return False

    def _loaded(self) -> Any:
        try:
            return torch.load(self.path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return None
        except Exception:  # a damaged file may fail in any way inside of torch.load; it is worth only time
            return None

    def remove(self) -> None:
        """Remove the file, and those that a killed process was writing."""
        _remove(self.path)
        for file in self.path.parent.glob(f".{self.path.name}.*"):
            if not _is_running(file.suffix[1:]):
                _remove(file)


def _of_this_user(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_running(process: str) -> bool:
    """Whether another process of this number is, which may be writing."""
    if not process.isdecimal() or int(process) in (0, os.getpid()):
        return False
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):  # too large a number is that of none
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


class SealedCheckpoint(Checkpoint):
    """A checkpoint that notices damage: its file holds the SHA-256 of its content. What is read is what was
    written, bit for bit, or nothing.

    ``torch.load`` does not compare the checksums of the file that it reads, so training would go on from a
    flipped bit to a wrong row.

    Args:
        path: the file; its folder is made when it is first written.
        every: seconds between two writings, at least.
        warn: is told in one sentence when the file cannot be written, once.
        parts: what the content has to have; a file without one of them counts as damaged.
    """

    def __init__(
        self,
        path: str | Path,
        every: float = 30.0,
        warn: Callable[[str], None] = warnings.warn,
        parts: Collection[str] = (),
    ) -> None:
        super().__init__(path, every, warn)
        self.parts = frozenset(parts)

    def write(self, content: dict[str, Any]) -> None:
        """Replace the file; where that fails, warn and keep the file that was there."""
        buffer = io.BytesIO()
        torch.save(content, buffer)
        sealed = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
        super().write({"sha256": _digest(sealed), "bytes": sealed})

    def read(self) -> dict[str, Any] | None:
        """The content; ``None`` if there is none, it is not exactly what was written or not this user's own:
        then training starts anew, nothing recorded is touched.
        """
        if self._is_foreign():
            self.warn(
                f"The checkpoint {self.path} belongs to another user, or others may write it; training "
                "starts anew."
            )
            return None
        with suppress(Exception):  # whatever the file holds instead, it is worth only time
            match self._loaded():
                case {"sha256": str(digest), "bytes": torch.Tensor() as sealed} if digest == _digest(sealed):
                    content = torch.load(io.BytesIO(_bytes(sealed)), map_location="cpu", weights_only=True)
                    return content if content.keys() >= self.parts else None
        return None


def _digest(sealed: torch.Tensor) -> str:
    return hashlib.sha256(_bytes(sealed)).hexdigest()


def _bytes(sealed: torch.Tensor) -> memoryview:
    return memoryview(sealed.numpy())  # type: ignore[arg-type]
