"""A kernel that starts in no time: it is forked from a process that has imported the library already.

conftest.py calls :func:`start` where chapters are tested, which gives the one process that all kernels are
forked from. Jupyter starts the kernel ``warm`` by ``python tests/warm.py -f FILE`` as it would start
``python -m ipykernel_launcher -f FILE``: this asks for a kernel, stands for it, hands on signals and the exit
status, and takes the kernel with it when it is killed.

A kernel has its caller's folder, environment, arguments and streams, and random numbers and names of its own.
What kernels share is that modules are imported, none of which has done anything yet. A chapter that forgets
an import still fails, for want of the name. An import that prints or warns would show in a chapter: then no
kernel starts. Chapters with parameters run in an ordinary kernel as well, see tests/book/conftest.py.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["NALM_TESTS"])  # of this run of the tests, see conftest.py
ADDRESS, SAID = FOLDER / "warm", FOLDER / "said"
MODULES = [
    *["IPython.core.pylabtools", "ipykernel.debugger", "ipykernel.ipkernel", "ipykernel.kernelapp"],
    "myst_nb",
    *["matplotlib.pyplot", "numpy", "pandas", "scipy.integrate", "scipy.optimize", "scipy.stats", "sympy"],
    *["torch._dynamo", "torch._inductor.compile_fx", "torch.func"],
    *[
        "companion.benchmark",
        "companion.discovery",
        "nalm.training.ode",
        "companion.experiment",
        "companion.figures",
        "companion.division.golden",
        "companion.division.settings",
        "companion.experiment.parameters",
    ],
    *[
        "companion.published",
        "nalm.records",
        "companion.scoreboard",
        "companion.experiment.tables",
        "nalm.tasks",
        "nalm.training",
    ],
]
"""What chapters import, and what trains their runs."""


def start() -> subprocess.Popen:
    """Start the process that kernels are forked from, and name ``warm`` to Jupyter."""
    kernel = Path(os.environ["XDG_DATA_HOME"], "jupyter", "kernels", "warm", "kernel.json")
    kernel.parent.mkdir(parents=True)
    # a history would write each cell to a disk
    command = [sys.executable, "-S", __file__, "-f", "{connection_file}", "--HistoryManager.enabled=False"]
    kernel.write_text(json.dumps({"argv": command, "display_name": "warm", "language": "python"}))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, open(SAID, "w") as said:
        listening.bind(str(ADDRESS))
        listening.listen()
        command = [sys.executable, __file__, "--serve", str(listening.fileno())]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )


def ask() -> None:
    """Stand for a kernel until it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(str(ADDRESS))
        asked = {"folder": os.getcwd(), "environment": dict(os.environ), "arguments": sys.argv[1:]}
        socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
        kernel = int(server.recv(100))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: _send(kernel, number))
        sys.exit(int(server.recv(100)))


def _send(kernel: int, number: int) -> None:
    """Send a signal to a kernel and the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(kernel, number)


def serve(listening: socket.socket) -> None:
    """Fork a kernel for each who asks, while the process that called :func:`start` lives."""
    tests = os.getppid()
    _import()
    kernels: dict[socket.socket, int] = {}
    while os.getppid() == tests:
        ready, _, _ = select.select([listening, *kernels], [], [], 0.2)
        for asking in ready:
            if asking is listening:
                asking, _ = listening.accept()
                asked, streams, _, _ = socket.recv_fds(asking, 2**20, 3)
                kernel = os.fork()
                if not kernel:
                    for other in (listening, asking, *kernels):
                        other.close()
                    return _be_kernel(json.loads(asked), streams)
                kernels[asking] = kernel
                asking.send(str(kernel).encode())
                for stream in streams:
                    os.close(stream)
            else:  # who asked is gone
                _send(kernels[asking], signal.SIGKILL)
        for asking, kernel in list(kernels.items()):
            ended, status = os.waitpid(kernel, os.WNOHANG)
            if ended:
                with suppress(OSError):
                    asking.send(str(os.waitstatus_to_exitcode(status)).encode())
                asking.close()
                del kernels[asking]
    for kernel in kernels.values():
        _send(kernel, signal.SIGKILL)


def _import() -> None:
    """Import everything; end if that prints anything or goes on."""
    del sys.path[0]  # the folder of this file
    os.environ["MPLBACKEND"] = (
        "module://matplotlib_inline.backend_inline"  # kernels set it before anything is imported
    )
    for module in MODULES:
        importlib.import_module(module)
    sys.stdout.flush()
    if SAID.stat().st_size or threading.active_count() > 1:
        sys.exit("No kernel starts: what chapters import prints something or starts a thread.")
    gc.collect()
    gc.freeze()  # what is shared stays so
    gc.set_threshold(20_000, 20, 100)  # as in the tests themselves, see conftest.py


def _be_kernel(asked: dict[str, Any], streams: list[int]) -> None:
    """Take over what the caller has, and run its kernel."""
    os.setsid()
    for stream, number in zip(streams, range(3), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = ["ipykernel_launcher", *asked["arguments"]]
    sys.modules["numpy"].random.seed()
    sys.modules["ipykernel.kernelapp"].launch_new_instance()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])))
    else:
        ask()
