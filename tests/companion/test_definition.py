"""What is missing in an experiment is said in a sentence."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from companion.division import chance
from companion.experiment.statements import Item
from companion.scoreboard.items import _in_order


def test_an_experiment_without_items_states_nothing():
    with pytest.raises(ValueError, match=r"^book/division/chance.ipynb has no items, so it states nothing"):
        chance.EXPERIMENT.statements()


@pytest.mark.parametrize("missing", ["results", "device"])
def test_a_chapter_that_trains_has_its_parameters(missing):
    p = SimpleNamespace(**{"results": "", "device": "cpu"})
    delattr(p, missing)
    with pytest.raises(ValueError, match=f"so it needs the parameter '{missing}'"):
        replace(chance.EXPERIMENT, runs=lambda p: {}).rows(p)


def test_an_item_is_of_one_of_the_papers():
    with pytest.raises(ValueError, match="a question of your own has none"):
        _in_order(Item("beyond", "Figure 1", "A figure", "experiment", None))


@pytest.mark.parametrize("asked", [{}, {"train": False}, {"train": False, "fresh": True}])
def test_a_page_trains_unless_it_says_not_to_and_afresh_in_any_case(monkeypatch, asked):
    how = {}
    monkeypatch.setattr(
        "companion.experiment.definition.run_all", lambda *runs, **given: how.update(given) or pd.DataFrame()
    )
    experiment = replace(chance.EXPERIMENT, runs=lambda p: {"division/further-seeds": [None]})
    experiment.rows(SimpleNamespace(results="", device="cpu", **asked))
    assert how["train"] == (asked != {"train": False}) and how["fresh"] == asked.get("fresh", False)
