"""Formulas read off trained weights: the right-hand side of a neural differential equation of power units, as
SymPy expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
import torch
from nalm import NAU, NPU, RealNPU, formula
from torch import nn

__all__ = ["latex", "learned_equations"]

_WIDTH = 100
"""Letters of the terms that stand in one line of an equation."""


def learned_equations(
    weights: Mapping[str, Any], names: Sequence[str], digits: int | None = None
) -> tuple[sympy.Expr, ...]:
    r"""The right-hand side that a power unit followed by an NAU computes where the state is positive.

    .. math::

        \dot x_k = \sum_j A_{kj} \prod_i b_i^{W_{ji}} \cos\Bigl(\sum_i V_{ji} \log b_i\Bigr),
        \qquad b_i = \hat g_i x_i + 1 - \hat g_i

    NPU paper, Eqs. 10 and 19: W and V are the real and imaginary weights of the unit, A those of the
    NAU, :math:`\hat g` its gate, clipped to [0, 1].

    Args:
        weights: a row's weights, by name: ``field.0.weight``, ``field.0.weight_im`` (not of a RealNPU),
            ``field.0.gate``, ``field.1.weight``.
        names: of the entries of the state.
        digits: round every number to so many decimals first; what rounds to zero vanishes. ``None``: not at
            all.

    Returns:
        One expression for each entry of the state. Powers with equal exponents have been added up.

    Raises:
        ValueError: weights of another model, or another number of names.

    >>> unit = {"field.0.weight": [[0.5, 0.5, 0.0], [0.0, 0.0, 1.001]], "field.0.gate": [1.0, 1.0, 1.0]}
    >>> nau = {"field.1.weight": [[-0.06, 0.01], [0.06, 0.0], [0.0, -0.01]]}
    >>> for expression in learned_equations(unit | nau, ["S", "I", "R"], digits=2):
    ...     print(expression)
    -0.06*I**0.5*S**0.5 + 0.01*R
    0.06*I**0.5*S**0.5
    -0.01*R
    """
    if missing := {"field.0.weight", "field.0.gate", "field.1.weight"} - set(weights):
        raise ValueError(
            "Formulas are read off a power unit followed by an NAU, but these weights lack "
            f"{', '.join(sorted(missing))}."
        )
    tensors = {name: torch.tensor(np.asarray(values)).double() for name, values in weights.items()}
    hidden, entries = tensors["field.0.weight"].shape
    if len(names) != entries:
        raise ValueError(f"The state has {entries} entries, but {len(names)} names were given.")
    power_unit = NPU if "field.0.weight_im" in tensors else RealNPU
    field = nn.Sequential(
        power_unit(entries, hidden, eps=0.0, dtype=torch.float64),
        NAU(hidden, len(tensors["field.1.weight"]), clamp="none", dtype=torch.float64),
    )
    field.load_state_dict({name.removeprefix("field."): values for name, values in tensors.items()})
    return formula(field, [sympy.Symbol(name, positive=True) for name in names], digits)


def latex(weights: Mapping[str, Any], names: Sequence[str], digits: int) -> str:
    """The equations as LaTeX, one below the other, long ones over several lines; arguments as in
    :func:`learned_equations`.

    >>> weights = {"field.0.weight": [[0.5]], "field.0.gate": [1.0], "field.1.weight": [[-2.0]]}
    >>> print(latex(weights, ["x"], digits=1))
    \\begin{aligned}\\dot x &= - 2 x^{0.5}\\end{aligned}
    """
    lines = [
        line
        for name, formula in zip(names, learned_equations(weights, names, digits), strict=True)
        for line in _lines(rf"\dot {name} &=", formula)
    ]
    return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def _lines(begin: str, formula: sympy.Expr) -> list[str]:
    lines, width = [begin], 0
    for term in formula.as_ordered_terms():
        width += len(str(term))
        if width > _WIDTH and width > len(str(term)):
            lines.append(r"&\quad")
            width = len(str(term))
        written = sympy.latex(term)
        first = lines == [begin]
        lines[-1] += f" {written}" if first or written.startswith("-") else f" + {written}"
    return lines
