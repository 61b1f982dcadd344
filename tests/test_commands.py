"""Every command ends on Ctrl-C with a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from nalm.commands import exit_with

ROOT = Path(__file__).parents[1]
OTHERWISE = {"execute.py", "rerun.py", "steps.py"}
"""The first two end what a chapter's kernel has started, the last is no command of its own."""


def test_ctrl_c_is_a_sentence(capsys):
    def main():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        exit_with(main)
    assert end.value.code == 130
    assert capsys.readouterr().err == "Stopped; what was recorded stays.\n"


def test_every_command_ends_so():
    commands = {
        file: file.read_text()
        for folder in ("nalm", "book/companion")
        for file in (ROOT / folder).rglob("*.py")
        if '\nif __name__ == "__main__"' in file.read_text() and file.name not in OTHERWISE
    }
    assert len(commands) > 10 and ROOT / "nalm" / "study.py" in commands
    assert [file for file, text in commands.items() if "\n    exit_with(" not in text] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["book/beyond/lend.ipynb"], "Name a chapter and where it is written, executed."),
        (["book/beyond/lend.ipynb", "nowhere/a.ipynb"], "nowhere/a.log cannot be written (No such file"),
    ],
)
def test_a_rerun_that_has_no_place_is_refused(arguments, sentence):
    ended = subprocess.run(
        [sys.executable, "-m", "companion.rerun", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(sentence) and ended.stderr.count("\n") == 1
