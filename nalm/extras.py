"""What parts of the library need beyond torch and numpy: the extras ``train``, ``digits``, ``cluster``,
``figures`` and ``formulas``.

``from nalm.extras import train as _`` refuses in one sentence where something of that extra is not installed;
it stands before whatever imports such packages. An import is no code that a run's result depends on.
"""

from importlib.util import find_spec

__all__: list[str] = []  # its names are asked for one by one

NEEDED = {
    "train": ("pydantic", "scipy", "torchdiffeq", "pandas", "tqdm", "platformdirs", "filelock"),
    "digits": ("torchvision", "sklearn"),
    "cluster": ("distributed",),
    "figures": ("matplotlib",),
    "formulas": ("sympy",),
}
"""Extra -> the modules that it installs."""


def __getattr__(extra: str) -> bool:
    if extra not in NEEDED:
        raise AttributeError(f"There is no extra {extra!r}.")
    if missing := [name for name in NEEDED[extra] if find_spec(name) is None]:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(
            f"This needs {', '.join(missing)}, which {verb} not installed: pip install 'nalm[{extra}]'."
        )
    return True
