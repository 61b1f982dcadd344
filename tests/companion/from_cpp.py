"""``make train-missing`` calls compiled code from C++, and no bit is another: part of ``make test-fresh``.

To compile such calls takes half a minute for each model.
"""

import numpy as np
import pytest
from companion.missing import SEEDED
from companion.replay import all_replayed
from torch._inductor import config as inductor

from nalm.training import Ensemble


@pytest.mark.filterwarnings("ignore:CUTLASS")
@pytest.mark.parametrize("model", ["NMU", "NAC•,σ", "NALU"])
def test_calls_from_cpp_change_no_bit(model):
    asked = [run for run in SEEDED["Figure 3, ranges"][1](3) if run.labels["model"] == model][:3]
    runs = [
        run.but(recipe=run.recipe.but(iterations=1000, log_interval=500))
        for run in all_replayed(asked, "common")
    ]

    def trained(from_cpp):
        with inductor.patch({"cpp_wrapper": from_cpp}):
            return Ensemble(runs, compiled=True).train()

    one, other = trained(False), trained(True)
    assert one.weights.keys() == other.weights.keys() and one.errors.keys() == other.errors.keys()
    for name, weights in one.weights.items():
        np.testing.assert_array_equal(weights, other.weights[name])
    for name, errors in one.errors.items():
        np.testing.assert_array_equal(errors, other.errors[name])
