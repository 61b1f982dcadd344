"""A measurement of a machine, and the one that the book shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nalm.records import PUBLISHED
from nalm.records.provenance import processor, surroundings

from companion import sealed
from companion.benchmark.measures import MEASURES, SCALING, Measure, Size, measure, scaling

__all__ = ["RECORDED", "Measurement", "measure_machine", "recorded_measurement"]

RECORDED = PUBLISHED / "beyond" / "how-fast.json"


@dataclass(frozen=True)
class Measurement:
    """What was measured, and on what.

    Args:
        processor: its name.
        cores: how many were used.
        compiled: whether ensembles were compiled.
        surroundings: date, commit and versions.
        measures: by name.
        scaling: a name of :data:`companion.benchmark.SCALING` -> pairs of a number and the microseconds of an
            update of a run.
    """

    processor: str
    cores: int
    compiled: bool
    surroundings: dict[str, Any]
    measures: dict[str, Measure]
    scaling: dict[str, list[tuple[int, float]]]

    def value(self, name: str) -> float:
        """The value of a measure; NaN if it was not measured."""
        return self.measures[name].value if name in self.measures else float("nan")

    def write(self, path: str | Path) -> None:
        """Write it as JSON."""
        content = asdict(self) | {
            "measures": {
                m.name: {"value": float(f"{m.value:.4g}"), "unit": m.unit} for m in self.measures.values()
            }
        }
        content["scaling"] = {
            name: [[number, float(f"{cost:.4g}")] for number, cost in pairs]
            for name, pairs in self.scaling.items()
        }
        sealed.write_json(path, content)

    @classmethod
    def read(cls, path: str | Path) -> Measurement:
        """Read what :meth:`write` wrote.

        Raises:
            ValueError: the file is not what was written.
        """
        content = sealed.read_json(path)
        measures = {name: Measure(name, **of) for name, of in content.pop("measures").items()}
        costs = {name: [tuple(pair) for pair in pairs] for name, pairs in content.pop("scaling").items()}
        return cls(measures=measures, scaling=costs, **content)

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {self.surroundings['versions'][name]}" for name in ("python", "torch"))
        how = "" if self.compiled else "; nothing compiled"
        return (
            f"{self.cores} core{'s' * (self.cores > 1)} of {self.processor}; {versions}; "
            f"{self.surroundings['date']}{how}"
        )


def recorded_measurement() -> Measurement:
    """The measurement that the book shows."""
    return Measurement.read(RECORDED)


def measure_machine(
    names: Sequence[str] = tuple(MEASURES),
    costs: Sequence[str] = tuple(SCALING),
    size: Size = Size(),
    tell: Callable[[Measure], None] = lambda measure: None,
) -> Measurement:
    """Measure this machine; about three minutes for the measures and as long for the costs.

    Args:
        names: some of :data:`companion.benchmark.MEASURES` and ``companion.benchmark.FURTHER``.
        costs: some of :data:`companion.benchmark.SCALING`.
        size: how much is measured.
        tell: is told each measure as soon as it is there.
    """
    measures = {}
    for name in names:
        measures[name] = measure(name, size)
        tell(measures[name])
    return Measurement(
        processor(),
        size.processes,
        size.compiled,
        surroundings(),
        measures,
        {over: scaling(over, size) for over in costs},
    )
