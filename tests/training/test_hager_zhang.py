"""The line search of Hager and Zhang, and L-BFGS with it."""

from contextlib import suppress

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from nalm.training import HagerZhangLBFGS
from nalm.training.ode import hager_zhang
from nalm.training.ode.hager_zhang import (
    Inconsistent,
    LineSearch,
    NotFound,
    Trial,
    _minimised,
    _times_inverse_hessian,
    minimise_by_line_searches,
)

X = np.zeros(1)


def searched(loss, slope, step=1.0, check_flatness=True):
    """The step that is found for a function of one variable, and all steps that were tried."""
    start = loss(0.0), np.array([slope(0.0)])
    line, tried = LineSearch(X, np.ones(1), *start, check_flatness).search(step), []
    at = next(line)
    while True:
        tried.append(at[0])
        try:
            at = line.send((loss(at[0]), np.array([slope(at[0])])))
        except StopIteration as end:
            return end.value.step, tried


def wolfe(loss, slope, step):
    decreased = loss(step) <= loss(0.0) + 0.1 * step * slope(0.0)
    nearly = slope(step) <= -0.8 * slope(0.0) and loss(step) <= loss(0.0) + 1e-6 * abs(loss(0.0))
    return slope(step) >= 0.9 * slope(0.0) and (decreased or nearly)


def more_thuente(b1, b2):
    c1, c2 = (np.sqrt(1 + b**2) - b for b in (b1, b2))
    return (
        lambda a: c1 * np.sqrt((1 - a) ** 2 + b2**2) + c2 * np.sqrt(a**2 + b1**2),
        lambda a: c1 * (a - 1) / np.sqrt((1 - a) ** 2 + b2**2) + c2 * a / np.sqrt(a**2 + b1**2),
    )


def wavy(a, b=0.01, waves=39):
    kink = 1 - a if a <= 1 - b else a - 1 if a >= 1 + b else (a - 1) ** 2 / (2 * b) + b / 2
    return kink + 2 * (1 - b) / (waves * np.pi) * np.sin(waves * np.pi / 2 * a)


def wavy_slope(a, b=0.01, waves=39):
    kink = -1 if a <= 1 - b else 1 if a >= 1 + b else (a - 1) / b
    return kink + (1 - b) * np.cos(waves * np.pi / 2 * a)


FUNCTIONS = {
    "Moré and Thuente 1": (lambda a: -a / (a**2 + 2), lambda a: (a**2 - 2) / (a**2 + 2) ** 2),
    "Moré and Thuente 2": (
        lambda a: (a + 0.004) ** 5 - 2 * (a + 0.004) ** 4,
        lambda a: 5 * (a + 0.004) ** 4 - 8 * (a + 0.004) ** 3,
    ),
    "Moré and Thuente 3": (wavy, wavy_slope),
    "Moré and Thuente 4": more_thuente(0.001, 0.001),
    "Moré and Thuente 5": more_thuente(0.01, 0.001),
    "Moré and Thuente 6": more_thuente(0.001, 0.01),
    "quadratic": (lambda a: (a - 3) ** 2, lambda a: 2 * (a - 3)),
    "Rosenbrock, on a line": (
        lambda a: rosen(np.array([-1.2 + 2.0 * a, 1.0 - 1.5 * a])),
        lambda a: rosen_der(np.array([-1.2 + 2.0 * a, 1.0 - 1.5 * a])) @ [2.0, -1.5],
    ),
    "over a hill": (
        lambda a: -np.sin(5 * a) + 0.9 * a,  # higher at 1, where it descends again
        lambda a: -5 * np.cos(5 * a) + 0.9,
    ),
}


@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_wolfe_conditions_or_the_approximate_ones_hold(name, first):
    loss, slope = FUNCTIONS[name]
    assert slope(0.0) < 0
    step, tried = searched(loss, slope, first, check_flatness=False)
    assert step in tried and wolfe(loss, slope, step)


@pytest.mark.parametrize(
    ("loss", "slope", "fulfilled"),
    [
        (0.95, -0.95, False),
        (0.95, -0.85, True),
        (0.95, 2.0, True),  # it has decreased by a tenth of what the slope at first promised
        (0.96, 2.0, False),
        (1 + 9e-7, 0.75, True),  # or it is nearly as low as at first, where the slope is not too steep
        (1 + 9e-7, 0.85, False),
        (1 + 2e-6, 0.75, False),
    ],
)
def test_the_conditions_are_those_of_hager_and_zhang(loss, slope, fulfilled):
    line = LineSearch(X, np.ones(1), 1.0, -np.ones(1))
    assert line.fulfilled(Trial(0.5, loss, slope, np.ones(1))) == fulfilled


def test_it_ends_at_the_lower_end_of_a_bracket_whose_upper_end_is_no_higher():
    loss, slope = FUNCTIONS["Moré and Thuente 3"]
    step, tried = searched(loss, slope, 10.0)
    further, more = searched(loss, slope, 10.0, check_flatness=False)
    assert not wolfe(loss, slope, step) and loss(step) < loss(0.0)
    assert more[: len(tried)] == tried and further != step


def test_it_goes_on_where_a_bracket_was_not_flat_before_the_round():
    loss, slope = FUNCTIONS["Moré and Thuente 4"]
    step, _ = searched(loss, slope, 3.0)
    assert wolfe(loss, slope, step)


def test_of_a_quadratic_function_the_minimum_is_found_by_one_secant():
    loss, slope = FUNCTIONS["quadratic"]
    assert searched(loss, slope, 8.0) == (3.0, [8.0, 3.0])
    assert searched(loss, slope, 0.25) == (3.0, [0.25, 1.25, 6.25, 3.0])


def test_the_first_step_is_never_taken_at_once():
    loss, slope = FUNCTIONS["quadratic"]
    assert wolfe(loss, slope, 3.5)
    assert searched(loss, slope, 3.5) == (3.0, [3.5, 3.0])


def test_from_where_there_is_no_loss_it_steps_back():
    step, tried = searched(lambda a: (a - 0.02) ** 2 if a < 0.2 else np.nan, lambda a: 2 * (a - 0.02))
    assert tried[:2] == [1.0, pytest.approx(0.1)] and step == pytest.approx(0.02)
    assert searched(lambda a: 0.0 if a == 0 else np.nan, lambda a: -1.0)[0] == 0.0


def test_what_cannot_be_searched():
    with pytest.raises(NotFound):
        searched(lambda a: a, lambda a: 1.0)
    with pytest.raises(NotFound):
        searched(lambda a: -a, lambda a: -1.0)  # no end to it
    with pytest.raises(NotFound):
        searched(lambda a: -a if a < 3 else np.inf, lambda a: -1.0)  # ever nearer to there
    with pytest.raises(Inconsistent):
        searched(lambda a: (a - 0.3) ** 2 if a in (0, 1) else np.nan, lambda a: 2 * (a - 0.3))


def test_after_the_last_round_the_lower_end_of_the_bracket_is_known():
    """A loss that jumps where its slope turns."""
    with pytest.raises(NotFound) as end:
        searched(lambda a: float(a >= 0.3), lambda a: 1.0 if a >= 0.3 else -1.0)
    assert 0 < 0.3 - end.value.step < 1e-9

    def jump(x):
        above = x >= 0.3
        return above[:, 0].astype(float), np.where(above, 1.0, -1.0)

    found, iterations = minimise_by_line_searches(jump, np.zeros((1, 1)), HagerZhangLBFGS())
    assert (found[0, 0], iterations[0]) == (end.value.step, 1)


def test_it_looks_for_a_bracket_and_back_from_no_loss_so_many_times():
    def tried(loss):
        search, steps = LineSearch(X, np.ones(1), 0.0, -np.ones(1)).search(), []
        with suppress(NotFound, StopIteration):
            steps.append(next(search)[0])
            while True:
                steps.append(search.send((loss(steps[-1]), -np.ones(1)))[0])
        return len(steps)

    assert (tried(lambda a: -a), tried(lambda a: np.nan)) == (50, 52)


def rosenbrocks(x):
    return np.array([rosen(row) for row in x]), np.stack([rosen_der(row) for row in x])


def test_runs_reach_the_minimum_of_rosenbrock_as_each_would_alone():
    starts = np.array([[-1.2, 1.0, 0.5], [0.0, 3.0, -1.0], [1.0, 1.0, 1.0]])
    found, iterations = minimise_by_line_searches(rosenbrocks, starts, HagerZhangLBFGS())
    np.testing.assert_allclose(found, 1.0, atol=1e-8)
    assert 5 < iterations[0] < 100 and iterations[2] == 0
    for number, start in enumerate(starts):
        alone, done = minimise_by_line_searches(rosenbrocks, start[None], HagerZhangLBFGS())
        assert alone[0].tobytes() == found[number].tobytes() and done[0] == iterations[number]


def test_no_entry_of_the_gradient_is_larger_than_the_tolerance_in_the_end():
    starts = np.array([[0.3, 0.0, 0.0], [0.25, 0.25, 0.25]])
    settings = HagerZhangLBFGS(gradient_tolerance=0.5)
    _, iterations = minimise_by_line_searches(lambda x: ((x**2).sum(1), 2 * x), starts, settings)
    assert iterations.tolist() == [1, 0]


def test_it_stops_after_so_many_iterations():
    starts = np.array([[-1.2, 1.0]])
    lowest = [rosen(starts[0])]
    for most in (1, 4, 8):
        found, iterations = minimise_by_line_searches(rosenbrocks, starts, HagerZhangLBFGS(iterations=most))
        lowest.append(rosen(found[0]))
        assert iterations[0] == most
    assert sorted(lowest, reverse=True) == lowest


def test_a_run_without_a_step_ends_and_one_whose_slopes_lie_is_back_at_its_start():
    """Beside a bowl: a loss without a lower end, one that is constant, one with a hole, and none at all."""

    def losses(x):
        bowl = (x**2).sum(1)
        hole = np.isin(x[3, 0], [9.0, -9.0])  # the start, and the first step of L-BFGS
        values = np.array([bowl[0], x[1, 0], 7.0, bowl[3] if hole else np.nan, np.nan])
        return values, np.stack([2 * x[0], np.ones(1), np.ones(1), 2 * x[3], 2 * x[4]])

    starts = np.full((5, 1), 9.0)
    with np.errstate(all="ignore"):
        found, iterations = minimise_by_line_searches(losses, starts, HagerZhangLBFGS())
    assert found[:, 0].tolist() == [0.0, 9.0, 9.0, 9.0, 9.0]
    assert iterations.tolist() == [1, 1, 1, 0, 1]


def test_the_inverse_hessian_fulfils_the_secant_equation_and_is_that_of_bfgs():
    """H y = s for the last pair; and the product of Nocedal and Wright's Equation 7.16, written out."""
    random = np.random.RandomState(3)
    steps = random.normal(size=(3, 4))
    changes = steps + 0.3 * random.normal(size=(3, 4))
    pairs = [(s, y, 1 / (s @ y)) for s, y in zip(steps, changes, strict=True)]
    np.testing.assert_allclose(_times_inverse_hessian(changes[-1], pairs), steps[-1], rtol=1e-12)
    inverse = np.eye(4) * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y, rho in pairs:
        v = np.eye(4) - rho * np.outer(y, s)
        inverse = v.T @ inverse @ v + rho * np.outer(s, s)
    gradient = random.normal(size=4)
    np.testing.assert_allclose(_times_inverse_hessian(gradient, pairs), inverse @ gradient, rtol=1e-10)


def test_two_steps_that_do_not_change_the_loss_are_the_last_ones():
    found, iterations = minimise_by_line_searches(
        lambda x: (np.full(len(x), 7.0), 4 * x**3), np.array([[9.0]]), HagerZhangLBFGS()
    )
    assert iterations[0] == 2 and found[0, 0] not in (0.0, 9.0)


def test_an_error_late_in_the_minimisation_leads_back_to_its_start():
    """One loss that is not there ends the run if it belongs to a bracket, and is stepped over otherwise."""
    start, ends = np.array([[-1.2, 1.0]]), []
    for missing in range(5, 30):
        asked = iter(range(1000))

        def losses(x, asked=asked, missing=missing):
            values, gradients = rosenbrocks(x)
            return values + (np.nan if next(asked) == missing else 0.0), gradients

        found, iterations = minimise_by_line_searches(losses, start, HagerZhangLBFGS())
        ends.append((found.tolist() == start.tolist(), np.allclose(found, 1.0), iterations[0] == 0))
    assert set(ends) == {(True, False, True), (False, True, False)}


def asked(search, *answers):
    """What a search asks for in one dimension, given the losses and slopes that it is told."""
    places = [next(search)]
    for loss, slope in answers:
        places.append(search.send((loss, np.array([slope]))))
    return [float(place[0]) for place in places]


def test_it_bisects_until_the_slope_turns():
    line = LineSearch(X, np.ones(1), 0.0, -np.ones(1))
    high = Trial(1.0, 3.0, -1.0, -np.ones(1))
    search = line._bisected(line.start, high)
    assert asked(search, (-1.0, -1.0), (2.0, -1.0), (-2.0, -1.0)) == [0.5, 0.75, 0.625, 0.6875]
    with pytest.raises(StopIteration) as end:
        search.send((-1.0, np.ones(1)))
    assert [one.step for one in end.value.value] == [0.625, 0.6875]


def test_a_direction_that_ascends_is_replaced_by_the_gradient(monkeypatch):
    """The first search ends with a slope that is steeper than at first, so its pair has the wrong sign."""
    known = []

    def times(gradient, pairs):
        known.append(len(pairs))
        return _times_inverse_hessian(gradient, pairs)

    monkeypatch.setattr(hager_zhang, "_times_inverse_hessian", times)
    answers = (0.0, -1.0), (-1.0, -2.0), (-5.0, 1.0), (-2.0, -1.5)
    places = asked(_minimised(X, HagerZhangLBFGS()), *answers)
    assert places == pytest.approx([0, 1, 5, 11 / 3, 11 / 3 + 1.5]) and known == [0, 1]


def test_what_was_known_of_the_curvature_is_forgotten_with_it(monkeypatch):
    """After a direction that ascends only what is learned from then on counts."""
    known = []

    def ascends_once(gradient, pairs):
        known.append(len(pairs))
        return -gradient if len(known) == 4 else _times_inverse_hessian(gradient, pairs)

    monkeypatch.setattr(hager_zhang, "_times_inverse_hessian", ascends_once)
    start = np.array([[-1.2, 1.0]])
    minimise_by_line_searches(rosenbrocks, start, HagerZhangLBFGS(iterations=6))
    assert known == [0, 1, 2, 3, 1, 2]
    del known[:]
    minimise_by_line_searches(rosenbrocks, start, HagerZhangLBFGS(iterations=3, memory=1))
    assert known == [0, 1, 1]
