"""What is installed is what was locked: every package by version and hash, from wherever it comes."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from lock import CPU_WHEELS, hashes, with_cpu_wheels

ROOT = Path(__file__).parents[1]
WANTED = (ROOT / "requirements.in").read_text(encoding="utf-8")
LOCKED = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def pins(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_every_package_has_a_version_and_hashes():
    packages = LOCKED.replace(" \\\n", " ").splitlines()
    assert len(packages) > 100
    assert not [line for line in packages if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line)]


def test_no_address_of_an_index():
    assert not re.search(r"https?:|--(extra-)?index|--find-links", LOCKED + WANTED)


def test_what_is_wanted_is_locked():
    assert pins(WANTED).items() <= pins(LOCKED).items()


def test_it_fits_together():
    """What is installed has what it needs."""
    subprocess.run([sys.executable, "-m", "pip", "check"], check=True)


@pytest.mark.parametrize("name", CPU_WHEELS)
def test_wheels_without_cuda_are_locked_as_well(name):
    """More files than the default index has: three systems, of which one has no CUDA, and five Pythons."""
    _, listed = hashes(LOCKED, name)
    assert len(listed) >= 30


def _lock(version: str, *files: str) -> str:
    listed = "".join(f" \\\n    --hash=sha256:{64 * one}" for one in files)
    return "\n".join(f"{name}=={version}{listed}" for name in ("numpy", *CPU_WHEELS)) + "\n"


def test_hashes_of_the_same_version_are_kept():
    found = with_cpu_wheels(_lock("2.1", "b"), before=_lock("2.1", "a", "b", "c"))
    assert [hashes(found, name)[1] for name in CPU_WHEELS] == 2 * [{64 * "a", 64 * "b", 64 * "c"}]
    assert hashes(found, "numpy") == ("2.1", {64 * "b"})


def test_hashes_of_another_version_are_not():
    with pytest.raises(SystemExit, match=r"torch 2\.2 without CUDA .* make lock CPU=ADDRESS"):
        with_cpu_wheels(_lock("2.2", "b"), before=_lock("2.1", "a", "b"))


def test_pip_takes_either_wheel(tmp_path):
    """Of two wheels of one version, with and without CUDA, whose hashes are both listed."""
    names = {name: tmp_path / f"torch-{name}-py3-none-any.whl" for name in ("1.0", "1.0+cpu")}
    for version, path in names.items():
        with zipfile.ZipFile(path, "w") as wheel:
            place = f"torch-{version}.dist-info"
            about = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
            wheel.writestr(f"{place}/METADATA", about)
            wheel.writestr(f"{place}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{place}/RECORD", "")
    listed = "".join(f" --hash=sha256:{sha256(path.read_bytes()).hexdigest()}" for path in names.values())
    (tmp_path / "requirements.txt").write_text(f"torch==1.0{listed}\n")
    for offered, taken in (([*names], "1.0+cpu"), (["1.0"], "1.0")):
        shelf, target = tmp_path / f"{len(offered)}", tmp_path / taken
        shelf.mkdir()
        [shutil.copy(names[name], shelf) for name in offered]
        where = ["--no-index", "--find-links", str(shelf), "--no-deps", "-d", str(target)]
        wanted = ["--require-hashes", "-r", str(tmp_path / "requirements.txt")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        pip = [sys.executable, "-m", "pip", "--isolated", "download", "--quiet"]
        subprocess.run([*pip, *where, *wanted], check=True, env=environment)
        assert [path.name for path in target.iterdir()] == [names[taken].name]
