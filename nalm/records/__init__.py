"""Records: results are rows. Train what is missing, read what is there, lose nothing and double nothing;
verify what is published.
"""

from nalm.extras import train as _  # noqa: F401
from nalm.records.cluster import check_scheduler
from nalm.records.code import freshness
from nalm.records.comparison import Tolerances
from nalm.records.cost import Cost, cost
from nalm.records.folders import LOCAL, PUBLISHED, results_folder
from nalm.records.memoised import run_all
from nalm.records.recorded import recorded_runs
from nalm.records.store import Store
from nalm.records.verification import CheckedRow, Verification, experiments, verify_rows

__all__ = [
    "LOCAL",
    "PUBLISHED",
    "CheckedRow",
    "Cost",
    "Store",
    "Tolerances",
    "Verification",
    "check_scheduler",
    "cost",
    "experiments",
    "freshness",
    "recorded_runs",
    "results_folder",
    "run_all",
    "verify_rows",
]
