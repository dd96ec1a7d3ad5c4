# SPDX-License-Identifier: Apache-2.0
"""Invariants of a session (see ``Session.validate``)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rebat.core.attempts import Cause, Running
from rebat.core.errors import RebatError
from rebat.kernels.pool import FREE
from rebat.session.claims import Claims
from rebat.session.lifecycle import Lifecycle, State


class BrokenInvariant(RebatError):
    """Error: the state of a session is impossible. This is a bug in rebat."""


def check_jobs(jobs: Lifecycle) -> None:
    """Check that every attempt is in exactly one table, and that its job is in the matching state.

    Raises
    ------
    BrokenInvariant
        If this is false for an attempt. The error names the first such attempt.
    """
    for name in jobs.queue.keys() & jobs.running.keys():
        raise BrokenInvariant(f"attempt {name} is queued and running")
    for name in (jobs.stopping.keys() | jobs.scheduled.keys()) - jobs.running.keys():
        raise BrokenInvariant(f"attempt {name} is being stopped, but does not run")
    for name in jobs.stopping.keys() & jobs.scheduled.keys():
        raise BrokenInvariant(f"attempt {name} is being stopped twice")
    stopping = {jobs.running[name].attempt.job_id for name in jobs.stopping}
    running = {running.attempt.job_id for running in jobs.running.values()}
    for state, job_ids in (
        (State.QUEUED, {attempt.job_id for attempt in jobs.queue.values()}),
        (State.RUNNING, running - stopping),
        (State.STOPPING, stopping),
        (State.WAITING, jobs.waiting.keys()),
        (State.MOVING, jobs.moving.keys()),
    ):
        for job_id in job_ids:
            if jobs.state(job_id) is not state:
                raise BrokenInvariant(f"job {job_id} is {jobs.state(job_id)}, not {state}")


def check_nodes(jobs: Lifecycle, claims: Claims) -> None:
    """Check that every node has at most one holder, and that it has the tag of this holder.

    Raises
    ------
    BrokenInvariant
        If a node has two holders or an unknown holder, or if an attempt runs on the wrong number of
        nodes or on a failed node.
    """
    tags = np.full(claims.n_nodes, FREE, dtype=np.int32)
    for holder in holders(jobs):
        attempt, nodes = holder.attempt, holder.nodes
        if nodes.size != attempt.n_nodes:
            text = f"{attempt.id} is on {nodes.size} nodes, expected {attempt.n_nodes}"
            raise BrokenInvariant(text)
        taken = nodes.ids[tags[nodes.ids] != FREE]
        if len(taken):
            raise BrokenInvariant(f"node {taken[0]} is held by {attempt.id} and by another")
        tags[nodes.ids] = attempt.serial
    wrong = np.flatnonzero(tags != claims.all_tags)
    if len(wrong):
        raise BrokenInvariant(f"node {wrong[0]} has the wrong tag {claims.tag(int(wrong[0]))}")
    n_free = int(np.count_nonzero((tags == FREE) & ~(claims.down | claims.drained)))
    if n_free != claims.n_free or claims.n_down != np.count_nonzero(claims.down):
        raise BrokenInvariant(f"{n_free} nodes are free, not {claims.n_free}")
    for name, running in jobs.running.items():
        hangs = name in jobs.scheduled and jobs.scheduled[name].stop.cause == Cause.NODE_FAILURE
        if not hangs and name not in jobs.stopping and running.nodes.of_each(claims.down).any():
            raise BrokenInvariant(f"attempt {name} runs on a failed node")


def holders(jobs: Lifecycle) -> Iterator[Running]:
    """Yield every holder: running attempts, and records of nodes held for waits and moves."""
    yield from jobs.running.values()
    yield from (waiting.held for waiting in jobs.waiting.values() if waiting.held)
    for stops in (jobs.scheduled, jobs.stopping, jobs.moving):
        for stop in stops.values():
            yield from stop.claims
