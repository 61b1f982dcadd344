"""Projection, penalty and sparsity error on known weights; parameters and effective weights."""

import pytest
import torch

from nalm.units import NAC, NALU, NAU, NMRU, NMU, NPU, NRU, GatedNAUNMU, Linear, NACMul, NaiveNPU, RealNPU

from .cases import GOLDEN, MORE_ARMS, SEVERAL_OUTPUTS, Case

WEIGHT = [[-1.5, -0.25, 0.5, 2.0]]


def with_weight(unit, name="weight", values=WEIGHT):
    with torch.no_grad():
        unit.get_parameter(name).copy_(torch.tensor(values))
    return unit


@pytest.mark.parametrize("case", SEVERAL_OUTPUTS, ids=str)
def test_parameters_changed_in_place_change_the_output(case):
    torch.manual_seed(0)
    unit = case.build().eval()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.uniform_(0.3, 0.7)
        x = torch.tensor([[-1.2, 0.7, 2.0], [1.2, 0.7, -2.0]], dtype=torch.float64)
        for name, parameter in unit.named_parameters():
            before = unit(x)
            parameter.mul_(0.9)
            assert not torch.equal(unit(x), before), name


@pytest.mark.parametrize("case", [*GOLDEN, *MORE_ARMS], ids=str)
def test_forward_keeps_nothing_and_changes_nothing(case):
    unit = case.build()
    state = {name: value.clone() for name, value in unit.state_dict().items()}
    unit(torch.rand(4, 3, dtype=torch.float64))
    assert state.keys() == unit.state_dict().keys() == dict(unit.named_parameters()).keys()
    assert all(torch.equal(state[name], value) for name, value in unit.state_dict().items())


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (NAU(4, 1), [[-1.0, -0.25, 0.5, 1.0]]),
        (NAU(4, 1, clamp="forward"), WEIGHT),
        (NAU(4, 1, clamp="none"), WEIGHT),
        (NMU(4, 1), [[0.0, 0.0, 0.5, 1.0]]),
        (NMU(4, 1, clamp="forward"), WEIGHT),
        (NACMul(4, 1, weight="linear"), [[0.0, 0.0, 0.5, 1.0]]),
        (NRU(4, 1), [[-1.0, -0.25, 0.5, 1.0]]),
        (NMRU(2, 1), [[0.0, 0.0, 0.5, 1.0]]),
        (RealNPU(4, 1), WEIGHT),
        (RealNPU(4, 1, clip=("weight",)), [[-1.0, -0.25, 0.5, 1.0]]),
        (RealNPU(4, 1, clip=("gate",)), WEIGHT),
        (NaiveNPU(4, 1, clip=("weight_im",)), WEIGHT),
        (Linear(4, 1), WEIGHT),
    ],
    ids=str,
)
def test_projection_clamps_the_weight(unit, expected):
    parameter = with_weight(unit).weight
    unit.project_()
    assert unit.weight is parameter and parameter.requires_grad
    assert parameter.tolist() == expected


def test_projection_of_gates_and_imaginary_weights():
    unit = NPU(4, 1, clip=("weight_im", "gate"))
    with_weight(with_weight(unit, "weight_im"), "gate", WEIGHT[0]).project_()
    assert unit.weight_im.tolist() == [[-1.0, -0.25, 0.5, 1.0]]
    assert unit.gate.tolist() == [0.0, 0.0, 0.5, 1.0]
    unit = with_weight(NMRU(2, 1, gate="zero"), "gate", WEIGHT[0])
    unit.project_()
    assert unit.gate.tolist() == [0.0, 0.0, 0.5, 1.0]
    unit = with_weight(with_weight(GatedNAUNMU(4, 1), "add.weight"), "mul.weight")
    unit.project_()
    assert unit.add.weight.tolist() == [[-1.0, -0.25, 0.5, 1.0]]
    assert unit.mul.weight.tolist() == [[0.0, 0.0, 0.5, 1.0]]


TERNARY = (0.5 + 0.25 + 0.5 + 1.0) / 4
BINARY = (1.5 + 0.25 + 0.5 + 1.0) / 4
SIGNS = (0.5 + 0.75 + 0.5 + 1.0) / 4


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (NAU(4, 1), TERNARY),
        (NAU(4, 1, clamp="forward"), TERNARY),  # on the stored weight
        (NAU(4, 1, clamp="none"), 0.0),
        (NMU(4, 1), BINARY),
        (NMU(4, 1, clamp="forward"), BINARY),
        (NACMul(4, 1, weight="linear"), BINARY),
        (NRU(4, 1), TERNARY),
        (NMRU(2, 1), BINARY),
        (NMRU(2, 1, gate="zero"), BINARY + 0.1 * 0.5),
        (NMRU(2, 1, gate="identity", gate_share=1.0), BINARY + 0.5),
        (RealNPU(4, 1), 0.0),
        (RealNPU(4, 1, discretise=("weight",)), SIGNS),
        (RealNPU(4, 1, discretise=("weight",), discretise_to=(-1, 0, 1)), TERNARY),
        (RealNPU(4, 1, discretise=("weight", "gate")), SIGNS + 0.5),
        (RealNPU(4, 1, discretise=("gate",), gate_init=-0.25), 0.25),
        (NPU(4, 1, discretise=("weight", "gate")), SIGNS + 0.5),
        (Linear(4, 1), 0.0),
    ],
    ids=str,
)
def test_penalty_on_known_weights(unit, expected):
    value = with_weight(unit).penalty()
    assert value.shape == () and value.dtype == torch.float32
    assert value.item() == pytest.approx(expected)


@pytest.mark.parametrize("values", [[0, 1], [-1, 0, 1], [-2, 0, 2]], ids=str)
def test_discrete_values_may_be_a_list(values, monkeypatch):
    unit, expected = with_weight(NAU(4, 1)), []
    for kind in (tuple, list):
        monkeypatch.setattr(NAU, "discrete_values", {"weight": kind(values)})
        expected.append(unit.penalty().item())
    assert expected[0] == expected[1] > 0


def test_penalty_sums_imaginary_weights_and_sub_units():
    assert with_weight(NPU(4, 1, discretise=("weight_im",)), "weight_im").penalty().item() == 4.25
    unit = with_weight(with_weight(GatedNAUNMU(4, 1), "add.weight"), "mul.weight")
    assert unit.penalty().item() == pytest.approx(TERNARY + BINARY)
    assert NAC(2, 1).double().penalty().dtype == torch.float64


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (NAU(4, 1), 0.5),  # on the clamped weight
        (NAU(4, 1, clamp="none"), 1.0),
        (NMU(4, 1, clamp="forward"), 0.5),
        (NRU(4, 1), 1.0),
        (NMRU(2, 1, gate="zero"), 1.0),  # the gate, at 0.5, does not count
        (RealNPU(4, 1), 1.0),
        (Linear(4, 1), 1.0),
    ],
    ids=str,
)
def test_sparsity_error_on_known_weights(unit, expected):
    assert with_weight(unit).sparsity_error().item() == expected


def test_sparsity_error_of_constructed_and_complex_weights():
    unit = with_weight(NPU(4, 1), "weight_im", [[0.0, 0.25, -1.0, 1.0]])
    assert with_weight(unit).sparsity_error().item() == 1.25  # real plus imaginary
    unit = NAC(1, 1)
    with torch.no_grad():
        unit.weight_tanh.fill_(0.3)
        unit.weight_sigmoid.fill_(0.2)
    expected = torch.tanh(torch.tensor(0.3)) * torch.sigmoid(torch.tensor(0.2))
    torch.testing.assert_close(unit.sparsity_error(), expected)
    separate = NALU(1, 1, shared=False)
    with torch.no_grad():
        separate.weight_tanh.fill_(40.0)
        separate.weight_sigmoid.fill_(40.0)
        separate.weight_tanh_mul.fill_(0.3)
        separate.weight_sigmoid_mul.fill_(0.2)
    torch.testing.assert_close(separate.sparsity_error(), expected)


@pytest.mark.parametrize("case", [case for case in GOLDEN if "gate" not in case.golden], ids=str)
def test_sparsity_error_is_zero_at_golden_weights(case: Case):
    assert case.build_golden(torch.float64).sparsity_error().item() < 1e-15  # sigmoid(-40) is not quite 0
