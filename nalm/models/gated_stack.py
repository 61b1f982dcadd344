"""A stack whose last unit has a gate, as a value."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import model_validator
from torch import Tensor

from nalm.models.stack import Stack, unit_class
from nalm.units import UNITS

__all__ = ["GatedStack"]


class GatedStack(Stack):
    """A :class:`Stack` whose last unit has a gate: the mean gate at the selected weights is recorded in the
    row.

    It is trained exactly as the stack.

    Raises:
        ValueError: a last unit without a gate that depends on the input.

    >>> GatedStack.of("NAC", 2, "NALU", 1).layers[-1].unit
    'NALU'
    """

    kind: Literal["GatedStack"] = "GatedStack"  # type: ignore[assignment]

    @model_validator(mode="after")
    def _gated(self) -> GatedStack:
        if not callable(getattr(unit_class(self.layers[-1].unit), "gate", None)):
            gated = ", ".join(name for name, unit in UNITS.items() if callable(getattr(unit, "gate", None)))
            raise ValueError(
                f"The last unit is {self.layers[-1].unit}, which has no gate that depends on the input; "
                f"allowed: {gated}."
            )
        return self

    @torch.no_grad()
    def observed(self, weights: dict[str, Tensor], inputs: Tensor) -> dict[str, float]:
        """``gate``: the mean over examples and outputs.

        Args:
            weights: parameter name -> values.
            inputs: ``(examples, in_features)``.
        """
        with torch.random.fork_rng(devices=[]):
            module = self.build(inputs.shape[-1]).eval()
        module.load_state_dict(weights)
        return {"gate": float(module[-1].gate(module[:-1](inputs)).mean())}  # type: ignore[operator]
