"""What axe-core finds wrong with a page for people who do not see it, see few colours or use no mouse.

As a test, part of ``make test-fresh``, it asks every page; test_pages.py asks some.
"""

from functools import cache
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import Browser

WINDOWS = {"light": 1280, "dark": 390}
"""Each page is looked at on a desk in the light, and on a phone in the dark."""
ASKED = """async () => (await axe.run(
  { exclude: [[".sig"]] },  // Sphinx lays out long signatures as lists without terms
  { resultTypes: ["violations"] },
)).violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))"""


@cache
def script() -> str:
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(browser: Browser, file: Path) -> list[str]:
    """Of a built page, in both themes."""
    found = []
    for theme, width in WINDOWS.items():
        context = browser.new_context(viewport={"width": width, "height": 900})
        context.add_init_script(f"for (const key of ['mode', 'theme']) localStorage.setItem(key, '{theme}')")
        page = context.new_page()
        page.goto(file.as_uri(), wait_until="load")
        page.evaluate(script())
        found += [f"{theme}: {one}" for one in page.evaluate(ASKED)]
        context.close()
    return found


def test_every_page(browser: Browser, html: Path) -> None:
    pages = [*html.glob("book/**/*.html"), html / "genindex.html", html / "search.html"]
    found = {page.name: wrong for page in pages if (wrong := violations(browser, page))}
    assert len(pages) > 40 and found == {}
