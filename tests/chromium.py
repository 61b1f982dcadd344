"""A Chromium that opens a page: found, or else installed. ``python tests/chromium.py`` prints its path;
``make test`` hands it to the tests.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["FLAGS", "NoChromium", "candidates", "find", "find_or_install", "opens_a_page"]

VARIABLE = "CHROMIUM"
# The first has the same engine without a window, and the pages take a seventh less time in it.
NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable", "chrome"),
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
DEBIAN = Path("/usr/bin")  # where Debian's packages put it, whether or not that is on PATH
PACKAGES = NAMES[:2]
"""Debian's; each has a program of its name."""
OPENING = 30.0
"""Seconds that a browser has to open a page."""
INSTALLING = 600.0
"""Seconds that each command of an installation has: downloads that hang end."""


class NoChromium(Exception):
    """No Chromium opens a page; the one sentence says what to do."""


def opens_a_page(executable: str | Path, seconds: float = OPENING) -> bool:
    """Whether a browser, started as the tests start it, shows the title of a page. It is tried in a process
    of its own, which ends in time.
    """
    if not shutil.which(executable):
        return False
    return _run([sys.executable, __file__, "--open", str(executable), str(seconds)], seconds + 10) is not None


def candidates() -> Iterator[str]:
    """The executables that may be a Chromium: every one on ``PATH``, then playwright's own."""
    for name in NAMES:
        for folder in os.get_exec_path():
            if found := shutil.which(name, path=folder):
                yield found
    yield from _playwrights()


def find(seconds: float = OPENING) -> str:
    """The path of a Chromium that opens a page: the one that ``CHROMIUM`` names, or else the first that does.

    Raises:
        NoChromium: ``CHROMIUM`` names one that does not, or there is none.
    """
    if named := os.environ.get(VARIABLE):
        found = shutil.which(named)
        if not found or not opens_a_page(found, seconds):
            why = "does not open a page" if found else "is not there or no program"
            raise NoChromium(
                f"{VARIABLE} names {named!r}, which {why}: set it to the path of a Chromium that opens one, "
                "or unset it."
            )
        return found
    for candidate in candidates():
        if opens_a_page(candidate, seconds):
            return candidate
    raise NoChromium(
        f"There is no Chromium that opens a page: install one (Debian: {_by_hand()}), "
        f"or set {VARIABLE} to the path of one."
    )


def find_or_install(seconds: float = OPENING) -> str:
    """As :func:`find`; where there is none it is installed first, by playwright, or else as Debian's package.

    Raises:
        NoChromium: ``CHROMIUM`` names one that does not open a page, or none can be installed.
    """
    try:
        return find(seconds)
    except NoChromium:
        if os.environ.get(VARIABLE):
            raise
    for install in (_by_playwright, _by_debian):
        for found in install():
            if opens_a_page(found, seconds):
                return found
    raise NoChromium(
        "The tests need a Chromium that opens a page, and none could be installed: "
        f"run '{_by_hand()}' and 'make test' again, "
        f"or set {VARIABLE} to the path of one."
    )


def _by_playwright() -> Iterator[str]:
    """Playwright's own, first alone and then with the system's libraries that it needs."""
    say("There is no Chromium that opens a page: playwright downloads one.")
    if _run([sys.executable, "-m", "playwright", "install", "chromium"], INSTALLING) is None:
        return
    yield from _playwrights()
    root = _as_root()
    if root is not None:
        say("What was downloaded does not open a page: installing the libraries that it needs.")
        _run([*root, sys.executable, "-m", "playwright", "install-deps", "chromium"], INSTALLING)
        yield from _playwrights()


def _by_debian() -> Iterator[str]:
    root = _as_root()
    if root is not None and shutil.which("apt-get"):
        say("Installing Chromium as Debian's package.")
        # where some lists cannot be had, the others may do
        _run([*root, "apt-get", "update", "-qq"], INSTALLING)
        apt = [
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-o",
            "DPkg::Lock::Timeout=120",
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
        ]
        for package in PACKAGES:
            if _run([*root, *apt, package, "fonts-liberation"], INSTALLING) is not None:
                yield str(DEBIAN / package)


def _by_hand() -> str:
    return (
        "sudo apt-get install chromium"
        if shutil.which("apt-get")
        else f"{sys.executable} -m playwright install --with-deps chromium"
    )


def _as_root() -> list[str] | None:
    """What stands before a command that only root may run; ``None`` where this user cannot be root without a
    password.
    """
    if os.geteuid() == 0:
        return []
    return ["sudo", "-n"] if shutil.which("sudo") and _run(["sudo", "-n", "true"], 10) is not None else None


def _playwrights() -> list[str]:
    """Where playwright keeps its own Chromium, whether or not there is one; nowhere without playwright."""
    code = (
        "from playwright.sync_api import sync_playwright as p\n"
        "with p() as started: print(started.chromium.executable_path)"
    )
    return (_run([sys.executable, "-c", code], 30) or "").split("\n")[:1]


def _run(command: Sequence[str], seconds: float) -> str | None:
    """What the command printed once it has succeeded; ``None`` if it failed, or took longer and was ended
    with all that it had started.
    """
    # not a pipe, which what a command leaves behind would keep open
    with tempfile.TemporaryFile("w+") as printed:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            return None
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                with suppress(OSError):  # what `sudo` started is not ours to end
                    os.killpg(process.pid, signal.SIGKILL)
        printed.seek(0)
        return printed.read() if process.returncode == 0 else None


def _open(executable: str, seconds: float) -> None:
    """Opens a page and looks at its title, which a script has written."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS, timeout=1000 * seconds)
        page = browser.new_page()
        page.goto(
            "data:text/html,<script>document.title = 'six times seven: ' + 6 * 7</script>",
            timeout=1000 * seconds,
        )
        assert page.title() == "six times seven: 42", page.title()
        browser.close()


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        _open(sys.argv[2], float(sys.argv[3]))
    else:
        try:
            print(find_or_install())
        except NoChromium as error:
            sys.exit(str(error))
