"""Chapters' kernels, for each of which Jupyter would wait 0.3 s longer than it takes to start and to end."""

from __future__ import annotations

import time
from queue import Empty

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbval import kernel

__all__ = ["wait_less"]


def wait_less() -> None:
    """Have nbval start its kernels in this way."""
    kernel.KernelManager = Manager


class Client(BlockingKernelClient):
    """Is ready with the kernel's first answer. Jupyter's waits 0.2 s then for what else was said, which nbval
    tells from what it has asked.
    """

    def wait_for_ready(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        self.kernel_info()
        while time.monotonic() < until and self.is_alive():
            try:
                return self._handle_kernel_info_reply(self.get_shell_msg(timeout=0.2))
            except Empty:
                pass
        raise RuntimeError("The kernel died, or did not answer in time.")


class Manager(KernelManager):
    """Looks often whether a kernel that was killed is gone."""

    def __init__(self, **options: object) -> None:
        super().__init__(client_factory=Client, **options)

    async def _async_wait(self, pollinterval: float = 0.1) -> None:
        await super()._async_wait(0.005)
