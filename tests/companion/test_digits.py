"""Statements on sequences of digits say nothing of models that are not trained."""

import pytest
from companion.measures import success_rate
from companion.nau_nmu.digits import _unsolved


@pytest.mark.parametrize(
    ("solved", "agree"),
    [({}, []), ({"NALU": 0}, []), ({"NALU": 0, "LSTM": 0}, [True]), ({"NALU": 0, "LSTM": 5}, [False])],
)
def test_neither_nalu_nor_lstm_is_said_of_both_alone(solved, agree):
    found = {
        (length, model): {"success": success_rate([seed < number for seed in range(5)])}
        for model, number in solved.items()
        for length in (1, 2)
    }
    assert [claim.agrees for claim in _unsolved(found, (1, 2))] == agree
