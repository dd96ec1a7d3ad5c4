# SPDX-License-Identifier: Apache-2.0
"""Tasks on a Dask cluster: one that is there, or one of our own on this machine.

A worker runs whatever reaches it. Our own cluster listens on 127.0.0.1, and every connection needs
the keys of this start (TLS both ways), which exist in the memory of its processes only.
"""

from __future__ import annotations

import logging
import queue
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from rebat.core.errors import InputError, RebatError
from rebat.executors.resources import Lost, R, Resources, T, Work, reason

SILENT = logging.CRITICAL + 1
"""A cluster that is interrupted has a lot to say."""
WATCH_S = 1.0


def on_dask(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Iterator[R]:
    """Outcomes as they come, from the Dask cluster at an address, or from one of our own.

    Raises
    ------
    InputError
        When Dask is not installed or the cluster cannot be reached.
    RebatError
        When the cluster is lost on the way; what was finished is kept.
    """
    with _client(min(resources.workers, max(len(tasks), 1)), resources.address) as client:
        yield from outcomes(client, tasks, work, lost)


def outcomes(
    client: Any, tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R],
    watch: Callable[[], None] = lambda: None,
) -> Iterator[R]:  # fmt: skip
    """Yield outcomes as they complete; call ``watch`` after each one and once a second."""
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    of: dict[Any, T] = {}

    def submit(task: T) -> None:
        future = client.submit(work, task, pure=False, retries=0)
        of[future] = task
        future.add_done_callback(ended.put)

    for task in tasks:
        submit(task)
    while of:
        watch()
        try:
            future = ended.get(timeout=WATCH_S)
        except queue.Empty:
            continue
        task = of.pop(future)
        outcome = _outcome(future, task, lost, len(of), watch)
        if outcome is _DROPPED:
            submit(task)
        else:
            yield outcome


_DROPPED = object()
"""Stands for the outcome of a task that Dask dropped with the worker that had its result."""


def _outcome(future: Any, task: T, lost: Lost[T, R], left: int, watch: Callable[[], None]) -> Any:
    """What a task that ended gave.

    A worker may be gone before its outcome is fetched: Dask then has another one make it anew, for
    which ``watch`` must go on.
    """
    while future.status in ("finished", "pending"):
        try:
            found = future.result(timeout=WATCH_S)
            future.release()
            return found
        except TimeoutError:
            watch()
        except Exception:
            if future.status != "error":
                raise
    if future.status == "cancelled" and future.client.status == "running":
        return _DROPPED
    if future.status != "error":
        raise RebatError(f"the Dask cluster is gone; {left + 1} runs are left")
    found = lost(task, _lost_reason(future.exception()))
    future.release()
    return found


def _lost_reason(error: BaseException) -> str:
    from distributed.scheduler import KilledWorker

    return "the worker died, several times" if isinstance(error, KilledWorker) else reason(error)


@contextmanager
def _client(workers: int, address: str | None) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError("Dask is not installed", "executor dask", "rebat[campaign]") from None
    if address is not None:
        try:
            client = Client(address, timeout="20s", set_as_default=False)
        except (OSError, ValueError) as error:
            what = f"cannot reach a Dask scheduler: {error}"
            raise InputError(what, address, "like tcp://127.0.0.1:8786") from None
        with client:
            yield client
        return
    with _own_cluster(workers) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _own_cluster(workers: int) -> Iterator[Any]:
    """A cluster on this machine that accepts this process alone; its files are private too."""
    from distributed import LocalCluster
    from distributed.security import Security

    try:
        keys = Security.temporary()
    except ImportError:
        what = "cryptography is not installed"
        raise InputError(what, "executor dask", "rebat[campaign], or processes") from None
    with tempfile.TemporaryDirectory(prefix="rebat-dask-") as scratch, without_pages():
        with out_of_reach():
            cluster = LocalCluster(
                n_workers=workers, threads_per_worker=1, host="127.0.0.1", protocol="tls://",
                security=keys, dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False}, local_directory=scratch,
                silence_logs=SILENT,
            )  # fmt: skip
        with cluster:
            yield cluster


def without_pages() -> Any:
    """Dask's HTTP servers, which know no keys, serve nothing within the block."""
    from dask import config

    servers = ("scheduler", "worker")
    return config.set({f"distributed.{server}.http.routes": [] for server in servers})


@contextmanager
def out_of_reach() -> Iterator[None]:
    """Processes and threads started within never see Ctrl-C, nor SIGHUP, which terminals send to
    all processes of a command: the main thread says what they mean.

    It sees one that comes meanwhile at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()  # otherwise started below, and that unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
