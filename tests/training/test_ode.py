"""Ensembles of differential equations: against torchdiffeq, against single runs, and as rows."""

import json
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import torch
from scipy.optimize import minimize, rosen, rosen_der
from stopping import Interrupted, Stopping

from nalm.models import NODE, Layer
from nalm.records import Store, code, freshness, run_all
from nalm.tasks import FractionalSIRTask
from nalm.training import L1, LBFGS, Recipe, RMSProp, Run
from nalm.training.checkpoint import SealedCheckpoint
from nalm.training.ode.answers import Answers
from nalm.training.ode.ensemble import NODEEnsemble
from nalm.training.ode.lbfgs import minimise_together


def node(unit="NPU", hidden=3, **options):
    layers = (
        Layer(unit=unit, out_features=hidden, options={"init_scale": 0.2}),
        Layer(unit="NAU", out_features=3, options={"clamp": "none", "init": "glorot", "init_scale": 0.2}),
    )
    return NODE(layers=layers, initial_state=(100.0, 0.01, 0.0), **({"step": 10.0} | options))


def run(seed=0, model=None, beta=0.0, **recipe):
    penalties = (L1(start=beta, end=beta),) if beta else ()
    defaults = {
        "iterations": 6,
        "optimiser": RMSProp(lr=0.005),
        "log_interval": 3,
        "batch_size": 40,
        "selection": "last",
        "stream": "common",
    }
    return Run(
        task=FractionalSIRTask(),
        model=model or node(),
        recipe=Recipe(**(defaults | {"penalties": penalties} | recipe)),
        seed=seed,
    )


@pytest.mark.parametrize(
    "options", [{}, {"method": "rk4"}, {"step": 200 / 7}, {"method": "rk4", "positive": True}], ids=str
)
def test_the_loss_and_its_gradient_are_those_of_torchdiffeq(options):
    runs = [run(seed, node(**options)) for seed in range(2)]
    ensemble = NODEEnsemble(runs, compiled=False)
    losses, gradients, _ = ensemble._gradients(ensemble.parameters, 0)
    for column, one in enumerate(runs):
        torch.manual_seed(one.seed)
        network = one.model.build(1)
        data = one.task.shared()
        loss = (network(data["times"]) - data["states"]).square().mean()
        loss.backward()
        assert losses[column].item() == pytest.approx(loss.item(), rel=1e-10)
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(gradients[name][column], parameter.grad, rtol=1e-8, atol=1e-10)


def test_compiled_and_eager_agree():
    runs = [run(0, node(step=100.0))]
    eager, compiled = (NODEEnsemble(runs, compiled=c) for c in (False, True))
    torch.testing.assert_close(
        eager._gradients(eager.parameters, 0)[0],
        compiled._gradients(compiled.parameters, 0)[0],
        rtol=1e-10,
        atol=0,
    )


def test_a_run_learns_the_same_in_any_company():
    runs = [run(seed, beta=beta, finish=LBFGS(iterations=5)) for seed in range(2) for beta in (0.0, 0.1)]
    together, alone = NODEEnsemble(runs).train(), NODEEnsemble(runs[3:]).train()
    np.testing.assert_allclose(together.errors["valid"][:, 3], alone.errors["valid"][:, 0], rtol=1e-6)
    assert (together.errors["valid"][-1] < together.errors["valid"][0]).all()
    assert together.iterations.tolist() == [0, 3, 11]


def test_a_second_stage_ends_lower_than_the_first():
    first, both = (NODEEnsemble([run(finish=finish)]).train() for finish in (None, LBFGS(iterations=5)))
    assert both.errors["valid"][-1, 0] < first.errors["valid"][-1, 0]


def bits(log):
    arrays = {
        **log.errors,
        **log.weights,
        "iterations": log.iterations,
        "sparsity": log.sparsity_errors,
        "nan_at": log.nan_at,
    }
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("finish", [None, LBFGS(iterations=4)], ids=str)
def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path, finish):
    wild = run(9, optimiser=RMSProp(lr=50.0), beta=0.1, log_interval=2, finish=finish)
    runs = [
        wild,
        *(run(seed, beta=beta, log_interval=2, finish=finish) for seed in range(2) for beta in (0.1, 1.0)),
    ]
    whole, interruptions, log = NODEEnsemble(runs).train(), 0, None
    while log is None:
        told = []
        with suppress(Interrupted):  # further each time
            log = NODEEnsemble(runs).train(told.append, Stopping(tmp_path / "some.pt", 2 + interruptions))
        interruptions += log is None
    assert interruptions >= (2 if finish is None else 4) and bits(log) == bits(whole)
    assert sum(told) == runs[0].recipe.iterations


def test_a_second_training_is_the_first_one_again():
    ensemble = NODEEnsemble([run(seed, finish=LBFGS(iterations=4)) for seed in range(2)])
    assert bits(ensemble.train()) == bits(ensemble.train())


def test_what_a_minimiser_was_answered_is_not_computed_again(tmp_path):
    runs, path, asked = [run(seed, finish=LBFGS(iterations=6)) for seed in range(2)], tmp_path / "some.pt", []

    def ensemble():
        made = NODEEnsemble(runs)
        compute = made.answers.losses
        made.answers.losses = lambda x: asked.append(x.tobytes()) or compute(x)
        return made

    with pytest.raises(Interrupted):
        ensemble().train(checkpoint=Stopping(path, 10))
    before = len(asked)
    ensemble().train(checkpoint=SealedCheckpoint(path, every=1e9))
    assert 2 <= before < len(asked) == len(set(asked))


def test_parameters_that_differ_in_a_bit_are_asked_for_anew():
    asked, one = [], np.ones((1, 2))
    answers = Answers(lambda x: asked.append(x) or (x.sum(1), 2 * x))
    for x in (one, np.nextafter(one, 2), one):
        answers(x)
    assert len(asked) == 2


def test_a_checkpoint_of_other_runs_is_not_used(tmp_path):
    path = tmp_path / "some.pt"
    with pytest.raises(Interrupted):
        NODEEnsemble([run(0)]).train(checkpoint=Stopping(path, 2))
    other = [run(1)]
    assert bits(NODEEnsemble(other).train(checkpoint=SealedCheckpoint(path))) == bits(
        NODEEnsemble(other).train()
    )


def test_imaginary_weights_stay_where_they_are_told_to():
    model = node(imaginary_until=2)
    weights = [
        NODEEnsemble([run(0, model, iterations=n, finish=finish)]).train().weights
        for n, finish in ((2, None), (6, LBFGS(iterations=3)))
    ]
    np.testing.assert_array_equal(weights[0]["field.0.weight_im"], weights[1]["field.0.weight_im"])
    assert (weights[0]["field.0.weight"] != weights[1]["field.0.weight"]).any()


def test_a_diverged_run_is_recorded_and_harms_no_other(tmp_path):
    wild = run(0, optimiser=RMSProp(lr=50.0), finish=LBFGS(iterations=3))
    rows = run_all(
        [wild, run(1, finish=LBFGS(iterations=3))], "demo/node", results=str(tmp_path), progress=False
    )
    assert not np.isfinite(rows["valid_mse"][0]) and np.isfinite(rows["valid_mse"][1])


def test_rows_hold_weights_and_what_else_is_counted(tmp_path):
    large = node("Dense", 50)
    rows = run_all(
        [run(), run(model=large, iterations=1)], "demo/node", results=str(tmp_path), progress=False
    )
    assert set(json.loads(rows["weights"][0])) == {
        "field.0.weight",
        "field.0.weight_im",
        "field.0.gate",
        "field.1.weight",
    }
    assert (
        rows["parameters"][1] == 3 * 50 + 50 + 50 * 3
        and 0 < rows["parameters_above_0.01"][1] <= rows["parameters_above_0.001"][1]
    )
    assert {"negative_updates", "finish_iterations"} <= set(rows)
    again = run_all([run()], "demo/node", results=str(tmp_path), progress=False)
    assert again["weights"][0] == rows["weights"][0] and len(Store(tmp_path, "demo/node").read()) == 2


def test_an_update_is_negative_where_an_entry_of_a_state_is(monkeypatch):
    ensemble = NODEEnsemble([run(0), run(1)], compiled=False)
    states = torch.zeros(4, 2, 3)  # after each step, of each run
    states[1, 1, 2] = -1e-9
    zeros = {name: torch.zeros_like(values) for name, values in ensemble.parameters.items()}
    monkeypatch.setattr(ensemble, "_gradients", lambda parameters, iteration: (None, zeros, states))
    ensemble._advance(0, 3)
    assert ensemble.negative.tolist() == [0, 3]


def test_a_second_stage_counts_where_compiling_has_to_pay():
    lengths = [(300, None), (299, None), (100, LBFGS(iterations=200)), (100, LBFGS(iterations=199))]
    made = [NODEEnsemble([run(iterations=n, finish=finish)], compiled=False) for n, finish in lengths]
    assert [ensemble._worth_compiling() for ensemble in made] == [True, False, True, False]


def test_the_last_weights_are_kept_whatever_the_recipe_says():
    assert NODEEnsemble([run(selection="best-validation")], compiled=False).selection == "last"


def test_rows_depend_on_how_differential_equations_are_trained(tmp_path, monkeypatch):
    run_all([run(iterations=1)], "demo/node", results=str(tmp_path), progress=False)
    assert freshness("demo/node", tmp_path) == "fresh"
    monkeypatch.setitem(
        code.LOADED,
        "nalm.training.ode.lbfgs",
        code.LOADED["nalm.training.ode.lbfgs"].replace('ftol": 0.0', 'ftol": 1e-9'),
    )
    assert freshness("demo/node", tmp_path) == "older than the code it depends on"


@pytest.fixture
def minimised(monkeypatch):
    """What SciPy found in each start of a run."""
    found = []
    monkeypatch.setattr(
        scipy.optimize,  # from which each minimisation takes it
        "minimize",
        lambda *arguments, **options: found.append(minimize(*arguments, **options)) or found[-1],
    )
    return found


def test_runs_are_minimised_together_as_each_would_be_alone(minimised):
    def losses(x):
        return np.array([rosen(row) for row in x]), np.stack([rosen_der(row) for row in x])

    starts = np.array([[-1.2, 1.0, 0.5], [0.0, 3.0, -1.0]])
    found, iterations = minimise_together(losses, starts, LBFGS(iterations=500))
    together = sorted(result.nit for result in minimised)
    np.testing.assert_allclose(found, 1.0, atol=1e-6)
    options = {"maxcor": 10, "maxiter": 500, "ftol": 0.0, "gtol": 1e-8}
    alone = [minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options=options) for start in starts]
    assert len(together) == 2 and together == sorted(iterations) == sorted(result.nit for result in alone)


def test_iterations_before_a_new_start_count(minimised):
    """Along a kink the line search ends without a lower point, and a new start finds one. The lowest of all
    is taken.
    """
    seen = []

    def losses(x):
        kink = x[:, 1] - x[:, 0] ** 2
        slope = 8 * np.sign(kink)
        seen.append(8 * np.abs(kink) + (1 - x[:, 0]) ** 2)
        return seen[-1], np.stack([-2 * x[:, 0] * slope - 2 * (1 - x[:, 0]), slope], 1)

    starts = np.array([[0.377, -0.396], [5.48, -9.235], [3.763, 2.331]])
    found, iterations = minimise_together(losses, starts, LBFGS(iterations=200))
    assert len(minimised) > len(starts) and iterations.sum() == sum(result.nit for result in minimised)
    np.testing.assert_array_equal(np.min(seen, 0), losses(found)[0])


def test_a_run_that_starts_where_there_is_no_loss_stays_there():
    def losses(x):
        return np.where(x[:, 0] > 5, np.nan, (x**2).sum(1)), 2 * x

    found, _ = minimise_together(losses, np.array([[9.0], [1.0]]), LBFGS(iterations=20))
    assert found[0, 0] == 9.0 and abs(found[1, 0]) < 1e-6


def test_where_there_is_no_gradient_there_is_no_loss_either():
    def losses(x):
        return (x**2).sum(1), np.where(x > 5, 2 * x, np.nan)

    found, _ = minimise_together(losses, np.array([[9.0]]), LBFGS(iterations=20))
    assert 5 < found[0, 0] < 9


def test_scipy_is_told_the_settings(monkeypatch):
    told = []
    minimised = SimpleNamespace(nit=7, status=0)
    monkeypatch.setattr(scipy.optimize, "minimize", lambda *_, **how: told.append(how) or minimised)
    settings = LBFGS(iterations=7, memory=3, gradient_tolerance=0.5)
    minimise_together(lambda x: (x, x), np.ones((1, 1)), settings)
    (how,) = told
    assert how["options"] == {"maxcor": 3, "maxiter": 7, "maxfun": 700, "ftol": 0.0, "gtol": 0.5}


def test_an_error_in_the_loss_is_not_swallowed():
    def losses(x):
        raise RuntimeError("no loss today")

    with pytest.raises(RuntimeError, match="no loss today"):
        minimise_together(losses, np.zeros((2, 1)), LBFGS())


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="as many outputs as the state has entries, 3"):
        NODE(layers=(Layer(unit="NPU", out_features=2),), initial_state=(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="'euler' or 'rk4'"):
        node(method="tsit5")
    with pytest.raises(ValueError, match="the loss 'mse'"):
        NODEEnsemble([run(loss="pcc")])
    with pytest.raises(ValueError, match="without clipping of gradients"):
        NODEEnsemble([run(clip_gradient_norm=1.0)])
    with pytest.raises(ValueError, match="must divide the last time, 200"):
        NODEEnsemble([run(model=node(step=7.0))])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_loss_that_raises_leaves_no_thread_waiting(error):
    asked, before = [], set(threading.enumerate())

    def losses(x):
        asked.append(len(x))
        if len(asked) == 3:
            raise error("stopped")
        return (x**2).sum(1), 2 * x

    with pytest.raises(error, match="stopped"):
        minimise_together(losses, np.ones((5, 2)), LBFGS())
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
        assert not thread.is_alive()
