"""Parameters of a chapter are checked before anything trains."""

import pytest
from companion.experiment.parameters import above, at_least, check, one_of, some_of, some_or_none_of

CELL = {
    "__annotations__": {"seeds": int, "iterations": "int", "lr": float, "models": list, "stream": str,
                        "quick": bool, "device": str, "results": str},
    "seeds": 25, "iterations": 50_000, "lr": 0.1, "models": ["NRU"], "stream": "own", "quick": False,
    "device": "cpu", "results": "",
}  # fmt: skip
RULES = {"models": some_of(["NRU", "NMRU"]), "stream": one_of(["own", "common"]), "lr": above(0)}


def test_good_parameters_come_back_with_their_types():
    p = check(
        CELL | {"models": "NMRU,NRU", "lr": 1, "_private": 3, "In": [], "Out": {}, "print": print}, **RULES
    )
    assert p.seeds == 25 and p.models == ["NMRU", "NRU"] and p.lr == 1.0 and isinstance(p.lr, float)


def test_the_most_seeds_are_taken():
    assert check(CELL | {"seeds": 10_000}, **RULES).seeds == 10_000
    assert check(CELL | {"iterations": 10**8}, **RULES).iterations == 10**8


def test_what_a_chapter_defined_before_its_parameters_is_its_own():
    assert check({"eps": 0.1, "lines": []} | CELL, **RULES).seeds == 25
    with pytest.raises(ValueError, match="no parameter 'sedes'"):
        check({"eps": 0.1} | CELL | {"sedes": 3}, **RULES)
    with pytest.raises(ValueError, match="no parameter 'sedes'"):
        check({"seeds": 3, "sedes": 3} | CELL, **RULES)


def test_numbers_in_a_list_are_taken_from_text():
    """``-p inputs 2,10`` arrives as text."""
    cell = {"__annotations__": {"inputs": list, "lows": list}, "inputs": "10, 2", "lows": "-0.5"}
    p = check(cell, inputs=some_of([2, 10]), lows=some_or_none_of([-0.5, 1.0]))
    assert p.inputs == [10, 2] and p.lows == [-0.5]


@pytest.mark.parametrize(
    ("changed", "error", "sentence"),
    [
        ({"sedes": 3}, ValueError, "no parameter 'sedes': did you mean 'seeds'"),
        ({"sedes": None}, ValueError, "no parameter 'sedes'"),
        ({"seeds": 0}, ValueError, "'seeds' is 0, but must be between 1 and 10,000"),
        ({"seeds": 10_001}, ValueError, "'seeds' is 10001, but must be between 1 and 10,000"),
        ({"lr": float("inf")}, ValueError, "'lr' is inf, but must be more than 0"),
        ({"lr": 0.0}, ValueError, "'lr' is 0.0, but must be more than 0"),
        ({"seeds": 10**12}, ValueError, "'seeds' is 1000000000000, but must be"),
        ({"iterations": 10**30}, ValueError, "must be at most 100,000,000"),
        ({"SEEDS": 3}, ValueError, "no parameter 'SEEDS'"),
        ({"_seeds": 3}, ValueError, "no parameter '_seeds'"),
        ({"seeds": "3"}, TypeError, "'seeds' must be of type int, but is '3' of type str"),
        ({"seeds": True}, TypeError, "must be of type int"),
        ({"seeds": 2.0}, TypeError, "must be of type int"),
        ({"iterations": -5}, ValueError, "'iterations' is -5"),
        ({"lr": True}, TypeError, "'lr' must be of type float, but is True"),
        ({"lr": "1e-2"}, TypeError, "'lr' must be of type float, but is '1e-2' of type str"),
        ({"lr": float("nan")}, ValueError, "'lr' is nan, but must be more than 0"),
        ({"models": []}, ValueError, "'models' is empty: choose at least one of 'NRU', 'NMRU'"),
        ({"models": ["NRUU"]}, ValueError, "unknown value 'NRUU': did you mean 'NRU'"),
        ({"models": "NRU,NRU"}, ValueError, "names something twice"),
        ({"models": 3}, ValueError, "unknown value 3: allowed"),
        ({"models": True}, TypeError, "must be of type list"),
        ({"stream": "mine"}, ValueError, "unknown value 'mine'"),
        ({"quick": 1}, TypeError, "must be of type bool"),
        ({"device": "cuda:99"}, ValueError, "Device 'cuda:99' is not there"),
        ({"device": "gpu"}, ValueError, "Unknown device 'gpu'"),
        ({"results": __file__}, ValueError, "is a file"),
    ],
)
def test_bad_parameters_are_refused_with_a_sentence(changed, error, sentence):
    with pytest.raises(error, match=sentence):
        check(CELL | changed, **RULES)


def test_ranges_may_be_given_as_text():
    cell = {"__annotations__": {"ranges": list}, "ranges": "U[-2,2), U[1.1,1.2),U[1,2)", "RANGES": [1]}
    assert check(cell).ranges == ["U[-2,2)", "U[1.1,1.2)", "U[1,2)"]


def test_choices_need_not_be_text():
    assert one_of(range(1, 21))("longest", 20) == 20
    with pytest.raises(ValueError, match="unknown value 30"):
        one_of(range(1, 21))("longest", 30)


def test_a_list_may_be_allowed_to_be_empty():
    rule = some_or_none_of(["NRU", "NMRU"])
    assert rule("models", []) == [] and rule("models", ["NMRU"]) == ["NMRU"]
    with pytest.raises(ValueError, match="unknown value 'NRUU'"):
        rule("models", ["NRUU"])


def test_at_least():
    assert at_least(2)("x", 2) == 2
    with pytest.raises(ValueError, match="at least 2"):
        at_least(2)("x", 1.5)


@pytest.mark.parametrize(("given", "found"), [(2, [2]), ("2, 10", [2, 10]), ("0.5", [0.5]), (0.0, [0.0])])
def test_lists_of_numbers_come_from_the_command_line(given, found):
    """As papermill's ``-p`` passes them: one as a number, several as text."""
    cell = {"__annotations__": {"sizes": list}, "sizes": given}
    assert check(cell).sizes == found
    assert check(cell, sizes=some_of([0.0, 0.5, 2, 10])).sizes == found


def test_names_may_look_like_numbers():
    cell = {"__annotations__": {"sets": list}, "sets": "1, 3"}
    assert check(cell, sets=some_of(["1", "2", "3"])).sets == ["1", "3"]


@pytest.mark.parametrize(("scheduler", "refused"), [("tcp://there", False), ("", True)])
def test_where_others_train_they_check_the_device(monkeypatch, scheduler, refused):
    monkeypatch.setattr("companion.experiment.parameters.check_scheduler", lambda address: None)
    cell = CELL | {"__annotations__": CELL["__annotations__"] | {"scheduler": str}}
    cell |= {"scheduler": scheduler, "device": "cuda:99"}
    if refused:
        with pytest.raises(ValueError, match="Device 'cuda:99' is not there"):
            check(cell, **RULES)
    else:
        assert check(cell, **RULES).device == "cuda:99"
