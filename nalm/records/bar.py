"""The progress bar of trainings."""

from __future__ import annotations

from collections.abc import Iterable

from tqdm import tqdm

from nalm.training import Run

__all__ = ["TrainingBar"]


class TrainingBar(tqdm):
    """Counts run-iterations, and says while something is compiled.

    Args:
        runs: what is trained.
        shown: whether there is anything to see.
    """

    def __init__(self, runs: Iterable[Run], shown: bool = True) -> None:
        total = sum(run.recipe.iterations for run in runs)
        super().__init__(
            total=total,
            unit=" run-iterations",
            unit_scale=True,
            disable=not (shown and total),
            mininterval=1.0,
        )
        self._said = ""

    def compiling(self, ensembles: int) -> None:
        """Show that so many ensembles are being compiled."""
        said = "compiling" if ensembles else ""
        if said != self._said:
            self._said = said
            self.set_postfix_str(said)
