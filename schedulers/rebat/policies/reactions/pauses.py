# SPDX-License-Identifier: Apache-2.0
"""Paused jobs: if there are no replacement nodes, a job waits and keeps its surviving nodes.

Sections I and III of Prabhakaran, Neumann and Wolf 2018: "instead of resubmitting and restarting a
job, it can be paused until failed nodes are replaced". The session holds the surviving nodes. Idle
nodes are reserved while a job is paused, so that no plan uses them. When enough nodes are idle for
a paused job, the job continues. Paused jobs are tried in the order of their pauses. If a job needs
more nodes than are idle, the next job is tried. Without this rule, two jobs could wait for each
other's nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rebat.contract import Drain, Release, Start, Stop, Undrain, View, Wait, WaitingJob, When
from rebat.core.attempts import Cause, Running
from rebat.core.nodes import NodeSet
from rebat.policies.malleable.rules import SizeRule

Ints = npt.NDArray[np.int64]

PAUSED = "paused"
"""Reason of the drains of idle nodes while a job is paused."""


class Pauses:
    """The paused jobs: this class pauses jobs, reserves idle nodes for them, and continues them."""

    def __init__(self, rule: SizeRule) -> None:
        self._rule = rule

    def pause(self, view: View, failed: Running) -> Iterator[Stop]:
        """Stop an attempt and hold its surviving nodes. If no node survives, do nothing."""
        bad = view.machine.down | view.machine.drained
        if not failed.nodes.of_each(bad).all():
            yield Stop(failed.attempt.id, Cause.NODE_FAILURE, When.NOW, Wait(), "pause")

    @staticmethod
    def paused(view: View) -> dict[str, WaitingJob]:
        """Return the paused jobs by id, in the order of their stops."""
        return {job_id: job for job_id, job in view.waiting.items() if not job.on}

    def resume(self, view: View) -> Iterator[Undrain | Release | Start]:
        """Continue each paused job for which enough nodes are idle, in order."""
        for job_id, job in self.paused(view).items():
            own, idle = self._survivors(view, job), self._idle(view)
            shape = view.job(job_id).shape
            short = self._rule.least(shape, job.n_held + job.n_lost) - len(own)
            if not len(own):
                yield Release(job_id)  # if no held node is usable, the job waits in the queue
            elif len(idle) >= short:
                yield from self._continue(view, job_id, own, idle[: max(0, short)])

    def reserve(self, view: View) -> Iterator[Drain | Undrain]:
        """Reserve all idle nodes while a job is paused. If no job is paused, release them."""
        drained = np.flatnonzero(view.machine.drained_for(PAUSED))
        if self.paused(view):
            free = np.flatnonzero(view.machine.free)
            if len(free):
                yield Drain(NodeSet.of_sorted(free), PAUSED)
        elif len(drained):
            yield Undrain(NodeSet.of_sorted(drained), PAUSED)

    def _survivors(self, view: View, job: WaitingJob) -> Ints:
        if job.held is None:
            return np.empty(0, np.int64)
        nodes = job.held.nodes
        usable: Ints = nodes.ids[~nodes.of_each(view.machine.down | view.machine.drained)]
        return usable

    def _idle(self, view: View) -> Ints:
        machine = view.machine
        reserved = machine.drained_for(PAUSED, only=True) & ~machine.down
        return np.flatnonzero(machine.free | reserved)

    def _continue(
        self, view: View, job_id: str, own: Ints, others: Ints
    ) -> Iterator[Undrain | Release | Start]:
        reserved = others[view.machine.drained_for(PAUSED)[others]]
        if len(reserved):
            yield Undrain(NodeSet.of_sorted(reserved), PAUSED)
        yield Release(job_id)
        nodes = np.sort(np.concatenate([own, others]))
        for attempt in list(view.queue.values()):
            if attempt.job_id == job_id:
                yield Start(attempt.id, NodeSet.of_sorted(nodes))
