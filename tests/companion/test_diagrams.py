"""Diagrams: they compute what the unit computes, and nothing in them collides."""

import itertools

import numpy as np
import pytest
import torch
from companion.figures import diagrams
from matplotlib.colors import to_rgb

from nalm.tasks import SubsetArithmeticTask
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
        torch.nn.init.uniform_(
            parameter, *((0, 1) if isinstance(unit, NMU) else (-1.2, 1.2))
        )  # gates beyond 0 and 1 too
    x = torch.cartesian_prod(*[torch.tensor([-2.0, -0.0, 0.0, 0.7], dtype=torch.float64)] * 3)
    torch.testing.assert_close(diagrams.execute(steps, unit, x)["y"], unit(x), rtol=1e-12, atol=0)


def test_every_parameter_is_drawn(drawn):
    unit, steps = drawn
    used = {step.parameter for step in steps} | {arrow.weight for step in steps for arrow in step.arrows}
    assert used - {""} == {name for name, _ in unit.named_parameters()}


def test_a_weight_is_called_by_its_name_and_with_its_sign():
    names = {"weight": "W_r$", "weight_im": "W_i$"}
    arrows = [arrow for _, steps in DRAWN.values() for step in steps for arrow in step.arrows if arrow.weight]
    assert {arrow.sign for arrow in arrows} == {1, -1}
    for arrow in arrows:
        assert arrow.label == ("$-" if arrow.sign < 0 else "$") + names[arrow.weight]


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
    for text, extent in zip(texts, extents, strict=True):
        assert text.get_text() == "relevance gate" or any(
            box.x0 <= extent.x0 and extent.x1 <= box.x1 for box in inner
        )


def test_the_same_picture_every_time(drawn):
    one, other = (diagrams.draw(drawn[1])._repr_mimebundle_()[0]["image/png"] for _ in range(2))
    assert one == other


@pytest.mark.parametrize("overlap_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("inputs", [10, 100])
def test_subsets_are_drawn_where_they_lie(overlap_ratio, inputs):
    task = SubsetArithmeticTask(operation="mul", inputs=inputs, overlap_ratio=overlap_ratio)
    operands, (size, shared) = task.operands(3), task.sizes()
    figure = diagrams.subsets(operands)
    figure.draw_without_rendering()
    axis = figure.axes[0]
    coloured = [patch for patch in axis.patches if hasattr(patch, "get_x") and patch.get_alpha()]
    assert {round(patch.get_x() + 0.5) for patch in coloured} == set(np.flatnonzero(operands.any(0)))
    assert [text.get_text() for text in axis.texts] == [
        f"a: {size} inputs",
        f"b: {size} inputs",
        *([f"{shared} shared"] if shared else []),
    ]
    parts = [np.flatnonzero(one) for one in (*operands, operands.all(0))]
    ends = [line.get_xdata().tolist() for line in axis.lines]
    assert ends == [[part[0] - 0.5, part[-1] + 0.5] for part in parts if part.size]
    colours = [to_rgb(text.get_color()) for text in axis.texts]
    for patch in coloured:
        place = round(patch.get_x() + 0.5)
        own = [colours[number] for number in (0, 1) if operands[number, place]]
        assert patch.get_facecolor()[:3] == own[0 if len(own) == 1 or patch.get_y() == 0 else 1]
    extents = [text.get_window_extent() for text in axis.texts]
    assert all(figure.bbox.containsx(x) for extent in extents for x in (extent.x0, extent.x1))
    assert not any(one.overlaps(other) for one, other in itertools.combinations(extents, 2))


@pytest.mark.parametrize("operands", [np.zeros((2, 4)), np.array([[1, 0, 1, 0], [0, 1, 1, 0]])])
def test_subsets_without_a_place_are_refused(operands):
    with pytest.raises(ValueError, match="one contiguous subset"):
        diagrams.subsets(operands)
