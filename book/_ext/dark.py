"""Maps on dark pages: of each image with the class ``as-is`` there is a second one, whose text and
frames are light, see companion.figures.maps.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from companion.figures.maps import on_dark


class Dark(SphinxTransform):
    default_priority = 800  # before Sphinx looks for the files of images

    def apply(self, **_: object) -> None:
        for image in list(self.document.findall(nodes.image)):
            if "as-is" not in image["classes"]:
                continue
            file = Path(self.env.relfn2path(image["uri"], self.env.docname)[1])
            file.with_stem(f"{file.stem}-dark").write_bytes(on_dark(file.read_bytes()))
            dark = image.deepcopy()
            dark["uri"] = image["uri"].replace(file.stem, f"{file.stem}-dark")
            # with the theme's only-light and only-dark it would hide captions as well
            image["classes"].append("on-light")
            dark["classes"].append("on-dark")
            image.parent.insert(image.parent.index(image) + 1, dark)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_transform(Dark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
