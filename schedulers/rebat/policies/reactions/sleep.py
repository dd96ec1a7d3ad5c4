# SPDX-License-Identifier: Apache-2.0
"""Empty nodes sleep, and are woken when somebody waits: what compaction saves of energy.

"Or to reduce power consumption by switching down or reducing the voltage of empty nodes" (section
3.3.4 of Rodríguez-Pascual et al. 2019). A node that sleeps, or boots, is drained for that.
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
"""What nodes are drained for."""

BUSY = -1

PATIENCE_US = 1_000_000
"""What has not started after so long, and with nothing on its way, does not fit on what is free."""

LONGER_US = 60_000_000
"""How often is looked at those for whom nodes are held."""

Nodes = npt.NDArray[np.int64]


class Sleep:
    """Puts nodes to sleep, and wakes those that jobs in the queue may use."""

    def __init__(self, options: SleepOptions, context: Context) -> None:
        self._after_us, self._boot_us = to_us(options.sleep), to_us(options.boot)
        self._partitions = context.partitions
        self._since_us: Nodes | None = None  # since when each node is empty; BUSY: it is not
        self._ready_us: dict[int, int] = {}
        self._settled_us = self._call_us = 0

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Take those into service that are up, wake others, and put more to sleep."""
        self._note_empty(view, news)
        told = changes_in(news)
        for step in (self._begin_service, self._wake, self._put_to_sleep):
            for proposal in step(view):
                told = True
                yield proposal
        next_us = self._next_us(view, told)
        if next_us > view.now_us and not view.now_us < self._call_us <= next_us:
            self._call_us = next_us
            yield Wake(next_us, SLEEP)

    def _next_us(self, view: View, told: bool) -> int:
        """When there may be something to do though nothing else happens; 0: never.

        What is planned after this, in the same message, is looked at once more if anything was
        told.
        """
        assert self._since_us is not None
        if not (view.running or view.queue or view.waiting) and view.all_submitted:
            return 0
        dates = [*self._ready_us.values()]
        empty = self._since_us[self._since_us != BUSY]
        due_us = int(empty.min()) + self._after_us if len(empty) else 0
        if due_us > view.now_us:
            dates.append(due_us)
        elif told and len(empty):
            dates.append(view.now_us + PATIENCE_US)
        if (view.queue or view.waiting) and len(self._asleep(view)):
            if told:
                dates.append(view.now_us + PATIENCE_US)
            if view.waiting:  # they are queued in messages that tell of nothing
                dates.append(view.now_us + LONGER_US)
        return min(dates, default=0)

    def _note_empty(self, view: View, news: News) -> None:
        """Which nodes are empty, and since when."""
        machine, cores = view.machine, view.machine.cores_per_node
        if self._since_us is None:
            self._since_us = np.full(view.n_nodes // cores, view.now_us, dtype=np.int64)
        for one in news.ended:  # it may have begun after this was asked last
            self._since_us[np.unique(one.nodes.ids // cores)] = BUSY
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
        """As many nodes as those that wait lack; the lowest that they may use."""
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
        """Nodes that sleep and that somebody who waits may use, ascending."""
        cores = view.machine.cores_per_node
        mine = view.machine.drained_for(SLEEP).reshape(-1, cores).all(axis=1)
        if self._partitions and view.queue:
            allowed = np.zeros(view.n_nodes, dtype=np.bool_)
            for job_id in {attempt.job_id for attempt in view.queue.values()}:
                for place in places_of(view, self._partitions, job_id):
                    allowed |= place
            mine &= allowed.reshape(-1, cores).any(axis=1)
        found: Nodes = np.flatnonzero(mine)
        return found

    def _lacking(self, view: View) -> int:
        """How many cores those who wait lack beside what is free and what boots.

        Once nothing has changed for a while, those who still wait do not fit on what is free.
        """
        waiting = view.queue.values()
        coming = len(self._ready_us) * view.machine.cores_per_node
        lacking = _cores_of(waiting) - view.n_free - coming
        before_us = view.now_us - PATIENCE_US
        if lacking <= 0 and not coming and self._settled_us <= before_us:
            lacking = _cores_of(one for one in waiting if one.queued_us <= before_us)
        return lacking

    # ---- sleeping

    def _put_to_sleep(self, view: View) -> Iterator[Proposal]:
        """Those that were empty for long enough."""
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
    """Empty nodes sleep, and are woken for jobs that wait."""

    kind = Sleep

    sleep: Annotated[
        float, number(0, 1e9, "seconds", "Seconds that a node is empty before it sleeps.")
    ] = 600.0
    boot: Annotated[float, number(0, 1e9, "seconds", "Seconds that a node takes to wake up.")] = (
        120.0
    )
