"""What axe-core finds wrong with a page for people who do not see it, see few colours or use no mouse.

As a test, part of ``make test-fresh``, it asks every page; test_pages.py asks some.
"""

from functools import cache
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import Browser

WIDTHS = {"desk": 1280, "phone": 390}
EVERY = {"desk": ("light", "dark"), "phone": ("light", "dark")}
AT_ONCE = "*, ::before, ::after { transition: none !important; animation: none !important }"
"""A theme's colours without the way there: axe-core may look while a button still changes."""
ASKED = """async () => (await axe.run(
  { exclude: [[".sig"]] },  // Sphinx lays out long signatures as lists without terms
  { resultTypes: ["violations"] },
)).violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`))"""


@cache
def script() -> str:
    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(browser: Browser, file: Path, windows: dict[str, tuple[str, ...]] = EVERY) -> list[str]:
    """Of a built page, on a desk and on a phone, in both themes if not told otherwise."""
    found = []
    for name, themes in windows.items():
        page = browser.new_page(viewport={"width": WIDTHS[name], "height": 900})
        page.goto(file.as_uri(), wait_until="load")
        page.add_style_tag(content=AT_ONCE)
        page.evaluate(script())
        for theme in themes:
            page.evaluate(
                "theme => Object.assign(document.documentElement.dataset, {mode: theme, theme: theme})", theme
            )
            found += [f"{name}, {theme}: {one}" for one in page.evaluate(ASKED)]
        page.close()
    return found


def test_every_page(browser: Browser, html: Path) -> None:
    pages = [*html.glob("book/**/*.html"), html / "genindex.html", html / "search.html"]
    found = {page.name: wrong for page in pages if (wrong := violations(browser, page))}
    assert len(pages) > 40 and found == {}
