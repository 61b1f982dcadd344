"""How fast are runs trained on this machine, and how far is that from what it could do? ``make bench`` prints
a line per measure.

Rates are in run-iterations per second: runs times updates by wall seconds, the evaluations every 1,000
updates included, compilation not.
"""

from companion.benchmark.floor import Needs, needs
from companion.benchmark.measurement import Measurement, measure_machine, recorded_measurement
from companion.benchmark.measures import FURTHER, MEASURES, SCALING, Measure, Size, measure, scaling
from companion.benchmark.workloads import digit_runs, division_runs, subset_runs

__all__ = [
    "FURTHER",
    "MEASURES",
    "SCALING",
    "Measure",
    "Measurement",
    "Needs",
    "Size",
    "digit_runs",
    "division_runs",
    "measure",
    "measure_machine",
    "needs",
    "recorded_measurement",
    "scaling",
    "subset_runs",
]
