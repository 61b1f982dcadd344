"""The runs behind recorded rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nalm.records.folders import PUBLISHED
from nalm.records.store import Store
from nalm.records.verification import rebuilt
from nalm.training import Run
from nalm.units.checks import integer

__all__ = ["recorded_runs"]


def recorded_runs(
    experiment: str,
    labels: Sequence[str] | str = ("model",),
    seed: int | None = None,
    folder: str | Path = PUBLISHED,
) -> list[Run]:
    """The runs of an experiment's rows, in their order: what to train again with other seeds or other
    numbers.

    Args:
        experiment: ``"<paper>/<name>"``.
        labels: columns of the rows that become the runs' labels; or one.
        seed: only the runs with this seed, one per configuration.
        folder: the folder of results; the published ones if not given.

    Raises:
        TypeError: a seed that is no integer.
        ValueError: an experiment without rows or without rows of that seed, a label that is no column, or a
            row whose stored configuration is not that of its run.

    >>> runs = recorded_runs("division/losses", labels=("model", "range"), seed=3)
    >>> len(runs), runs[0].labels
    (54, {'model': 'Real NPU (modified), PCC', 'range': 'U[-20,-10)'})
    """
    if seed is not None:
        integer("seed", seed)
    labels = [labels] if isinstance(labels, str) else list(labels)
    store = Store(folder, experiment)
    rows, sidecar = store.read(), store.sidecar()
    rows = rows if seed is None or rows.empty else rows[rows["seed"] == seed]
    if rows.empty:
        raise ValueError(
            f"There are no rows of {experiment!r}{'' if seed is None else f' with seed {seed}'} in {folder}."
        )
    if unknown := [name for name in labels if name not in rows]:
        raise ValueError(
            f"The rows of {experiment!r} have no column {unknown[0]!r}; they have {', '.join(rows)}."
        )
    arms: dict[str, Run] = {}  # whose values their seeds share
    runs = []
    for row in rows.to_dict("records"):
        run = rebuilt(row, sidecar)
        arm = arms.setdefault(row["key"].rpartition("-")[0], run)
        named = {name: str(row[name]) for name in labels}
        runs.append(run.but(task=arm.task, model=arm.model, recipe=arm.recipe, labels=named))
    return runs
