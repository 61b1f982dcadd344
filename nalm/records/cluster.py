"""Ensembles on several machines, through a Dask scheduler that was started beforehand.

Dask (``pip install 'nalm[cluster]'``) is imported only where a scheduler is named.
"""

from __future__ import annotations

import asyncio
import queue
import re
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nalm.records.groups import News
from nalm.records.workers import Team, cores

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["check_scheduler", "dask_team"]

ANSWER_SECONDS = 5.0


def check_scheduler(address: str) -> None:
    """Raise a ``ValueError`` of one sentence unless a Dask scheduler answers at this address; ``""`` stands
    for none and is allowed.
    """
    if address:
        with _connected(address):
            pass


@contextmanager
def dask_team(address: str) -> Iterator[tuple[Team, int]]:
    """Whoever works for the scheduler at this address, and how many ensembles they may train at once.

    What a worker was training when it died is trained by another one, from its checkpoint where both see the
    folder of results. After four deaths of its workers (Dask's ``allowed-failures``) an ensemble is taken to
    be their cause and fails.
    """
    with _connected(address) as client:
        workers = len(client.nthreads())
        if not workers:
            warnings.warn(
                f"The Dask scheduler at {address} has no workers yet; "
                "training starts as soon as there is one.",
                stacklevel=4,
            )
        topic = f"nalm-{uuid.uuid4().hex}"
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        client.subscribe_topic(topic, lambda event: told.put(event[1]))
        executor = client.get_executor(pure=False)
        try:
            yield Team(executor, _Tell(topic), told), max(workers, cores())
        finally:
            executor.shutdown(wait=False)


@dataclass(frozen=True)
class _Tell:
    """Tells news from within a Dask task; stops the task when its client has gone or does not want it any
    more.
    """

    topic: str

    def __call__(self, news: News) -> None:
        from distributed import get_worker

        worker = get_worker()
        task = worker.state.tasks.get(worker.get_current_task())
        if task is None or task.state == "cancelled":
            raise RuntimeError("Nobody waits for this training any more.")
        worker.log_event(self.topic, news)


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    if not re.fullmatch(r"(tcp|tls)://[^\s/:]+:\d{1,5}|(tcp|tls)://\[[0-9a-fA-F:.]+\]:\d{1,5}", address):
        raise ValueError(
            f"scheduler={address!r} is not the address of a Dask scheduler; it looks like 'tcp://host:8786', "
            "and '' stands for none."
        )
    from nalm.extras import cluster as _  # noqa: F401

    # isort: split
    from distributed import Client

    with ThreadPoolExecutor(1) as thread:  # where no event loop is running, as there is in a notebook
        if not thread.submit(asyncio.run, _answers(address)).result():
            reason = f"no Dask scheduler answers there within {ANSWER_SECONDS:g} seconds"
            raise ValueError(f"scheduler={address!r}: {reason}; start one with 'dask scheduler'.")
    with Client(address, timeout=ANSWER_SECONDS, set_as_default=False) as client:
        yield client


async def _answers(address: str) -> bool:
    """Whether something speaks Dask at this address; a client would wait for ever for something that listens
    and is silent.
    """
    from distributed import Security
    from distributed.comm import connect

    try:
        comm = await asyncio.wait_for(
            connect(address, **Security().get_connection_args("client")), ANSWER_SECONDS
        )
    except Exception:  # what does not speak Dask may answer anything
        return False
    await comm.close()
    return True
