# SPDX-License-Identifier: Apache-2.0
"""Executors: a function over many tasks, on processes of this machine, on Dask, or right here.

Each gives an outcome per task, as they finish. The first two survive a worker that dies: its task
is tried once more, then handed to ``lost``, and the rest goes on.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.context import SpawnContext
from typing import Any, Generic, NamedTuple, TypeVar

from rebat.core.errors import InputError, RebatError, one_line, unknown_name

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T], R]
Lost = Callable[[T, str], R]
"""(task, reason) -> outcome of a task whose worker died."""

TRIES = 2
"""How often a task may cost a worker its life."""


class _Worker(Generic[T]):
    """A process that does one task at a time, and this side of the pipe to it."""

    def __init__(self, context: SpawnContext, work: Work[T, Any]) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        # It is not to be interrupted before it says that it is not to be: while it is imported.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _without_main():
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.task: T | None = None
        self.tries = 0

    def give(self, task: T, tries: int) -> None:
        """Send a task; a dead worker is noticed when its answer is read."""
        self.task, self.tries = task, tries
        with suppress(OSError):
            self.pipe.send(task)

    def death(self) -> str:
        """Reap the process; say how it died."""
        self.process.join(10)
        code = self.process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self.process.terminate()
        self.process.join(10)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes started within do not run the user's script again: no task is of its making.

    What multiprocessing tells a process of the main module goes by these two names, see
    `multiprocessing.spawn.get_preparation_data`; without them it is as in a notebook.
    """
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main.pop("__spec__")
        main.update(hidden)


def _serve(pipe: Any, work: Work[Any, Any]) -> None:
    """A worker's life: tasks in, outcomes out, until nobody is there any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    threading.Thread(target=_die_with_parent, daemon=True).start()
    gc.freeze()  # all that was imported stays: collections need not look at it
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            pipe.send(_answer(work, task))


class _Trouble(NamedTuple):
    """What a worker sends in place of an outcome when nothing can be written, say."""

    text: str


def _answer(work: Work[Any, Any], task: Any) -> Any:
    try:
        return work(task)
    except Exception as error:
        return _Trouble(_reason(error))


def _die_with_parent() -> None:
    """A parent that was killed must leave no worker behind."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def on_processes(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], workers: int, address: str | None
) -> Iterator[R]:
    """Outcomes as they come, from fresh processes of this machine; ``address`` is ignored."""
    context = get_context("spawn")
    waiting = deque((task, 1) for task in tasks)
    crew: list[_Worker[T]] = []
    try:
        for _ in range(min(workers, len(tasks))):
            crew.append(_Worker(context, work))
            crew[-1].give(*waiting.popleft())
        while crew:
            ready = connection.wait([worker.pipe for worker in crew])
            for worker in [worker for worker in crew if worker.pipe in ready]:
                yield from _collect(worker, crew, waiting, context, work, lost)
    finally:
        for worker in crew:
            worker.stop()


def _collect(
    worker: _Worker[T], crew: list[_Worker[T]], waiting: deque[tuple[T, int]],
    context: SpawnContext, work: Work[T, R], lost: Lost[T, R],
) -> Iterator[R]:  # fmt: skip
    """Take a worker's outcome, or its death, and give it or its successor the next task."""
    task = worker.task
    assert task is not None
    try:
        outcome = worker.pipe.recv()
        if isinstance(outcome, _Trouble):
            raise RebatError(outcome.text)
        yield outcome
    except (EOFError, OSError):
        crew.remove(worker)
        reason = worker.death()
        worker.stop()
        if worker.tries < TRIES:
            waiting.appendleft((task, worker.tries + 1))
        else:
            yield lost(task, f"the worker died ({reason}), {TRIES} times")
        if not waiting:
            return
        worker = _Worker(context, work)
        crew.append(worker)
    if waiting:
        worker.give(*waiting.popleft())
    else:
        crew.remove(worker)
        worker.stop()


def inline(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], workers: int, address: str | None
) -> Iterator[R]:
    """Outcomes one after the other in this process: for debuggers, profilers and tests."""
    return map(work, tasks)


def on_dask(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], workers: int, address: str | None
) -> Iterator[R]:
    """Outcomes as they come, from the Dask cluster at ``address``, or from one of our own.

    Raises
    ------
    InputError
        When Dask is not installed or the cluster cannot be reached.
    RebatError
        When the cluster is lost on the way; what was finished is kept.
    """
    with _client(min(workers, max(len(tasks), 1)), address) as client:
        from distributed import as_completed

        of = {client.submit(work, task, pure=False, retries=0): task for task in tasks}
        for future in as_completed(list(of), loop=client.loop):
            task = of.pop(future)
            if future.status == "finished":
                yield future.result()
            elif future.status == "error":
                yield lost(task, _lost_reason(future.exception()))
            else:
                raise RebatError(f"the Dask cluster is gone; {len(of) + 1} runs are left")
            future.release()


def _lost_reason(error: BaseException) -> str:
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return "the worker died, several times"
    return _reason(error)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"cannot write: {error.strerror or error}"
    return one_line(error)


@contextmanager
def _client(workers: int, address: str | None) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
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
    with _out_of_reach():
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL + 1,  # a cluster that is interrupted has a lot to say
        )  # fmt: skip
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _out_of_reach() -> Iterator[None]:
    """Processes and threads started within never see Ctrl-C: the main thread says what it means.

    It sees one that comes meanwhile at the end of the block.
    """
    resource_tracker.ensure_running()  # otherwise started within, and that unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


Executor = Callable[[Sequence[Any], Work[Any, Any], Lost[Any, Any], int, str | None], Iterator[Any]]
EXECUTORS: dict[str, Executor] = {
    "processes": on_processes,
    "dask": on_dask,
    "inline": inline,
}


def executor(name: str) -> Executor:
    """The executor of that name; an unknown one lists the choices."""
    if name not in EXECUTORS:
        raise unknown_name("executor", name, EXECUTORS)
    return EXECUTORS[name]
