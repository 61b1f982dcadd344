"""Diagrams: they compute what the unit computes, and nothing in them collides."""

import itertools

import pytest
import torch

from nalm import diagrams
from nalm.units import NMU, NPU, NaiveNPU

DRAWN = {
    "NaiveNPU": (NaiveNPU(3, 2), diagrams.power_unit(gate=False)),
    "NPU": (NPU(3, 2), diagrams.power_unit(gate=True)),
    "NMU": (NMU(3, 1), diagrams.product_unit()),
}


@pytest.fixture(params=DRAWN)
def drawn(request):
    return DRAWN[request.param]


def test_the_steps_compute_the_unit(drawn):
    unit, steps = drawn[0].double(), drawn[1]
    torch.manual_seed(0)
    for parameter in unit.parameters():
        torch.nn.init.uniform_(parameter, *((0, 1) if isinstance(unit, NMU) else (-1.2, 1.2)))  # gates beyond 0 and 1 too
    x = torch.cartesian_prod(*[torch.tensor([-2.0, -0.0, 0.0, 0.7], dtype=torch.float64)] * 3)
    torch.testing.assert_close(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-12, atol=0)


def test_every_parameter_is_drawn(drawn):
    unit, steps = drawn
    used = {step.parameter for step in steps} | {arrow.weight for step in steps for arrow in step.arrows}
    assert used - {""} == {name for name, _ in unit.named_parameters()}


def test_nothing_collides_or_leaves_the_picture(drawn):
    figure = diagrams.draw(drawn[1])
    figure.draw_without_rendering()
    texts = figure.axes[0].texts
    assert min(text.get_fontsize() for text in texts) >= 10
    extents = [text.get_window_extent().padded(2) for text in texts]
    assert all(figure.bbox.containsx(x) for extent in extents for x in (extent.x0, extent.x1))
    assert not any(one.overlaps(other) for one, other in itertools.combinations(extents, 2))
    boxes = [patch for patch in figure.axes[0].patches if hasattr(patch, "get_boxstyle")]
    inner = [box.get_window_extent() for box in boxes]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(inner, 2))
    for text, extent in zip(texts, extents):
        assert text.get_text() == "relevance gate" or any(box.x0 <= extent.x0 and extent.x1 <= box.x1 for box in inner)


def test_the_same_picture_every_time(drawn):
    one, other = (diagrams.draw(drawn[1])._repr_mimebundle_()[0]["image/png"] for _ in range(2))
    assert one == other
