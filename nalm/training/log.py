"""What is kept of a training: the errors at each evaluation and the weights at the selected one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nalm.training.stacked import Tensors, per_run

__all__ = ["Journal", "Log"]


@dataclass
class Log:
    """What an ensemble reports. Arrays have one column per run.

    Args:
        iterations: (evaluations,) iteration of each evaluation.
        errors: evaluation set name -> (evaluations, runs).
        sparsity_errors: (evaluations, runs).
        selected: (runs,) index of the selected evaluation.
        weights: parameter name -> (runs, ...) at the selected evaluation.
        nan_at: (runs,) first evaluated iteration with a non-finite parameter, NaN where there is none.
        seconds: wall time, compilation included.
        device, threads, compiled: what it was trained with.
    """

    iterations: np.ndarray
    errors: dict[str, np.ndarray]
    sparsity_errors: np.ndarray
    selected: np.ndarray
    weights: dict[str, np.ndarray]
    nan_at: np.ndarray
    seconds: float
    device: str
    threads: int
    compiled: bool


class Journal:
    """Collects evaluations while an ensemble trains.

    Args:
        selection: ``"best-validation"`` or ``"last"``.
    """

    def __init__(self, selection: str) -> None:
        self.selection = selection
        self.iterations: list[int] = []
        self.columns: dict[str, list[Tensor]] = {}
        self.best: Tensors = {}  # validation error and index of the selected evaluation
        self.weights: Tensors = {}

    def add(self, iteration: int, errors: Tensors, sparsity_error: Tensor, parameters: Tensors) -> None:
        """Enter an evaluation; keep the weights of the runs for which it is the one to select so far."""
        finite = torch.stack([p.flatten(1).isfinite().all(1) for p in parameters.values()]).all(0)
        for name, values in (errors | {"_sparsity_error": sparsity_error, "_finite": finite}).items():
            self.columns.setdefault(name, []).append(values.cpu())
        valid = torch.where(errors["valid"].isfinite(), errors["valid"], torch.inf)
        index = torch.full_like(valid, len(self.iterations), dtype=torch.int64)
        self.iterations.append(iteration)
        if not self.best or self.selection == "last":
            self.best = {"valid": valid, "index": index}
            self.weights = {name: p.clone() for name, p in parameters.items()}
            return
        # Without any finite validation error so far, the latest weights are kept.
        better = (valid < self.best["valid"]) | self.best["valid"].isinf()
        self.weights = {
            name: torch.where(per_run(better, p), p, self.weights[name]) for name, p in parameters.items()
        }
        self.best = {
            "valid": torch.where(better, valid, self.best["valid"]),
            "index": torch.where(better, index, self.best["index"]),
        }

    def log(self, seconds: float, device: str, compiled: bool) -> Log:
        """The log of everything that was entered."""
        columns = {name: torch.stack(values).numpy() for name, values in self.columns.items()}
        iterations, finite, sparsity = (
            np.array(self.iterations),
            columns.pop("_finite"),
            columns.pop("_sparsity_error"),
        )
        return Log(
            iterations=iterations,
            errors=columns,
            sparsity_errors=sparsity,
            selected=self.best["index"].cpu().numpy(),
            weights={name: w.cpu().numpy() for name, w in self.weights.items()},
            nan_at=np.where(finite.all(0), np.nan, iterations[finite.argmin(0)].astype(float)),
            seconds=seconds,
            device=device,
            threads=torch.get_num_threads(),
            compiled=compiled,
        )

    def state(self) -> dict:
        """Everything entered, as tensors and lists; :meth:`restore` takes it back."""
        columns = {name: torch.stack(values) for name, values in self.columns.items()}
        return {"iterations": self.iterations, "columns": columns, "best": self.best, "weights": self.weights}

    def restore(self, state: dict) -> None:
        self.iterations = list(state["iterations"])
        self.columns = {name: list(values) for name, values in state["columns"].items()}
        self.best, self.weights = state["best"], state["weights"]
