"""The benchmark prints a line per measure, refuses what makes no sense, and knows what an update needs."""

import builtins
import importlib
import math
import os
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import forked
import pytest
import torch
from companion.benchmark import (
    FURTHER,
    MEASURES,
    SCALING,
    Measure,
    Measurement,
    Needs,
    Size,
    division_runs,
    measure,
    needs,
    rates,
    recorded_measurement,
    scaling,
    starts,
    subset_runs,
)
from companion.benchmark import __main__ as command
from companion.benchmark.__main__ import main
from companion.benchmark.alternatives import batch_drawn_beforehand, call_for_all, call_for_each
from companion.benchmark.floor import floor
from companion.benchmark.rates import ensembles, rate, shares, side_by_side
from companion.benchmark.starts import Importing, Start
from companion.benchmark.workloads import models_runs

from nalm.training import kept

TINY = Size(runs=2, share=1e-4, processes=1, compiled=False)
LINE = re.compile(r"([\w-]+): (\d[\d.]*(?:e[+-]\d+)?) (run-iterations/s|images/s|GiB|s)")


@pytest.fixture(autouse=True, scope="module")
def processes_of_later_tests() -> None:
    forked.start()


OF_EACH_UNIT = [
    "plain-loop-2",
    "division-2-cell",
    "cnn",
    "subset-100-1000-runs-memory",
    "three-models-200-in-lockstep",
]


def test_every_measure_is_a_line(capsys: pytest.CaptureFixture) -> None:
    main(["--runs", "2", "--share", "0.0001", "--processes", "1", "--eager", *OF_EACH_UNIT])
    lines = capsys.readouterr().out.splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), lines
    assert [match[1] for match in matches] == OF_EACH_UNIT
    assert {match[3] for match in matches} == {"run-iterations/s", "s", "images/s", "GiB"}
    assert all(float(match[2]) > 0 for match in matches)


def test_all_are_measured_unless_some_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """tests/book/test_reruns.py has those measured that the book shows."""
    asked = []
    monkeypatch.setattr(
        command, "measure_machine", lambda *arguments, **others: asked.append(arguments) or measurement
    )
    measurement = Measurement("a processor", 2, True, {}, {}, {})
    main(["--runs", "2", "--share", "0.5", "--processes", "3", "--eager"])
    main(["warm-start"])
    main(["--record", str(tmp_path / "measurement.json")])
    small = Size(runs=2, share=0.5, processes=3, compiled=False)
    assert asked == [
        ([*MEASURES, *FURTHER], (), small),
        (["warm-start"], (), Size()),
        (list(MEASURES), SCALING, Size()),
    ]


def test_a_warm_start_is_that_of_a_second_process_on_what_the_first_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def start(function: Callable, arguments: list, here: bool) -> list[Start]:
        (runs, compiled, folder), *_ = arguments
        asked.append((len(runs), runs[0].recipe.iterations, compiled, here, folder))
        assert os.listdir(folder) == ["kept"] * (len(asked) - 1)
        Path(folder, "kept").touch()
        return [Start(10.0 / len(asked), 2.0)]

    monkeypatch.setattr(starts, "side_by_side", start)
    assert str(measure("warm-start")) == "warm-start: 5 s (importing modules 2 s)"
    assert [call[:4] for call in asked] == [(225, 50_000, True, False)] * 2
    folder = asked[0][-1]
    asked.clear()
    assert measure("cold-start").value == 10 and asked[0][-1] != folder and not Path(folder).exists()


def test_a_start_is_told_apart_from_importing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept, "KEPT", kept.KEPT)
    monkeypatch.setenv(kept.VARIABLE, "named by the user")
    found = starts._start(division_runs(runs=2, iterations=5), False, str(tmp_path))
    assert found.seconds > 0 <= found.importing
    assert tmp_path in kept.KEPT.parents and os.environ.get(kept.VARIABLE) != "named by the user"


def test_only_the_outer_one_of_imports_counts_and_only_in_this_thread() -> None:
    before = builtins.__import__, importlib.import_module
    with Importing() as importing:
        importlib.import_module("nalm.training.sequences")
        known = importing.seconds
        thread = threading.Thread(target=importlib.import_module, args=("nalm.training.ode",))
        thread.start()
        thread.join()
    assert importing.seconds == known > 0
    assert (builtins.__import__, importlib.import_module) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["division-3"], "division-2"),
        (["--share", "0"], "share=0"),
        (["--share", "inf"], "share=inf, but must be finite and more than 0"),
        (["--processes", "-1"], "processes=-1"),
        (["--runs", "0"], "runs=0"),
        (["--record", "/dev/null/measured.json"], "The record cannot be written to /dev/null"),
        (["--record", "/"], "The record cannot be written to /, which is a folder"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err.strip().splitlines()[-1]


def test_needs_follow_from_the_task() -> None:
    assert needs(division_runs(inputs=2)[0]) == Needs(256, 256, 128, 128, 128, 4 * 256)
    assert needs(division_runs(inputs=10)[0]) == Needs(1280, 1280, 128, 128, 128, 4 * 1280)
    for stream in ("own", "common"):
        products = (3 + 3) * 100 * 128  # forward, gradient
        assert needs(subset_runs(stream, hidden=3)[0]) == Needs(12_800, multiply_adds=products)
    with pytest.raises(ValueError, match="RealNPU"):
        needs(subset_runs("own")[0].model_copy(update={"model": None}))


@pytest.mark.parametrize(
    "runs",
    [
        division_runs(3, runs=4),
        subset_runs("own", runs=4, inputs=40),
        subset_runs("common", runs=4, inputs=40),
    ],
)
def test_floor_ends_in_as_many_numbers_as_a_gradient(runs: list) -> None:
    weight = runs[0].model.build(runs[0].task.in_features)[0].weight
    assert floor(runs)(torch.tensor(0)).numel() in (
        len(runs) * weight.numel(),
        2 * len(runs) * weight.numel(),
    )


def test_runs_are_shared_evenly() -> None:
    for runs, processes in [
        (division_runs(), 2),
        (subset_runs("own"), 2),
        (subset_runs("own"), 3),
        (division_runs(runs=1), 2),
    ]:
        sizes = [sum(len(ensemble) for ensemble in share) for share in shares(runs, processes)]
        assert sum(sizes) == len(runs) and max(sizes) - min(sizes) <= 3
        assert len(sizes) == min(processes, len(runs))


def test_one_call_for_all_models_does_what_a_call_for_each_does() -> None:
    asked = models_runs(2, 3, 20)
    apart, together = call_for_each(asked, compiled=False)(), call_for_all(asked, compiled=False)()[0]
    for (parameters, _), (others, _) in zip(apart, together, strict=True):
        assert all(torch.equal(parameters[name], others[name]) for name in parameters)
    assert [p.shape for p in apart[0][0].values()] == [
        p.shape for p in batch_drawn_beforehand(asked, compiled=False)()[0][0].values()
    ]


def test_two_processes_train_side_by_side_and_the_slower_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    monkeypatch.setattr(
        rates, "side_by_side", lambda *arguments: taken.extend(side_by_side(*arguments)) or taken
    )
    found = rate(partial(ensembles, compiled=False), shares(division_runs(runs=4, iterations=20), 2))
    assert len(taken) == 2 and found == pytest.approx(4 * 20 / max(taken))


def test_a_failure_beside_another_is_told() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        side_by_side(int, [("1",), ("one",)])


def test_scaling_keeps_within_the_size() -> None:
    for over in SCALING:
        pairs = scaling(over, TINY)
        assert pairs and all(number <= max(2, TINY.runs) and cost > 0 for number, cost in pairs)
    with pytest.raises(ValueError, match="inputs"):
        scaling("input")


def test_a_measurement_survives_its_file(tmp_path) -> None:
    taken = Measurement(
        "a processor",
        2,
        True,
        {"date": "2026-01-01"},
        {"cnn": Measure("cnn", 123.0, "images/s")},
        {"runs": [(1, 2.5)]},
    )
    taken.write(tmp_path / "deep" / "file.json")
    assert Measurement.read(tmp_path / "deep" / "file.json") == taken
    assert taken.value("cnn") == 123 and math.isnan(taken.value("division-2"))


def test_the_book_shows_a_whole_measurement() -> None:
    recorded = recorded_measurement()
    assert set(recorded.measures) == set(MEASURES) and set(recorded.scaling) == set(SCALING)
    assert recorded.compiled


def test_an_unknown_measure() -> None:
    with pytest.raises(ValueError, match="did you mean 'division-2'"):
        measure("division-3")
