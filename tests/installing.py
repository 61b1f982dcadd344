"""A Chromium is taken if it opens a page, whatever it is called, and is installed where there is none: part
of ``make test-fresh``.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import chromium
import pytest
from chromium import NoChromium, find, find_or_install, opens_a_page

PATH = os.environ["PATH"]
SCRIPT, PLAYWRIGHTS = Path(chromium.__file__), chromium._playwrights


@pytest.fixture(scope="module")
def working():
    """The browser of this machine."""
    return find()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The one folder on ``PATH``, without any browser; playwright has none either, and downloads none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("env", "true"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "DEBIAN", folder / "of Debian")
    chromium.DEBIAN.mkdir()
    monkeypatch.setattr(chromium, "_by_playwright", lambda: [])
    monkeypatch.setattr(chromium, "_playwrights", lambda: [])
    return folder


def write(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def wrapper(path, browser):
    return write(
        path, f'PATH="{PATH}" exec {browser} "$@"'
    )  # browsers may be scripts that need other programs


def test_the_browser_of_this_machine_opens_a_page(working):
    assert opens_a_page(working)


@pytest.mark.parametrize("script", ["exit 1", "echo Chromium 150"])
def test_a_browser_that_fails_opens_no_page(tmp_path, script):
    assert not opens_a_page(write(tmp_path / "chromium", script))


def test_a_browser_that_hangs_opens_no_page_and_is_ended(tmp_path):
    start = time.monotonic()
    assert not opens_a_page(
        write(tmp_path / "chromium", f"echo $$ > {tmp_path}/pid; exec /bin/sleep 300"), seconds=1
    )
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path):
    script = write(tmp_path / "hanging", f"(/bin/sleep 2; echo > {tmp_path}/went-on) & wait")
    assert chromium._run([script], 1) is None
    time.sleep(2)
    assert not (tmp_path / "went-on").exists()


@pytest.mark.parametrize("name", ["is not there", "cannot be run"])
def test_what_is_no_program_opens_no_page(tmp_path, name):
    (tmp_path / "cannot be run").write_text("#!/bin/sh\n")
    assert not opens_a_page(tmp_path / name)


def test_broken_browsers_are_passed_over(folder, working, tmp_path, monkeypatch):
    write(folder / "chromium", "exit 1")
    behind = wrapper(tmp_path / "behind" / "chromium", working)
    monkeypatch.setenv("PATH", f"{folder}:{behind.removesuffix('/chromium')}")
    assert find() == behind


def test_playwrights_own_is_found_only_if_it_works(folder, working, tmp_path, monkeypatch):
    monkeypatch.setattr(chromium, "_playwrights", PLAYWRIGHTS)
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    (own,) = PLAYWRIGHTS()
    assert own.startswith(str(tmp_path))
    write(Path(own), "exit 1")
    with pytest.raises(NoChromium, match="There is no Chromium that opens a page"):
        find()
    wrapper(Path(own), working)
    assert find() == own


def test_the_variable_is_taken_at_its_word(folder, working, tmp_path, monkeypatch):
    wrapper(folder / "chromium", working)
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "nowhere"))
    with pytest.raises(
        NoChromium, match="CHROMIUM names '.*nowhere', which is not there or no program: set it"
    ):
        find()
    monkeypatch.setenv("CHROMIUM", write(tmp_path / "broken", "exit 1"))
    with pytest.raises(NoChromium, match="CHROMIUM names '.*broken', which does not open a page: set it"):
        find_or_install()
    monkeypatch.setenv("CHROMIUM", working)
    assert find() == working


@pytest.mark.parametrize(("user", "package"), [(0, "chromium-headless-shell"), (1000, "chromium")])
def test_it_is_installed_from_debian_by_who_may(folder, working, monkeypatch, user, package):
    """Root runs apt-get, others only with a ``sudo`` that asks for no password; the package without a window
    comes first, and not every system has it.
    """
    monkeypatch.setattr(os, "geteuid", lambda: user)
    said, elsewhere = folder.parent / "said", wrapper(folder.parent / "works", working)
    installed = chromium.DEBIAN / package
    install = f'case "$*" in *" {package} "*) /bin/ln -s {elsewhere} "{installed}";; *) exit 100;; esac'
    write(folder / "apt-get", f'echo "$@" >> {said}; case "$*" in *" install "*) {install};; esac')
    if user:
        with pytest.raises(NoChromium):
            find_or_install()
        write(folder / "sudo", "exit 1")  # it wants a password
        with pytest.raises(NoChromium):
            find_or_install()
        assert not said.exists()
        write(folder / "sudo", 'test "$1" = -n || exit 1; shift; exec /usr/bin/env "$@"')
    assert find_or_install() == str(installed)
    update, *installs = said.read_text().splitlines()
    assert "update" in update and [line.partition(" --no-install-recommends ")[2] for line in installs] == [
        f"{one} fonts-liberation" for one in chromium.PACKAGES[: chromium.PACKAGES.index(package) + 1]
    ]


def test_playwright_is_asked_first(folder, working, monkeypatch):
    own = wrapper(folder / "own", working)
    monkeypatch.setattr(chromium, "_by_playwright", lambda: [write(folder / "first", "exit 1"), own])
    write(folder / "apt-get", f"touch {folder}/asked")
    assert find_or_install() == own and not (folder / "asked").exists()


def test_where_none_can_be_installed_one_sentence_names_the_command(folder):
    write(folder / "apt-get", "exit 100")
    nothing = {
        "PLAYWRIGHT_BROWSERS_PATH": str(folder / "playwright"),
        "PLAYWRIGHT_DOWNLOAD_HOST": "http://127.0.0.1:9",
    }
    ended = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, env=os.environ | nothing)
    assert ended.returncode and not ended.stdout
    assert ended.stderr.splitlines()[-1] == (
        "The tests need a Chromium that opens a page, and none could be installed: "
        "run 'sudo apt-get install chromium' and 'make test' again, "
        "or set CHROMIUM to the path of one."
    )
