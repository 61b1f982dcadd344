"""The foot of the pages and their buttons, from one setting."""

import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import nalm

FILE = Path(__file__).parents[2] / "book" / "_ext" / "edition.py"


@pytest.fixture
def edition():
    spec = importlib.util.spec_from_file_location("edition", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(edition, url: str) -> dict:
    """The theme's options for a repository of that address."""
    config = SimpleNamespace(html_theme_options={"repository_url": url})
    edition.say(None, config)
    return config.html_theme_options


def test_the_foot_names_the_version(edition):
    assert options(edition, "")["extra_footer"].startswith(f"Version {nalm.__version__}")


def test_a_commit_has_a_date_and_a_plain_folder_none(edition, tmp_path):
    assert edition.commit(tmp_path) == ""
    assert re.fullmatch(r"([0-9a-f]{7,} of \d{4}-\d\d-\d\d)?", edition.commit())


def test_buttons_need_an_address(edition):
    without, known = options(edition, ""), options(edition, "https://example.org/book")
    assert not {*edition.BUTTONS, "launch_buttons"} & set(without)
    assert all(known[button] for button in edition.BUTTONS)
    assert known["launch_buttons"]["binderhub_url"] == edition.BINDER
