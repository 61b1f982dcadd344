"""Sweeps on a Dask scheduler whose workers are threads here, and what is refused; `tests/on_dask.py` has real
processes and kills them.
"""

import socket

import pytest
from companion.experiment.parameters import check
from distributed import LocalCluster
from on_dask import EXPERIMENT, ask, check_rows_and_progress, runs

from nalm import extras
from nalm.records import check_scheduler, cluster, memoised, run_all


@pytest.fixture(autouse=True)
def one_ensemble_per_structure(monkeypatch):
    monkeypatch.setattr(memoised, "cores", lambda: 1)
    monkeypatch.setattr(cluster, "cores", lambda: 1)


@pytest.fixture(scope="module")
def scheduler():
    """The address of a scheduler with two workers."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as started:
        yield started.scheduler_address


def test_all_rows_arrive_once_and_progress_is_shown(scheduler, tmp_path, capfd):
    check_rows_and_progress(tmp_path, scheduler, capfd)


def test_an_error_of_a_worker_arrives_here(scheduler, tmp_path):
    with pytest.raises(ValueError, match="Device 'cuda:99' is not there"):
        run_all(runs(1), EXPERIMENT, results=str(tmp_path), device="cuda:99", scheduler=scheduler)
    assert (
        check(
            {
                "__annotations__": {"scheduler": str, "device": str},
                "scheduler": scheduler,
                "device": "cuda:99",
            }
        ).scheduler
        == scheduler
    )


@pytest.fixture
def silent():
    """The address of something that listens and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


def refused(address, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        check({"__annotations__": {"scheduler": str}, "scheduler": address})
    assert "\n" not in str(caught.value) and "scheduler=" in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["nowhere", "127.0.0.1:8786", "tcp://host", "http://host:8786", "tcp://host:port", "tcp://a b:1"],
)
def test_what_is_no_address_is_refused(address):
    refused(address, "is not the address of a Dask scheduler; it looks like 'tcp://host:8786'")


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch, silent, tmp_path):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    refused(silent, "no Dask scheduler answers there within 0.5 seconds")
    refused("tcp://127.0.0.1:9", "no Dask scheduler answers")
    with pytest.raises(ValueError, match="no Dask scheduler answers"):
        ask(tmp_path, runs(1), silent)


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"distributed, which is not .*: pip install 'nalm\[cluster\]'"):
        check_scheduler("tcp://127.0.0.1:8786")


def test_no_scheduler_is_fine():
    assert check({"__annotations__": {"scheduler": str}, "scheduler": ""}).scheduler == ""
