"""Compiled functions do what they do uncompiled, for every shape and layout."""

import inspect
import os
import subprocess
import warnings

import pytest
import torch
from forked import run_script

from nalm.models import Stack
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Ensemble, Recipe, Run, compiler
from nalm.training.compiler import Compiled, Eager, obstacle


def step(parameters, total, factor, draw, fixed):
    """A function with everything that an update has: several tensors, a scalar, sometimes a draw, something
    fixed.
    """
    x = factor * fixed["x"] if draw is None else factor * draw
    new = {name: p.sin() + x.sum() for name, p in parameters.items()}
    return new, total + x.square().mean()


PARAMETERS = {"a": torch.linspace(0, 1, 35).reshape(5, 7), "b": torch.linspace(-2, 2, 5)}


@pytest.mark.parametrize("together", [1, 2, 4])
@pytest.mark.parametrize("drawn", [False, True])
def test_a_repeated_call(together, drawn):
    inputs = [
        (torch.tensor(float(number)), torch.full((9,), 0.1 * number) if drawn else None)
        for number in range(5)
    ]
    state, fixed = (PARAMETERS, torch.tensor(0.0)), ({"x": torch.ones(9)},)
    expected, found = (
        Eager(step).repeat(state, inputs, fixed),
        Compiled(step, together).repeat(state, inputs, fixed),
    )
    torch.testing.assert_close(found, expected)
    assert Compiled(step, together).repeat(state, [], fixed) is state


def test_each_shape_and_layout_has_its_own_code():
    double = Compiled(lambda x, y: {"sum": (2 * x + y).sum(0), "same": x + 0})
    for x in (torch.rand(3, 4), torch.rand(4, 3), torch.rand(4, 3).mT, torch.rand(3, 4, dtype=torch.float64)):
        for _ in range(2):
            found = double(x, x)
            torch.testing.assert_close(found, {"sum": 3 * x.sum(0), "same": x})
    assert len(double._known) == 4


def said_alone(folder, code, **environment):
    """What a process prints that does nothing else."""
    (folder / "script.py").write_text(code)
    ended = run_script(folder / "script.py", **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_operations_that_depend_on_values_are_refused():
    """Recorded once, they would be wrong for other values."""
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        Compiled(lambda x: x if x.sum() > 0 else -x)(torch.ones(3))


OUTER_LOOP = """
import torch
from nalm.models import Layer, Stack
from nalm.tasks import SimpleArithmeticTask
from nalm.training import Adam, Ensemble, Recipe, Run, compiler
from nalm.units import functional, nau

# Six outputs, which lie side by side, and a batch of 100: the loop over outputs, around those over inputs and
# over examples, is the vectorised one.
functional.weighted_sum = nau.weighted_sum = lambda x, weight: (x.unsqueeze(-2) * weight).sum(-1)
layers = Layer(unit="RealNPU", out_features=6), Layer(unit="NAU", out_features=4, options={"clamp": "none"})
recipe = Recipe(iterations=20, optimiser=Adam(lr=1e-3), log_interval=10, batch_size=100, selection="last")
run = Run(task=SimpleArithmeticTask(), model=Stack(layers=layers), recipe=recipe, seed=0)
runs = [run.but(seed=seed) for seed in range(5)]
torch._inductor.config.fx_graph_cache = False  # where code from before a change is kept
eager, compiled = (Ensemble(runs, compiled=compiled, together=1) for compiled in (False, True))
for ensemble in (eager, compiled):
    ensemble._advance(0, 1)
torch.testing.assert_close(compiled.parameters, eager.parameters, rtol=1e-3, atol=1e-5)
"""


def test_partly_filled_vectors_stay_within_their_buffers(tmp_path):
    """In a process of its own, as what writes elsewhere ends it: with "double free or corruption" on torch
    2.12, if nothing is done about it.
    """
    said_alone(tmp_path, OUTER_LOOP)


# A compiler that is not there, does not work or is another one than expected.


@pytest.fixture
def unprepared(monkeypatch):
    """The compiler as torch has it, and nothing known about it."""
    from torch._inductor import cpu_vec_isa
    from torch._inductor.codegen.cpp import TilingSelect
    from torch._inductor.lowering import lowerings

    compiler._prepare()  # so that what is changed below is put back to what other tests expect
    monkeypatch.setattr(TilingSelect, "select_tiling", inspect.unwrap(TilingSelect.select_tiling))
    monkeypatch.setattr(cpu_vec_isa, "subprocess", subprocess)
    known = dict(lowerings)
    remembered = (
        obstacle,
        compiler._warned,
        compiler._avoid_out_of_bounds_tails,
        compiler._keep_erfinv_out_of_loops,
        compiler._probe_instructions_here,
    )

    def forget():
        for function in remembered:
            function.cache_clear()

    forget()
    with torch._inductor.config.patch(fx_graph_cache=False):  # what was compiled before would be found there
        yield
    forget()
    monkeypatch.undo()
    lowerings.clear()
    lowerings.update(known)
    torch._dynamo.reset()


def long_runs(iterations=10_000):
    recipe = Recipe(iterations=iterations, optimiser=Adam(lr=1e-2), log_interval=iterations)
    return [
        Run(task=SingleModuleTask.on("U[1,2)", "mul"), model=Stack.of("NMU", 1), recipe=recipe, seed=seed)
        for seed in range(2)
    ]


def test_a_long_training_is_compiled_without_a_word(unprepared):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert obstacle("cpu") is None
        assert Ensemble(long_runs()).compiled
        assert not Ensemble(long_runs(100)).compiled


def take_away_tiling(monkeypatch):
    from torch._inductor.codegen import cpp

    # a version that needs what is changed there
    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.12.1"))
    monkeypatch.delattr(cpp, "TilingSelect")


def take_away_select_tiling(monkeypatch):
    from torch._inductor.codegen.cpp import TilingSelect

    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.12.1"))
    monkeypatch.delattr(TilingSelect, "select_tiling")


def tiling_takes_something_else(monkeypatch):
    from torch._inductor.codegen.cpp import TilingSelect

    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.12.1"))
    monkeypatch.setattr(TilingSelect, "select_tiling", lambda self, graph: ([], []))


def tiling_returns_something_else(monkeypatch):
    from torch._inductor.codegen.cpp import TilingSelect

    monkeypatch.setattr(torch, "__version__", type(torch.__version__)("2.12.1"))
    monkeypatch.setattr(TilingSelect, "select_tiling", lambda self, fn_list, var_sizes_list: ([], [], [], []))


def take_away_compile_fx(monkeypatch):
    from torch._inductor import compile_fx

    monkeypatch.delattr(compile_fx, "compile_fx")


def take_away_make_fx(monkeypatch):
    from torch.fx.experimental import proxy_tensor

    monkeypatch.delattr(proxy_tensor, "make_fx")


def compile_wrongly(monkeypatch):
    from torch._inductor import compile_fx

    monkeypatch.setattr(
        compile_fx, "compile_fx", lambda graph, inputs: lambda *tensors: [t + 1 for t in graph(*tensors)]
    )


@pytest.mark.parametrize(
    "change",
    [
        take_away_tiling,
        take_away_select_tiling,
        tiling_takes_something_else,
        tiling_returns_something_else,
        take_away_compile_fx,
        take_away_make_fx,
        compile_wrongly,
    ],
    ids=lambda change: change.__name__,
)
def test_what_cannot_be_compiled_is_trained_eagerly_with_one_warning(unprepared, monkeypatch, change):
    change(monkeypatch)
    with pytest.warns(
        UserWarning, match="^Trainings are not compiled, which makes long ones slower: torch .*[^.]\\.$"
    ) as caught:
        ensembles = [Ensemble(long_runs()) for _ in range(2)]
        assert not any(ensemble.compiled for ensemble in ensembles)
        ensembles[0]._advance(0, 3)
    assert len([w for w in caught if "not compiled" in str(w.message)]) == 1 and "\n" not in str(
        caught[0].message
    )
    with pytest.raises(RuntimeError, match="^compiled=True, but torch .*[^.]\\.$") as refused:
        Ensemble(long_runs(), compiled=True)
    assert "\n" not in str(refused.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert not Ensemble(long_runs(), compiled=False).compiled


def take_away_lowerings(monkeypatch):
    from torch._inductor import lowering

    monkeypatch.delattr(lowering, "lowerings")
    compiler._keep_erfinv_out_of_loops()  # does without
    monkeypatch.undo()


def take_away_make_fallback(monkeypatch):
    from torch._inductor import lowering

    monkeypatch.delattr(lowering, "make_fallback")
    compiler._keep_erfinv_out_of_loops()
    monkeypatch.undo()


def fallback_takes_something_else(monkeypatch):
    from torch._inductor import lowering

    monkeypatch.setattr(lowering, "make_fallback", lambda op: pytest.fail("called"))


def take_away_the_probes(monkeypatch):
    from torch._inductor import cpu_vec_isa

    monkeypatch.setattr(cpu_vec_isa, "subprocess", None)


@pytest.mark.parametrize(
    "change",
    [take_away_lowerings, take_away_make_fallback, fallback_takes_something_else, take_away_the_probes],
    ids=lambda change: change.__name__,
)
def test_what_only_makes_it_faster_is_done_without(unprepared, monkeypatch, change):
    change(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert Ensemble(long_runs()).compiled


def test_without_a_cplusplus_compiler(tmp_path):
    """In a process of its own, as torch remembers the one that it has found."""
    code = """
import warnings, torch
from nalm.models import Stack
from nalm.tasks import SingleModuleTask
from nalm.training import Adam, Ensemble, Recipe, Run
recipe = Recipe(iterations=10_000, optimiser=Adam(lr=1e-2))
runs = [Run(task=SingleModuleTask.on("U[1,2)", "mul"), model=Stack.of("NMU", 1), recipe=recipe, seed=0)]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert not any(Ensemble(runs).compiled for _ in range(2))
print(*(warning.message for warning in caught if "not compiled" in str(warning.message)), sep="\\n")
"""
    surroundings = {name: value for name, value in os.environ.items() if name not in ("CXX", "CC")} | {
        "PATH": str(tmp_path)
    }
    found = said_alone(tmp_path, code, environment=surroundings)
    assert (
        found.startswith("Trainings are not compiled, which makes long ones slower: torch ")
        and found.count("\n") == 1
    )
