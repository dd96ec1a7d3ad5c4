"""Empty nodes sleep, and are woken when somebody waits: what compaction saves of energy.

"Or to reduce power consumption by switching down or reducing the voltage of empty nodes" (section
3.3.4 of Rodríguez-Pascual et al. 2019). A node that sleeps is drained; to wake up takes it a while.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebat.core.cores import processors_of
from rebat.core.nodes import NodeSet
from rebat.core.proposals import Drain, Proposal, Undrain, Wake
from rebat.policies.base import News, View

TAG, WHY = "sleep", "sleep"

LOOK_AGAIN_US = 1_000_000
"""What has not started after so long does not fit on what is free."""


class Sleep:
    """Puts nodes to sleep, and wakes them.

    Parameters
    ----------
    after_us : int
        How long a node is empty before it sleeps.
    boot_us : int
        How long it takes to wake up.
    """

    def __init__(self, after_us: int, boot_us: int) -> None:
        self._after_us, self._boot_us = after_us, boot_us
        self._empty_us: dict[int, int] = {}
        self._asleep: set[int] = set()
        self._ready_us: dict[int, int] = {}
        self._asked_us = -1

    def react(self, view: View, news: News) -> Iterator[Proposal]:
        """Take those into service that are up, wake others, and put more to sleep."""
        cores = view.machine.cores_per_node
        up = [node for node, at_us in self._ready_us.items() if at_us <= view.now_us]
        for node in up:
            del self._ready_us[node]
        back = self._cores(up, cores).where(view.machine.drained)
        if back.size:
            yield Undrain(back)
        for one in news.ended:  # it may have begun after this was asked last
            for node in {core // cores for core in one.nodes}:
                self._empty_us.pop(node, None)
        yield from self._wake(view, cores)
        yield from self._put_to_sleep(view, cores)

    def _cores(self, nodes: list[int], cores: int) -> NodeSet:
        return processors_of(NodeSet.of(nodes), cores)

    def _wake(self, view: View, cores: int) -> Iterator[Proposal]:
        """As many nodes as those that wait lack; the lowest first.

        What came just now may start on what is free; what waits on in spite of that needs more.
        """
        if view.waiting and self._asleep:  # they are queued after nobody was asked
            yield Wake(view.now_us + 60 * LOOK_AGAIN_US, TAG)
        if not view.queue or not self._asleep:
            return
        waiting = view.queue.values()
        lacking = sum(attempt.n_nodes for attempt in waiting) - view.n_free
        tried = sum(a.n_nodes for a in waiting if a.queued_us < view.now_us)
        lacking = max(lacking, tried) - len(self._ready_us) * cores
        count = min(len(self._asleep), -(-lacking // cores))
        if count <= 0 and not self._ready_us:
            yield Wake(view.now_us + LOOK_AGAIN_US, TAG)
        for node in sorted(self._asleep)[: max(0, count)]:
            self._asleep.remove(node)
            self._ready_us[node] = view.now_us + self._boot_us
        if count <= 0:
            return
        if self._boot_us:
            yield Wake(view.now_us + self._boot_us, TAG)
        else:
            woken = [node for node in self._ready_us if self._ready_us[node] == view.now_us]
            self._ready_us.clear()
            yield Undrain(self._cores(woken, cores).where(view.machine.drained))

    def _put_to_sleep(self, view: View, cores: int) -> Iterator[Proposal]:
        machine = view.machine
        drained = machine.drained
        grid = (machine.tags >= 0) | machine.down | drained
        empty = set(np.flatnonzero(~grid.reshape(-1, cores).any(axis=1)).tolist())
        self._empty_us = {node: self._empty_us.get(node, view.now_us) for node in empty}
        still = set(np.flatnonzero(drained.reshape(-1, cores).any(axis=1)).tolist())
        self._asleep &= still
        if view.queue or view.stopping:
            return
        due = [n for n, at_us in self._empty_us.items() if view.now_us - at_us >= self._after_us]
        if due:
            self._asleep.update(due)
            for node in due:
                del self._empty_us[node]
            yield Drain(self._cores(due, cores), WHY)
        if self._empty_us and (view.running or not view.all_submitted):
            next_us = max(min(self._empty_us.values()) + self._after_us, view.now_us + 1)
            if next_us != self._asked_us:
                self._asked_us = next_us
                yield Wake(next_us, TAG)
