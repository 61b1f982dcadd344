"""Data losses of one batch, by name. Whatever a run is trained with, validation uses the mean squared error;
so does the test, but for a few sets of the task that say ``"mae"``.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["LOSSES", "mape", "mse", "mse_and_pcc", "pcc"]


def mse(output: Tensor, target: Tensor) -> Tensor:
    """Mean squared error over all entries."""
    return (output - target).square().mean()


def pcc(output: Tensor, target: Tensor) -> Tensor:
    """One minus Pearson's correlation coefficient over the batch (division paper, Eq. 13); population
    statistics, eps the float's epsilon.
    """
    eps = torch.finfo(output.dtype).eps
    v, w = output - output.mean(0), target - target.mean(0)
    scale = v.square().mean(0).clamp_min(eps).sqrt() + eps, w.square().mean(0).clamp_min(eps).sqrt() + eps
    return 1 - (v / scale[0] * (w / scale[1])).mean()


def mape(output: Tensor, target: Tensor) -> Tensor:
    """Mean absolute percentage error, as a fraction. The paper's Eq. 14 leaves the target signed in the
    denominator; its code does not.
    """
    return ((target - output) / target).abs().mean()


def mse_and_pcc(output: Tensor, target: Tensor) -> Tensor:
    """The sum of :func:`mse` and :func:`pcc`: the former knows the scale of the target, the latter does not
    drown in its outliers. In no paper.
    """
    return mse(output, target) + pcc(output, target)


LOSSES = {"mse": mse, "pcc": pcc, "mape": mape, "mse+pcc": mse_and_pcc}
