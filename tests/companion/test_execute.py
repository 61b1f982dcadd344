"""A chapter that is executed in place, as it is committed."""

import nbformat
import pytest
from companion.execute import execute
from nbformat.v4 import new_code_cell, new_notebook


def chapter(path, *sources):
    nbformat.write(new_notebook(cells=[new_code_cell(one) for one in sources]), path)
    return path


def test_outputs_are_written_without_times_and_in_one_piece(tmp_path):
    path = chapter(tmp_path / "a.ipynb", "print('one')\nprint('two')\nimport os\nos.getcwd()")
    execute(path)
    cell = nbformat.read(path, as_version=4).cells[0]
    printed, value = cell.outputs
    assert printed.text == "one\ntwo\n" and value.data["text/plain"] == repr(str(tmp_path))
    assert "execution" not in cell.metadata


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise ValueError('No such unit.')", "No such unit."),
        ("print('8 of 8 rows come from your own store.')", "-p results publish"),
    ],
)
def test_what_failed_or_is_not_the_books_is_not_written(tmp_path, source, said):
    path = chapter(tmp_path / "a.ipynb", source)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=said):
        execute(path)
    assert path.read_bytes() == before


def test_what_is_no_notebook_is_said(tmp_path):
    path = tmp_path / "a.ipynb"
    for content in ("{}", "nothing"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"a.ipynb is no notebook \(\w+\)\.$"):
            execute(path)


def test_what_was_edited_meanwhile_is_not_lost(tmp_path):
    path = chapter(
        tmp_path / "a.ipynb", "text = open('a.ipynb').read()\nopen('a.ipynb', 'w').write(text + ' ')"
    )
    before = path.read_bytes()
    with pytest.raises(ValueError, match="edited while it ran"):
        execute(path)
    assert path.read_bytes() == before + b" "
