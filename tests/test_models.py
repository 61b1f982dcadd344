"""Models as values."""

import torch

from nalm.models import Layer, Stack


def test_the_last_draw_of_the_initial_weights_is_kept():
    layers = (Layer(unit="RealNPU"),)
    torch.manual_seed(7)
    first, second = (Stack(layers=layers).build(2)[0].weight for _ in range(2))
    torch.manual_seed(7)
    assert torch.equal(Stack(layers=layers, draws=2).build(2)[0].weight, second)
    assert not torch.equal(first, second)


def test_one_draw_is_the_key_it_always_was():
    assert "draws" not in Stack.of("NMU", 1).canonical()
