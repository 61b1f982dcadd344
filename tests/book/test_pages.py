"""The built book as a reader meets it: in a browser, without a network, on a desk and on a phone."""

import functools
import gzip
import http.server
import importlib
import io
import pkgutil
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
import yaml
from accessibility import violations
from companion.scoreboard import load
from companion.widgets import WIDGETS
from PIL import Image
from playwright.sync_api import Browser, Request

import nalm
from nalm.records import PUBLISHED, experiments

ROOT = Path(__file__).parents[2]
READERS = {
    "desk": (1440, 900, "light"),
    "desk, dark": (1280, 800, "dark"),  # of a laptop
    "phone": (390, 844, "dark"),
    "phone, light": (390, 844, "light"),
}
SCREEN = READERS["desk"][1]
LONGEST = 14 * SCREEN

# What is wrong with an open page, as a list of sentences.
TROUBLE = r"""async () => {
    if (window.MathJax) await MathJax.startup.promise;
    await document.fonts.ready;
    const images = [...document.querySelectorAll('main img')];
    images.forEach(image => image.loading = 'eager');
    await Promise.all(images.map(image => image.decode().catch(() => null)));
    await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
    const formulas = [...document.querySelectorAll('.math')];
    const prose = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const raw = [];
    while (prose.nextNode()) {
        const node = prose.currentNode;
        if (node.parentElement.closest('pre, code, script, style, mjx-container')) continue;
        if (/\$\$|\\\(|\\\[|\\begin\{|\\frac/.test(node.data)) raw.push(node.data.trim().slice(0, 60));
    }
    const root = document.documentElement;
    return [
        ...images.filter(image => !image.alt.trim()).map(image => 'image without alt text: ' + image.src),
        ...images.filter(image => /\.(png|svg|jpe?g)$/.test(image.alt))
            .map(image => 'alt text is a file: ' + image.alt),
        ...images.filter(image => !image.naturalWidth).map(image => 'image that does not load: ' + image.src),
        ...formulas.filter(f => !f.querySelector('mjx-container'))
            .map(f => 'formula not set: ' + f.textContent.slice(0, 60)),
        ...[...document.querySelectorAll('mjx-merror, [data-mjx-error], [data-mml-node="merror"]')]
            .map(e => 'formula with an error: ' + (e.getAttribute('data-mjx-error') || e.textContent)),
        ...[...document.querySelectorAll('mjx-container [mathcolor="red"]')]
            .map(unknown => 'formula with an unknown command: ' + unknown.textContent),
        ...raw.map(text => 'TeX in the text: ' + text),
        ...[...document.querySelectorAll('.nalm-box')]
            .filter(box => innerWidth >= 960 && box.scrollWidth > box.clientWidth + 1)
            .map(box => 'table that is cut: ' + box.getAttribute('aria-label')),
        ...[...document.querySelectorAll('.cell_output img')]
            .filter(figure => figure.clientWidth && figure.style.width)
            .filter(figure => 12.5 * figure.clientWidth / parseFloat(figure.style.width) < 9)
            .map(figure => 'figure with ticks below 9 px: ' + figure.alt),
        ...(root.scrollWidth > innerWidth + 1
            ? ['wider than the window by ' + (root.scrollWidth - innerWidth) + ' px'] : []),
    ];
}"""


def pages_in_toc() -> list[str]:
    """The pages of the table of contents, in its order."""

    def files(entry: dict) -> Iterator[str]:
        if "file" in entry or "root" in entry:
            yield str(entry.get("file", entry.get("root")))
        for kind in ("parts", "chapters", "sections"):
            for inner in entry.get(kind, []):
                yield from files(inner)

    return list(files(yaml.safe_load((ROOT / "_toc.yml").read_text())))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/favicon.ico":  # a browser asks for it of its own accord
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def end_headers(self) -> None:
        if self.path.startswith("/_static/"):  # the same on all pages; a reader's browser keeps it as well
            self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """The address at which the built book is served."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()


class Reader:
    """A window onto the book, and what went wrong in it."""

    def __init__(self, browser: Browser, site: str, name: str) -> None:
        self.site = site
        self.trouble: list[str] = []
        self.loading: set[Request] = set()
        self.context = browser.new_context()
        self.context.add_init_script(
            f"for (const key of ['mode', 'theme']) localStorage.setItem(key, '{READERS[name][2]}')"
        )
        self.name, self.page = name, self.context.new_page()
        self.page.on(
            "console", lambda message: message.type == "error" and self.report(f"console: {message.text}")
        )
        self.page.on("pageerror", lambda error: self.report(f"script: {error}"))
        self.page.on("request", self.asked)
        self.page.on("requestfinished", lambda request: self.loading.discard(request))
        self.page.on("requestfailed", self.failed)
        self.page.on(
            "response", lambda answer: answer.status >= 400 and self.report(f"{answer.status}: {answer.url}")
        )

    def report(self, what: str) -> None:
        self.trouble.append(f"{self.page.url.removeprefix(self.site)}, {self.name}: {what}")

    def asked(self, request: Request) -> None:
        if request.url.startswith(self.site):
            self.loading.add(request)
        elif not request.url.startswith(("data:", "blob:")):
            self.report(f"asks the network for {request.url}")

    def failed(self, request: Request) -> None:
        self.loading.discard(request)
        self.report(f"request failed: {request.url}")

    def open(self, name: str) -> None:
        """Load a page."""
        self.trouble.clear()
        self.loading.clear()
        self.resize()
        self.page.goto(self.site + name, wait_until="load")
        self.look()

    def turn(self, name: str) -> None:
        """Go on to read the same page in another window and theme."""
        before, self.name = self.name, name
        self.resize()
        self.page.evaluate(
            "theme => Object.assign(document.documentElement.dataset, {mode: theme, theme: theme})",
            READERS[name][2],
        )
        self.look()
        self.name = before

    def resize(self) -> None:
        width, height, theme = READERS[self.name]
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=theme)

    def look(self) -> None:
        self.page.wait_for_function(
            "!window.MathJax || window.MathJax.startup?.promise"
        )  # first it is its settings alone
        for what in self.page.evaluate(TROUBLE):
            self.report(what)
        for _ in range(1000):
            if not self.loading:
                break
            self.page.wait_for_timeout(20)
        else:
            self.report(f"still loading: {', '.join(request.url for request in self.loading)}")


@pytest.fixture(scope="module")
def reader(browser: Browser, site: str) -> Iterator[Reader]:
    """At the desk."""
    reader = Reader(browser, site, "desk")
    yield reader
    reader.context.close()


@pytest.mark.parametrize("name", pages_in_toc())
def test_page(reader: Reader, name: str) -> None:
    reader.open(f"{name}.html")
    height = reader.page.evaluate("document.querySelector('main').scrollHeight")
    assert height <= LONGEST, f"the page has {height / SCREEN:.1f} screens: fold what few read, or split it"
    for window in ("desk, dark", "phone", "phone, light"):
        reader.turn(window)
    assert not reader.trouble, "\n".join(reader.trouble)


def test_widgets_run_on_their_page_and_load_on_no_other(reader: Reader, html: Path) -> None:
    with_widgets = {
        path.relative_to(html).as_posix()
        for path in html.rglob("*.html")
        if "_static/drawing.js" in path.read_text(encoding="utf-8")
    }
    assert with_widgets == {"book/beyond/playground.html", "book/beyond/which-unit.html"}
    count = 0
    for name in with_widgets:
        reader.open(name)
        count += reader.page.locator(".nalm").count()
        assert not reader.trouble, "\n".join(reader.trouble)
    assert count == len(WIDGETS)


def test_a_figure_opens_at_its_full_size_and_is_dark_on_a_dark_page(reader: Reader) -> None:
    reader.open("book/division/no-redundancy.html")
    filtered = "image => getComputedStyle(image).filter"
    shown = reader.page.locator("a.image-reference img")
    assert shown.count() >= 4
    reader.turn("phone")
    graph, map_ = shown.first, reader.page.locator("#fig-division-saddle img:visible")
    assert "invert" in graph.evaluate(filtered) and map_.evaluate(filtered) == "none"
    assert graph.evaluate("image => image.width") < 700 and map_.evaluate("image => image.width") < 390
    assert graph.locator("..").evaluate("link => link.clientWidth < 390 && link.scrollWidth > 390")
    graph.locator("..").focus()
    reader.page.keyboard.press("Enter")
    whole = reader.page.locator("dialog.enlarged[open] img")
    assert whole.evaluate("image => image.width") >= 700  # as wide as it is on a desk, 9 px labels and more
    assert whole.get_attribute("alt") == graph.get_attribute("alt")
    reader.page.keyboard.press("Escape")
    assert reader.page.locator("dialog.enlarged[open]").count() == 0
    reader.turn("desk")
    assert graph.evaluate(filtered) == "none" and not reader.trouble


def test_a_map_keeps_its_colours_on_a_dark_page(reader: Reader) -> None:
    reader.open("book/division/landscapes.html")
    figures = {"head": reader.page.locator(".chapter-picture"), "text": reader.page.locator("figure")}
    seen = {}
    for window in ("desk", "desk, dark"):
        reader.turn(window)
        for name, figure in figures.items():
            image = figure.locator("img:visible")
            assert image.count() == 1 and figure.locator("p, figcaption").first.is_visible()
            assert image.evaluate("image => getComputedStyle(image).filter") == "none"
            seen[window, name] = Image.open(io.BytesIO(image.screenshot())).convert("RGB")
    for name in figures:
        light, dark = seen["desk", name], seen["desk, dark", name]
        data = (light.width // 4, light.height // 4)
        assert light.getpixel(data) == dark.getpixel(data)
        assert light.getpixel((1, 1)) == (255, 255, 255) and max(dark.getpixel((1, 1))) < 40
        labels = [one.crop((0, 0, one.width // 10, one.height)).convert("L") for one in (light, dark)]
        assert labels[0].getextrema()[0] < 100 and labels[1].getextrema()[1] > 150
    assert not reader.trouble


def test_the_scoreboard_is_filtered_and_unfolds(reader: Reader) -> None:
    """By the keyboard: lines of a verdict, lines with a word, and what is behind a line."""
    board, page = load(), reader.page
    reader.open("book/scoreboard.html")
    lines, said = page.locator("#nalm-board li:visible"), page.locator("#nalm-board output")
    assert lines.count() == len(board)
    verdict, asked = board["verdict"].mode()[0], page.locator("#nalm-board [name=verdict]")
    asked.select_option(verdict)
    alike = board[board["verdict"] == verdict]
    assert lines.count() == len(alike) > 1 and said.inner_text() == f"{len(alike)} items"
    page.locator("#nalm-board [name=words]").fill((one := alike.iloc[-1])["title"].lower())
    assert 0 < lines.count() < len(alike)
    assert all(one["title"] in text for text in lines.all_text_contents())
    first = page.locator("#nalm-board li:visible details").first
    assert not first.locator("dl").is_visible()
    first.locator("summary").focus()
    page.keyboard.press("Enter")
    assert first.locator("dl").is_visible()
    assert not reader.trouble, "\n".join(reader.trouble)


class Parts(HTMLParser):
    """The kinds of element that a page is made of, its scripts and styles, and its longest line."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.kinds: set[str] = set()
        self.longest = 0
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        loaded = [
            value.lstrip("./")
            for name, value in attributes
            if value and tag in ("script", "link", "img") and name in ("src", "href")
        ]
        self.kinds |= {tag, *(address for address in loaded if "_static" in address or tag != "link")}

    def handle_data(self, data: str) -> None:
        self.longest = max([self.longest, *map(len, data.split("\n"))])


def test_other_pages(reader: Reader, html: Path) -> None:
    """The index, the search page and the source of the library; of pages that are made of the same parts,
    the one with the longest line.
    """
    written = {
        path.relative_to(html).as_posix() for path in html.rglob("*.html") if "_static" not in path.parts
    }
    others = sorted(written - {f"{name}.html" for name in pages_in_toc()})
    assert {"index.html", "genindex.html", "search.html"} <= set(others)
    alike: dict[frozenset[str], list[tuple[int, str]]] = {}
    for name in others:
        parts = Parts(html / name)
        alike.setdefault(frozenset(parts.kinds), []).append((parts.longest, name))
    trouble = []
    for _, name in map(max, alike.values()):
        reader.open(name)
        reader.turn("phone")
        trouble += reader.trouble
    assert not trouble, "\n".join(trouble)


@pytest.mark.parametrize("name", ["desk", "phone"])
def test_search_finds_units(browser: Browser, site: str, name: str) -> None:
    reader = Reader(browser, site, name)
    reader.open("search.html?q=RealNPU")
    reader.page.wait_for_selector("#search-results li a", timeout=20_000)
    assert reader.page.evaluate("document.documentElement.dataset.theme") == READERS[name][2]
    assert not reader.trouble, "\n".join(reader.trouble)
    reader.context.close()


def test_trouble_is_noticed(reader: Reader, html: Path) -> None:
    """A page of everything that can be wrong, so that no check of the pages passes for want of looking."""
    body = """<main style="width: 800px">
              <div class="nalm-box" aria-label="wide" style="overflow: auto; width: 9px">
              <p style="width: 99px"></p></div>
              <img src="nowhere.png" alt="x.png"><img alt="" src="data:,">
              <div class="cell_output"><img alt="small" style="width: 700px; max-width: 366px"></div>
              <p>$$ raw</p><div class="math">x</div></main>
              <script>console.error("said"); fetch("https://example.org/far").catch(() => null);
              missing()</script>"""
    page = html / "trouble.html"
    page.write_text(f"<!doctype html><html><body>{body}</body></html>", encoding="utf-8")
    try:
        reader.open("trouble.html")
        reader.turn("phone")
    finally:
        page.unlink()
    said = "\n".join(reader.trouble)
    for what in (
        "console: said",
        "script: ",
        "404: ",
        "asks the network for https://example.org/far",
        "request failed",
        "image without alt text",
        "alt text is a file: x.png",
        "image that does not load",
        "figure with ticks below 9 px: small",
        "formula not set",
        "TeX in the text",
        "table that is cut: wide",
        "phone: wider than the window",
    ):
        assert what in said, what
    assert "desk: wider" not in said


ASKED = ["intro", "scoreboard", "bibliography", "beyond/which-unit", "division/mixed-signs"]
WINDOWS = {"desk": ("dark",), "phone": ("light",)}
"""Pages of every kind, and each width and theme; ``make test-fresh`` asks for all of them."""


@pytest.mark.parametrize("name", ASKED)
def test_a_page_needs_no_eyes_colours_or_mouse(browser: Browser, html: Path, name: str) -> None:
    assert violations(browser, html / "book" / f"{name}.html", WINDOWS) == []


def test_a_violation_is_found(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1><img src=x.png>"
        "<p style='color: #999; background: #fff'>grey</p></main></html>"
    )
    found = {one.split(": ")[1] for one in violations(browser, page)}
    assert {"image-alt", "color-contrast"} <= found


def test_colours_that_still_change_are_asked_at_their_end(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><title>A page</title>"
        "<style>body { background: #fff; color: #333; transition: color 60s }"
        "[data-theme=dark] body { background: #000; color: #fff }</style>"
        "<main><h1>A page</h1></main></html>"
    )
    assert violations(browser, page) == []


@pytest.mark.parametrize("module", sorted({module.name for module in pkgutil.iter_modules(nalm.__path__)}))
def test_public_names_are_documented(html: Path, module: str) -> None:
    files = [*html.glob("book/api*.html"), *html.glob("book/api/*.html")]
    pages = "".join(file.read_text(encoding="utf-8") for file in files)
    names = importlib.import_module(f"nalm.{module}").__all__
    assert not [name for name in names if not re.search(rf'id="nalm\.[\w.]*\b{name}"', pages)]


def test_every_notebook_is_in_the_book() -> None:
    notebooks = {
        path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "book").rglob("*.ipynb")
    }
    assert {name for name in notebooks if ".ipynb_checkpoints" not in name} <= set(pages_in_toc())


class Links(HTMLParser):
    """The names a page defines, the addresses it points to, and which of these are pictures."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[str] = []
        self.pictures: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.names.add(value or "")
            elif value and (name in ("href", "src", "poster") or (name == "data" and tag == "object")):
                self.targets.append(value)
                if tag == "img" and not urlsplit(value).scheme:
                    self.pictures.add(unquote(value))


def test_links_lead_somewhere(html: Path) -> None:
    pages = {path: Links(path) for path in html.rglob("*.html") if "_static" not in path.parts}
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            if urlsplit(target).scheme:
                continue
            address, name = urldefrag(urljoin(page.as_uri(), target))
            file = Path(unquote(urlsplit(address).path))
            file = file / "index.html" if file.is_dir() else file
            known = pages[file].names | {"", "top"} if file in pages else None
            if (
                not file.exists()
                or not file.is_relative_to(html)
                or (known is not None and unquote(name) not in known)
            ):
                broken.append(f"{page.relative_to(html)} → {target}")
    assert not broken, "\n".join(broken)


def test_rows_are_in_the_site(html: Path) -> None:
    """Under the addresses that pages name, and as they lie in the repository."""
    rows = {f"{name}.csv": f"{name}.csv.gz" for name in experiments()}
    rows |= {f"{name}.json": f"{name}.json" for name in experiments()}
    rows |= {path.name: path.name for path in PUBLISHED.glob("*.csv")}
    assert len(rows) > 50
    for name, address in rows.items():
        there = (html / "results" / address).read_bytes()
        assert (gzip.decompress(there) if address.endswith(".gz") else there) == (
            PUBLISHED / name
        ).read_bytes()
    page = Links(html / "book" / "rows.html")
    assert {f"../results/{address}" for address in rows.values()} <= set(page.targets)


DOWNLOADS = ("results", "_sources")
"""What a reader takes away: rows, and the notebooks behind the pages."""


def test_the_site_is_light(html: Path) -> None:
    """Pages with their pictures, what a widget reads, and all of it but the downloads."""
    size = {path.relative_to(html): path.stat().st_size for path in html.rglob("*") if path.is_file()}
    whole = sum(bytes_ for path, bytes_ in size.items() if path.parts[0] not in DOWNLOADS)
    assert whole < 60e6, f"{whole / 1e6:.0f} MB"
    data = {path.name: bytes_ for path, bytes_ in size.items() if path.name.endswith("-data.js")}
    assert data and max(data.values()) < 300e3, data
    for page in (path for path in size if path.suffix == ".html" and path.parts[0] != "_static"):
        parts = {html / page, *((html / page).parent / name for name in Links(html / page).pictures)}
        heavy = sum(part.stat().st_size for part in parts)
        assert heavy < 3e6, f"{page}: {heavy / 1e6:.1f} MB"
