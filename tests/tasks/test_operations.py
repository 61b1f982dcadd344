"""Operations of a reader's own are kept as their expressions, which can compute nothing else."""

import importlib
import linecache
import operator

import numpy as np
import pytest
import torch

from nalm.tasks import OPERATIONS, SingleModuleTask, SubsetArithmeticTask, TenParameterTask, operation

SCALE = a = 2
NO_NUMBERS = ("abs", "a + abs", "a(b)", "3", "1 / 0", "a + 1e999", "a + abs(9) ** 9 ** 9")


def squares(first, second):
    """A function as well."""
    return first**2 + second**2


def doubled(first, second):
    """A function of two statements."""
    first = 2 * first
    return first + second


def larger(first, second):
    if abs(first) > abs(second):
        return first
    return second


def task(one):
    return SingleModuleTask.on("U[1,2)", operation=one)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (lambda a, b: a * a + b, "a * a + b"),
        (lambda x, y: abs(y) - x % 2, "abs(b) - a % 2"),
        (squares, "a ** 2 + b ** 2"),
        (operator.add, "add"),
        (OPERATIONS["root"], "root"),
        ("-a / (b + 1.5)", "-a / (b + 1.5)"),
    ],
)
def test_an_operation_is_kept_as_its_expression(given, kept):
    assert task(given).operation == kept
    a, b = np.array([1.0, 2.0]), np.array([3.0, 0.5])
    expected = given(a, b) if callable(given) else -a / (b + 1.5)
    np.testing.assert_array_equal(operation(kept)(a, b), expected)
    found = operation(kept)(torch.tensor(a), torch.tensor(b)).numpy()
    np.testing.assert_allclose(found, expected, rtol=4e-16)  # a processor's power may be off by a bit


@pytest.mark.parametrize("kind", [SubsetArithmeticTask, TenParameterTask])
def test_tasks_on_subsets_take_a_function(kind):
    assert kind(operation=squares).operation == "a ** 2 + b ** 2"


def test_two_on_a_line_are_told_apart():
    pair = (lambda a, b: a + 2 * b), (lambda a, b: a + 3 * b)
    assert [task(one).operation for one in pair] == ["a + 2 * b", "a + 3 * b"]


def test_a_function_whose_file_has_been_edited_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "own_operations.py"
    file.write_text("def own(a, b):\n    return a + 2 * b\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = importlib.import_module("own_operations").own
    assert task(own).operation == "a + 2 * b"
    file.write_text("def own(a, b):\n    return a - 2 * b * b\n")
    linecache.checkcache(str(file))
    with pytest.raises(ValueError, match="is no operation"):
        task(own)


def test_its_targets_are_those_of_the_expression():
    found = task(lambda a, b: a * a + b).evaluation(0)["test"]
    torch.testing.assert_close(found.targets[:, 0], found.inputs[:, 0] ** 2 + found.inputs[:, 1])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (lambda a, b: a * SCALE, "returns one expression of these alone"),
        (lambda x, y: a * x + y, "returns one expression of these alone"),
        (lambda a, b: np.sin(a), "Unknown operation|is no operation"),
        (lambda a: a, "must be a function of two operands"),
        (lambda a, b, c: a + b, "must be a function of two operands"),
        (print, "must be a function of two operands"),
        (doubled, "must be a function of two operands that returns one expression"),
        (larger, "must be a function of two operands that returns one expression"),
        (
            eval(compile("lambda a, b: a + b", "<nowhere>", "eval")),
            "source of .* cannot be read: write the operation as text",
        ),
        ("__import__('os').getcwd()", "Unknown operation"),
        ("a.real", "Unknown operation"),
        ("(lambda: 1)(a)", "Unknown operation"),
        ("a +", "Unknown operation"),
        *(
            (one, "Unknown operation")
            for one in ("a @ b", "~a", "not a", "a * (7 ^ 2)", "a * (1 << 3)", "a * (1 | 2)", "a + True")
        ),
        ("+".join(["a"] * 20_000), "at most 500 characters, not 39999"),
        ("+".join(["a"] * 251), "at most 500 characters, not 501"),
        ("(" * 240 + "a" + ")" * 240, "Unknown operation"),
        *((one, "computes no number") for one in NO_NUMBERS),
        ("ad", "did you mean 'add'"),
    ],
)
def test_nothing_else_is_computed(given, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        task(given)
    assert "\n" not in str(refusal.value)


def test_what_is_no_text_is_no_operation():
    with pytest.raises(ValueError, match="Unknown operation 3: allowed: 'add', 'sub'"):
        operation(3)


def test_the_longest_expression_and_one_with_a_pole_are_computed():
    longest = "a" + " + b" * 124 + " + a"
    assert len(longest) == 501
    assert operation(longest.replace(" + a", "+ a"))(1, 2) == 250
    assert task("b / (a - 1.5)").operation == "b / (a - 1.5)"  # infinite at a number that it is tried with
