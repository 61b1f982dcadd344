"""Verdicts on *Neural Arithmetic Units*."""

from __future__ import annotations

from companion.nau_nmu import digits

__all__ = ["JUDGES"]

JUDGES = {**digits.JUDGES}
