"""MNIST is what was published, from wherever it is read, and a damaged file is one sentence."""

import gzip
import re
import shutil
from pathlib import Path

import pytest
import torch
import torchvision
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nalm.tasks import digit_images as module
from nalm.tasks.digit_images import MNIST_VARIABLE, REPOSITORY, digit_images
from nalm.tasks.mnist import SHA256, DamagedMNIST, _content, read_mnist

LABELS = "t10k-labels-idx1-ubyte.gz"


@pytest.fixture(autouse=True)
def read_anew(monkeypatch):
    """What another test has read is not remembered, and the digits are those of the repository."""
    monkeypatch.delenv(MNIST_VARIABLE, raising=False)
    digit_images.cache_clear()
    yield
    digit_images.cache_clear()


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A repository's digits that may be damaged."""
    folder = tmp_path / "mnist"
    shutil.copytree(REPOSITORY, folder)
    monkeypatch.setattr(module, "REPOSITORY", folder)
    return folder


def unpacked(root):
    """A torchvision root of the same files."""
    (root / "MNIST" / "raw").mkdir(parents=True)
    for name in SHA256:
        (root / "MNIST" / "raw" / name).write_bytes(gzip.decompress((REPOSITORY / f"{name}.gz").read_bytes()))
    return root


def test_the_digits_come_with_the_repository():
    data = digit_images("mnist")
    assert data.images.shape == (70_000, 28, 28) and data.images.dtype == torch.uint8
    assert data.labels.shape == (70_000,) and data.labels.dtype == torch.int64
    assert torch.bincount(data.labels[:60_000]).tolist() == [
        5923,
        6742,
        5958,
        6131,
        5842,
        5421,
        5918,
        6265,
        5851,
        5949,
    ]
    assert torch.cat([torch.as_tensor(data.splits[part]) for part in ("train", "valid", "test")]).equal(
        torch.arange(70_000)
    )
    assert [len(data.splits[part]) for part in ("train", "valid", "test")] == [55_000, 5_000, 10_000]


def test_they_are_what_torchvision_reads(tmp_path, monkeypatch):
    root = unpacked(tmp_path)
    train, test = (torchvision.datasets.MNIST(str(root), train=part) for part in (True, False))
    monkeypatch.setenv(MNIST_VARIABLE, str(root))
    for data in (
        read_mnist(REPOSITORY),
        read_mnist(root / "MNIST" / "raw"),
        (digit_images("mnist").images, digit_images("mnist").labels),
    ):
        for ours, theirs in zip(
            data, (torch.cat([train.data, test.data]), torch.cat([train.targets, test.targets])), strict=True
        ):
            assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride() and ours.equal(theirs)


def test_their_licence_is_named_beside_them():
    said = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert "Attribution-Share Alike 3.0" in said and "Yann LeCun" in said and "nalm/tasks/mnist.py" in said
    assert {path.name for path in REPOSITORY.iterdir()} == {"README.md", *(f"{name}.gz" for name in SHA256)}


@pytest.mark.parametrize("name", [f"{name}.gz" for name in SHA256])
@pytest.mark.parametrize("damage", ["missing", "a folder", "empty", "cut", "another", "text"])
def test_damage_is_one_sentence_that_names_the_file(copy, name, damage):
    file = copy / name
    content = file.read_bytes()
    file.unlink()
    if damage == "a folder":
        file.mkdir()
    elif damage != "missing":
        other = (
            copy / ("train-labels-idx1-ubyte.gz" if name != "train-labels-idx1-ubyte.gz" else LABELS)
        ).read_bytes()
        file.write_bytes(
            {"empty": b"", "cut": content[: len(content) // 2], "another": other, "text": b"damaged"}[damage]
        )
    with pytest.raises(ValueError) as caught:
        digit_images("mnist")
    assert re.fullmatch(
        rf"{re.escape(str(file))} (is missing|cannot be read \(Is a directory\)|is damaged, [\w\s-]+)"
        r": restore it with 'git checkout -- book/data/mnist', or use the source 'sklearn'\.",
        str(caught.value),
    )


PACKED = (REPOSITORY / LABELS).read_bytes()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(PACKED) - 1), change=st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path, at, change):
    (tmp_path / LABELS).write_bytes(PACKED[:at] + bytes([PACKED[at] ^ change]) + PACKED[at + 1 :])
    try:
        # as with the time in gzip's header
        assert _content(tmp_path, LABELS.removesuffix(".gz")) == gzip.decompress(PACKED)
    except DamagedMNIST as error:
        assert str(error).startswith(f"{tmp_path / LABELS} is damaged")


def test_a_folder_without_a_name_is_none(monkeypatch):
    monkeypatch.setenv(MNIST_VARIABLE, "")
    assert module._folder_of_mnist()[0] == REPOSITORY


def test_a_folder_of_ones_own_is_read_instead(tmp_path, monkeypatch):
    monkeypatch.setenv(MNIST_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="nowhere', which is not a folder; it must hold MNIST/raw"):
        digit_images("mnist")
    monkeypatch.setenv(MNIST_VARIABLE, str(tmp_path))
    with pytest.raises(
        ValueError,
        match="train-images-idx3-ubyte.gz is missing: fetch it again, or name another folder in NALM_MNIST, "
        "or use",
    ):
        digit_images("mnist")
    raw = unpacked(tmp_path) / "MNIST" / "raw"
    (raw / "t10k-labels-idx1-ubyte").write_bytes(b"damaged")
    with pytest.raises(
        ValueError,
        match="t10k-labels-idx1-ubyte is damaged, its SHA-256 is not that of the published file: "
        "fetch it again",
    ):
        digit_images("mnist")


def test_a_library_without_its_repository_downloads(tmp_path, monkeypatch):
    """Downloads themselves are torchvision's."""
    asked = []

    def downloading(root, download):
        asked.append(download)
        unpacked(Path(root))

    monkeypatch.setattr(module, "REPOSITORY", tmp_path / "none")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr("torchvision.datasets.MNIST", downloading)
    assert digit_images("mnist").images.equal(read_mnist(REPOSITORY)[0]) and asked == [True]
    digit_images.cache_clear()
    shutil.rmtree(tmp_path / "nalm")

    for kind in (RuntimeError, OSError, EOFError):

        def failing(root, download, kind=kind):
            raise kind("Error downloading\n train-images")

        monkeypatch.setattr("torchvision.datasets.MNIST", failing)
        with pytest.raises(
            ValueError,
            match=r"cannot be downloaded into .*nalm \(Error downloading train-images\): "
            r"name a folder .* in NALM_MNIST",
        ):
            digit_images("mnist")
