"""Kernels that are forked are kernels of their own; here of a process that imports next to nothing."""

import importlib.util
import os
import re
import signal
import time
from pathlib import Path

import kernels
import pytest
from jupyter_client.manager import start_new_kernel
from nbval import kernel as of_nbval

SOURCE = (Path(__file__).parent / "warm.py").read_text()


@pytest.fixture
def warm(tmp_path, monkeypatch):
    """Starts the process that kernels are forked from; ends it."""
    started = []

    def warm(*modules):
        for name in ("NALM_TESTS", "XDG_DATA_HOME"):
            monkeypatch.setenv(name, str(tmp_path))
        file = tmp_path / "warm.py"
        file.write_text(
            re.sub(
                r"^MODULES = \[.*?^\]",
                f"MODULES = {['numpy', 'ipykernel.kernelapp', *modules]}",
                SOURCE,
                flags=re.DOTALL | re.MULTILINE,
            )
        )
        spec = importlib.util.spec_from_file_location("warm_copy", file)
        spec.loader.exec_module(module := importlib.util.module_from_spec(spec))
        started.append(module.start())
        return started[0]

    yield warm
    for process in started:
        process.terminate()
        process.wait()


@pytest.fixture
def kernel():
    """Starts kernels in a folder; ends them."""
    kernels = []

    def kernel(folder):
        folder.mkdir()
        kernels.append(
            start_new_kernel(
                startup_timeout=120,
                kernel_name="warm",
                cwd=str(folder),
                env=os.environ | {"WHOSE": folder.name},
            )
        )
        return kernels[-1]

    yield kernel
    for manager, client in kernels:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def said(client, code):
    """What a kernel prints, and the name of its error."""
    outputs = []
    reply = client.execute_interactive(
        code, timeout=60, output_hook=lambda message: outputs.append(message["content"].get("text", ""))
    )
    return "".join(outputs).strip() or reply["content"].get("ename")


ABOUT = (
    "import os, sys, numpy; print(os.getcwd(), os.environ['WHOSE'], '' in sys.path, sys.argv[1], "
    "numpy.random.rand(), os.getpid())"
)


def test_each_has_its_own(warm, kernel, tmp_path):
    warm()
    (_, first), (manager, second) = kernel(tmp_path / "a"), kernel(tmp_path / "b")
    found = [said(client, ABOUT).split() for client in (first, second)]
    assert [one[:4] for one in found] == [[str(tmp_path / name), name, "True", "-f"] for name in "ab"]
    assert found[0][4] != found[1][4]
    assert said(first, "mine = 1") is None and said(second, "mine") == "NameError"
    assert said(first, "json") == "NameError"  # imported, but not here
    second.execute("import time; time.sleep(60)")
    time.sleep(0.5)
    manager.interrupt_kernel()
    assert second.get_shell_msg(timeout=30)["content"]["ename"] == "KeyboardInterrupt"
    manager.shutdown_kernel(now=True)
    assert said(first, "print(mine)") == "1"  # the other one lives
    end = time.monotonic() + 30
    while (Path("/proc") / found[1][5]).exists():
        assert time.monotonic() < end, "the kernel outlives who asked for it"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "source",
    [
        "print('hello')",
        "import warnings; warnings.warn('old')",
        "import threading, time; threading.Thread(target=time.sleep, args=(30,), daemon=True).start()",
    ],
)
def test_an_import_that_shows_or_goes_on_is_noticed(warm, tmp_path, monkeypatch, source):
    (tmp_path / "loud.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert warm("loud").wait(timeout=60) == 1
    assert "what chapters import prints something or starts a thread" in (tmp_path / "said").read_text()


def test_it_ends_with_the_tests(warm):
    process = warm()
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == -signal.SIGTERM


def test_nbval_is_heard_at_once(warm, monkeypatch):
    """It asks again, a second later, if it was answered before it listened."""
    warm()
    asked, ask = [], kernels.Client.kernel_info
    monkeypatch.setattr(kernels.Client, "kernel_info", lambda client: asked.append(client) or ask(client))
    for _ in range(3):
        of_nbval.RunningKernel("warm").stop()
    assert len(asked) == 3 * 2  # once to be ready, once by nbval


def test_a_kernel_that_dies_is_not_waited_for(warm):
    process = warm()
    process.terminate()
    process.wait()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="The kernel died"):
        of_nbval.start_new_kernel(startup_timeout=300, kernel_name="warm")
    assert time.monotonic() - start < 60
