"""Checkpoints: a damaged one is worth nothing, and never anything else than what was written."""

import os
import pickle
import random
from types import SimpleNamespace

import pytest
import torch

from nalm.training import checkpoint as checkpoints
from nalm.training.checkpoint import PARTS, Checkpoint, SealedCheckpoint, _digest

RANDOM = random.Random(0)
CONTENT = {
    "iteration": 1200,
    "seconds": 0.1 + 0.2,
    "device": "cpu",
    "weights": {"0.weight": torch.linspace(-1, 1, 301), "1.weight": torch.full((3, 2), torch.nan)},
    "errors": [torch.arange(7), None],
}


@pytest.fixture
def checkpoint(tmp_path):
    checkpoint = SealedCheckpoint(tmp_path / "some.pt", every=0)
    checkpoint.write(CONTENT)
    return checkpoint


def text(content):
    """Equal for equal contents, to the last bit."""
    return repr(
        {name: value for name, value in content.items() if name not in ("weights", "errors")}
    ) + "".join(
        f"{tensor.dtype}{tuple(tensor.shape)}{tensor.numpy().tobytes().hex()}"
        for tensor in (*content["weights"].values(), content["errors"][0])
    )


def nothing_or_all(checkpoint):
    found = checkpoint.read()
    return found is None or text(found) == text(CONTENT)


def test_what_was_written_is_read(checkpoint):
    assert text(checkpoint.read()) == text(CONTENT) and checkpoint.read()["errors"][1] is None
    checkpoint.remove()
    assert checkpoint.read() is None


def test_a_sealed_checkpoint_without_a_part_is_nothing(checkpoint):
    """Also with the right digest: training would end in every attempt."""
    path = checkpoint.path
    assert text(SealedCheckpoint(path, parts=("iteration", "weights")).read()) == text(CONTENT)
    assert SealedCheckpoint(path, parts=("iteration", "parameters")).read() is None


def test_an_ensemble_asks_for_all_that_it_goes_on_from(tmp_path):
    from nalm.models import Stack
    from nalm.tasks import TenParameterTask
    from nalm.training import Adam, Ensemble, Recipe, Run

    recipe = Recipe(iterations=4, log_interval=2, optimiser=Adam(lr=1e-3))
    run = Run(task=TenParameterTask(), model=Stack.of("NAU", 2, "NMU", 1), recipe=recipe, seed=0)
    checkpoint = SealedCheckpoint(tmp_path / "some.pt", every=0)
    Ensemble([run]).train(checkpoint=checkpoint)
    content = checkpoint.read()
    assert content.keys() >= set(PARTS)
    for part in PARTS:
        checkpoint.write({name: value for name, value in content.items() if name != part})
        assert SealedCheckpoint(checkpoint.path, parts=PARTS).read() is None


def test_a_truncated_checkpoint_is_nothing(checkpoint):
    whole = checkpoint.path.read_bytes()
    for length in {0, 1, 2, 4, 30, *range(0, len(whole), 61), *range(len(whole) - 80, len(whole))}:
        checkpoint.path.write_bytes(whole[:length])
        assert checkpoint.read() is None, length


def test_a_checkpoint_with_flipped_bits_is_nothing_or_what_was_written(checkpoint):
    whole = checkpoint.path.read_bytes()
    for position in range(RANDOM.randrange(9), len(whole), 9):
        damaged = bytearray(whole)
        damaged[position] ^= RANDOM.choice([0xFF, *(1 << bit for bit in range(8))])
        checkpoint.path.write_bytes(damaged)
        assert nothing_or_all(checkpoint), position


def test_a_flipped_bit_of_a_number_is_noticed(checkpoint):
    whole = checkpoint.path.read_bytes()
    number = CONTENT["weights"]["0.weight"].numpy().tobytes()
    assert whole.count(number) == 1
    for position in range(whole.index(number), whole.index(number) + len(number), 101):
        checkpoint.path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert checkpoint.read() is None, position


class Malicious:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def sealed(file):
    content = torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
    torch.save({"sha256": _digest(content), "bytes": content}, file)


@pytest.mark.parametrize(
    "kind", ["a pickle", "saved by torch", "sealed pickle", "sealed", "beside what is sealed"]
)
def test_a_malicious_checkpoint_is_not_executed(checkpoint, tmp_path, kind):
    made = Malicious(tmp_path / "made")
    if kind.endswith("pickle"):
        checkpoint.path.write_bytes(pickle.dumps(made))
    elif kind.startswith("beside"):
        torch.save(torch.load(checkpoint.path, weights_only=True) | {"more": made}, checkpoint.path)
    else:
        torch.save(made, checkpoint.path)
    if kind.startswith("sealed"):
        sealed(checkpoint.path)
    assert checkpoint.read() is None and not made.folder.exists()


@pytest.mark.parametrize(
    "other",
    [[], 1.0, {}, {"iteration": 3}, {"sha256": "", "bytes": b""}, {"sha256": None, "bytes": torch.ones(3)}],
)
def test_a_file_of_another_kind_is_nothing(checkpoint, other):
    torch.save(other, checkpoint.path)
    assert checkpoint.read() is None


@pytest.mark.parametrize("who", ["written by another user", "open to others", "open to a group"])
def test_a_planted_checkpoint_is_not_read(who, tmp_path, monkeypatch):
    said = []
    checkpoint = SealedCheckpoint(tmp_path / "some.pt", every=0, warn=said.append)
    checkpoint.write(CONTENT)
    assert checkpoint.read() and not said
    if who == "written by another user":
        monkeypatch.setattr(os, "getuid", lambda: 4321)
    else:
        checkpoint.path.chmod(0o602 if "others" in who else 0o620)
    assert checkpoint.read() is None
    why = "belongs to another user, or others may write it; training starts anew."
    assert said == [f"The checkpoint {checkpoint.path} {why}"]


def test_a_checkpoint_is_this_user_s_alone(checkpoint):
    assert checkpoint.path.stat().st_mode & 0o777 == 0o600


def test_the_next_writing_is_due_after_the_pause(tmp_path, monkeypatch):
    now = [200.0]
    monkeypatch.setattr(checkpoints, "time", SimpleNamespace(monotonic=lambda: now[0]))
    checkpoint = Checkpoint(tmp_path / "some.pt", every=30)
    for _ in range(2):
        assert not checkpoint.due()
        now[0] += 31
        assert checkpoint.due()
        checkpoint.write({})


def test_what_another_process_is_writing_stays(checkpoint):
    """What a killed one has left goes, and what is left of this process, which writes no more."""
    folder, name = checkpoint.path.parent, checkpoint.path.name
    running, own, ended = os.getppid(), os.getpid(), 2**22 + 1  # beyond the numbers of processes
    for process in (running, own, ended, 10**20):
        (folder / f".{name}.{process}").touch()
    checkpoint.remove()
    assert [file.name for file in folder.glob(f".{name}.*")] == [f".{name}.{running}"]
