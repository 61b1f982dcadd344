"""The ensemble against ordinary training loops, and what it promises about runs, streams and failures."""

import numpy as np
import pytest
import torch
from torch._inductor import config as inductor

from nalm.models import Layer, Stack
from nalm.tasks import SimpleArithmeticTask, SingleModuleTask, SubsetArithmeticTask, TenParameterTask
from nalm.training import L1, SGD, Adam, Discretisation, Ensemble, Recipe, RMSProp, Run
from nalm.training.checkpoint import Checkpoint
from nalm.training.streams import uniforms
from nalm.training.until_lost import EnsembleUntilLost
from nalm.units import penalty, project_

MODIFIED = Layer(
    unit="RealNPU",
    options={"init": "capped-glorot", "clip": ("weight", "gate"), "discretise": ("weight", "gate")},
)
DIVISION = SingleModuleTask.on("U[1,2)", operation="div")


def run(model=None, seed=0, task=DIVISION, **recipe):
    recipe = {"iterations": 60, "optimiser": Adam(lr=1e-2), "log_interval": 20} | recipe
    return Run(task=task, model=model or Stack.of("NMRU", 1), recipe=Recipe(**recipe), seed=seed)


def mse(output, target):
    return torch.nn.functional.mse_loss(output, target)


def pcc(output, target):
    return 1 - torch.corrcoef(torch.cat([output, target], 1).mT)[0, 1]


def mape(output, target):
    return (1 - output / target).abs().mean()


LOSSES = {"mse": mse, "pcc": pcc, "mape": mape, "mse+pcc": lambda *both: mse(*both) + pcc(*both)}


def ordinary_loop(run):
    """One run, written as anybody would: a module, torch.optim, a loop. Returns the errors and the weights at
    the log points.
    """
    recipe, task = run.recipe, run.task
    torch.manual_seed(run.seed)
    module = run.model.build(task.in_features)
    optimiser = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}[recipe.optimiser.kind](
        module.parameters(), lr=recipe.optimiser.lr
    )
    constants, errors, weights = task.constants(run.seed), [], []
    for iteration in range(recipe.iterations + 1):
        if iteration % recipe.log_interval == 0:
            module.eval()
            with torch.no_grad():
                sets = task.evaluation(run.seed)
                errors.append(
                    [
                        float((module(sets[n].inputs) - sets[n].targets).square().mean())
                        for n in ("valid", "test")
                    ]
                )
            weights.append(
                {name: parameter.detach().numpy().copy() for name, parameter in module.named_parameters()}
            )
            module.train()
        if iteration == recipe.iterations:
            return np.array(errors), weights
        noise = uniforms(
            torch.tensor([run.seed]), torch.tensor(iteration), task.noise_rows(), recipe.batch_size
        )[0]
        x, target = task.batch(noise, constants, {})
        loss = LOSSES[recipe.loss](module(x), target)
        for p in recipe.penalties:
            if p.kind == "L1":
                beta = p.start * p.growth ** min(iteration // p.every, round(np.log10(p.end / p.start)))
                loss = loss + beta * sum(w.abs().sum() for w in module.parameters())
            else:
                loss = loss + p.weight * np.clip((iteration - p.start) / (p.end - p.start), 0, 1) * penalty(
                    module
                )
        optimiser.zero_grad()
        loss.backward()
        if recipe.clip_gradient_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), recipe.clip_gradient_norm)
        optimiser.step()
        project_(module)


PENALTIES = (L1(start=1e-4, end=1e-2, every=20), Discretisation(weight=0.5, start=20, end=40))
CASES = {
    "modified Real NPU": run(Stack(layers=(MODIFIED,)), penalties=PENALTIES),
    "NRU, large steps": run(Stack.of("NRU", 1), optimiser=Adam(lr=1.0), seed=3),
    "NMRU, clipped gradient": run(clip_gradient_norm=1.0, seed=4),
    "NMRU with a gate, clipped gradient": run(  # two tensors, whose norms are not that of both
        Stack(layers=(Layer(unit="NMRU", options={"gate": "zero"}),)),
        optimiser=SGD(lr=1e-2),
        clip_gradient_norm=1.0,
        seed=5,
    ),
    "NMRU, SGD, 10 inputs": run(
        task=SingleModuleTask.on("U[-2,2)", "div", inputs=10), optimiser=SGD(lr=1e-3), clip_gradient_norm=1.0
    ),
    "NAU-NMU": run(
        Stack.of("NAU", 2, "NMU", 1),
        task=TenParameterTask(),
        penalties=(Discretisation(weight=10.0, start=0, end=50),),
    ),
    "NALU-NALU, 100 inputs": run(
        Stack.of("NALU", 2, "NALU", 1), task=SubsetArithmeticTask(operation="mul"), iterations=20
    ),
    "NAC, MAPE": run(Stack.of("NAC", 1), loss="mape"),
    "NAC, MSE + PCC": run(Stack.of("NAC", 1), loss="mse+pcc"),
    "PCC": run(Stack.of("NMU", 1), task=SingleModuleTask.on("U[1,2)", "mul"), loss="pcc"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_an_ensemble_trains_as_an_ordinary_loop(case):
    others = [case.model_copy(update={"seed": seed}) for seed in (11, 12)]
    log = Ensemble([others[0], case, others[1]]).train()
    errors, weights = ordinary_loop(case)
    ours = np.stack([log.errors[name][:, 1] for name in ("valid", "test")], 1)
    np.testing.assert_allclose(ours, errors, rtol=2e-3, atol=1e-7)
    assert log.weights.keys() == weights[0].keys()
    for name, selected in weights[log.selected[1]].items():
        np.testing.assert_allclose(log.weights[name][1], selected, atol=1e-4)


def assert_equal_runs(together, number, alone):
    for name in ("valid", "test"):
        np.testing.assert_allclose(together.errors[name][:, number], alone.errors[name][:, 0], rtol=1e-4)
    np.testing.assert_allclose(together.weights["0.weight"][number], alone.weights["0.weight"][0], atol=1e-6)


def test_a_run_alone_equals_the_run_in_an_ensemble():
    """Another range, another learning rate and another penalty beside it make no difference."""
    neighbours = [
        run(seed=1, task=SingleModuleTask.on("U[-20,-10)", "div"), optimiser=Adam(lr=0.3)),
        run(seed=2, penalties=(Discretisation(weight=10.0, start=0, end=10),)),
    ]
    assert_equal_runs(Ensemble([*neighbours, run()]).train(), 2, Ensemble([run()]).train())


def test_each_run_is_clipped_to_a_norm_of_its_own():
    runs = [run(clip_gradient_norm=norm, optimiser=SGD(lr=1e-2)) for norm in (1e-2, 3.0, 0.2)]
    together, alone = Ensemble(runs).train(), [Ensemble([one]).train() for one in runs]
    for number, log in enumerate(alone):
        assert_equal_runs(together, number, log)
    assert len({log.weights["0.weight"].tobytes() for log in alone}) == 3


def with_eager_evaluation(ensemble):
    """To compile the evaluation too takes as long as to compile the update."""
    ensemble.evaluate._errors = ensemble.evaluate._summed_errors
    return ensemble


def test_one_and_two_threads_agree():
    """An update draws 409,600 numbers and has 40,960 outputs; torch gives a second thread nothing of tensors
    below 32,768 numbers.
    """
    task = SingleModuleTask.on("U[1,2)", "div", inputs=10)
    runs = [run(task=task, iterations=10, log_interval=10, batch_size=4096, seed=seed) for seed in range(10)]

    def train(threads, compiled):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        try:
            # Inductor's cache does not tell code for one thread from code for two, unless their number is
            # part of the configuration.
            with inductor.patch({"cpp.threads": threads}):
                return with_eager_evaluation(Ensemble(runs, compiled=compiled)).train()
        finally:
            torch.set_num_threads(before)

    one, *others = train(1, False), train(2, False), train(2, True)
    for two in others:
        np.testing.assert_allclose(one.errors["test"], two.errors["test"], rtol=1e-4)
        np.testing.assert_allclose(one.weights["0.weight"], two.weights["0.weight"], atol=1e-6)


# Intervals of nine and four updates: with two in a call, the last call of an interval has one or two.
SOME = CASES["modified Real NPU"].but(
    recipe=CASES["modified Real NPU"].recipe.but(iterations=40, log_interval=9)
)
OTHERS = [
    SOME.but(
        seed=1, task=SingleModuleTask.on("U[-20,-10)", "div"), recipe=SOME.recipe.but(optimiser=Adam(lr=0.3))
    ),
    SOME.but(seed=2, recipe=SOME.recipe.but(penalties=(Discretisation(weight=10.0, start=0, end=10),))),
    *(SOME.but(seed=seed) for seed in (3, 4)),
]


@pytest.fixture(scope="module")
def compiled():
    """Runs of other ranges, learning rates and penalties, trained with compiled updates."""
    return Ensemble([SOME, *OTHERS], compiled=True).train()


def assert_compiled_equals_eager(compiled, eager):
    for name in eager.errors:
        np.testing.assert_allclose(compiled.errors[name], eager.errors[name], rtol=1e-3, err_msg=name)
    for name in eager.weights:
        np.testing.assert_allclose(compiled.weights[name], eager.weights[name], atol=1e-4)


def test_compiled_equals_eager(compiled):
    assert_compiled_equals_eager(compiled, Ensemble([SOME, *OTHERS], compiled=False).train())


def test_a_run_alone_equals_the_run_in_a_compiled_ensemble(compiled):
    assert_equal_runs(compiled, 0, Ensemble([SOME]).train())


def test_compiled_equals_eager_with_a_hidden_layer():
    """Six outputs and batches of 100 leave partly filled vectors."""
    model = Stack(
        layers=(
            Layer(unit="RealNPU", out_features=6),
            Layer(unit="NAU", out_features=4, options={"clamp": "none"}),
        )
    )
    recipe = {
        "task": SimpleArithmeticTask(),
        "batch_size": 100,
        "optimiser": RMSProp(lr=1e-3),
        "selection": "last",
    }
    runs = [run(model, seed, **recipe) for seed in range(5)]
    eager, compiled = (
        with_eager_evaluation(Ensemble(runs, compiled=compiled)).train() for compiled in (False, True)
    )
    assert_compiled_equals_eager(compiled, eager)


def test_several_updates_in_one_compiled_call_change_nothing(compiled):
    """Not to the last bit, and neither where the last call of an interval has fewer updates."""
    two = Ensemble([SOME, *OTHERS], compiled=True, together=2).train()
    assert two.iterations.tolist() == [0, 9, 18, 27, 36, 40]
    for name in compiled.errors:
        np.testing.assert_array_equal(two.errors[name], compiled.errors[name], err_msg=name)
    for name in compiled.weights:
        np.testing.assert_array_equal(two.weights[name], compiled.weights[name], err_msg=name)


def test_the_common_stream_shares_inputs_but_not_weights_or_operands():
    runs = [
        run(task=SingleModuleTask.on("U[1,2)", "div", inputs=10), stream="common", seed=seed)
        for seed in range(3)
    ]
    ensemble, seen = Ensemble(runs), []
    batch = SingleModuleTask.batch

    def record(self, noise, constants, shared):
        seen.append(noise)
        return batch(self, noise, constants, shared)

    SingleModuleTask.batch = record
    try:
        ensemble.train()
    finally:
        SingleModuleTask.batch = batch
    assert all(noise.shape == (10, 128) for noise in seen)  # one batch, not one per run
    assert len({tuple(c.flatten().tolist()) for c in ensemble.update.constants["operands"]}) > 1
    assert len({tuple(w.flatten().tolist()) for w in ensemble.parameters["0.weight"]}) == 3


def test_subsets_of_other_sizes_beside_a_run_do_not_change_it():
    base = SubsetArithmeticTask(operation="mul", targets="float64")
    shapes = [base, base.but(subset_ratio=0.5), base.but(subset_ratio=0.05, overlap_ratio=1.0)]
    model = Stack.of("NAU", 2, "NMU", 1)
    each = [
        [run(task=task, model=model, stream="common", seed=seed, iterations=60) for seed in range(2)]
        for task in shapes
    ]
    joint = Ensemble([one for runs in each for one in runs]).train()
    alone = [Ensemble(runs).train() for runs in each]
    for name, errors in joint.errors.items():
        expected = np.concatenate([log.errors[name] for log in alone], 1)
        np.testing.assert_allclose(errors, expected, rtol=1e-4, err_msg=name)
    spread = joint.errors["test"][-1].reshape(3, 2).mean(1)
    assert spread.max() > 2 * spread.min()  # they are not the same task


@pytest.mark.parametrize("stream", ["own", "common", "numpy"])
@pytest.mark.parametrize("trainer", [Ensemble, EnsembleUntilLost])
def test_a_second_training_is_the_first_one_again(trainer, stream, tmp_path):
    task = SingleModuleTask.on("U[1,2)", "mul").but(targets="float64")
    runs = [run(task=task, model=Stack.of("NMU", 1), stream=stream, seed=seed) for seed in range(2)]
    ensemble, checkpoint = trainer(runs, compiled=False), Checkpoint(tmp_path / "some.pt", every=0)
    first, second, third = ensemble.train(), ensemble.train(), ensemble.train(checkpoint=checkpoint)
    for log in (second, third, ensemble.train(checkpoint=checkpoint)):  # the last from where the third ended
        for ours, theirs in ((log.errors, first.errors), (log.weights, first.weights)):
            assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("other", [{"device": "cuda"}, {"compiled": True}], ids=str)
def test_a_checkpoint_from_another_device_or_of_compiled_code_is_not_gone_on_from(other, tmp_path):
    said, runs = [], [run(iterations=50, log_interval=20)]
    checkpoint = Checkpoint(tmp_path / "some.pt", every=0, warn=said.append)
    whole = Ensemble(runs, compiled=False).train(checkpoint=checkpoint)
    content = checkpoint.read()
    assert (content["device"], content["compiled"], content["iteration"]) == ("cpu", False, 50)
    wrong = {name: values + 1 for name, values in content["parameters"].items()}
    checkpoint.write(content | {"parameters": wrong} | other)
    log = Ensemble(runs, compiled=False).train(checkpoint=checkpoint)
    assert all(np.array_equal(log.weights[name], whole.weights[name]) for name in whole.weights)
    (sentence,) = said
    assert "some.pt was written on another device, or with compiled code" in sentence


def test_what_a_training_took_before_it_was_interrupted_counts(tmp_path):
    runs, checkpoint, told = [run(iterations=20)], Checkpoint(tmp_path / "some.pt", every=0), []
    Ensemble(runs, compiled=False).train(checkpoint=checkpoint)
    checkpoint.write(checkpoint.read() | {"seconds": 1000.0})
    log = Ensemble(runs, compiled=False).train(told.append, checkpoint)
    assert 1000 < checkpoint.read()["seconds"] < log.seconds < 2000 and told == [20]


def test_to_warm_up_trains_nothing():
    ensemble = Ensemble([run()], compiled=False)
    before = {name: values.clone() for name, values in ensemble.parameters.items()}
    ensemble.warm_up()
    assert all(torch.equal(values, before[name]) for name, values in ensemble.parameters.items())


@pytest.mark.parametrize(("iterations", "together"), [(399_999, 1), (400_000, 4)])
def test_only_of_a_long_training_several_updates_are_compiled_together(iterations, together):
    assert Ensemble([run(iterations=iterations)], compiled=False).together == together


@pytest.mark.parametrize("runs", [[1], run(), [run(), "run"]], ids=["number", "a run alone", "text"])
def test_what_is_no_run_is_refused(runs):
    with pytest.raises(
        TypeError, match="^An ensemble takes a list of runs, but one of these is of type (int|tuple|str).$"
    ):
        Ensemble(runs)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"compiled": "no"}, TypeError, "compiled must be True, False or None, but it is 'no'"),
        ({"compiled": 0}, TypeError, "compiled must be True, False or None, but it is 0"),
        ({"together": 2.0}, TypeError, "together must be a positive integer, but it is 2.0"),
        ({"together": 0}, ValueError, "together must be a positive integer, but it is 0"),
    ],
    ids=str,
)
def test_flags_and_numbers_of_updates_are_checked(options, error, sentence):
    with pytest.raises(error, match=f"^{sentence}"):
        Ensemble([run()], **options)


def test_evaluations_come_before_the_update():
    log = Ensemble([run(iterations=50, log_interval=20)]).train()
    assert log.iterations.tolist() == [0, 20, 40, 50]
    torch.manual_seed(0)
    untrained, sets = Stack.of("NMRU", 1).build(2).eval(), DIVISION.evaluation(0)
    with torch.no_grad():
        expected = (untrained(sets["valid"].inputs) - sets["valid"].targets).square().mean()
    assert log.errors["valid"][0, 0] == pytest.approx(float(expected), rel=1e-5)


def test_selection():
    """NRU at a huge learning rate jumps about, so the best and the last model differ."""
    unstable = {"model": Stack.of("NRU", 1), "optimiser": Adam(lr=1.0), "log_interval": 5, "seed": 1}
    best, last = Ensemble([run(**unstable)]).train(), Ensemble([run(**unstable, selection="last")]).train()
    assert best.selected[0] == np.nanargmin(best.errors["valid"][:, 0])
    assert last.selected[0] == len(last.iterations) - 1
    np.testing.assert_array_equal(best.errors["valid"], last.errors["valid"])


def test_a_run_that_becomes_nan_does_not_stop_the_others():
    broken = run(
        task=SingleModuleTask.on("U[10,20)", "mul"),
        model=Stack.of("Linear", 1),
        optimiser=SGD(lr=1e30),
        seed=1,
    )
    sound = run(
        task=SingleModuleTask.on("U[1,2)", "mul"), model=Stack.of("Linear", 1), optimiser=SGD(lr=1e-3)
    )
    log = Ensemble([broken, sound]).train()
    assert log.nan_at[0] == 20 and np.isnan(log.nan_at[1])
    assert np.isnan(log.errors["test"][-1, 0]) and np.isfinite(log.errors["test"][-1, 1])
    assert log.selected[0] == 0
    alone = Ensemble([sound]).train()
    np.testing.assert_allclose(log.errors["test"][:, 1], alone.errors["test"][:, 0], rtol=1e-5)


def test_training_leaves_torchs_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Ensemble([run(iterations=2)]).train()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("runs", "device", "sentence"),
    [
        ([], "cpu", "at least one run"),
        ([run(), run(iterations=61)], "cpu", "same structure"),
        ([run()], "tpu", "Unknown device 'tpu'"),
        ([run()], "cuda:99", "is not there"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(runs, device, sentence):
    with pytest.raises(ValueError, match=sentence):
        Ensemble(runs, device=device)


def test_a_run_that_has_become_nan_stays_so():
    """So it is the same whether training goes on after it, as here, or stops, as in the papers' code: nothing
    that follows can be selected or solve.
    """
    recipe = Recipe(iterations=60, optimiser=SGD(lr=1e30), log_interval=10)
    task = SubsetArithmeticTask(operation="mul", inputs=8, subset_ratio=0.5)
    log = Ensemble([Run(task=task, model=Stack.of("Linear", 2, "Linear", 1), recipe=recipe, seed=0)]).train()
    ended = log.iterations >= log.nan_at[0]
    assert (
        ended.sum() >= 5
        and np.isnan(log.errors["valid"][ended]).all()
        and np.isnan(log.errors["test"][ended]).all()
    )
    assert log.iterations[log.selected[0]] < log.nan_at[0]


def test_an_evaluation_set_of_one_output_has_the_error_of_this_output():
    recipe = Recipe(iterations=1, optimiser=Adam(lr=1e-3), log_interval=1, selection="last")
    one = Run(task=SimpleArithmeticTask(), model=Stack.of("NAU", 4), recipe=recipe, seed=0)
    log, model = Ensemble([one], compiled=False).train(), one.model.build(one.task.in_features)
    model.load_state_dict({name: torch.from_numpy(values[0]) for name, values in log.weights.items()})
    for name, found in one.task.evaluation(one.seed).items():
        apart = model(found.inputs).detach() - found.targets
        errors = (apart.square() if found.error == "mse" else apart.abs()).mean(0)
        expected = errors.mean() if found.output is None else errors[found.output]
        assert log.errors[name][-1, 0] == pytest.approx(expected.item(), rel=1e-4), name
