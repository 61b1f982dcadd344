"""A checkpoint that stands for a process that ends in the middle of a training."""

from nalm.training.checkpoint import SealedCheckpoint


class Interrupted(Exception):
    """Stands for what ends a process."""


class Stopping(SealedCheckpoint):
    """Interrupts the training after a number of writings."""

    def __init__(self, path, left):
        super().__init__(path, every=0)
        self.left = left

    def write(self, content):
        super().write(content)
        self.left -= 1
        if not self.left:
            raise Interrupted
