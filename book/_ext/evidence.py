"""The files that the book is computed from, as files of the site. Each has one address, in every
edition:

* ``results/<paper>/<experiment>.csv.gz``: the rows of an experiment, compressed;
* ``results/<paper>/<experiment>.json``: how each of them was configured and made;
* ``results/scoreboard.csv`` and the other tables that are computed from all rows.

``{rows}`division/losses``` links the files of that name, ``{rows-of-all}`` lists all experiments.
Other extensions place the same links with :func:`links`.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from computed import Written
from docutils import nodes
from freshness import always_read
from nalm.records import PUBLISHED, Store, experiments
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from companion.scoreboard import ITEMS

ROOT = Path(__file__).parents[2]
KINDS = {".csv": "table", ".csv.gz": "rows", ".json": "configurations"}
"""How a file ends -> what it holds."""


@cache
def files() -> dict[str, Path]:
    """Address in the site -> the file of the repository that it holds."""
    plain = [*PUBLISHED.glob("*.csv"), *PUBLISHED.glob("*/*.json")]
    found = {path.relative_to(PUBLISHED).as_posix(): path for path in plain}
    found |= {f"{name}.csv.gz": PUBLISHED / f"{name}.csv" for name in experiments()}
    return {f"results/{address}": path for address, path in sorted(found.items())}


def collect(app: Sphinx, config: Config) -> None:
    """Lay the files where the builder copies them from."""
    files.cache_clear()
    folder = Path(app.doctreedir) / "evidence"
    shutil.rmtree(folder, ignore_errors=True)
    for address, path in files().items():
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes()
        target.write_bytes(
            gzip.compress(content, 6, mtime=0) if target.suffix == ".gz" else content
        )
    config.html_extra_path.append(str(folder))


def links(env: BuildEnvironment, name: str) -> list[nodes.Node]:
    """Links from the page that is being read to the files of that name, with their sizes.

    Args:
        env: of the build.
        name: of an experiment, ``"division/losses"``, or of a table, ``"scoreboard"``.

    Raises:
        ValueError: there is no file of that name.
    """
    parts: list[nodes.Node] = []
    for ending, said in KINDS.items():
        address = f"results/{name}{ending}"
        if address not in files():
            continue
        size = (Path(env.doctreedir) / "evidence" / address).stat().st_size
        uri = "../" * env.docname.count("/") + address
        parts += [nodes.Text(", ")] if parts else []
        parts += [nodes.reference("", said, refuri=uri, internal=True)]
        parts += [nodes.Text(f" ({size / 1000:,.0f} kB)")]
    if not parts:
        raise ValueError(
            f"There are no rows called {name!r}; there are {', '.join(experiments())}."
        )
    return parts


class RowsRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        always_read(self.env)
        try:
            return links(self.env, self.text), []
        except ValueError as error:
            return [], [self.inliner.reporter.error(str(error), line=self.lineno)]


class RowsOfAll(Written):
    """A table of the experiments that have rows."""

    def lines(self) -> Iterator[str]:
        pages = shown_on()
        yield from ("| experiment | runs | code | files | shown on |", "|---|--:|---|---|---|")
        for name in experiments():
            runs = Store(PUBLISHED, name).sidecar()["rows"]
            where = ", ".join(f"{{doc}}`/{page}`" for page in pages.get(name, ()))
            yield f"| `{name}` | {runs:,} | {{freshness}}`{name}` | {{rows}}`{name}` | {where} |"
        yield ""


def shown_on() -> dict[str, list[str]]:
    """Experiment -> the pages that show its rows: those of its figures and tables, and those that
    say how fresh it is.
    """
    found = {
        (name, item.chapter.removesuffix(".ipynb"))
        for item in ITEMS
        for name in item.experiment
        if item.chapter
    }
    for file in (ROOT / "book").glob("*/*.ipynb"):
        page = file.relative_to(ROOT).with_suffix("").as_posix()
        cells = json.loads(file.read_text("utf-8"))["cells"]
        text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        said = re.findall(r"\{freshness\}`([^`]+)`|^:rows: (.+)$", text, re.MULTILINE)
        found |= {(name, page) for one in said for name in " ".join(one).split()}
    return {name: sorted(page for one, page in found if one == name) for name, _ in found}


def setup(app: Sphinx) -> dict[str, object]:
    app.add_role("rows", RowsRole())
    app.add_directive("rows-of-all", RowsOfAll)
    app.connect("config-inited", collect)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
