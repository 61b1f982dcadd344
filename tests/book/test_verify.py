"""The chapter that trains rows again does so with a fresh sample and writes its receipt.

It records no rows, so it is none of the experiments of test_reruns.py. Its committed outputs name the rows that were drawn when it was last run;
sanitize.cfg takes the names of confirmed rows out of the comparison, not those of refused ones.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import nbformat
import papermill

BOOK = Path(__file__).parents[2] / "book"
CHAPTER = BOOK / "beyond" / "verify.ipynb"


def contents(folder: Path) -> dict[Path, str]:
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def rerun(folder: Path, **parameters: Any) -> None:
    tiny = nbformat.read(CHAPTER, as_version=4).metadata["nalm"]["tiny"]
    papermill.execute_notebook(
        CHAPTER,
        folder / "rerun.ipynb",
        tiny | {"receipt": str(folder / "receipt.json")} | parameters,
        kernel_name="python3",
        cwd=folder,
        progress_bar=False,
        start_timeout=120,
        execution_timeout=300,
    )


def test_a_fresh_sample_is_confirmed(tmp_path: Path) -> None:
    before = contents(BOOK)
    rerun(tmp_path)
    receipt = json.loads((tmp_path / "receipt.json").read_text())
    assert receipt["verdict"] == "PASS" and receipt["sample"]["rows"] == len(receipt["rows"]) == 1
    assert contents(BOOK) == before, "the rerun changed files of the book"
    assert {path.name for path in tmp_path.iterdir()} == {"rerun.ipynb", "receipt.json"}, "the rerun left files behind"


def test_every_parameter_has_a_type_and_a_comment() -> None:
    for name, parameter in papermill.inspect_notebook(CHAPTER).items():
        assert parameter["inferred_type_name"] != "None" and parameter["help"].strip(), name
