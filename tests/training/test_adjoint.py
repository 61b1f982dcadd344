"""The gradient of the continuous adjoint: against formulas, against the discrete one, and in training."""

from contextlib import suppress

import numpy as np
import pytest
import torch
from scipy.linalg import expm, expm_frechet
from stopping import Interrupted, Stopping

from nalm.models import NODE, AdjointNODE, Layer
from nalm.records import code, run_all
from nalm.tasks import FractionalSIRTask
from nalm.training import L1, LBFGS, HagerZhangLBFGS, Recipe, RMSProp, Run
from nalm.training.checkpoint import SealedCheckpoint
from nalm.training.compiler import Eager
from nalm.training.ode.adjoint import AdjointEnsemble, AdjointRollout, backward_points
from nalm.training.ode.ensemble import NODEEnsemble
from nalm.training.ode.hager_zhang import HagerZhangEnsemble
from nalm.training.ode.rollout import Rollout
from nalm.training.trainers import trainer_of


def node(kind=AdjointNODE, unit="NPU", **options):
    layers = (
        Layer(unit=unit, out_features=3, options={"init_scale": 0.2}),
        Layer(unit="NAU", out_features=3, options={"clamp": "none", "init": "glorot", "init_scale": 0.2}),
    )
    return kind(layers=layers, initial_state=(100.0, 0.01, 0.0), **({"step": 10.0} | options))


def run(seed=0, model=None, beta=0.0, **recipe):
    penalties = (L1(start=beta, end=beta),) if beta else ()
    recipe = {"iterations": 6, "log_interval": 3, "penalties": penalties} | recipe
    settings = {"optimiser": RMSProp(lr=0.005), "batch_size": 40, "selection": "last", "stream": "common"}
    return Run(
        task=FractionalSIRTask(), model=model or node(), recipe=Recipe(**(settings | recipe)), seed=seed
    )


def linear(a, start, times, step):
    """The rollout of y' = A y, for one run."""

    def derivative(parameters, y):
        return torch.einsum("rij,r...j->r...i", parameters["a"], y)

    points = backward_points(times, step)
    path = Rollout(derivative, start, points, "euler", step, lambda function: function)
    return AdjointRollout(derivative, path, points, times, Eager)({"a": a}, 1)


def test_backward_steps_end_at_every_time():
    times = FractionalSIRTask().shared()["times"][:, 0]
    points = backward_points(times, 1.0)
    lengths = points[:-1] - points[1:]
    assert len(points) == 39 * 6 + 1 and set(times.tolist()) < set(points.tolist())
    torch.testing.assert_close(
        lengths, torch.tensor([1.0] * 5 + [200 / 39 - 5], dtype=torch.float64).repeat(39)
    )
    assert backward_points(torch.tensor([3.0]), 1.0).tolist() == [3.0, 2.0, 1.0, 0.0]
    assert (
        len(backward_points(torch.tensor([3 * 0.1], dtype=torch.float64), 0.1)) == 4
    )  # of 3.0000000000000004 steps


def test_of_one_linear_equation_the_gradient_is_the_end_times_the_time():
    """y' = a y has dy(T)/da = T y(T), of the Euler solution as well; the discrete gradient is not that."""
    a = torch.tensor([[[0.3]]], dtype=torch.float64, requires_grad=True)
    at, _ = linear(a, torch.tensor([2.0], dtype=torch.float64), torch.tensor([4.0], dtype=torch.float64), 1.0)
    assert at.item() == pytest.approx(2 * 1.3**4)
    (gradient,) = torch.autograd.grad(at.sum(), a)
    assert gradient.item() == pytest.approx(4 * 2 * 1.3**4)


def test_of_a_linear_system_it_approaches_the_formula_as_the_step():
    matrix, start = np.array([[-0.2, 0.5], [-0.4, 0.1]]), np.array([1.0, -0.5])
    times, weights = np.array([0.7, 2.0, 3.0]), np.array([[1.0, 0.5], [-0.3, 2.0], [0.4, 0.1]])
    exact = np.zeros((2, 2))
    for i, j in np.ndindex(2, 2):
        unit = np.zeros((2, 2))
        unit[i, j] = 1
        frechet = [expm_frechet(t * matrix, t * unit)[1] @ start for t in times]
        exact[i, j] = sum(w @ f for w, f in zip(weights, frechet, strict=True))
    errors = []
    for step in (0.1, 0.05, 0.025):
        a = torch.tensor(matrix)[None].requires_grad_()
        at, _ = linear(a, torch.tensor(start), torch.tensor(times), step)
        (gradient,) = torch.autograd.grad((at[:, 0] * torch.tensor(weights)).sum(), a)
        errors.append(np.abs(gradient[0].numpy() - exact).max())
        states = np.stack([expm(t * matrix) @ start for t in times])
        np.testing.assert_allclose(at[:, 0].detach(), states, atol=step)
    assert 1.8 < errors[0] / errors[1] < 2.2 and 1.8 < errors[1] / errors[2] < 2.2


def test_it_approaches_the_discrete_gradient_as_the_step():
    apart = []
    for step in (2.0, 1.0, 0.5):
        both = []
        for kind in (NODE, AdjointNODE):
            ensemble = trainer_of(one := run(0, node(kind, step=step)))([one], compiled=False)
            both.append(ensemble._gradients(ensemble.parameters, 0))
        (loss, discrete, _), (same, adjoint, _) = both
        assert same.item() == pytest.approx(loss.item(), rel=1e-12)
        apart.append({n: float((adjoint[n] - discrete[n]).norm() / discrete[n].norm()) for n in discrete})
    for name in ("field.0.weight", "field.0.gate", "field.1.weight"):
        ratios = [apart[0][name] / apart[1][name], apart[1][name] / apart[2][name]]
        assert apart[1][name] < 0.05 and all(1.7 < ratio < 2.3 for ratio in ratios), name


def test_penalties_are_differentiated_as_they_are():
    plain, penalised = (AdjointEnsemble([run(0, beta=beta)], compiled=False) for beta in (0.0, 0.5))
    _, without, _ = plain._gradients(plain.parameters, 0)
    _, with_penalty, _ = penalised._gradients(penalised.parameters, 0)
    for name, parameter in plain.parameters.items():
        torch.testing.assert_close(with_penalty[name] - without[name], 0.5 * parameter.sign())


def test_compiled_and_eager_agree():
    eager, compiled = (AdjointEnsemble([run(0, node(step=50.0))], compiled=c) for c in (False, True))
    (loss, gradients, _), (same, others, _) = (e._gradients(e.parameters, 0) for e in (eager, compiled))
    torch.testing.assert_close(loss, same, rtol=1e-10, atol=0)
    for name in gradients:
        torch.testing.assert_close(gradients[name], others[name], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("finish", [LBFGS(iterations=5), HagerZhangLBFGS(iterations=5)], ids=lambda f: f.kind)
@pytest.mark.parametrize("kind", [NODE, AdjointNODE])
def test_a_run_learns_the_same_in_any_company(kind, finish):
    runs = [run(seed, node(kind), beta, finish=finish) for seed in range(2) for beta in (0.0, 0.1)]
    trainer = trainer_of(runs[0])
    together, alone = trainer(runs).train(), trainer(runs[3:]).train()
    for name in ("valid", "finish_iterations"):
        np.testing.assert_allclose(together.errors[name][:, 3], alone.errors[name][:, 0], rtol=1e-6)
    assert (together.errors["valid"][-1] < together.errors["valid"][0]).all()
    assert (together.errors["valid"][-1] < together.errors["valid"][1]).sum() >= 2


def test_gradient_and_line_search_choose_the_trainer():
    finish = HagerZhangLBFGS(iterations=5)
    assert trainer_of(run(0, node(NODE), finish=LBFGS(iterations=5))) is NODEEnsemble
    assert trainer_of(run(0, node(NODE), finish=finish)) is HagerZhangEnsemble
    assert trainer_of(run(0, finish=finish)) is trainer_of(run(0)) is AdjointEnsemble


def test_an_interrupted_training_goes_on_to_the_same_bits(tmp_path):
    runs = [run(seed, beta=0.1, finish=HagerZhangLBFGS(iterations=4)) for seed in range(2)]
    whole = AdjointEnsemble(runs).train()
    for writings in (2, 2, 3):
        with suppress(Interrupted):
            AdjointEnsemble(runs).train(checkpoint=Stopping(tmp_path / "some.pt", writings))
            raise AssertionError("it was not interrupted")
    log = AdjointEnsemble(runs).train(checkpoint=SealedCheckpoint(tmp_path / "some.pt", every=1e9))
    for name, values in {**whole.errors, **whole.weights}.items():
        assert values.tobytes() == {**log.errors, **log.weights}[name].tobytes(), name


def test_imaginary_weights_stay_where_they_are_told_to():
    model = node(imaginary_until=2)
    short, long = (
        AdjointEnsemble([run(0, model, iterations=n, finish=finish)]).train().weights
        for n, finish in ((2, None), (6, HagerZhangLBFGS(iterations=3)))
    )
    np.testing.assert_array_equal(short["field.0.weight_im"], long["field.0.weight_im"])
    assert (short["field.0.weight"] != long["field.0.weight"]).any()


def test_a_diverged_run_is_recorded_and_harms_no_other(tmp_path):
    finish = HagerZhangLBFGS(iterations=3)
    runs = [run(0, optimiser=RMSProp(lr=50.0), finish=finish), run(1, finish=finish)]
    rows = run_all(runs, "demo/node", results=str(tmp_path), progress=False)
    assert not np.isfinite(rows["valid_mse"][0]) and np.isfinite(rows["valid_mse"][1])
    assert rows["model"].tolist() == ["AdjointNODE"] * 2


def test_keys_and_code_say_how_a_run_is_trained():
    runs = [
        run(0, node(kind), finish=finish)
        for kind in (NODE, AdjointNODE)
        for finish in (LBFGS(iterations=5), HagerZhangLBFGS(iterations=5))
    ]
    assert len({one.key for one in runs}) == len({code.code(one) for one in runs}) == 4
    assert all(Run.from_json(one.canonical()) == one for one in runs)
    ways = {code.way(one.full_configuration) for one in runs}
    assert len(ways) == 4


def test_what_trains_other_runs_is_not_in_their_code():
    """Rows of the discrete gradient do not grow old with the adjoint or with the line search."""
    before = {kind: code.code(run(0, node(kind), finish=LBFGS(iterations=5))) for kind in (NODE, AdjointNODE)}
    changed = dict(code.LOADED)
    for module, old, new in (
        ("nalm.training.ode.adjoint", "torch.baddbmm(adjoint", "2 * torch.baddbmm(adjoint"),
        ("nalm.training.ode.hager_zhang", "EXPANSION, SHRINKAGE = 5.0", "EXPANSION, SHRINKAGE = 4.0"),
    ):
        assert old in changed[module]
        changed[module] = changed[module].replace(old, new)
    after = {kind: code.code(run(0, node(kind), finish=LBFGS(iterations=5)), changed) for kind in before}
    assert after[NODE] == before[NODE] and after[AdjointNODE] != before[AdjointNODE]


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="'euler'"):
        node(method="rk4")
    with pytest.raises(ValueError, match="finish"):
        run(finish=RMSProp(lr=0.1))
