"""What holds for every test: one thread each, none skipped but for want of a GPU, no chapter left out."""

import gc
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent


def gold(folder: str) -> str | None:
    """The linker gold, where there is one that reads torch's libraries."""
    found, torch = shutil.which("ld.gold"), find_spec("torch")
    if found is None or torch is None or torch.origin is None or shutil.which("g++") is None:
        return None
    libraries = [f"-L{Path(torch.origin).parent / 'lib'}", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    nothing = ["-x", "c++", os.devnull, "-o", str(Path(folder, "nothing.so"))]
    command = ["g++", "-shared", "-fuse-ld=gold", *nothing, *libraries]
    return None if subprocess.run(command, capture_output=True).returncode else found


if "PYTEST_XDIST_WORKER" not in os.environ:  # workers have that of the process that started them
    OWN = tempfile.TemporaryDirectory(prefix="nalm-tests-")  # in place of the folders of who runs the tests
    os.environ["NALM_TESTS"] = OWN.name
    if found := gold(OWN.name):  # links compiled code in half the time
        (linker := Path(OWN.name, "linker")).mkdir()
        (linker / "ld").symlink_to(found)
        known = os.environ.get("COMPILER_PATH")
        os.environ["COMPILER_PATH"] = os.pathsep.join([str(linker), *([known] if known else [])])

# Kernels and the book's build are started by tests and inherit all of this.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS"):
    os.environ.setdefault(name, "1")
# The GNU C library keeps what is freed: to ask the system for it again takes a twentieth of the time.
for name, size in {"MMAP_THRESHOLD": 2**29, "TRIM_THRESHOLD": 2**30, "TOP_PAD": 2**26}.items():
    os.environ.setdefault(f"MALLOC_{name}_", str(size))
os.environ["XDG_DATA_HOME"] = os.environ["IPYTHONDIR"] = os.environ["NALM_TESTS"]
os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # the kernel `python3` is that of this environment
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred processes import what the first has compiled
os.environ.pop("MPLBACKEND", None)  # kernels draw inline; without a screen everything else uses Agg
os.environ.pop("DISPLAY", None)
os.environ.pop("WAYLAND_DISPLAY", None)


# What is imported and collected stays; looking through it for garbage takes a quarter of that time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)  # looking for garbage took up to a tenth of the time
    gc.enable()


def pytest_collect_file(file_path: Path) -> None:
    """Load a module before its examples are collected: one that is named by itself pytest would load a second
    time, beside that which its own package imports.
    """
    for root, package in ((ROOT, "nalm"), (ROOT / "book", "companion")):
        if file_path.suffix == ".py" and root / package in file_path.parents:
            name = ".".join(file_path.relative_to(root).with_suffix("").parts)
            import_module(name.removesuffix(".__init__"))


class NeedsGPU(pytest.skip.Exception):
    """The one reason for which a test may be left out."""


@cache
def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not has_gpu():
        raise NeedsGPU("needs a GPU")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A skipped test has tested nothing: it fails, unless it needs a GPU where there is none."""
    report = (yield).get_result()
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and not (call.excinfo and call.excinfo.errisinstance(NeedsGPU))
    ):
        report.outcome = "failed"
        report.longrepr = f"Skipped, but every test must run: {call.excinfo.value if call.excinfo else ''}"


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """A module that skips itself fails as well."""
    report = (yield).get_result()
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, but every test must run: {report.longrepr}"


class EveryChapter:
    """Fails a run over the book that left a notebook out."""

    def __init__(self) -> None:
        self.tested: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tested.add(report.nodeid.partition("::")[0])

    def left_out(self) -> list[str]:
        notebooks = (
            path for path in (ROOT / "book").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
        )
        return sorted({path.relative_to(ROOT).as_posix() for path in notebooks} - self.tested)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.left_out() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self.left_out():
            terminalreporter.write_line(f"FAILED {name} - no cell of this notebook was tested", red=True)


class NotRun:
    """Names the tests that need a GPU where there is none, and counts them in the last line."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.names.append(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in sorted(self.names):
            terminalreporter.write_line(f"NOT RUN {name} - needs a GPU")

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        if self.names:
            said = (
                "1 test needs a GPU and was not run"
                if len(self.names) == 1
                else f"{len(self.names)} tests need a GPU and were not run"
            )
            config.get_terminal_writer().line(said)


class WarmKernels:
    """Has the process that the kernels of chapters are forked from."""

    def __init__(self) -> None:
        import warm

        self.process, self.said = warm.start(), warm.SAID

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write(self.said.read_text())

    def pytest_unconfigure(self) -> None:
        self.process.terminate()
        self.process.wait()


def pytest_configure(config: pytest.Config) -> None:
    if (book := ROOT / "book").exists():
        import kernels

        kernels.wait_less()
    if hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(NotRun())
    tested = {Path(arg.partition("::")[0]).resolve() for arg in config.args}
    if config.option.collectonly or not book.exists():
        return
    if any(book.is_relative_to(path) or path.is_relative_to(book) for path in tested):
        config.pluginmanager.register(WarmKernels())
    if tested & {ROOT, book} and not config.option.keyword:
        config.pluginmanager.register(EveryChapter())
