"""Sums in parts: the same sums but for rounding, and less of it the more parts there are."""

import pytest
import torch
from companion.nau_nmu import settings
from companion.nau_nmu.rounding import errors, in_parts


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 16])
def test_parts_are_a_matrix_product(parts):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(20, 10, generator=generator, dtype=torch.float64)
    weights = torch.randint(2, (4, 10), generator=generator).double()
    torch.testing.assert_close(in_parts(x, weights, parts), x @ weights.T, rtol=1e-14, atol=0)


def test_one_part_is_one_input_after_another():
    x = torch.tensor([[1.0, 2.0**-24, 2.0**-24]])  # each alone is lost beside 1
    weights = torch.ones(1, 3)
    assert in_parts(x, weights, 1).item() == 1.0
    assert in_parts(x.flip(1), weights, 1).item() == 1.0 + 2.0**-23


def test_fewer_additions_in_a_row_round_less():
    found = errors(settings.subset_runs(["NMU"], ["mul"], 5), [0, 1, 2, 8])
    assert found[0] < found[8] < found[2] < found[1] and found[1] > 4 * found[0] > 0
