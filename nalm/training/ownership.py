"""Whether a file or folder is this user's own, so that nobody else can have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["is_own"]


def is_own(path: Path) -> bool:
    """Whether it belongs to this user and nobody else may write it; where there are no users, it does."""
    found = path.stat()
    if not hasattr(os, "getuid"):
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
