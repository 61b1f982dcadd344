"""Writes requirements.txt from requirements.in: every package with its version and the hashes of its files.

torch and torchvision also have wheels without CUDA, as ``2.12.1+cpu``, on an index of their own. Their hashes
stand beside the others, so that ``pip install -r requirements.txt --extra-index-url …`` takes them.
Where that index is given they are read from it; else those of the same version are kept.

    python tests/lock.py [ADDRESS OF THE INDEX OF CPU WHEELS]
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
CPU_WHEELS = ("torch", "torchvision")
_PACKAGE = r"^{name}==(?P<version>[^\s;]+)[^\\\n]*(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{{64}})+)"


def hashes(locked: str, name: str) -> tuple[str, set[str]]:
    """Version of a package and the hashes of its files.

    >>> hashes("torch==2.0 \\\\\\n    --hash=sha256:" + 64 * "a", "torch") == ("2.0", {64 * "a"})
    True
    """
    if not (found := re.search(_PACKAGE.format(name=name), locked, re.MULTILINE)):
        return "", set()
    return found["version"], set(re.findall("[0-9a-f]{64}", found["hashes"]))


def merged(locked: str, name: str, more: set[str]) -> str:
    """What is locked, with more hashes of a package."""
    _, known = hashes(locked, name)
    listed = "".join(f" \\\n    --hash=sha256:{one}" for one in sorted(known | more))
    found = re.search(_PACKAGE.format(name=name), locked, re.MULTILINE)
    assert found, f"{name} is not locked"
    return locked[: found.start("hashes")] + listed + locked[found.end("hashes") :]


def with_cpu_wheels(locked: str, before: str, index: str = "") -> str:
    """What is locked, with the hashes of the wheels without CUDA: those of an index, or of what was locked
    before.

    Raises:
        SystemExit: neither knows them.
    """
    for name in CPU_WHEELS:
        (version, _), (earlier, more) = hashes(locked, name), hashes(before, name)
        if index:
            local = f"{name}=={version}+cpu"
            more = hashes(_compile(local, "", "--no-deps", "--default-index", index), name)[1]
        elif earlier != version:
            sys.exit(
                f"No hashes of {name} {version} without CUDA are known: say where these wheels are, with "
                "make lock CPU=ADDRESS."
            )
        locked = merged(locked, name, more)
    return locked


def _compile(wanted: str, before: str, *options: str) -> str:
    """What is locked before keeps its version where it can."""
    uv = Path(sys.executable).with_name("uv")
    how = ["--universal", "--python-version", "3.11", "--generate-hashes", "--no-emit-index-url"]
    with TemporaryDirectory() as folder:
        locked = Path(folder) / "requirements.txt"
        locked.write_text(before, encoding="utf-8")
        where = ["--no-annotate", "--no-header", "--output-file", locked, *options, "-"]
        subprocess.run([uv, "pip", "compile", "--quiet", *how, *where], input=wanted, text=True, check=True)
        return locked.read_text(encoding="utf-8")


if __name__ == "__main__":
    file = ROOT / "requirements.txt"
    before = file.read_text(encoding="utf-8")
    locked = _compile((ROOT / "requirements.in").read_text(encoding="utf-8"), before)
    file.write_text(with_cpu_wheels(locked, before, *sys.argv[1:]), encoding="utf-8")
