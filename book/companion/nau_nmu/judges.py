"""Verdicts on *Neural Arithmetic Units*."""

from __future__ import annotations

from companion.nau_nmu import digits, gates, subset_arithmetic

__all__ = ["JUDGES"]

JUDGES = {**subset_arithmetic.JUDGES, **gates.JUDGES, **digits.JUDGES}
