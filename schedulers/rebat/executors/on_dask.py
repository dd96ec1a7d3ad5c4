# SPDX-License-Identifier: Apache-2.0
"""Tasks on a Dask cluster: an existing cluster, or a new cluster on this machine.

A Dask worker executes any code that it receives. Therefore, the new cluster listens on 127.0.0.1,
and connections need TLS keys in both directions. Each start creates new keys, which exist only in
the memory of the processes of the cluster.
"""

from __future__ import annotations

import logging
import queue
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from rebat.core.errors import InputError, RebatError, not_installed
from rebat.executors.resources import Lost, R, Resources, T, Work, reason

SILENT = logging.CRITICAL + 1
"""Log level that hides all messages. An interrupted cluster would otherwise print many."""
WATCH_S = 1.0


def on_dask(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Yield outcomes as they complete, from an existing Dask cluster or a new local cluster."""
    with _client(min(resources.workers, max(len(tasks), 1)), resources.address) as client:
        yield from outcomes(client, tasks, work, lost)


def outcomes(
    client: Any,
    tasks: Sequence[T],
    work: Work[T, R],
    lost: Lost[T, R],
    watch: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """Yield outcomes as they complete. Call ``watch`` after each outcome and once a second."""
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
"""Value that represents an outcome that was lost with its worker."""


def _outcome(future: Any, task: T, lost: Lost[T, R], left: int, watch: Callable[[], None]) -> Any:
    """Return the outcome of a completed task.

    If the worker dies before the outcome is fetched, Dask repeats the task on another worker.
    During this time, the function calls ``watch``.
    """
    while future.status in ("finished", "pending"):
        try:
            outcome = future.result(timeout=WATCH_S)
            future.release()
            return outcome
        except TimeoutError:
            watch()
        except Exception:
            if future.status != "error":
                raise
    if future.status == "cancelled" and future.client.status == "running":
        return _DROPPED
    if future.status != "error":
        raise RebatError(
            f"the connection to the Dask cluster was lost; {left + 1} runs are not complete"
        )
    outcome = lost(task, _lost_reason(future.exception()))
    future.release()
    return outcome


def _lost_reason(error: BaseException) -> str:
    from distributed.scheduler import KilledWorker

    return "the worker died several times" if isinstance(error, KilledWorker) else reason(error)


@contextmanager
def _client(workers: int, address: str | None) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise not_installed("Dask", "executor dask") from None
    if address is not None:
        try:
            client = Client(address, timeout="20s", set_as_default=False)
        except (OSError, ValueError) as error:
            problem = f"cannot reach a Dask scheduler: {error}"
            expected = "an address like tcp://127.0.0.1:8786"
            raise InputError(problem, address, expected) from None
        with client:
            yield client
        return
    with _own_cluster(workers) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _own_cluster(workers: int) -> Iterator[Any]:
    """Run a cluster on this machine that only this process can use. Its files are private."""
    from distributed import LocalCluster
    from distributed.security import Security

    try:
        keys = Security.temporary()
    except ImportError:
        raise not_installed("cryptography", "executor dask") from None
    with tempfile.TemporaryDirectory(prefix="rebat-dask-") as scratch, without_pages():
        with out_of_reach():
            try:
                cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    protocol="tls://",
                    security=keys,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    local_directory=scratch,
                    silence_logs=SILENT,
                )
            except (RuntimeError, OSError) as error:  # such as a worker that was killed
                raise RebatError(
                    "the Dask cluster did not start, and no run has begun; start the command again "
                    f"({str(error).rstrip('.')})"
                ) from None
        with cluster:
            yield cluster


@contextmanager
def without_pages() -> Iterator[None]:
    """Disable the logs of tornado and Dask, and the web pages of Dask's HTTP servers.

    The pages require no keys. The logs are disabled because tornado and Dask report broken
    connections as errors while a cluster is closed, and for a moment afterwards.
    """
    from dask import config

    for name in ("tornado.application", "distributed"):
        logging.getLogger(name).setLevel(SILENT)
    servers = ("scheduler", "worker")
    with config.set({f"distributed.{server}.http.routes": [] for server in servers}):
        yield


@contextmanager
def out_of_reach() -> Iterator[None]:
    """Block Ctrl-C and SIGHUP in processes and threads that are started in the block.

    Terminals send these signals to all processes of a command, but only the main thread of this
    process should handle them. If a signal arrives during the block, the main thread receives it at
    the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()  # start this first, because its start unblocks SIGINT
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
