"""Verdicts on *Neural Arithmetic Units*."""

from __future__ import annotations

__all__ = ["JUDGES"]

JUDGES = {}
