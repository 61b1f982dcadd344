"""Make the pages complete in themselves: formulas are set by a file of the book, and nothing comes
from elsewhere.
"""

from importlib.metadata import distribution
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

MATHJAX = "tex-svg-full.js"
"""One file that holds MathJax, all its TeX packages and its glyphs."""


def mathjax_file() -> Path:
    """Where the installed package keeps MathJax."""
    return Path(
        str(
            distribution("sphinx-mathjax-offline").locate_file(
                f"sphinx-mathjax-offline/static/mathjax/{MATHJAX}"
            )
        )
    )


def use_own_mathjax(app: Sphinx, config: Config) -> None:
    """Copy MathJax into the book and load that copy."""
    config.html_static_path.append(str(mathjax_file()))
    config.mathjax_path = MATHJAX


def drop_thebe(app: Sphinx, config: Config) -> None:
    """Take out the live-code button, which loads its script from the network."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    app.registry.css_files[:] = [
        entry for entry in app.registry.css_files if entry[0] != "sphinx-thebe.css"
    ]


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("config-inited", use_own_mathjax)
    app.connect("config-inited", drop_thebe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
