"""Notebooks are committed as they ran: top to bottom, with everything they print, and without a trace of
where.
"""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import nbformat
import papermill
import pytest
from companion import beyond
from companion.scoreboard.items import EXPERIMENTS, experiments_of
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
SHOWING = {"print", "display"}
HERE = re.compile(
    r"(?<![\w.:/])/(home|root|Users|work|workspace|github|opt|mnt|tmp|var)/[\w.]+|[A-Z]:\\Users\\"
)


def code_cells(path: Path) -> list[NotebookNode]:
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]


def text(output: NotebookNode) -> str:
    """What an output says, its pictures left out."""
    data = output.get("data", {})
    return output.get("text", "") + "".join(value for kind, value in data.items() if kind.startswith("text/"))


class Shows(ast.NodeVisitor):
    """Finds calls that show something, outside the functions a cell defines."""

    def __init__(self) -> None:
        self.found = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        pass

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        self.found |= isinstance(node.func, ast.Name) and node.func.id in SHOWING
        self.generic_visit(node)


def must_show(source: str) -> bool:
    """Whether a cell surely has an output: it prints, or ends in a value that is no call and no constant."""
    tree = ast.parse(TransformerManager().transform_cell(source))
    finder = Shows()
    finder.visit(tree)
    last = tree.body[-1] if tree.body else None
    return finder.found or (
        isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call | ast.Constant | ast.Await)
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("print(1)", True),
        ("for i in x:\n    display(i)", True),
        ("y = 1\ny", True),
        ("table.head", True),
        ("y = 1", False),
        ("def f():\n    print(1)", False),
        ("model.train()", False),
        ("import torch", False),
        ("# a comment", False),
    ],
)
def test_must_show(source: str, expected: bool) -> None:
    assert must_show(source) == expected


def test_ran_top_to_bottom(chapter: Path) -> None:
    counts = [cell.execution_count for cell in code_cells(chapter)]
    assert counts == list(range(1, len(counts) + 1)), "run the whole notebook in a fresh kernel, then save it"


def test_has_its_outputs(chapter: Path) -> None:
    empty = [cell.source for cell in code_cells(chapter) if must_show(cell.source) and not cell.outputs]
    assert not empty, "these cells show something, but were saved without it"
    assert any(cell.outputs for cell in code_cells(chapter)), "no cell has an output"


def test_hides_no_output_by_a_semicolon(chapter: Path) -> None:
    hiding = [cell.source for cell in code_cells(chapter) if cell.source.rstrip().endswith(";")]
    assert not hiding, "a semicolon hides an output in some programs only: assign the value to _ instead"


def test_has_no_error(chapter: Path) -> None:
    errors = [o.evalue for cell in code_cells(chapter) for o in cell.outputs if o.output_type == "error"]
    assert not errors


def test_leaves_no_output_unchecked(chapter: Path) -> None:
    unchecked = {"nbval-skip", "nbval-ignore-output", "raises-exception", "nbval-raises-exception"}
    for cell in code_cells(chapter):
        assert not unchecked & set(cell.metadata.get("tags", [])), cell.source
        assert not re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)_", cell.source), cell.source


def test_what_is_not_compared_is_asserted(chapter: Path) -> None:
    for cell in code_cells(chapter):
        if any("≈" in text(output) for output in cell.outputs):
            assert "assert " in cell.source, cell.source


EVERY = {one.chapter: one for one in (*EXPERIMENTS, *experiments_of(beyond))}


def test_says_how_fresh_its_rows_are(chapter: Path) -> None:
    """On its card, where its items and ``:rows:`` name the results files, or in its prose."""
    page = chapter.relative_to(ROOT).as_posix()
    if page not in EVERY:
        return
    one = EVERY[page]
    found = papermill.inspect_notebook(chapter)
    values = {name: ast.literal_eval(parameter["default"]) for name, parameter in found.items()}
    read = {*one.runs(SimpleNamespace(**values | {"seeds": 1})), *one.also}
    cells = nbformat.read(chapter, as_version=4).cells
    prose = "".join(cell.source for cell in cells if cell.cell_type == "markdown")
    named = re.search(r"^:rows: (.+)$", prose, flags=re.MULTILINE)
    said = {name for item in one.items for name in item.experiment}
    said |= {*(named[1].split() if named else ()), *re.findall(r"{freshness}`([^`]+)`", prose)}
    assert read <= said, f"the card does not say of these how fresh they are: {read - said}"


def test_tells_nothing_of_the_machine(chapter: Path) -> None:
    metadata = nbformat.read(chapter, as_version=4).metadata
    assert metadata.kernelspec.name == "python3"
    assert "papermill" not in metadata, "a rerun was saved over the chapter"
    told = [
        match.group()
        for cell in code_cells(chapter)
        for o in cell.outputs
        for match in HERE.finditer(text(o))
    ]
    assert not told
