# SPDX-License-Identifier: Apache-2.0
"""Tasks with simulations on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from rebat.executors.resources import Lost, R, Resources, Work
from rebat.executors.threads import on_this_machine
from rebat.runs.simulating import in_threads
from rebat.runs.unit import Unit


class UnitTask(Protocol):
    """A task that simulates a unit."""

    @property
    def unit(self) -> Unit: ...


T = TypeVar("T", bound=UnitTask)


def perform_all(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], workers: int
) -> Iterator[R]:
    """Yield outcomes as they complete. With one worker, perform the tasks one after another here.

    With several workers, runs on the compiled loop are performed in threads where this is faster,
    and others in processes.
    """
    if workers == 1:
        yield from map(work, tasks)
        return
    keys = in_threads((task.unit for task in tasks), workers)
    resources = Resources(workers=workers)
    yield from on_this_machine(tasks, work, lost, resources, lambda task: task.unit.key in keys)
