"""The chapter that trains rows again does so with a fresh sample and writes its receipt.

It records no rows, so it is none of the experiments of test_reruns.py. Its committed outputs name the
rows that were drawn when it was last run; sanitize.cfg takes the names of confirmed rows out of the
comparison, not those of refused ones.
"""

import json
from collections.abc import Callable
from pathlib import Path

CHAPTER = Path(__file__).parents[2] / "book" / "beyond" / "verify.ipynb"


def test_a_fresh_sample_is_confirmed(rerun: Callable, tmp_path: Path) -> None:
    rerun(
        CHAPTER,
        tmp_path,
        receipt=str(tmp_path / "receipt.json"),
        experiment="division/small-numbers",
        iterations=5000,
    )
    receipt = json.loads((tmp_path / "receipt.json").read_text())
    assert receipt["verdict"] == "PASS" and receipt["sample"]["rows"] == len(receipt["rows"]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"receipt.json"}, "the rerun left files behind"
