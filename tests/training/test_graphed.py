"""What is replayed on CUDA devices is what is trained: on one where there is one, and with a stand-in for
CUDA graphs everywhere.
"""

import numpy as np
import pytest
import torch
from companion.division import settings as division
from companion.experiment import runs_of
from companion.nau_nmu import settings as nau_nmu
from companion.npu import large_scale, simple_arithmetic
from companion.npu import settings as npu
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from nalm.models import DigitSequence, Layer, Stack
from nalm.models.digit_sequence import DigitCNN
from nalm.records.memoised import ensembles_of
from nalm.tasks import (
    DigitSequenceTask,
    FractionalSIRTask,
    LargeScaleTask,
    SingleModuleTask,
    SubsetArithmeticTask,
)
from nalm.training import (
    L1,
    ActivationPenalty,
    Adam,
    Checkpoint,
    Discretisation,
    Ensemble,
    GraphedEnsemble,
    Recipe,
    Run,
    graphed,
    side_by_side,
)
from nalm.training.ode.ensemble import NODEEnsemble
from nalm.training.sequences import SequenceEnsemble
from nalm.training.side_by_side import SideBySide
from nalm.training.trainers import trainer_of


class Tape(TorchDispatchMode):
    """Records tensor operations with the memory they read and write, as a CUDA graph does; Python does not
    run again when it is played.
    """

    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        result = operation(*arguments, **(options or {}))
        self.operations.append((operation, arguments, options or {}, result))
        return result

    @torch.no_grad()
    def play(self):
        for operation, arguments, options, recorded in self.operations:
            for old, new in zip(
                tree_leaves(recorded), tree_leaves(operation(*arguments, **options)), strict=True
            ):
                if isinstance(old, torch.Tensor):
                    old.copy_(new)


def taped(function, device):
    """Takes the place of ``graphed.captured`` where there is no CUDA device."""
    for _ in range(graphed.WARM_UPS):
        function()
    with Tape() as tape:
        function()
    return tape.play


DEVICES = [
    pytest.param(("cpu", taped), id="stand-in"),
    pytest.param(("cuda", graphed.captured), id="cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    name, captured = request.param
    monkeypatch.setattr(graphed, "captured", captured)
    return name


def run(seed, task=None, model=None, **recipe):
    recipe = {"iterations": 47, "optimiser": Adam(lr=1e-2), "log_interval": 10} | recipe
    task = task or SingleModuleTask.on("U[-2,2)", operation="div")
    return Run(task=task, model=model or Stack.of("NMRU", 1), recipe=Recipe(**recipe), seed=seed)


PENALTIES = (L1(start=1e-4, end=1e-2, every=20), Discretisation(weight=0.5, start=20, end=40))
CASES = {
    "own streams, penalties that grow": [
        run(seed, penalties=PENALTIES, clip_gradient_norm=1.0) for seed in range(3)
    ],
    "common stream": [
        run(seed, SubsetArithmeticTask(operation="mul"), Stack.of("NAU", 2, "NMU", 1), stream="common")
        for seed in range(3)
    ],
    "NumPy's stream": [
        run(seed, SingleModuleTask.on("U[1,2)", operation="mul").but(targets="float64"), stream="numpy")
        for seed in range(3)
    ],
}


def assert_same(log, expected, device):
    # Another device sums in another order; the stand-in does the same operations.
    tolerance = {"rtol": 0, "atol": 0} if device == "cpu" else {"rtol": 1e-3, "atol": 1e-6}
    assert (log.iterations == expected.iterations).all()
    for ours, theirs in [(log.errors, expected.errors), (log.weights, expected.weights)]:
        for name in theirs:
            np.testing.assert_allclose(ours[name], theirs[name], **tolerance)


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES.keys())
def test_replayed_updates_are_updates(runs, device):
    assert_same(GraphedEnsemble(runs, device).train(), Ensemble(runs).train(), device)


def test_compiled_updates_are_replayed(device, monkeypatch):
    model, task = Stack.of("NMU", 1), SingleModuleTask.on("U[-2,2)", operation="mul")
    runs = [run(seed, task, model, penalties=PENALTIES[1:]) for seed in range(3)]
    if device == "cpu":  # the tape sees tensor operations, and compiled code is none
        monkeypatch.setattr(graphed, "captured", lambda function, device: function)
    ensembles = GraphedEnsemble(runs, device, compiled=True), Ensemble(runs, compiled=True)
    for ensemble in ensembles:  # the updates matter, and to compile evaluations too takes as long
        ensemble.evaluate._errors = ensemble.evaluate._summed_errors
    assert_same(*(ensemble.train() for ensemble in ensembles), device)


@pytest.mark.parametrize("runs", CASES.values(), ids=CASES.keys())
def test_a_second_training_is_the_first_one_again(runs, device):
    ensemble = GraphedEnsemble(runs, device)
    first = ensemble.train()
    assert_same(ensemble.train(), first, "cpu")


@pytest.mark.parametrize("stream", ["common stream", "NumPy's stream"])
def test_an_interrupted_training_goes_on(stream, device, tmp_path):
    runs, checkpoint = CASES[stream], Checkpoint(tmp_path / "training.pt", every=0)

    def interrupt(iterations):
        nonlocal reached
        reached += iterations
        if reached > 25:
            raise KeyboardInterrupt

    reached = 0
    with pytest.raises(KeyboardInterrupt):
        GraphedEnsemble(runs, device).train(interrupt, checkpoint)
    assert checkpoint.read()["iteration"] == 20
    assert_same(GraphedEnsemble(runs, device).train(checkpoint=checkpoint), Ensemble(runs).train(), device)


class OnADevice(torch.Tensor):
    """A tensor that NumPy cannot read where it lies."""

    def numpy(self, *, force=False):
        raise TypeError("can't convert device tensor to numpy")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


def test_numpys_generators_go_on_from_a_state_that_was_put_on_a_device():
    ensembles = [GraphedEnsemble(CASES["NumPy's stream"], "cpu", compiled=False) for _ in range(2)]
    next(ensembles[0].update.draws(0, 1))
    position = ensembles[0]._position()
    moved = {
        name: part.as_subclass(OnADevice) if isinstance(part, torch.Tensor) else part
        for name, part in position["stream"].items()
    }
    ensembles[1]._go_on_from(position | {"stream": moved})
    following = [next(ensemble.update.draws(1, 2)) for ensemble in ensembles]
    assert (following[0] == following[1]).all()


def test_warming_up_leaves_no_trace(device):
    ensemble = GraphedEnsemble(CASES["common stream"], device)
    ensemble.warm_up()
    assert_same(ensemble.train(), Ensemble(CASES["common stream"]).train(), device)


def runs_of_the_papers():
    yield from runs_of(division.arms(2), [SingleModuleTask.on("U[-2,2)", operation="div")], seeds=1)
    for stream in ("own", "common"):
        yield from nau_nmu.subset_runs(nau_nmu.arms(), ["sub"], seeds=1, stream=stream)
    simple = {name: simple_arithmetic.simple_arm(name) for name in simple_arithmetic.SIMPLE}
    yield from runs_of(simple, [simple_arithmetic.simple_task()], seeds=1)
    yield from runs_of(
        {name: large_scale.large_scale_arm(name, "root") for name in large_scale.LARGE_SCALE},
        [LargeScaleTask(operation="root")],
        seeds=1,
    )


@pytest.mark.parametrize(
    "run",
    list(runs_of_the_papers()),
    ids=lambda run: f"{type(run.task).__name__}-{run.labels['model']}-{run.recipe.stream}",
)
def test_an_update_stays_on_its_device(run):
    """Batches are drawn there from seed and iteration. On the device "meta", which has shapes and no values,
    an update that asked for one would fail.
    """

    def on_device(tensor):
        return tensor.to("meta") if isinstance(tensor, torch.Tensor) else tensor

    ensemble = Ensemble([run, run.model_copy(update={"seed": 1})], compiled=False)
    update = ensemble.update
    update.shared, update.seeds = tree_map(on_device, update.shared), on_device(update.seeds)
    given = ensemble.parameters, ensemble.state, torch.tensor(0), None, update.constants, update.numbers
    given = tree_map(on_device, given)
    with Tape() as tape:
        result = update(*given)
    assert all(tensor.device.type == "meta" for tensor in tree_leaves(result))
    elsewhere = {
        tensor.shape
        for _, arguments, options, made in tape.operations
        for tensor in tree_leaves((arguments, options, made))
        if isinstance(tensor, torch.Tensor) and tensor.device.type != "meta"
    }
    assert elsewhere <= {torch.Size([])}  # a number that kernels are given, as any other


def test_records_are_trained_with_it_on_cuda_devices():
    arm = npu.fsir_arm("RealNPU", hidden=6, penalty=0.1)
    dynamics = Run(task=FractionalSIRTask(), model=arm.model, recipe=arm.recipe, seed=0)
    assert [trainer_of(run(0), device) for device in ("cpu", "cuda", "cuda:1")] == [
        Ensemble,
        GraphedEnsemble,
        GraphedEnsemble,
    ]
    assert trainer_of(dynamics, "cuda") is NODEEnsemble


def test_what_the_host_draws_is_replayed_with(device):
    task = SingleModuleTask.on("U[-2,2)", operation="div").but(targets="float64")
    runs = [run(seed, task, stream="numpy") for seed in range(3)]
    assert_same(GraphedEnsemble(runs, device).train(), Ensemble(runs).train(), device)


DIGITS = {
    "product": (
        DigitSequence(cell=Layer(unit="NMU")),
        (Discretisation(weight=10.0, start=0, end=100), ActivationPenalty(weight=1.0)),
    ),
    "sum": (DigitSequence(cell="LSTM", initial_state=0.0), ()),
    "exact": (DigitSequence(cell=None), ()),
}


@pytest.mark.parametrize("name", DIGITS)
def test_sequences_side_by_side_are_sequences(name, device):
    operation, (model, penalties) = "sum" if name == "sum" else "product", DIGITS[name]
    task = DigitSequenceTask(operation=operation, source="sklearn", test_lengths=(1, 5))
    size = 350 if name == "product" else 20
    recipe = {"optimiser": Adam(lr=1e-3), "log_interval": 2, "batch_size": size, "penalties": penalties}
    runs = [run(seed, task, model, iterations=3, **recipe) for seed in range(2)]
    assert name != "product" or task.steps_per_epoch(size) == 2  # so that batches have two sizes
    ours, theirs = SideBySide(runs, device).train(), SequenceEnsemble(runs).train()
    tolerance = 1e-5 if device == "cpu" else 1e-3  # products of matrices sum in another order
    for key in theirs.errors:
        np.testing.assert_allclose(ours.errors[key], theirs.errors[key], rtol=tolerance)
    for key in theirs.weights:  # where a gradient is close to 0, its rounding error decides on Adam's step
        assert np.abs(ours.weights[key] - theirs.weights[key]).mean() < tolerance * 1e-2
    assert trainer_of(runs[0], device) is (SequenceEnsemble if device == "cpu" else SideBySide)


@pytest.mark.parametrize("images", [3, 2 * side_by_side.CHUNK], ids=["one matrix", "several matrices"])
def test_a_stacked_reader_is_a_reader(images):
    torch.manual_seed(0)
    seen = torch.randn(images, 28, 28, dtype=torch.float64)
    assert_same_network(DigitCNN(), side_by_side._Reader(), lambda reader: reader(seen))


def test_a_stacked_lstm_cell_is_an_lstm_cell():
    torch.manual_seed(0)
    number, *before = torch.randn(3, 5, 1, dtype=torch.float64)
    assert_same_network(
        torch.nn.LSTMCell(1, 1), side_by_side._LSTMCell(1, 1), lambda cell: torch.cat(cell(number, before))
    )


def assert_same_network(expected, ours, result):
    """The same results and gradients for the same parameters."""
    ours.load_state_dict(expected.state_dict())
    for network in (expected.double(), ours.double()):
        result(network).sin().sum().backward()
    torch.testing.assert_close(result(ours), result(expected), rtol=1e-10, atol=1e-12)
    for of_ours, of_expected in zip(ours.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(of_ours.grad, of_expected.grad, rtol=1e-10, atol=1e-12)


def test_large_models_are_ten_side_by_side_on_a_cuda_device():
    task = DigitSequenceTask(operation="product", source="sklearn", test_lengths=(1,))
    runs = [run(seed, task, DigitSequence(cell=None)) for seed in range(15)]
    assert [len(ensemble) for ensemble in ensembles_of(runs, 1, "cuda")] == [8, 7]
    assert [len(ensemble) for ensemble in ensembles_of(runs, 2)] == [1] * 15
