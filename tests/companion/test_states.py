"""Weights that runs of division start and end with."""

import json

import numpy as np
import pandas as pd
import torch
from companion.division import settings
from companion.division.states import draw_starts, holding, initial, initial_of_ten, shown, with_states
from matplotlib.figure import Figure

from nalm import NMRU, RealNPU
from nalm.tasks import SingleModuleTask


def test_a_run_starts_with_what_its_seed_draws():
    found = initial(settings.arms(inputs=2)["Real NPU (modified)"].model, 2, range(3))
    for seed, weights in enumerate(found):
        torch.manual_seed(seed)
        assert RealNPU(2, 1, **settings.REPAIRED).weight[0].tolist() == weights.tolist()


def test_of_ten_inputs_the_operands_come_first():
    seeds = [3, 5]
    found = initial_of_ten("NMRU", seeds, parts=2)
    assert found.shape == (2, 2, 10)
    for seed, weights in zip(seeds, found, strict=True):
        torch.manual_seed(seed)
        drawn = NMRU(10, 1).weight[0].detach().numpy().reshape(2, 10)
        operands = SingleModuleTask.on("U[1,2)", operation="div", inputs=10).operands(seed)
        np.testing.assert_allclose(weights[:, :2], drawn[:, operands.any(0)], rtol=1e-6)


def test_states_are_those_of_the_operands():
    rows = []
    for seed in range(3):
        places = SingleModuleTask.on("U[1,2)", operation="div", inputs=10).operands(seed).any(0)
        weight, gate = np.where(places, 1.0 + seed, 0.0), np.where(places, 0.5, 0.0)
        rows.append(
            {"seed": seed, "weights": json.dumps({"0.weight": [weight.tolist()], "0.gate": gate.tolist()})}
        )
    found = with_states(pd.DataFrame(rows), inputs=10)
    assert found["W_a"].tolist() == found["W_b"].tolist() == [1.0, 2.0, 3.0]
    assert set(found["g_a"]) == set(found["g_b"]) == {0.5}


def test_errors_of_shown_runs_are_named_after_their_ranges():
    runs = pd.DataFrame({"seed": [0], "valid_mse": [1.234e-7], "test_mse": [2.0], "left out": [1]})
    assert shown(runs, ["seed", "test_mse"]).to_dict("records") == [{"seed": 0, "test range": 2.0}]
    written = shown(runs, ["valid_mse", "test_mse"], "{:.1e}")
    assert written.to_dict("records") == [{"training range": "1.2e-07", "test range": "2.0e+00"}]


def test_solved_and_failed_starts_are_told_apart():
    axis = Figure().subplots()
    weights, won = np.array([[0.1, -0.1], [-0.2, 0.2]]), np.array([True, False])
    draw_starts(axis, weights, won, lambda W_a, W_b: W_a > W_b)
    solved, failed = axis.lines
    assert solved.get_xydata().tolist() == [[0.1, -0.1]] and solved.get_marker() == "o"
    assert failed.get_xydata().tolist() == [[-0.2, 0.2]] and failed.get_marker() == "x"


def test_a_unit_holds_what_it_is_given():
    unit = holding(RealNPU(2, 1), weight=[[1.0, -1.0]], gate=[0.5, 1.0])
    assert unit.weight.tolist() == [[1.0, -1.0]] and unit.gate.tolist() == [0.5, 1.0]
    assert unit.weight.dtype == unit.gate.dtype == torch.float64 and unit.weight.requires_grad
