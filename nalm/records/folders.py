"""Where results lie: the published rows of the book, and the reader's own rows."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

__all__ = ["LOCAL", "PUBLISHED", "results_folder"]

PUBLISHED = Path(__file__).resolve().parents[2] / "book" / "results"
"""The rows that the book shows; there where the library is used from its repository."""

LOCAL = user_data_path("nalm") / "results"
"""The reader's own rows, outside of the repository."""


def results_folder(results: str | Path) -> Path:
    """The folder that new rows go to: ``""`` the reader's own, ``"publish"`` the book's, anything else is a
    path.

    Raises:
        ValueError: ``"publish"`` misspelt or where there is no book, a path that is a file, or a home that is
            not there.

    >>> results_folder("") == LOCAL
    True
    """
    if not isinstance(results, str | os.PathLike):
        raise TypeError(f"results must be '', 'publish' or the path of a folder, but it is {results!r}.")
    results = str(results)
    if results == "":
        return LOCAL
    if results == "publish":
        if not PUBLISHED.parent.is_dir():
            raise ValueError(
                "results='publish' needs the book's folder, "
                "but this library is installed without its repository."
            )
        return PUBLISHED
    if results.lower() == "publish":
        raise ValueError(f"results={results!r}: did you mean 'publish'? A folder would be './{results}'.")
    try:
        path = Path(results).expanduser().resolve()
    except RuntimeError:
        raise ValueError(
            f"results={results!r} names the home of a user whom this machine does not know."
        ) from None
    if path.exists() and not path.is_dir():
        raise ValueError(
            f"results={results!r} is a file; allowed are '', 'publish' and the path of a folder."
        )
    return path
