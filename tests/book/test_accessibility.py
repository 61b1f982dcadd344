"""Pages of every kind can be used without eyes, colours or a mouse; ``make test-fresh`` asks all of them."""

from pathlib import Path

import pytest
from accessibility import violations
from playwright.sync_api import Browser

PAGES = ["intro", "scoreboard", "bibliography", "beyond/which-unit", "division/mixed-signs"]


@pytest.mark.parametrize("name", PAGES)
def test_page(browser: Browser, html: Path, name: str) -> None:
    assert violations(browser, html / "book" / f"{name}.html") == []


def test_a_violation_is_found(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1><img src=x.png>"
        "<p style='color: #999; background: #fff'>grey</p></main></html>"
    )
    found = {one.split(": ")[1] for one in violations(browser, page)}
    assert {"image-alt", "color-contrast"} <= found
