# SPDX-License-Identifier: Apache-2.0
"""Tasks in threads of this process, which share its memory.

Only code that releases the interpreter lock, like the compiled loop, runs at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from queue import SimpleQueue
from typing import Any

from rebat.core.errors import RebatError
from rebat.executors.processes import on_processes
from rebat.executors.resources import Lost, R, Resources, T, Work, reason

AHEAD = 2
"""Number of tasks per thread that are submitted before their turn, so that no thread waits."""


def on_threads(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Yield outcomes as they complete. When closed, wait for the tasks that have begun."""
    waiting, running = iter(tasks), 0
    # An interrupt within `concurrent.futures.wait` can leave the lock of a future acquired.
    ended = SimpleQueue[tuple[Any, BaseException | None]]()

    def perform(task: T) -> None:
        try:
            ended.put((work(task), None))
        except BaseException as error:
            ended.put((None, error))

    pool = ThreadPoolExecutor(max(1, resources.workers), "rebat")
    try:
        while True:
            for task in islice(waiting, AHEAD * resources.workers - running):
                pool.submit(perform, task)
                running += 1
            if not running:
                break
            outcome, error = ended.get()
            running -= 1
            if error:
                raise RebatError(reason(error))
            yield outcome
    finally:
        pool.shutdown(cancel_futures=True)


def on_this_machine(
    tasks: Sequence[T],
    work: Work[T, R],
    lost: Lost[T, R],
    resources: Resources,
    in_thread: Callable[[T], bool],
) -> Generator[R]:
    """Yield outcomes as they complete: of some tasks from threads, then of others from processes.

    ``in_thread`` returns whether a thread performs a task.
    """
    in_threads = [task for task in tasks if in_thread(task)]
    others = [task for task in tasks if not in_thread(task)]
    for execute, part in ((on_threads, in_threads), (on_processes, others)):
        with closing(execute(part, work, lost, resources)) as outcomes:
            yield from outcomes
