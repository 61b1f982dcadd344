"""``make rerun``: what is refused is said in a line, without a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from companion import rerun
from papermill.exceptions import PapermillExecutionError

ROOT = Path(__file__).parents[2]
CHAPTER = "book/division/losses.ipynb"


def make(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["make", "rerun", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def lines(process: subprocess.Popen[bytes]) -> list[str]:
    """What it wrote; a progress bar is one line."""
    return [line for line in process.communicate(timeout=120)[0].decode().split("\n") if line]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((f"CHAPTER={CHAPTER}", "ARGS=-p seeds 0"), "Parameter 'seeds' is 0, but must be between"),
        (("CHAPTER=README.md",), "NotJSONError: Notebook does not appear to be JSON"),
        ((f"CHAPTER={CHAPTER}", "ARGS=--nonsense"), "No such option"),
        (("CHAPTER=book/none.ipynb",), "There is no chapter book/none.ipynb"),
        ((), "Say which chapter"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_sentence(arguments, sentence):
    process = make(*arguments)
    said = lines(process)
    assert process.returncode and len(said) <= 5
    assert sum(line.startswith(sentence) for line in said) == 1 and "Traceback" not in "".join(said)


def test_stopped_by_ctrl_c():
    process = make(f"CHAPTER={CHAPTER}", "ARGS=-p seeds 3 -p iterations 90000 -p results /dev/shm/none")
    assert process.stdout.read(len("\rExecuting:"))
    os.killpg(process.pid, signal.SIGINT)
    said = lines(process)
    assert process.returncode and len(said) <= 5 and "Traceback" not in "".join(said)


LOSES_INTERRUPTS = """
import signal, time
from companion import rerun
rerun.PATIENCE = 1
signal.signal(signal.SIGINT, rerun._end_soon)
said = False
while True:
    try:
        said = said or print("ready", flush=True) or True
        time.sleep(60)
    except KeyboardInterrupt:
        pass
"""


def test_ctrl_c_ends_what_loses_the_interrupt():
    process = subprocess.Popen(
        [sys.executable, "-c", LOSES_INTERRUPTS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == rerun.STOPPED + "\n" and process.returncode == 130


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (PapermillExecutionError(1, 2, "", "ValueError", "Seeds are 0.\nmore", []), 1, "Seeds are 0.\n"),
        (PapermillExecutionError(1, 2, "", "ValueError", "\n \n Seeds are 0.", []), 1, "Seeds are 0.\n"),
        (PapermillExecutionError(1, 2, "", "ValueError", "", []), 1, "ValueError.\n"),
        (PapermillExecutionError(1, 2, "", "KeyError", "'seed'", []), 1, "KeyError: 'seed'\n"),
        (PapermillExecutionError(1, 2, "", "KeyboardInterrupt", "", []), 130, rerun.STOPPED + "\n"),
        (click.UsageError("No such option: --nonsense"), 2, "No such option: --nonsense\n"),
        (click.Abort(), 130, rerun.STOPPED + "\n"),
        (KeyboardInterrupt(), 130, rerun.STOPPED + "\n"),
        (OSError(28, "No space left on device"), 2, "OSError: [Errno 28] No space left on device\n"),
    ],
)
def test_every_end(error, code, sentence, monkeypatch, capsys, tmp_path):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(rerun.papermill, "main", fail)
    assert rerun.main("chapter", str(tmp_path / "executed.ipynb")) == code
    assert capsys.readouterr().err == sentence
