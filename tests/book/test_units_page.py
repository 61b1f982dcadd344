"""The page of the units says what they can do in PyTorch, as the tests found it."""

from units.citizen import CHECKS, PAGE, table, with_table

from nalm import UNITS


def test_the_page_has_the_table_of_the_tests():
    page = PAGE.read_text(encoding="utf-8")
    said = "book/api.md is older than the checks: run python tests/units/citizen.py --write"
    assert f"\n{table()}\n" in page and with_table(page) == page, said


def test_exceptions_are_units():
    assert all(set(one.units) <= set(UNITS) for one in CHECKS.values())
