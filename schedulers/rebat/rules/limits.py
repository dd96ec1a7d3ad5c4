# SPDX-License-Identifier: Apache-2.0
"""Limits on the running jobs of users, accounts and queues, and on their nodes, as in Slurm.

A *group* is a user, an account or a queue with a limit. A *client* is the jobs that belong to the
same groups. So one number per client decides which of its jobs may start: the nodes that its
fullest group has left. Larger jobs are *barred*: the plan does not see them, they have no
reservation, and later jobs start first. If a plan would start more than a limit allows, it starts
what comes before, and a new plan is made without the jobs that are barred then.

Sources: Slurm, "Resource Limits" (MaxJobs, GrpJobs, MaxTRESPU, GrpTRES), and `sacctmgr`.
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
    """Reject new jobs that are above a limit, and bar the queued jobs that cannot start now."""
    n, lists, attempts = state.n, state.lists, state.attempts
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
def exceeds(state: Any, recorder: Any, a: int) -> bool:
    """Return whether an attempt would exceed a limit if it started now.

    A recorder (see `rebat.drive.plans`) knows the limits that are functions in a file.
    """
    may_start = True
    if recorder is not None:
        may_start = recorder.may_start(state, a)
    job = state.jobs[state.attempts[a].job]
    is_above = state.n.limited and job.size > allowed_to(state, job.client)
    return bool(is_above or not may_start)
