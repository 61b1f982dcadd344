"""The batches of the papers' code: equal to a plain loop to the last bit, for whichever runs are beside,
wherever they were interrupted.
"""

import numpy as np
import pytest
import torch
from companion.division import settings as division

from nalm.models import Stack
from nalm.tasks import (
    LargeScaleTask,
    SingleModuleTask,
    SubsetArithmeticTask,
    TenParameterTask,
    Uniform,
    UniformUnion,
)
from nalm.training import Adam, Ensemble, Recipe, Run
from nalm.training.numpy_stream import BLOCK, NumPyStream

OPERATIONS = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "sub": lambda a, b: a - b,
    "div": lambda a, b: a / b,
    "root": lambda a, b: np.sqrt(a),
    "squared": lambda a, b: a * a,
}


def plain_batches(task, seed, subset, overlap, iterations, batch_size=128):
    """Written after the protocol: one generator per run; the position of the operands comes first, then the
    seed of the batches.
    """
    generator, inputs = np.random.RandomState(seed), task.in_features
    if isinstance(task, TenParameterTask):
        ranges = [(0, 4), (0, 2)]
    else:
        start = generator.randint(0, inputs - 2 * subset + overlap + 1)
        ranges = [(start, start + subset), (start + subset - overlap, start + 2 * subset - overlap)]
    generator = np.random.RandomState(generator.randint(0, 2**32 - 1))
    low, high = task.interpolation.low, task.interpolation.high
    for _ in range(iterations):
        x = generator.uniform(low=low, high=high, size=(batch_size, inputs))
        a, b = (np.sum(x[..., first:last], axis=(1,)) for first, last in ranges)
        t = OPERATIONS[task.operation](a, b)[:, np.newaxis]
        yield torch.tensor(x, dtype=torch.float32), torch.tensor(t, dtype=torch.float32)


def runs_of(task, seeds, **recipe):
    recipe = Recipe(
        iterations=recipe.pop("iterations", 100), optimiser=Adam(lr=1e-2), stream="numpy", **recipe
    )
    return [
        Run(task=task.but(targets="float64"), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=seed)
        for seed in seeds
    ]


@pytest.mark.parametrize(
    ("task", "subset", "overlap"),
    [
        (TenParameterTask(), 0, 0),
        *(
            (SubsetArithmeticTask(operation=operation), 25, 12)
            for operation in ("mul", "sub", "div", "root", "squared")
        ),
        (
            SubsetArithmeticTask(
                operation="mul",
                interpolation=Uniform(low=-2.0, high=2.0),
                inputs=30,
                subset_ratio=0.5,
                overlap_ratio=0.0,
            ),
            15,
            0,
        ),
        (SingleModuleTask.on("U[-2,2)", operation="div"), 1, 0),
        (SingleModuleTask.on("U[0.1,0.2)", operation="div", inputs=10), 1, 0),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else f"{value.kind}-{value.operation}",
)
def test_inputs_and_targets_are_those_of_a_plain_loop_to_the_last_bit(task, subset, overlap):
    seeds, iterations = (0, 1, 85, 2**31 + 5), BLOCK + 3
    found = list(NumPyStream(runs_of(task, seeds)).between(0, iterations))
    for run, seed in enumerate(seeds):
        for (x, t), batch in zip(plain_batches(task, seed, subset, overlap, iterations), found, strict=True):
            assert torch.equal(batch[run, :-1].mT, x) and torch.equal(batch[run, -1:].mT, t)


@pytest.mark.parametrize(
    "ranges",
    [division.MIXED_SIGNS["1"], *list(division.DISTRIBUTIONS.values())[::3]],
    ids=lambda pair: str(pair[0]),
)
def test_successive_batches_of_any_range_are_drawn_one_by_one(ranges):
    task = division.task(ranges)
    together, alone = task.generator(3), task.generator(3)
    found = task.interpolation.batches(together, 3, (128, 2))
    assert np.array_equal(found, [task.interpolation.sample(alone, (128, 2)) for _ in range(3)])
    assert together.randint(2**31) == alone.randint(2**31)


def test_the_stream_goes_on_begins_anew_and_is_taken_up():
    task = SingleModuleTask.on("U[1,2)", operation="mul", inputs=10)
    stream = NumPyStream(runs_of(task, (0, 1)))
    whole = torch.stack(list(stream.between(0, 2 * BLOCK + 20)))
    assert torch.equal(torch.stack(list(stream.between(5, 70))), whole[5:70])  # back
    state = stream.state()
    assert torch.equal(torch.stack(list(stream.between(80, 90))), whole[80:90])  # forward, past ten
    other = NumPyStream(runs_of(task, (0, 1)))
    other.restore(state)
    assert torch.equal(torch.stack(list(other.between(70, 148))), whole[70:])
    alone = NumPyStream(runs_of(task, (1,)))
    assert torch.equal(torch.stack(list(alone.between(0, 148)))[:, 0], whole[:, 1])


class Killed(Exception):
    pass


def test_an_ensemble_with_these_batches_resumes_to_the_same_result(tmp_path):
    from nalm.training.checkpoint import Checkpoint

    runs = runs_of(TenParameterTask(), (0, 1, 2), iterations=300, log_interval=100)
    whole = Ensemble(runs).train()

    def kill(further):
        kill.at += further
        if kill.at > 200:
            raise Killed

    kill.at = 0
    with pytest.raises(Killed):
        Ensemble(runs).train(kill, Checkpoint(tmp_path / "checkpoint", every=0))
    resumed = Ensemble(runs)
    resumed.warm_up()
    log = resumed.train(checkpoint=Checkpoint(tmp_path / "checkpoint", every=1e9))
    assert all(np.array_equal(log.weights[name], whole.weights[name]) for name in whole.weights)
    assert all(np.array_equal(log.errors[name], whole.errors[name]) for name in whole.errors)
    assert np.isfinite(log.errors["valid"]).all() and (log.errors["valid"][-1] < log.errors["valid"][0]).all()


def test_training_is_that_of_a_plain_loop():
    (run,) = runs_of(TenParameterTask(), (7,), iterations=200, log_interval=200)
    log = Ensemble([run]).train()
    torch.manual_seed(7)
    model = run.model.build(4)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, t in plain_batches(run.task, 7, 0, 0, 200):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(model(x), t).backward()
        optimiser.step()
        for unit in model:
            unit.project_()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(
            torch.from_numpy(log.weights[name][0]), parameter.detach(), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    "task", [TenParameterTask(), LargeScaleTask(operation="add")], ids=lambda task: task.kind
)
def test_a_task_without_such_batches_is_refused(task):
    with pytest.raises(ValueError, match="The stream 'numpy' has its targets in float64"):
        Run(
            task=task,
            model=Stack.of("NAU", 1),
            recipe=Recipe(iterations=1, optimiser=Adam(lr=1e-2), stream="numpy"),
            seed=0,
        )


@pytest.mark.parametrize(
    "task",
    [
        TenParameterTask(),
        *(SubsetArithmeticTask(operation=operation) for operation in ("add", "sub", "mul")),
        *(SingleModuleTask.on("U[1,2)", operation) for operation in ("add", "sub", "mul")),
    ],
    ids=lambda task: f"{task.kind}-{task.operation}",
)
def test_targets_in_float64_are_rounded_once(task):
    """Sums of numbers in float32 are exact in float64, in whatever order."""
    noise = torch.rand(task.in_features, 64, generator=torch.Generator().manual_seed(0))
    in_float64 = task.but(targets="float64")
    x, found = in_float64.batch(noise, in_float64.constants(5), {})
    same, _ = task.batch(noise, task.constants(5), {})
    assert torch.equal(x, same) and found.dtype == torch.float32
    a, b = task.operands(5) @ x.double().numpy().T
    exact = torch.from_numpy(OPERATIONS[task.operation](a, b)).to(torch.float32)
    assert torch.equal(found[:, 0], exact)


def test_runs_that_share_a_batch_have_targets_of_their_own():
    """As on the common stream, where an ensemble maps over what differs between its runs."""
    task = SubsetArithmeticTask(operation="mul", targets="float64")
    noise = torch.rand(task.in_features, 64, generator=torch.Generator().manual_seed(0))
    constants = [task.constants(seed) for seed in range(4)]
    stacked = {name: torch.stack([of[name] for of in constants]) for name in constants[0]}
    _, together = torch.func.vmap(lambda constants: task.batch(noise, constants, {}))(stacked)
    alone = torch.stack([task.batch(noise, of, {})[1] for of in constants])
    assert torch.equal(together, alone) and len({tuple(targets.flatten().tolist()) for targets in alone}) == 4


def test_the_coin_of_the_papers_code():
    first, second = Uniform(low=-6.0, high=-2.0), Uniform(low=2.0, high=6.0)
    ours, theirs = (
        UniformUnion(first=first, second=second, **coin).sample(np.random.RandomState(8689336), (1000, 2))
        for coin in ({}, {"coin": 1})
    )
    generator = np.random.RandomState(8689336)
    below, above = generator.uniform(-6, -2, (1000, 2)), generator.uniform(2, 6, (1000, 2))
    coin = generator.randint(0, 2, (1000, 2))
    assert np.array_equal(theirs, np.where(coin == 1, below, above)) and np.array_equal(
        ours, np.where(coin == 0, below, above)
    )


def test_the_mirrored_test_set():
    up, down = (
        LargeScaleTask(operation="mul", mirrored=mirrored).evaluation(0) for mirrored in (False, True)
    )
    assert torch.equal(up["valid"].inputs, down["valid"].inputs)
    torch.testing.assert_close(down["test"].inputs, -up["test"].inputs)  # of U[-2,2)
