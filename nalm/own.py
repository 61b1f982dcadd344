"""What a reader defines outside of the library, found by an importable name: ``"square:SquareUnit"``.

Rows, worker processes and ``make verify`` know a class of one's own by the module that it is imported from.
In a script that is the name of its file, whichever process asks; in a notebook it is ``__main__``, which
other processes cannot import.
"""

from __future__ import annotations

import importlib
import linecache
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["find", "name_of"]

IN_A_NOTEBOOK = "__main__:"
"""How the names of classes begin that only this process knows."""

_OF_A_NOTEBOOK = (
    "it was defined in a notebook, whose units no other process can find; write the cell to a file with "
    "%%writefile and import it."
)


def name_of(own: type) -> str:
    """The importable name of a class.

    Raises:
        ValueError: a class that is defined inside a function or class, that its module does not know, or of
            which there is no source.

    >>> from collections import Counter
    >>> name_of(Counter)
    'collections:Counter'
    """
    module = _main_name() if is_main(own.__module__) else own.__module__
    if module == "__main__" and not cells():
        raise ValueError(
            f"{own.__qualname__} is defined where its source is not kept: write it to a file and import it."
        )
    name = f"{module}:{own.__qualname__}"
    if "." in own.__qualname__ or find(name) is not own:
        raise ValueError(
            f"{own.__qualname__} cannot be found by the name {name!r}: define it at the top level of a file "
            "or notebook, under a name that nothing else there has."
        )
    return name


def find(name: str) -> type:
    """The class with an importable name, or in a file: ``"folder/square.py:SquareUnit"``.

    A file's folder is put on Python's path, as Python does for a script, so that the file is a module.

    Raises:
        ValueError: no such file, module or class.

    >>> find("collections:Counter")
    <class 'collections.Counter'>
    >>> find("collections:Conter")
    Traceback (most recent call last):
    ValueError: 'collections:Conter' is not found: collections has no class 'Conter'.
    """
    where, _, qualified = name.rpartition(":")
    found: object = _module(where, name)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        said = _OF_A_NOTEBOOK if where == "__main__" else f"{where} has no class {qualified!r}."
        raise ValueError(f"{name!r} is not found: {said}")
    return found


def is_main(module: str) -> bool:
    """Whether it is the module that this process or the one that made it was started with."""
    return module in ("__main__", "__mp_main__")


def cells() -> list[str]:
    """The cells of a notebook that this process has run, in order; none if it runs something else."""
    main = sys.modules["__main__"]
    if not hasattr(main, "get_ipython"):
        return []
    known = getattr(main, "In", [])[1:]  # the first is always empty
    if not known:  # cells that are run without history
        names = [name for name in linecache.cache if "ipykernel" in Path(name).parent.name]
        known = ["".join(linecache.getlines(name)) for name in names]
    return known


def _main_name() -> str:
    """By what the module that this process was started with can be imported."""
    main = sys.modules["__main__"]
    if cells():
        return "__main__"
    if spec := getattr(main, "__spec__", None):
        return spec.name
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else "__main__"


def _module(where: str, name: str) -> ModuleType:
    if where == _main_name():
        return sys.modules["__main__"]
    if where == "__main__":
        raise ValueError(f"{name!r} is not found: {_OF_A_NOTEBOOK}")
    if where.endswith(".py"):
        file = Path(where).expanduser().resolve()
        if not file.is_file():
            raise ValueError(f"{name!r} is not found: there is no file {where}.")
        before = list(sys.path)
        if str(file.parent) not in before:
            sys.path.insert(0, str(file.parent))
        try:
            module = _imported(file.stem, name)
            if Path(getattr(module, "__file__", None) or "").resolve() != file:
                raise ValueError(
                    f"{name!r} is not found: Python knows another module {file.stem!r}; rename the file."
                )
        except ValueError:
            sys.path[:] = before  # the folder may hide other modules
            raise
        return module
    return _imported(where, name)


def _imported(module: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a file of the reader's may raise anything
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        raise ValueError(
            f"{name!r} is not found: "
            + (
                f"there is no module {module!r} on Python's path; name its folder in PYTHONPATH."
                if missing
                else f"importing {module!r} fails with {type(error).__name__}: {error}."
            )
        ) from None
