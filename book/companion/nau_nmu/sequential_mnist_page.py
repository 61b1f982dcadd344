"""What the chapter on products of handwritten digits says beside its statements: tables, numbers, a figure.

``zero`` is the error of always answering 0, by number of digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from nalm import NMU
from nalm.tasks import DigitSequenceTask
from torch import Tensor

from companion.experiment.rows import NOT_RUN, Rows
from companion.experiment.statements import Statements
from companion.experiment.tables import Table, text, within
from companion.figures import Figure, style
from companion.nau_nmu import digits_page
from companion.nau_nmu.digit_runs import digit_arms
from companion.nau_nmu.digits import REFERENCE
from companion.nau_nmu.digits_page import Numbers, accumulated


def draw_sequences(task: DigitSequenceTask, length: int, sequences: int = 2) -> Figure:
    """The first test sequences of a length, image by image, with their digits and targets."""
    held, images = task.evaluation(seed=0)[f"test_{length}"], task.shared()
    with style():
        figure = Figure(figsize=(7, 3.1), layout="constrained")
        axes = figure.subplots(sequences, length, squeeze=False)
        for row, column in itertools.product(range(sequences), range(length)):
            image = held.inputs[row, column]
            axis, target = axes[row, column], int(held.targets[row, column])
            axis.imshow(images["images"][image], cmap="gray_r")
            axis.set(xticks=[], yticks=[], xlabel=f"target {target:,}")
            axis.set_title(f"digit {int(images['labels'][image])}")
            axis.grid(False)
            axis.spines[:].set_visible(False)
    return figure


def readers_of_pairs(
    readers: Mapping[float, np.ndarray], task: DigitSequenceTask, lengths: Sequence[int]
) -> Table:
    """The errors on long sequences of readers that were fitted to pairs.

    Args:
        readers: the weight w_y -> what its reader says for each of the digits 1 to 9.
        task: the sequences.
        lengths: their numbers of digits.
    """
    examples, labels, lines = task.evaluation(seed=0), task.shared()["labels"], []
    for w_y, reader in readers.items():
        line = {"w_y": w_y, "a nine is read as": reader[-1]}
        for length in lengths:
            held = examples[f"test_{length}"]
            read = torch.tensor(reader)[labels[held.inputs] - 1]
            states = accumulated(NMU(2, 1), read, (1.0, w_y), start=1.0)
            share = (states - held.targets).square().mean() / held.targets.double().square().mean()
            line[f"{length}"] = round(100 * share.item(), 4)
        lines.append(line)
    caption = "The best reader for pairs: error in % of always 0, by number of digits"
    return Table(lines, caption, digits=2)


def largest_targets(targets: Mapping[int, Tensor]) -> tuple[Table, Numbers]:
    """How much of the sum of squared targets few sequences hold; ``targets``: by number of digits."""
    lines = []
    for length, of_length in targets.items():
        squares = of_length.double().square().sum(1)
        largest = squares.sort(descending=True).values / squares.sum()
        line = {"digits": length, "sequences": len(squares), "largest one": largest[0].item()}
        lines.append(line | {"largest five": largest[:5].sum().item()})
    numbers = {
        "last_length": lines[-1]["digits"],
        "last_sequences": lines[-1]["sequences"],
        "five_share": f"{100 * lines[-1]['largest five']:.0f}%",
    }
    caption, folded = "Share of the sum of squared targets", "The shares, by number of digits"
    return Table(lines, caption, digits=2, folded=folded), numbers


def scope(rows: Rows, p: SimpleNamespace, task: DigitSequenceTask) -> Numbers:
    """What the page runs, how often it is evaluated, and how strong the penalty is at the end."""
    per_epoch = task.steps_per_epoch(batch_size=64)
    updates = p.epochs * per_epoch
    sparse = digit_arms("product", updates, log_interval=5 * per_epoch)["NMU"].recipe.penalties[0]
    ramp = {name: torch.tensor(number) for name, number in sparse.numbers().items()}
    return digits_page.scope(rows, p, task) | {
        "iterations": updates,
        "logged": -(-p.epochs // 5) + 1,
        "discretisation": sparse.coefficient(ramp, torch.tensor(float(updates))).item(),
    }


def median_numbers(middle: pd.DataFrame, zero: Mapping[int, float], targets: Tensor) -> Numbers:
    """Median errors that the text names; ``targets``: those of single digits."""

    def at(model: str, length: int) -> str:
        return digits_page.error_of(middle, model, length, lambda error: text(error, 2))

    numbers: Numbers = {}
    for name, model in {"nmu": "NMU", "exact": REFERENCE["product"]}.items():
        numbers |= {f"{name}-{length}": at(model, length) for length in (1, 2, 20)}
    names = {"free-1": "NMU, no R_z", "sigma-1": "NAC•,σ", "logs-1": "NAC•,NMU"}
    numbers |= {name: at(model, 1) for name, model in names.items()}
    mean_digit = (targets - 5).square().mean().item() / zero[1]
    return numbers | {"mean-1": f"{text(100 * mean_digit, 2)}%"}


def against_independent(
    rows: Rows, zero: Mapping[int, float], lengths: Sequence[int]
) -> tuple[Table, Numbers]:
    """The errors of NMUs and exact products, divided by what independent misreadings would make of them."""
    C, tested, factors = zero[1], np.array(list(zero)), {}
    for row in rows.of(model=["NMU", REFERENCE["product"]]).frame.to_dict("records"):
        errors = np.array([row[f"test_{length}"] for length in zero])
        independent = ((C + errors[0]) ** tested - C**tested).cumsum() / (C**tested).cumsum()
        factors[f"{row['model']}, seed {row['seed']}"] = errors / np.array(list(zero.values())) / independent
    table = pd.DataFrame(factors.values(), columns=tested, index=list(factors))
    exact = [abs(one[:8] - 1).max() for name, one in factors.items() if name.startswith("exact")]
    table = table[list(lengths)].rename(columns=str).rename_axis("run").reset_index()
    caption = "Error divided by the yardstick of independent misreadings"
    shown = Table(table, caption, folded="Each run against independent misreadings")
    return shown, {"factor_exact": within(max(exact)) if exact else NOT_RUN}


def weights(rows: Rows) -> tuple[Table, Numbers]:
    """The weights and errors of the selected models whose products are an NMU's or a NAC•'s."""
    units = ["NMU", "NMU, no R_z", "NAC•,NMU", "NAC•,NMU, no R_z"]
    part = rows.of(model=units)
    found = digits_page.weights(part)
    found["error, one digit"], found["error, two"] = part.frame[["test_1", "test_2"]].to_numpy().T
    of_images = {unit: found.loc[found["model"] == unit, "w_z"] for unit in units}
    short = {"free-w": "NMU, no R_z", "held-w": "NMU", "logs-w": "NAC•,NMU"}
    nines = [f"{1 + 8 / one:.0f}" for one in of_images["NMU, no R_z"]]
    numbers: Numbers = {
        name: ", ".join(f"{one:.2f}" for one in of_images[unit]) or NOT_RUN for name, unit in short.items()
    }
    numbers |= {"free-nine": " or ".join(nines) or NOT_RUN}
    numbers |= {"finishing": len(found), "finished": int((found["w_y"] > 0.99).sum())}
    folded = f"The weights and errors of {len(found)} runs"
    return Table(found, "Weights of the selected models", folded=folded), numbers


def of_figures(judged: Statements) -> Numbers:
    """The statements on the figures that the text repeats."""
    claims = {one.what: str(one) for one in judged.statements}
    words = {"unhindered": "hinder", "extrapolated": "extrapolates"}
    return {
        name: next((shown for what, shown in claims.items() if word in what), NOT_RUN)
        for name, word in words.items()
    }
