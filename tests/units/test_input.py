"""Bad input is refused with one sentence that says what is allowed."""

import math
import re

import pytest
import torch

from nalm.units import (
    MCFC,
    NAC,
    NALU,
    NAU,
    NMRU,
    NMU,
    NPU,
    NRU,
    SNMU,
    UNITS,
    Dense,
    NACMul,
    NaiveNPU,
    RealNPU,
)
from nalm.units.checks import integer, one_of


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: NAU(0, 1), ValueError, "in_features must be a positive integer, but it is 0."),
        (lambda: NMU(2, -1), ValueError, "out_features must be a positive integer, but it is -1."),
        (lambda: NAC(2.0, 1), TypeError, "in_features must be a positive integer, but it is 2.0 (float)."),
        (lambda: NRU(2, True), TypeError, "out_features must be a positive integer, but it is True (bool)."),
        (lambda: NAU(2, 1, clamp="steps"), ValueError, "Unknown clamp 'steps': did you mean 'step'?"),
        (lambda: NMU(2, 1, init="nmuu"), ValueError, "Unknown init 'nmuu': did you mean 'nmu'?"),
        (lambda: NACMul(2, 1, weight="sigmod"), ValueError, "Unknown weight 'sigmod': "),
        (
            lambda: NACMul(2, 1, eps=-1.0),
            ValueError,
            "eps must be a finite number of at least 0.0, but it is -1.0.",
        ),
        (lambda: NALU(2, 1, shared=1), TypeError, "shared must be True or False, but it is 1 (int)."),
        (lambda: NALU(2, 1, gate_bias=None), TypeError, "gate_bias must be True or False, but it is None"),
        (lambda: RealNPU(2, 1, clip="weight"), TypeError, "clip must be a tuple of names, but"),
        (lambda: RealNPU(2, 1, clip=("weigth",)), ValueError, "Unknown clip 'weigth': did you mean 'weight'"),
        (lambda: RealNPU(2, 1, clip=("weight_im",)), ValueError, "Unknown clip 'weight_im'"),
        (lambda: NaiveNPU(2, 1, discretise=("gate",)), ValueError, "Unknown discretise 'gate'"),
        (lambda: NPU(2, 1, gate_init=None), TypeError, "gate_init must be a number"),
        (lambda: NPU(2, 1, discretise_to=(0, 1)), ValueError, "Unknown discretise_to (0, 1): "),
        (
            lambda: NPU(2, 1, discretise_to=1),
            ValueError,
            "Unknown discretise_to 1: allowed: (-1, 1), (-1, 0, 1).",
        ),
        (lambda: NPU(2, 1, discretise="weight"), TypeError, "'weight': write ('weight',)."),
        (lambda: NMRU(2, 1, gate="zer"), ValueError, "Unknown gate 'zer': did you mean 'zero'?"),
        (lambda: Dense(2, 1, activation="relu7"), ValueError, "Unknown activation 'relu7': did you mean"),
        (
            lambda: Dense(2, 1, init_scale=True),
            TypeError,
            "init_scale must be a number, but it is True (bool).",
        ),
        (lambda: SNMU(2, 1, low=0.0), ValueError, "low must be a finite number of at least 1.1"),
        (lambda: SNMU(2, 1, low=2.0, high=1.0), ValueError, "high must be a finite number of at least 2.0"),
        (lambda: SNMU(2, 1, high=math.inf), ValueError, "high must be a finite number of at least "),
        (
            lambda: Dense(2, 1, init_scale=math.inf),
            ValueError,
            "init_scale must be a finite number, but it is",
        ),
        (lambda: NAU(2, 1, init_scale=math.nan), ValueError, "init_scale must be a finite number, but it is"),
    ],
)
def test_constructors_say_what_is_wrong(make, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        make()


@pytest.mark.parametrize("name", UNITS)
def test_inputs_of_another_width_are_refused(name):
    unit = UNITS[name](3, 2)
    for shape in ((), (1,), (5, 1), (3, 2)):
        with pytest.raises(ValueError, match=rf"{name} takes inputs of shape \(\.\.\., 3\)"):
            unit(torch.ones(shape))


@pytest.mark.parametrize("name", UNITS)
def test_options_are_keywords(name):
    with pytest.raises(TypeError, match="positional"):
        UNITS[name](2, 1, 0.5)


def test_repr_shows_what_is_not_default():
    assert repr(RealNPU(2, 1, clip=("weight",))) == "RealNPU(in_features=2, out_features=1, clip=('weight',))"
    assert repr(UNITS["ReLU"](2, 1)) == "ReLU(in_features=2, out_features=1)"
    assert repr(NMRU(2, 1, gate="zero")) == "NMRU(in_features=2, out_features=1, gate='zero')"


def test_an_integer_may_be_its_bound_and_a_choice_is_of_its_type():
    assert integer("digits", 0, low=0) == 0
    with pytest.raises(ValueError, match="digits must be an integer of at least 0, but it is -1"):
        integer("digits", -1, low=0)
    for other in (True, 1.0):
        with pytest.raises(ValueError, match=f"Unknown level {other}"):
            one_of("level", other, (1, 2))


def test_the_options_of_the_noise_are_shown():
    assert repr(SNMU(2, 1, high=3.0)) == "SNMU(in_features=2, out_features=1, high=3.0)"


def test_what_is_added_to_magnitudes_is_the_same_in_all_units():
    units = MCFC(2, 1, multiply=True), NACMul(2, 1), NALU(2, 1)
    assert {unit.eps for unit in units} == {1e-7}
