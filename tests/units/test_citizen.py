"""Units are ordinary modules of PyTorch: each thing of the table works for the units it names, and for no
other.
"""

import pytest

from nalm import UNITS

from .citizen import CHECKS

LIGHT = {name: one for name, one in CHECKS.items() if not one.heavy}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", LIGHT)
def test_works_for_the_units_of_the_table(name, unit):
    one = LIGHT[name]
    said = f"{unit} does this; leave it out of `but`, or name it in `only`, of the check in citizen.py"
    assert one.holds(unit) == (unit in one.units), one.said.get(unit, said)
