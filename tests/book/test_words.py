"""Words of the pages: each coined word is in the glossary, or was replaced by the field's."""

import re
from pathlib import Path

import nbformat
import pytest

import nalm.training

BOOK = Path(__file__).parents[2] / "book"
GLOSSARY = (BOOK / "glossary.md").read_text("utf-8")
OURS = "*Our word.*"

# Coined word -> the field's, and the pages on which the former still stands. None may gain it.
REPLACED: dict[str, tuple[str, set[str]]] = {
    r"giants?": (
        "outlier, huge gradient",
        {"division/inside-the-nmru", "division/losses", "division/redundancy", "division/summary"},
    ),
    r"coins?": (
        "chance, initial weights",
        {
            "beyond/replayed",
            "division/distributions",
            "division/inside-the-nmru",
            "division/no-redundancy",
            "division/redundancy",
            "nau-nmu/units",
        },
    ),
    r"toss(es)?": ("chance", {"division/chance", "division/inside-the-nmru", "division/no-redundancy"}),
    r"obeys?": ("follows the prediction", {"beyond/own-network"}),
    r"good (side|starts?)": (
        "initial weights that lead to the solution",
        {"division/distributions", "division/mixed-signs", "nau-nmu/units"},
    ),
    r"(with|a|the) room": ("margin", set()),
    r"twins?": ("pair of the same seed", {"beyond/verify", "npu/simple-arithmetic"}),
    r"yardsticks?": ("reference", {"nau-nmu/sequential-mnist"}),
    r"parting": ("differing", {"nau-nmu/start"}),
    r"traps?": (
        "local minimum",
        {
            "division/no-redundancy",
            "division/redundancy",
            "division/robust-real-npu",
            "nau-nmu/ten-parameter",
        },
    ),
    r"hides?": (
        "makes no difference on the training range",
        {
            "beyond/verify",
            "nau-nmu/hidden-sizes",
            "nau-nmu/sequential-mnist",
            "nau-nmu/sequential-sums",
            "scoreboard",
        },
    ),
    r"text, code and this page part": (
        "text, code and this page differ",
        {
            "division/distributions",
            "division/inside-the-nmru",
            "division/losses",
            "division/no-redundancy",
            "division/redundancy",
            "division/small-numbers",
            "nau-nmu/sequential-mnist",
            "nau-nmu/sequential-sums",
            "nau-nmu/subset-arithmetic",
            "npu/simple-arithmetic",
        },
    ),
}


def prose(page: Path) -> str:
    """What a page says, without its code, formulas and links."""
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    else:
        text = page.read_text("utf-8")
    return re.sub(r"```.*?```|\$\$.*?\$\$|\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", " ", text, flags=re.DOTALL)


PAGES = {
    page.relative_to(BOOK).with_suffix("").as_posix(): prose(page)
    for page in BOOK.rglob("*")
    if page.suffix in (".md", ".ipynb") and not {"data", ".ipynb_checkpoints"} & set(page.parts)
}


def definitions() -> dict[str, str]:
    """The glossary's terms with their definitions."""
    part = re.search(r"```\{glossary\}\n(.*?)```", GLOSSARY, flags=re.DOTALL)
    assert part
    entries = [entry.split("\n", 1) for entry in part[1].strip().split("\n\n")]
    return {term: definition.strip() for term, definition in entries}


def test_few_words_are_coined() -> None:
    ours = [term for term, definition in definitions().items() if definition.startswith(OURS)]
    assert 0 < len(ours) <= 10
    assert OURS in GLOSSARY and "Ten of these words" in GLOSSARY and len(ours) == 10


@pytest.mark.parametrize("word", REPLACED)
def test_replaced_words_do_not_spread(word: str) -> None:
    instead, left = REPLACED[word]
    found = {name for name, text in PAGES.items() if re.search(rf"\b{word}\b", text, flags=re.IGNORECASE)}
    assert found <= left, f"{found - left} say {word!r}: say {instead!r}"


def test_every_word_that_the_library_has_is_one() -> None:
    """The last column of the table of symbols names parameters, options and methods that there are."""
    known = {"x", "forward", "in_features", "out_features", "eps", "penalty", "sparsity_error", "project_"}
    known |= {name for unit in nalm.units.UNITS.values() for name, _ in unit(2, 2).named_parameters()}
    known |= set(nalm.training.__all__)
    symbols = GLOSSARY.split("## Symbols")[1]
    columns = [line.split("|")[-2] for line in symbols.splitlines() if line.startswith("| ")][2:]
    named = {name for column in columns for name in re.findall(r"`([A-Za-z_0-9]+)", column)}
    assert len(named) > 10 and named <= known, named - known
