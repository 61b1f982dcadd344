"""Whether a run can be trained: its task and model fit together, and each unit of a reader's own does what
training takes for granted.

Runs are trained side by side as if each were alone, by one function of stacked parameters that is compiled. A
unit that cannot be trained so is refused in one sentence, which names it and says what to change. The trial
draws from no generator that a training uses and leaves no trace in its numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from nalm.models import NODE, DigitSequence, Layer, Stack
from nalm.models.stack import unit_class
from nalm.tasks import DigitSequenceTask, EvaluationSet, FractionalSIRTask
from nalm.tasks.arithmetic import OperandTask
from nalm.training.penalties import ActivationPenalty
from nalm.training.run import Run
from nalm.units import Unit, project_
from nalm.units.whole import outermost_units

__all__ = ["couples_runs", "try_units"]

EXAMPLES, RUNS, DRAWS = 7, 3, (1.0, 10.0)
"""Examples and runs in a trial; how far from their initial values parameters are projected."""


def try_units(run: Run) -> None:
    """Try each of the reader's own units that a run has; those of the library have tests.

    Raises:
        ValueError: one that cannot be trained, or a model that does not fit the task.

    Warns of parameters that nothing depends on, and of a unit that is not finite at inputs of 0.
    """
    for one in _own(run):
        _tried(*one)
    _check_they_fit(run)


def _check_they_fit(run: Run) -> None:
    """Refuse what would fail in the middle of an update, or be broadcast."""
    model, task = run.model, run.task
    own = not type(task).__module__.startswith("nalm.")
    for kind, of_kind in ((NODE, FractionalSIRTask), (DigitSequence, DigitSequenceTask)):
        if isinstance(model, kind) != isinstance(task, of_kind) and not own:
            raise ValueError(
                f"A {model.kind} does not learn a {type(task).__name__}: "
                f"{kind.__name__} and {of_kind.__name__} belong together."
            )
    layers = (*getattr(model, "layers", ()), getattr(model, "cell", None))
    if any(isinstance(one, Layer) and one.options.get("noise") == "fresh" for one in layers):
        raise ValueError(
            "noise='fresh' draws anew in each forward pass, but a run has its numbers by its seed."
        )
    outputs = task.out_features
    if isinstance(model, Stack):
        outputs = model.layers[-1].out_features
    elif isinstance(model, NODE):
        outputs = len(model.initial_state)
    if outputs != task.out_features:
        raise ValueError(
            f"The model has {outputs} outputs, but {type(task).__name__} has {task.out_features}: "
            f"give its last unit out_features={task.out_features}."
        )
    if not isinstance(model, DigitSequence) and any(
        isinstance(one, ActivationPenalty) for one in run.recipe.penalties
    ):
        raise ValueError(
            f"ActivationPenalty is of DigitSequence models; a {model.kind} has no activations to take."
        )
    if own:
        _check_targets(run)
        _check_operands(run)


def _check_targets(run: Run) -> None:
    """Refuse evaluation sets of a reader's own task that rows have no column for, or another one of that
    name, and targets that would be broadcast against the outputs.
    """
    task = run.task
    sets = task.evaluation(run.seed)
    if missing := [name for name in ("valid", "test") if name not in sets]:
        raise ValueError(
            f"{type(task).__name__}.evaluation must return the sets 'valid' and 'test', but {missing[0]!r} "
            "is missing."
        )
    if others := [name for name in sets if name not in ("valid", "test") and not name.startswith("test_")]:
        raise ValueError(
            f"{type(task).__name__}.evaluation returns the set {others[0]!r}, but the name of a further one "
            "must begin with 'test_'."
        )
    for name, one in sets.items():
        if wrong := _wrong_with(one, run):
            raise ValueError(f"The set {name!r} of {type(task).__name__}.evaluation {wrong}.")
    if others := [name for name, one in task.constants(run.seed).items() if not isinstance(one, Tensor)]:
        raise ValueError(f"{type(task).__name__}.constants must be tensors, but {others[0]!r} is none.")
    shapes = {name: tuple(one.targets.shape[1:]) for name, one in sets.items()}
    if run.recipe.stream != "numpy" and task.host_draw(run.seed, 0, EXAMPLES) is None:
        noise = torch.full((task.noise_rows(), EXAMPLES), 0.5)  # a draw would change the weights of a run
        _, target = task.batch(noise, task.constants(run.seed), task.shared())
        shapes["training"] = tuple(target.shape[1:])
        if not target.isfinite().any():
            raise ValueError(f"{type(task).__name__}.batch gives no target that is a finite number.")
    for name, shape in shapes.items():
        if shape != (task.out_features,):
            raise ValueError(
                f"{type(task).__name__} has {name} targets of shape {('examples', *shape)}, but they must be "
                f"('examples', {task.out_features}): a column for each output."
            )


def _wrong_with(one: Any, run: Run) -> str:
    """What is wrong with an evaluation set, beside its shapes; nothing if it can be used."""
    if not isinstance(one, EvaluationSet):
        return f"is a {type(one).__name__}, but must be a nalm.tasks.EvaluationSet"
    if not (isinstance(one.inputs, Tensor) and isinstance(one.targets, Tensor)):
        return "must have tensors as inputs and targets"
    if not 0 < len(one.inputs) == len(one.targets):
        counts = f"{len(one.inputs)} inputs and {len(one.targets)} targets"
        return f"has {counts}, but needs as many, and one at least"
    if isinstance(run.model, Stack) and not one.inputs.dtype == one.targets.dtype == torch.float32:
        return f"has the types {one.inputs.dtype} and {one.targets.dtype}, but units compute in torch.float32"
    if not one.targets.isfinite().all():
        return "has targets that are no finite numbers"
    if one.error not in ("mse", "mae"):
        return f"has the error {one.error!r}, but allowed are 'mse' and 'mae'"
    if one.output is not None and one.output not in range(run.task.out_features):
        return f"compares the output {one.output!r}, but outputs are 0 to {run.task.out_features - 1}"
    return ""


def couples_runs(run: Run) -> bool:
    """Whether a unit's ``project_`` would mix runs if it were given the stacked parameters of all of them, as
    one that divides by a norm does.
    """
    return any(_tried(*one) for one in _own(run))


def _own(run: Run) -> Iterator[tuple[str, int, Hashable]]:
    """The units from outside of the library, with their numbers of inputs and their classes."""
    model: Any = run.model
    if isinstance(model, DigitSequence):
        layers, size = [model.cell] if isinstance(model.cell, Layer) else [], 2
    else:
        layers, size = model.layers, len(getattr(model, "initial_state", ())) or run.task.in_features
    for layer in layers:
        if ":" in layer.unit:
            yield layer.canonical(), size, cast(Hashable, unit_class(layer.unit))
        size = layer.out_features


@cache
def _tried(layer: str, in_features: int, made_by: Hashable) -> bool:
    """Whether the runs of a unit are to be projected one by one; asked anew of one that is defined anew."""
    one = Layer.from_json(layer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return _Trial(one, in_features).passed()


def _check_operands(run: Run) -> None:
    """Refuse operands with gaps where they are summed as the papers' code does, as slices."""
    if run.recipe.stream == "numpy" and isinstance(run.task, OperandTask):
        for operand in run.task.operands(run.seed):
            used = np.flatnonzero(operand)
            if used.size and used.size <= np.ptp(used):
                raise ValueError(
                    "The stream 'numpy' sums adjacent inputs, but an operand of "
                    f"{type(run.task).__name__} has gaps: take another stream."
                )


class _Refused(ValueError):
    """One sentence on what a unit is to change."""


class _Trial:
    """Tries a unit that a :class:`Layer` describes."""

    def __init__(self, layer: Layer, in_features: int) -> None:
        self.name, self.layer, self.inputs = layer.unit.rpartition(":")[2], layer, in_features
        self.units = [layer.build(in_features) for _ in range(RUNS)]
        self.unit, self.x = self.units[0], torch.rand(EXAMPLES, in_features) + 0.5

    def passed(self) -> bool:
        """Whether its runs are to be projected one by one."""
        self.has_parameters()
        self.has_outputs()
        y = self.is_mapped(lambda unit, x: unit(x), "forward", self.x.expand(RUNS, -1, -1))
        self.differ_in_parameters_alone(y)
        if isinstance(self.unit, Unit):
            self.has_penalty()
        self.says_what_is_unused()
        self.says_where_it_is_not_finite()
        return any(outermost_units(self.unit)) and self.couples()

    def refused(self, what: str, instead: str) -> ValueError:
        return _Refused(f"{self.name} {what}: {instead}.")

    def has_parameters(self) -> None:
        for name, _ in self.unit.named_buffers():
            raise self.refused(
                f"has the buffer {name!r}, which each run would need for itself",
                "keep it as a number, or compute it in forward",
            )
        for name, parameter in self.unit.named_parameters():
            if not parameter.requires_grad:
                raise self.refused(
                    f"freezes its parameter {name!r}, but all parameters of a run are trained",
                    "keep it as a number, or compute it in forward",
                )
            if parameter.dtype != torch.float32:
                raise self.refused(
                    f"has the parameter {name!r} of type {parameter.dtype}, but runs are trained in 32 bits",
                    "make it torch.float32",
                )
        if not list(self.unit.parameters()):
            raise self.refused("has no parameters", "there is nothing to train without an nn.Parameter")

    def has_outputs(self) -> None:
        expected = (EXAMPLES, self.layer.out_features)
        y = self.called(lambda: self.unit(self.x), "forward")
        if not isinstance(y, Tensor) or tuple(y.shape) != expected:
            raise self.refused(
                f"maps inputs of shape {tuple(self.x.shape)} to "
                + (str(tuple(y.shape)) if isinstance(y, Tensor) else type(y).__name__),
                f"with out_features={expected[1]}, forward must return the shape {expected}",
            )
        if y.dtype != self.x.dtype:
            raise self.refused(
                f"maps inputs of type {self.x.dtype} to {y.dtype}", "compute in the type of the inputs"
            )

    def has_penalty(self) -> None:
        for what in ("penalty", "sparsity_error"):
            value = self.called(getattr(self.unit, what), what)
            if not isinstance(value, Tensor) or value.dim():
                raise self.refused(
                    f"has a {what} that is no scalar tensor",
                    f"reduce it in {what}(), for instance by .mean()",
                )
            self.is_mapped(lambda unit, _, what=what: getattr(unit, what)(), what)

    def called(self, function: Callable, what: str) -> Any:
        try:
            return function()
        except _Refused:
            raise
        except Exception as error:  # whatever the reader's code raises
            missing = isinstance(error, AttributeError) and "'weight'" in str(error) and what != "forward"
            instead = "define effective_weights()" if missing else f"mend {what}()"
            raise self.refused(
                f"fails in {what} with {type(error).__name__}: {_line(error)}", instead
            ) from None

    def differ_in_parameters_alone(self, y: Tensor) -> None:
        """Refuse a unit that has drawn numbers which are no parameters: those of one run would be taken for
        all. Most outputs, as some may be rounded to the other side of a step.
        """
        alone = torch.stack([unit(self.x) for unit in self.units])
        same = torch.isclose(y, alone, rtol=1e-3, atol=1e-6, equal_nan=True).flatten(1).double().mean(1)
        if (same < 0.5).any():
            raise self.refused(
                "keeps numbers that differ from run to run in something else than its parameters",
                "make them an nn.Parameter, a module in an nn.ModuleList, or the same for all runs",
            )

    def is_mapped(self, function: Callable, what: str, *inputs: Tensor) -> Any:
        """What one function of stacked parameters gives; refuse what it cannot do."""
        try:
            return self.over_runs(function, self.stacked(), *inputs)
        except Exception as error:  # torch.func has many words for few causes
            said = str(error)
            if "randomness" in said:
                raise self.refused(
                    f"draws random numbers in {what}, which the runs of an ensemble cannot",
                    "draw them in reset_parameters(), or leave them out",
                ) from None
            depends = ".item()" in said or "data-dependent" in said or "dynamic" in said
            raise self.refused(
                f"lets the course of {what} depend on the values of tensors"
                if depends
                else f"cannot be mapped over runs in {what} ({_line(error)})",
                "replace if, .item() and masks as indices by torch.where"
                if depends
                else "use operations that torch.func.vmap takes",
            ) from None

    def stacked(self) -> dict[str, Tensor]:
        named = [dict(unit.named_parameters()) for unit in self.units]
        return {name: torch.stack([of[name].detach() for of in named]) for name in named[0]}

    def over_runs(self, function: Callable, parameters: dict[str, Tensor], *inputs: Tensor) -> Any:
        def of_run(parameters: dict[str, Tensor], *inputs: Tensor) -> Any:
            return self.with_parameters(function, parameters, *inputs)

        return vmap(of_run)(parameters, *inputs)

    def with_parameters(self, function: Callable, parameters: dict[str, Tensor], *inputs: Tensor) -> Any:
        whole = _Whole(self.unit)
        named = {f"unit.{name}": p for name, p in parameters.items()}
        return functional_call(whole, named, (function, inputs[0] if inputs else None))

    def says_what_is_unused(self) -> None:
        named = dict(self.unit.named_parameters())
        total = self.unit(self.x).sum()
        if isinstance(self.unit, Unit):
            total = total + self.unit.penalty()
        used = (
            torch.autograd.grad(total, list(named.values()), allow_unused=True) if total.requires_grad else ()
        )
        unused = [name for name, one in zip(named, used or [None] * len(named), strict=True) if one is None]
        for name in unused:
            warnings.warn(
                f"{self.name} does not use its parameter {name!r}, which stays as it is: remove it, or "
                "do not detach it.",
                stacklevel=2,
            )

    def says_where_it_is_not_finite(self) -> None:
        y = self.unit(torch.zeros_like(self.x))
        if y.requires_grad:
            slopes = torch.autograd.grad(y.sum(), list(self.unit.parameters()), allow_unused=True)
            y = torch.cat([y.flatten(), *(one.flatten() for one in slopes if one is not None)])
        if not y.isfinite().all():
            warnings.warn(
                f"{self.name} or its gradient is not finite where inputs are 0, from where a run does not "
                "recover: keep the argument of a logarithm, root or division away from 0.",
                stacklevel=2,
            )

    def couples(self) -> bool:
        for scale in DRAWS:
            start = {name: p + scale * torch.randn_like(p) for name, p in self.stacked().items()}
            of_runs = [{name: p[run] for name, p in start.items()} for run in range(RUNS)]
            alone = [self.called(lambda own=own: self.projected(own), "project_") for own in of_runs]
            expected = {name: torch.stack([of[name] for of in alone]) for name in start}
            try:
                together = self.projected(start)
                coupled = any(not torch.equal(p, expected[name]) for name, p in together.items())
            except Exception:  # whatever it does, it is not meant for stacked parameters
                coupled = True
            if coupled:
                self.is_mapped(lambda unit, _: (project_(unit), *unit.parameters())[1:], "project_")
                return True
        return False

    def projected(self, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        new = {name: p.clone() for name, p in parameters.items()}

        @torch.no_grad()
        def project(unit: Any, _: None) -> bool:
            project_(unit)
            return all(one is new[name] for name, one in unit.named_parameters())

        if not self.with_parameters(project, new):
            raise self.refused(
                "replaces a parameter in project_, which changes nothing in training",
                "change it in place, for instance by clamp_",
            )
        return new


class _Whole(nn.Module):
    def __init__(self, unit: nn.Module) -> None:
        super().__init__()
        self.unit = unit

    def forward(self, function: Callable, x: Any) -> Any:
        return function(self.unit, x)


def _line(error: Exception) -> str:
    return next(
        (line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()), "no reason given"
    )
