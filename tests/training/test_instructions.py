"""Inductor tries one set of the processor's instructions after another, and no more than it needs; that it
finds the same as by itself is in tests/instructions.py.
"""

from functools import cache

import pytest
from torch._inductor import config, cpu_vec_isa

from nalm.training.instructions import take_the_first


@pytest.fixture
def tried(monkeypatch):
    """The sets that were tried, of which the second and the third work."""
    tried = []

    def works(name):
        tried.append(name)
        return name != "best"

    def valid_vec_isa_list():
        return [one for one in cpu_vec_isa.supported_vec_isa_list if works(one)]

    monkeypatch.setattr(cpu_vec_isa, "supported_vec_isa_list", ["best", "good", "old"])
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", cache(valid_vec_isa_list))
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    with config.patch({"cpp.simdlen": None}):
        yield tried


def prepare():
    take_the_first.__wrapped__()
    return cpu_vec_isa.valid_vec_isa_list


def test_it_stops_at_the_first_that_works_and_remembers_it(tried):
    found = prepare()
    assert [found(), found()] == [["good"], ["good"]] and tried == ["best", "good"]
    assert cpu_vec_isa.supported_vec_isa_list == ["best", "good", "old"]


def test_none_works(tried, monkeypatch):
    monkeypatch.setattr(cpu_vec_isa, "supported_vec_isa_list", ["best"])
    found = prepare()
    assert [found(), found()] == [[], []] and tried == ["best"]


def test_who_asks_for_a_set_has_all_of_them_tried(tried, monkeypatch):
    found = prepare()
    assert found() == ["good"]
    with config.patch({"cpp.simdlen": 256}):
        assert found() == ["good", "old"]
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert found() == ["good", "old"]
    monkeypatch.delenv("ATEN_CPU_CAPABILITY")
    assert found() == ["good"]


@pytest.mark.parametrize("name", ["supported_vec_isa_list", "valid_vec_isa_list"])
def test_what_is_built_otherwise_is_left_alone(tried, monkeypatch, name):
    monkeypatch.delattr(cpu_vec_isa, name)
    before = vars(cpu_vec_isa).copy()
    take_the_first.__wrapped__()
    assert vars(cpu_vec_isa) == before


def test_a_function_that_keeps_nothing_is_left_alone(tried, monkeypatch):
    monkeypatch.setattr(cpu_vec_isa, "valid_vec_isa_list", every := lambda: ["good"])
    assert prepare() is every
