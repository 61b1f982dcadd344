"""Maps on dark pages: their data keep their colours, and what stands around them can be read."""

import base64
import io
from pathlib import Path

import nbformat
import numpy as np
import pytest
from companion.figures.maps import on_dark
from PIL import Image
from scipy.ndimage import minimum_filter

BOOK = Path(__file__).parents[2] / "book"
GROUNDS = {"light": 255, "dark": 0x12}
NEAR = 4  # pixels


def _figures():
    for chapter in BOOK.glob("*/*.ipynb"):
        for cell in nbformat.read(chapter, as_version=4).cells:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    yield cell.metadata.get("mystnb", {}), output


MAPS = {
    shown["figure"]["name"]: base64.b64decode(output["data"]["image/png"])
    for shown, output in _figures()
    if "needs_background" in output["metadata"]["image/png"]
}


def _luminance(level):
    return np.where(level <= 10, level / 255 / 12.92, ((level / 255 + 0.055) / 1.055) ** 2.4)


def test_the_images_of_maps_are_those_that_are_not_inverted():
    kept = {
        shown["figure"]["name"] for shown, _ in _figures() if "as-is" in shown["image"].get("classes", "")
    }
    assert kept == set(MAPS) and len(kept) >= 5


@pytest.mark.parametrize("name", MAPS)
def test_text_and_frames_alone_are_others_on_a_dark_page(name):
    light, dark = (np.array(Image.open(io.BytesIO(png))) for png in (MAPS[name], on_dark(MAPS[name])))
    assert (light[..., 3] == dark[..., 3]).all() and light[0, 0, 3] == 0
    changed = (light != dark).any(axis=-1)
    beside_the_ground = minimum_filter(light[..., 3], 2 * NEAR + 1) == 0
    assert not (changed & ~beside_the_ground).any()
    for picture, ground in zip((light, dark), GROUNDS.values(), strict=True):
        inks = np.unique(picture[changed & (light[..., 3] == 255), :3], axis=0)
        assert len(inks) == 2 and (inks == inks[:, :1]).all()  # greys: of text and of frames
        lower, higher = np.sort([_luminance(inks[:, 0]), np.full(2, _luminance(ground))], axis=0)
        assert ((higher + 0.05) / (lower + 0.05)).min() >= 4.5
