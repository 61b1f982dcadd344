"""Which edition of the book this is: version, commit and its date at the foot of each page; and
where its source is, if `repository_url` in _config.yml says so: buttons for the repository, for
editing a page, for an issue about it, and for running a notebook on Binder. Without an address
there is none of them.
"""

import subprocess
from pathlib import Path

import nalm
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).parents[2]
BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")
BINDER = "https://mybinder.org"


def commit(root: Path = ROOT) -> str:
    """The commit and its date, ``"1a2b3c4 of 2026-01-31"``; empty where there is none."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "log", "-1", "--format=%h of %cs"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def say(app: Sphinx, config: Config) -> None:
    options, known = config.html_theme_options, commit()
    options["extra_footer"] = f"Version {nalm.__version__}" + (f", commit {known}" if known else "")
    if options.get("repository_url"):
        options |= dict.fromkeys(BUTTONS, True)
        options["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": BINDER}


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("config-inited", say)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
