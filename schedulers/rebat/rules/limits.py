# SPDX-License-Identifier: Apache-2.0
"""Limits on the running jobs of users, accounts and queues, and on their nodes, as in Slurm.

A *group* is a user, an account or a queue with a limit. A *client* is the jobs that belong to the
same groups. So one number per client decides which of its jobs may start: the nodes that its
fullest group has left. Larger jobs are *barred*: the plan does not see them, they have no
reservation, and later jobs start first. If a plan would start more than a limit allows, it starts
what comes before, and a new plan is made without the jobs that are barred then.

Running jobs and held nodes count. Sources: Slurm, "Resource Limits" (MaxJobs, GrpJobs, MaxTRESPU,
GrpTRES), and `sacctmgr`.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.barred import bar
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.waits import reject
from rebat.state import codes


@rule
def count(state: Any, a: int, n_jobs: int, n_nodes: int) -> None:
    """Add to the numbers of the groups of an attempt's job."""
    client = state.clients[state.jobs[state.attempts[a].job].client]
    for i in range(client.first_group, client.first_group + client.n_groups):
        group = state.groups[state.memberships[i].group]
        group.n_jobs += n_jobs
        group.n_nodes += n_nodes
        state.n.counts_changed = 1


@rule
def charge(state: Any, a: int, n_nodes: int) -> None:
    """Count an attempt that starts, or held nodes."""
    discharge(state, a)
    state.attempts[a].charged = n_nodes
    count(state, a, 1, n_nodes)


@rule
def discharge(state: Any, a: int) -> None:
    """Count an attempt that was charged no longer."""
    if state.attempts[a].charged:
        count(state, a, -1, -state.attempts[a].charged)
        state.attempts[a].charged = 0


@rule
def allowed_to(state: Any, c: int) -> int:
    """Return the maximum number of nodes with which a job of a client can start now."""
    client, most = state.clients[c], codes.NO_LIMIT
    for i in range(client.first_group, client.first_group + client.n_groups):
        group = state.groups[state.memberships[i].group]
        if group.max_jobs and group.n_jobs >= group.max_jobs:
            return 0
        if group.max_nodes:
            most = min(most, group.max_nodes - group.n_nodes)
    return max(most, 0)


@rule
def apply_limits(state: Any, room: Any) -> None:
    """Count what happened since the last plan, reject jobs above a limit, and bar others."""
    n, lists, attempts = state.n, state.lists, state.attempts
    for i in range(n.n_left):
        discharge(state, lists[i].left)
    for i in range(n.n_new_holds):  # a held set can be in both lists
        charge(state, lists[i].new_hold, attempts[lists[i].new_hold].size_of_hold)
    for i in range(n.n_entered):
        a, job = lists[i].entered, state.jobs[attempts[lists[i].entered].job]
        state.client_of[a] = job.client
        if job.size > state.clients[job.client].largest and attempts[a].cause == 0:
            reject(state, a, codes.LIMIT)
    if n.counts_changed:
        n.counts_changed = 0
        for c in range(len(state.clients)):
            state.allowed[c] = allowed_to(state, c)
        for p in range(len(state.parts)):
            queue, n_queued = room.queue[p], state.parts[p].n_queued
            if bar(queue, room.size[p], room.start[p], n_queued, state.client_of, state.allowed):
                state.parts[p].withdrawn = 1


@inlined_rule
def is_barred(state: Any, a: int) -> bool:
    """Return whether a limit bars an attempt that enters the queue."""
    job = state.jobs[state.attempts[a].job]
    return state.n.limited != 0 and job.size > state.allowed[job.client]


@rule
def within_limits(state: Any, p: int, queue: Any, visible: Any, positions: Any, n_due: int) -> int:
    """Count the first of the due attempts that may start, and return their number.

    If not all may start, another plan follows.
    """
    for i in range(n_due):
        a = queue[visible[3, positions[i]]]
        job = state.jobs[state.attempts[a].job]
        if state.n.is_exceeded or job.size > allowed_to(state, job.client):
            state.n.is_exceeded = state.parts[p].withdrawn = 1
            return i
        charge(state, a, job.size)
    return n_due
