"""Which evaluation is selected, and what is kept of it, from errors that are written down."""

import numpy as np
import pytest
import torch

from nalm.training.log import Journal

NAN, INF = float("nan"), float("inf")


def add(journal, number, errors, weights=None):
    """Evaluation ``number`` of several runs, at ten times as many iterations; the weights are its number."""
    errors = torch.tensor(errors)
    weights = torch.full((len(errors), 1, 2), float(number)) if weights is None else weights
    journal.add(10 * number, {"valid": errors, "test": errors + 1}, errors / 2, {"0.weight": weights})


def log_of(journal):
    return journal.log(1.0, "cpu", False)


RUNS = {
    "one minimum": ([3.0, 1.0, 2.0, 4.0], 1),
    "the first of equal minima": ([3.0, 1.0, 2.0, 1.0], 1),
    "no number at first": ([NAN, INF, 2.0, 3.0], 2),
    "no number later": ([5.0, NAN, INF, NAN], 0),
    "never a number": ([NAN, INF, NAN, NAN], 3),
}
"""Validation errors, and which of them is selected."""


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("selection", ["best-validation", "last"])
def test_each_run_keeps_the_weights_of_its_own_selected_evaluation(selection, interrupted):
    journal = Journal(selection)
    for number, errors in enumerate(zip(*(errors for errors, _ in RUNS.values()), strict=True)):
        add(journal, number, errors)
        if interrupted:
            journal, before = Journal(selection), journal
            journal.restore(before.state())
    log, selected = log_of(journal), [best for _, best in RUNS.values()] if selection != "last" else [3] * 5
    assert log.selected.tolist() == selected and log.iterations.tolist() == [0, 10, 20, 30]
    np.testing.assert_array_equal(
        log.weights["0.weight"], np.broadcast_to(np.reshape(selected, (-1, 1, 1)), (5, 1, 2))
    )
    np.testing.assert_array_equal(log.errors["valid"].T, [errors for errors, _ in RUNS.values()])


def test_where_a_parameter_is_no_number_first():
    journal = Journal("last")
    for number, second in enumerate([1.0, NAN, 1.0, INF]):
        add(journal, number, [0.0, 0.0, 0.0], torch.tensor([[[1.0, 1.0]], [[1.0, second]], [[NAN, INF]]]))
    np.testing.assert_array_equal(log_of(journal).nan_at, [NAN, 10.0, 0.0])


def test_the_threads_are_those_of_the_process(monkeypatch):
    journal = Journal("last")
    add(journal, 0, [1.0])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert log_of(journal).threads == 3
