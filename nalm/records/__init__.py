"""Records: results are rows. Train what is missing, read what is there, lose nothing and double nothing."""

from nalm.records.cluster import check_scheduler
from nalm.records.cost import Cost, cost
from nalm.records.folders import LOCAL, PUBLISHED, results_folder
from nalm.records.memoised import run_all
from nalm.records.store import Store

__all__ = ["Cost", "LOCAL", "PUBLISHED", "Store", "check_scheduler", "cost", "results_folder", "run_all"]
