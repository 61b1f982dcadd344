"""The hash of definitions: it sees what code does, and not where or in which order it stands."""

import pytest

from nalm.records.definitions import Definitions, Place

SOURCES = {
    "a.units": '''
"""Units."""
import math
from a.parts import scale
from a import forms

__all__ = ["Unit", "Other"]
LIMIT = 3


class Base:
    def reset(self):
        return LIMIT

    def unused(self):
        return math.inf


class Unit(Base):
    def forward(self, x):
        return scale(x) + forms.KINDS["half"](x) + math.sin(x) + self.reset()


class Other(Base):
    def forward(self, x):
        return _helper(x)


def _helper(x):
    return x + 1
''',
    "a.parts": '''
FACTOR = 2


def scale(x: float) -> float:
    """Scaled."""
    if x is None:
        raise ValueError("No number.")
    return _helper(x) * FACTOR


def _helper(x):
    return even(x, 4)


def even(x, n):
    return x if n == 0 else odd(x, n - 1)


def odd(x, n):
    return even(x, n - 1)
''',
    "a.forms": "from b import third as last\nKINDS = {'half': lambda x: x / 2, 'third': last}\n",
}
FORWARD = Place("a.units", "Unit"), Place("a.units", "Other")


def code(root, *edits, rename=None):
    sources = dict(SOURCES)
    for module, old, new in edits:
        assert old in sources[module]
        sources[module] = sources[module].replace(old, new)
    if rename:
        sources = {name.replace(*rename): text.replace(*rename) for name, text in sources.items()}
        root = Place(root.module.replace(*rename), root.name)
    return Definitions(sources).hash([root])


@pytest.mark.parametrize(
    ("edits", "changed"),
    [
        ([("a.units", '["Unit", "Other"]', '["Other", "Unit"]')], ""),
        ([("a.units", '"""Units."""', '"""Other words."""')], ""),
        ([("a.parts", "(x: float) -> float", "(x: int)")], ""),
        ([("a.parts", "No number.", "Nothing.")], ""),
        ([("a.parts", "_helper", "_named_otherwise")], ""),
        ([("a.units", "LIMIT = 3", "LIMIT = 1 + 2")], "Unit"),
        ([("a.units", "class Unit(Base):", "class Unit(Base):\n    gate: nn.Parameter | None\n")], ""),
        ([("a.units", "class Unit(Base):", "class Unit(Base):\n    size: int\n")], "Unit"),
        ([("a.units", "math.inf", "0")], ""),  # of a method that nobody calls
        # a foreign name that means something else
        ([("a.units", "import math", "import cmath as math")], "Unit"),
        ([("a.units", "from a.parts import scale", "from a.parts import _helper as scale")], "Unit"),
        ([("a.units", "x + 1", "x - 1")], "Other"),
        ([("a.parts", "FACTOR = 2", "FACTOR = 3")], "Unit"),
        ([("a.parts", "even(x, 4)", "odd(x, 4)")], "Unit"),
        ([("a.parts", "return even(x, n - 1)", "return even(x, n - 2)")], "Unit"),  # inside a circle
        (
            [
                ("a.parts", "even(x, 4)", "x + 1"),
                ("a.units", "x + 1", "even(x, 4)"),
                ("a.units", "import math", "import math\nfrom a.parts import even"),
            ],
            "Unit Other",
        ),
        ([("a.forms", "x / 2", "x / 4")], "Unit"),
        ([("a.forms", "last}", "last, 'half of it': None}")], ""),
        ([("a.forms", "third as last", "fourth as last")], ""),
        # something is done when the module is loaded
        ([("a.forms", "KINDS = ", "print()\nKINDS = ")], "Unit"),
        # a local name of the same name
        ([("a.units", "return _helper(x)", "_helper = len\n        return _helper(x)")], "Other"),
    ],
)
def test_what_is_changed(edits, changed):
    assert [root.name for root in FORWARD if code(root, *edits) != code(root)] == changed.split()


def test_moved_modules_and_swapped_helpers():
    for root in FORWARD:
        assert code(root, rename=("a.parts", "a.elsewhere.pieces")) == code(root)
    swapped = [
        ("a.parts", "return even(x, 4)", "return x + 1"),
        ("a.units", "return x + 1", "return even(x, 4)"),
    ]
    with_import = ("a.units", "import math", "import math\nfrom a.parts import even")
    assert code(FORWARD[0], *swapped, with_import) != code(FORWARD[0], with_import)
    assert code(FORWARD[1], *swapped, with_import) != code(FORWARD[1], with_import)


def test_an_entry_counts_where_its_key_is_asked_for():
    choosing = [("a.units", 'KINDS["half"]', "KINDS[x.kind]")]
    sources = SOURCES | {"a.units": SOURCES["a.units"].replace(*choosing[0][1:])}
    texts = SOURCES["a.forms"], SOURCES["a.forms"].replace("x / 2", "x / 4")
    definitions = [Definitions(sources | {"a.forms": text}) for text in texts]
    assert [
        len({d.hash([FORWARD[0]], words) for d in definitions}) for words in ((), ("half",), ("third",))
    ] == [1, 2, 1]


def test_what_is_silent_is_not_followed():
    silent = [
        Definitions(SOURCES, ["a.parts"]),
        Definitions({**SOURCES, "a.parts": SOURCES["a.parts"].replace("= 2", "= 3")}, ["a.parts"]),
    ]
    assert len({d.hash([FORWARD[0]]) for d in silent}) == 1
    assert Place("a.parts", "even") not in silent[0].used([FORWARD[0]])


def test_a_module_that_is_handed_on_is_refused():
    sources = {**SOURCES, "a.units": SOURCES["a.units"].replace("_helper(x)\n", "list(forms)\n", 1)}
    with pytest.raises(ValueError, match="a.units hands the module a.forms on as a value"):
        Definitions(sources).hash([FORWARD[1]])


@pytest.mark.parametrize(
    ("source", "old", "new", "changed"),
    [
        ("LOW, HIGH = 1, 2\ndef f(): return LOW", "return LOW", "return HIGH", True),
        ("SIZE = 1\nSIZE += 2\ndef f(): return SIZE", "+=", "-=", True),
        ("def f(x, *, by=1): return by * x", "by=1", "by=2", True),
        ("import functools\n@functools.cache\ndef f(): return 1", "functools.cache", "functools.wraps", True),
        ("class f(dict, total=True): pass", "total=True", "total=False", True),
        ("class f(dict): pass", "dict", "list", True),
        ("LOW = (1, 2)\ndef f(): return LOW", "LOW =", "LOW, HIGH =", True),
        ("SIZES = {}\nSIZES['a'] = 1\ndef f(): return SIZES", "= 1", "= 2", True),
        (
            "class A:\n    def late(self): return 1\ndef f(): return g(A())\ndef g(a): return a.late()",
            "return 1",
            "return 2",
            True,
        ),
        ("class A:\n    @made\n    def b(self): return 1\ndef f(): return A()", "return 1", "return 2", True),
        ("if x:\n    def f(): return 1\nelse:\n    def f(): return 2", "2", "3", True),
        (
            "try:\n    from b import f\nexcept ImportError:\n    def f(): return 1",
            "return 1",
            "return 2",
            True,
        ),
        ("SIZE = 1\ndef f():\n    global SIZE\n    SIZE += 1\n    return SIZE", "SIZE = 1", "SIZE = 2", True),
        ("y = 1\ndef f(v): return [y := x for x in v], y", "y = 1", "y = 2", False),
        ("def f(v):\n    match v:\n        case {**y}: return y\ny = 1", "y = 1", "y = 2", False),
        ("class A:\n    def __call__(self): return 1\ndef f(): return A()()", "return 1", "return 2", True),
        (
            "class A:\n    def b(self): return 1\n    c = staticmethod(b)\ndef f(): return A.c(1)",
            "return 1",
            "return 2",
            True,
        ),
        (
            "from math import sin\ndef f(): return [sin for sin in (1,)]",
            "import sin",
            "import cos as sin",
            False,
        ),
    ],
    ids=repr,
)
def test_what_is_changed_in_one_module(source, old, new, changed):
    assert old in source
    before, after = (Definitions({"a": text}) for text in (source, source.replace(old, new)))
    place = Place("a", "f")
    assert (before.hash([place]) != after.hash([place])) == changed


@pytest.mark.parametrize(
    "source",
    [
        "from b import *\ndef f(): return g()",
        "def f():\n    from b import g\n    return g()",
        "import b\ndef f(): return b.g()",
        "import b as c\ndef f(): return c.g()",
        "def f(g):\n    def h():\n        from b import g\n        return g()\n    return h()",
    ],
)
def test_what_is_imported_is_followed(source):
    hashes = {
        Definitions({"a": source, "b": f"def g(): return {number}"}).hash([Place("a", "f")])
        for number in (1, 2)
    }
    assert len(hashes) == 2
