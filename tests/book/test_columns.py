"""The page of columns names every column that a results file has."""

import re
from pathlib import Path

import pandas as pd

BOOK = Path(__file__).parents[2] / "book"


def test_every_column_is_explained():
    cells = [
        line.split("|")[1]
        for line in (BOOK / "columns.md").read_text("utf-8").splitlines()
        if line.startswith("| `")
    ]
    named = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    found = {name for file in BOOK.glob("results/*/*.csv") for name in pd.read_csv(file, nrows=0)}
    found = {re.sub(r"^test_(?!mse$).*", "test_<name>", name) for name in found}
    assert found == named
