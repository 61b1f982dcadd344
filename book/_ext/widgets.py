"""Put a widget on a page: ``{widget} landscape`` shows its figure, which the script
``_static/landscape.js`` replaces where scripts run. Only pages with widgets load any.
"""

import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from companion.figures.styles import require
from companion.widgets import COLOURS, WIDGETS


class widget(nodes.General, nodes.Element):
    """A box around the figure, with the name of the widget."""


class WidgetDirective(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        try:
            require(name, WIDGETS, "widget")
        except ValueError as error:
            raise self.error(str(error)) from None
        self.env.note_reread()  # the figure may be drawn from rows
        if WIDGETS[name].draw is None:
            words = nodes.paragraph("", WIDGETS[name].alt)
            return [widget("", words, name=name)]
        data, metadata = WIDGETS[name].draw()._repr_mimebundle_()
        image = nodes.image(
            uri=f"data:image/png;base64,{data['image/png']}",
            alt=WIDGETS[name].alt,
            width=f"{metadata['image/png']['width']}px",
        )
        return [widget("", image, name=name)]


def open_box(translator: HTML5Translator, node: widget) -> None:
    attributes = {"data-widget": node["name"], "data-colours": json.dumps(COLOURS)}
    translator.body.append(translator.starttag(node, "div", **attributes))
    if WIDGETS[node["name"]].draw:
        alt = translator.encode(WIDGETS[node["name"]].alt)
        translator.body.append(
            f"<noscript><p>Scripts are off, so this is a picture. {alt}</p></noscript>"
        )


def close_box(translator: HTML5Translator, node: widget) -> None:
    translator.body.append("</div>\n")


def write_data(app: Sphinx, config: Config) -> None:
    """The data of widgets, as scripts, so that a page can load them from a file."""
    folder = Path(app.doctreedir) / "widgets"
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in WIDGETS.items():
        if one.data:
            data = json.dumps(one.data(), ensure_ascii=False, separators=(",", ":"))
            script = f"window.nalm.{name}Data = {data};\n"
            (folder / f"{name}-data.js").write_text(script, encoding="utf-8")
    config.html_static_path.append(str(folder))


def load_scripts(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    names = dict.fromkeys(node["name"] for node in doctree.findall(widget)) if doctree else {}
    data = [f"{name}-data" for name in names if WIDGETS[name].data]
    for name in names and ["drawing", *data, *names]:
        app.add_js_file(f"{name}.js", loading_method="defer")
    if names:
        app.add_css_file("widgets.css")


def setup(app: Sphinx) -> dict[str, object]:
    app.add_node(widget, html=(open_box, close_box))
    app.add_directive("widget", WidgetDirective)
    app.connect("config-inited", write_data)
    app.connect("html-page-context", load_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
