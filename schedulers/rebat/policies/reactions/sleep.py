# SPDX-License-Identifier: Apache-2.0
"""Sleep of empty nodes, and wake-up when jobs wait. With sleep, compaction saves energy.

"Or to reduce power consumption by switching down or reducing the voltage of empty nodes" (section
3.3.4 of Rodríguez-Pascual et al. 2019). A node that sleeps or boots is drained with the reason
'sleep' or 'boot'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np
import numpy.typing as npt

from rebat.contract import Drain, News, Proposal, Undrain, View, Wake
from rebat.core.attempts import Attempt
from rebat.core.cores import processors_of
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.policies.context import Context, ReactionOptions
from rebat.policies.partitions import places_of
from rebat.policies.reactions.periodic import changes_in
from rebat.policies.variants import number

SLEEP, BOOT = "sleep", "boot"
"""Reasons of the drains."""

BUSY = -1

PATIENCE_US = 1_000_000
"""If no job starts and no node boots for this time (us), free cores do not help waiting jobs."""

LONGER_US = 60_000_000
"""Time between checks of jobs for which nodes are held (microseconds)."""

Nodes = npt.NDArray[np.int64]


class Sleep:
    """A reaction that puts empty nodes to sleep, and wakes nodes for queued jobs."""

    def __init__(self, options: SleepOptions, context: Context) -> None:
        self._after_us, self._boot_us = to_us(options.sleep), to_us(options.boot)
        self._partitions = context.partitions
        self._since_us: Nodes | None = None  # when each node became empty; BUSY if it is in use
        self._ready_us: dict[int, int] = {}
        self._settled_us = self._call_us = 0

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Put booted nodes into service, wake nodes, and put empty nodes to sleep."""
        self._note_empty(view, news)
        changed = changes_in(news)
        for step in (self._begin_service, self._wake, self._put_to_sleep):
            for proposal in step(view):
                changed = True
                yield proposal
        next_us = self._next_us(view, changed)
        if next_us > view.now_us and not view.now_us < self._call_us <= next_us:
            self._call_us = next_us
            yield Wake(next_us, SLEEP)

    def _next_us(self, view: View, changed: bool) -> int:
        """Return the time of the next call if there are no events. Return 0 if no call is needed.

        After a change, the next call follows soon: jobs start only after this reaction has been
        called.
        """
        assert self._since_us is not None
        if not (view.running or view.queue or view.waiting) and view.all_submitted:
            return 0
        times = [*self._ready_us.values()]
        empty = self._since_us[self._since_us != BUSY]
        due_us = int(empty.min()) + self._after_us if len(empty) else 0
        if due_us > view.now_us:
            times.append(due_us)
        elif changed and len(empty):
            times.append(view.now_us + PATIENCE_US)
        if (view.queue or view.waiting) and len(self._asleep(view)):
            if changed:
                times.append(view.now_us + PATIENCE_US)
            if view.waiting:  # a policy is not informed when held jobs are requeued
                times.append(view.now_us + LONGER_US)
        return min(times, default=0)

    def _note_empty(self, view: View, news: News) -> None:
        """Record when each empty node became empty."""
        machine, cores = view.machine, view.machine.cores_per_node
        if self._since_us is None:
            self._since_us = np.full(view.n_nodes // cores, view.now_us, dtype=np.int64)
        for job in news.ended:  # a job may have started and ended since the previous call
            self._since_us[np.unique(job.nodes.ids // cores)] = BUSY
        used = (machine.tags >= 0) | machine.down | machine.drained
        empty = ~used.reshape(-1, cores).any(axis=1)
        self._since_us[empty & (self._since_us == BUSY)] = view.now_us
        self._since_us[~empty] = BUSY

    def _cores(self, view: View, nodes: Nodes) -> NodeSet:
        return processors_of(NodeSet.of_sorted(np.sort(nodes)), view.machine.cores_per_node)

    def _begin_service(self, view: View) -> Iterator[Proposal]:
        up = [node for node, at_us in self._ready_us.items() if at_us <= view.now_us]
        for node in up:
            del self._ready_us[node]
        if up:
            self._settled_us = view.now_us
            yield Undrain(self._cores(view, np.array(up)), BOOT)

    # ---- waking

    def _wake(self, view: View) -> Iterator[Proposal]:
        """Wake the sleeping nodes that waiting jobs need, the lowest numbers first."""
        if not (view.queue or view.waiting):
            return
        asleep = self._asleep(view)
        if not len(asleep):
            return
        lacking = self._lacking(view)
        nodes = asleep[: -(-lacking // view.machine.cores_per_node)] if lacking > 0 else asleep[:0]
        if len(nodes):
            self._settled_us = view.now_us
            cores = self._cores(view, nodes)
            if self._boot_us:
                self._ready_us |= dict.fromkeys(nodes.tolist(), view.now_us + self._boot_us)
                yield Drain(cores, BOOT)
            yield Undrain(cores, SLEEP)

    def _asleep(self, view: View) -> Nodes:
        """Return the sleeping nodes that waiting jobs may use, in ascending order."""
        cores = view.machine.cores_per_node
        mine = view.machine.drained_for(SLEEP).reshape(-1, cores).all(axis=1)
        if self._partitions and view.queue:
            allowed = np.zeros(view.n_nodes, dtype=np.bool_)
            for job_id in {attempt.job_id for attempt in view.queue.values()}:
                for place in places_of(view, self._partitions, job_id):
                    allowed |= place
            mine &= allowed.reshape(-1, cores).any(axis=1)
        nodes: Nodes = np.flatnonzero(mine)
        return nodes

    def _lacking(self, view: View) -> int:
        """Return the number of cores that waiting jobs need beyond the free and booting cores.

        If no job has started and no node has booted for PATIENCE_US, the waiting jobs do not fit on
        the free cores. In this case, all cores for them must come from sleeping nodes.
        """
        waiting = view.queue.values()
        coming = len(self._ready_us) * view.machine.cores_per_node
        lacking = _cores_of(waiting) - view.n_free - coming
        before_us = view.now_us - PATIENCE_US
        if lacking <= 0 and not coming and self._settled_us <= before_us:
            lacking = _cores_of(attempt for attempt in waiting if attempt.queued_us <= before_us)
        return lacking

    # ---- sleeping

    def _put_to_sleep(self, view: View) -> Iterator[Proposal]:
        assert self._since_us is not None
        empty = np.flatnonzero(self._since_us != BUSY)
        due = empty[view.now_us - self._since_us[empty] >= self._after_us]
        calm = not (view.queue or view.stopping)
        if calm and len(due):
            self._since_us[due] = BUSY
            yield Drain(self._cores(view, due), SLEEP)


def _cores_of(attempts: Iterable[Attempt]) -> int:
    return sum(attempt.n_nodes for attempt in attempts)


class SleepOptions(ReactionOptions, frozen=True, tag="sleep"):
    """Put empty nodes to sleep, and wake them for waiting jobs."""

    kind = Sleep

    sleep: Annotated[
        float, number(0, 1e9, "seconds", "How long a node is empty before it sleeps, in seconds.")
    ] = 600.0
    boot: Annotated[float, number(0, 1e9, "seconds", "Time to wake a node, in seconds.")] = 120.0
