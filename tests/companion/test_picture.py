"""The picture of the landing page is what the recorded networks answer."""

import re

import numpy as np
import pytest
from companion import picture

NUMBER = re.compile(r"-?\d+\.\d+")


def test_the_networks_are_as_far_apart_as_it_says():
    x = np.array([-10.0, -4.0, 1.0, 4.0, 10.0])
    found = picture.answers(x)
    assert {given.shape for given in found.values()} == {(20, 5)}
    assert np.allclose(found["NMU"], x * x, rtol=0.03, atol=0.05)
    assert np.allclose(found["Dense"][:, 2], 1, atol=0.1) and (found["Dense"][:, [0, 4]] < 15).all()


@pytest.mark.parametrize("theme", picture.FILES)
def test_the_committed_picture_is_current(theme):
    """To the second digit but one: processors round differently."""
    new, old = picture.drawn(theme), picture.FILES[theme].read_text("utf-8")
    assert NUMBER.sub("", new) == NUMBER.sub("", old), "run `make scoreboard`"
    numbers = (np.array(NUMBER.findall(text), float) for text in (new, old))
    assert np.allclose(*numbers, atol=0.05), "run `make scoreboard`"
