"""Chapters' kernels, which Jupyter and nbval would take a second longer to start and to end."""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbval import kernel

__all__ = ["wait_less"]


def wait_less() -> None:
    """Have nbval start its kernels in this way."""
    kernel.KernelManager = Manager


class Client(BlockingKernelClient):
    """Is ready with the kernel's first answer, once it hears what the kernel says. Jupyter's waits 0.2 s then
    for what else was said, which nbval tells from what it has asked, and nbval a second for what was said
    before it listened.
    """

    def wait_for_ready(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        self.kernel_info()
        while time.monotonic() < until and self.is_alive():
            try:
                self._handle_kernel_info_reply(self.get_shell_msg(timeout=0.2))
            except Empty:
                continue
            with suppress(Empty):  # a kernel welcomes who listens
                self.get_iopub_msg(timeout=1)
            return
        raise RuntimeError("The kernel died, or did not answer in time.")


class Manager(KernelManager):
    """Looks often whether a kernel that was killed is gone."""

    def __init__(self, **options: object) -> None:
        super().__init__(client_factory=Client, **options)

    async def _async_wait(self, pollinterval: float = 0.1) -> None:
        await super()._async_wait(0.005)
