# SPDX-License-Identifier: Apache-2.0
"""Rules: dependencies between jobs, and limits of arrays.

Policies do not see blocked jobs. The conditions concern jobs, not attempts: an attempt that is
interrupted and requeued has no effect. When the last condition of a job holds, the job enters the
queue at that time. If a condition can never hold, the job is rejected, as Slurm does with
``kill_invalid_depend``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rebat.core.dependencies import KINDS, array_limit, conditions_of
from rebat.core.errors import InputError
from rebat.core.job_table import Jobs
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.waits import reject
from rebat.state import codes
from rebat.state.rows import dtype_of, zeros
from rebat.state.tables import Block, Condition, JobArray, Links, no_links

AFTER, AFTER_OK, AFTER_NOT_OK = range(3)
assert [*KINDS][:3] == ["after", "afterok", "afternotok"]


def links_of(jobs: Jobs, order: Any) -> Links:
    """Return the dependencies of a workload. ``order`` is the order of the submissions.

    Raises
    ------
    InputError
        If a dependency names a job that is not in the workload.
    """
    dependencies = [str(extra.get("dependency") or "") for extra in jobs.extra_fields]
    arrays = [str(extra.get("array") or "") for extra in jobs.extra_fields]
    if not any(dependencies) and not any(arrays):
        return no_links()
    kinds_of_jobs = jobs.extra_codes[order].tolist()
    places = {jobs.ids[row]: j for j, row in enumerate(order.tolist())}
    kinds, n = [*KINDS], len(kinds_of_jobs)
    blocks = zeros(Block, n)
    rows: list[tuple[int, int, int, int]] = []
    names: dict[str, int] = {}
    for j, code in enumerate(kinds_of_jobs):
        blocks["condition"][j] = first = len(rows)
        for kind, name in conditions_of(dependencies[code]):
            if name not in places:
                raise InputError(f"job {name} is not in the workload")
            rows.append((kinds.index(kind), places[name], j, 0))
        blocks["n_conditions"][j] = len(rows) - first
        if arrays[code]:
            blocks["array"][j] = 1 + names.setdefault(arrays[code], len(names))
    of_arrays = zeros(JobArray, len(names))
    of_arrays["limit"] = [array_limit(name) for name in names]
    return Links(blocks, np.array(rows, dtype=dtype_of(Condition)), of_arrays)


@inlined_rule
def is_blocked(state: Any, j: int, a: int) -> bool:
    """Return whether a submitted job has conditions or an array. If so, link it."""
    n, blocks, conditions, b = state.n, state.blocks, state.conditions, state.jobs[j].block - 1
    if b < 0:
        return False
    blocks[b].job, blocks[b].attempt = j + 1, a + 1
    if not (blocks[b].n_conditions or blocks[b].array):
        return False
    first = blocks[b].condition
    for c in range(first, first + blocks[b].n_conditions):
        other, last = conditions[c].block, blocks[conditions[c].block].last_dependent
        if last:
            conditions[last - 1].next_dependent = c + 1
        else:
            blocks[other].first_dependent = c + 1
        blocks[other].last_dependent = c + 1
    if blocks[b].array:
        array = state.arrays[blocks[b].array - 1]
        if array.first_task:
            blocks[array.last_task - 1].next_task = b + 1
        else:
            array.first_task = b + 1
        array.last_task = b + 1
    blocks[b].is_open = 1
    blocks[n.n_new_jobs].new_job = b
    n.n_new_jobs += 1
    n.n_blocked += 1
    return True


@inlined_rule
def touch(state: Any, k: int) -> None:
    """Note that a place in an array may be free, or that a task is ready."""
    if not state.arrays[k].was_listed:
        state.arrays[k].was_listed = 1
        state.arrays[state.n.n_touched].listed = k
        state.n.n_touched += 1


@rule
def progress_of(state: Any, b: int) -> int:
    """Return the progress of the job of a block, which may not be submitted yet."""
    j = state.blocks[b].job - 1
    return int(state.jobs[j].progress) if j >= 0 else 0


@rule
def holds(kind: int, progress: int) -> bool:
    """Return whether a condition on a job with this progress holds."""
    if progress < codes.NOT_OK:
        return kind == AFTER and progress == codes.STARTED
    if kind in (AFTER_OK, AFTER_NOT_OK):
        return (progress == codes.OK) == (kind == AFTER_OK)
    return True


@rule
def examine(state: Any, b: int, now: int) -> bool:
    """Update a blocked job. Return whether it is rejected, or enters the queue."""
    n, blocks, conditions = state.n, state.blocks, state.conditions
    if not blocks[b].is_open or blocks[b].stamp == n.round:
        return False
    blocks[b].stamp = n.round
    first, n_left = blocks[b].condition, 0
    for c in range(first, first + blocks[b].n_conditions):
        progress = progress_of(state, conditions[c].block)
        if holds(conditions[c].kind, progress):
            continue
        n_left += 1
        if progress >= codes.NOT_OK:
            blocks[b].is_open, blocks[b].why_never, blocks[b].array = 0, c, 0
            n.n_blocked -= 1
            reject(state, blocks[b].attempt - 1, codes.DEPENDENCY)
            return True
    if n_left:
        return False
    blocks[b].is_open = 0
    if blocks[b].array:
        blocks[b].is_ready = 1
        touch(state, blocks[b].array - 1)
        return False
    enter(state, blocks[b].attempt - 1, now)
    return True


@rule
def enter(state: Any, a: int, now: int) -> None:
    """Queue a released job. Arrivals are in the order of their submission, before resubmissions."""
    n, lists, attempts = state.n, state.lists, state.attempts
    at = n.n_entered
    while at > 0 and (attempts[lists[at - 1].entered].number > 0 or lists[at - 1].entered > a):
        lists[at].entered = lists[at - 1].entered
        at -= 1
    lists[at].entered, attempts[a].queued = a, now
    n.n_entered += 1
    n.n_blocked -= 1
    n.news = 1


@inlined_rule
def release(state: Any, now: int) -> bool:
    """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

    Return whether there are any.
    """
    if state.n.n_new_jobs or state.n.n_progressed or state.n.n_touched:
        return examine_all(state, now)
    return False


@rule
def examine_all(state: Any, now: int) -> bool:
    """Do the same as `release`, if anything happened to the jobs with dependencies."""
    n, blocks, arrays, conditions = state.n, state.blocks, state.arrays, state.conditions
    changed, begin, n_new = False, 0, n.n_new_jobs
    while n_new or begin < n.n_progressed:
        end = n.n_progressed
        n.round += 1
        for i in range(begin, end):
            b = blocks[i].progressed
            if blocks[b].array and progress_of(state, b) >= codes.NOT_OK:
                arrays[blocks[b].array - 1].active -= 1
                touch(state, blocks[b].array - 1)
                blocks[b].array = 0
        for i in range(n_new):
            changed |= examine(state, blocks[i].new_job, now)
        for i in range(begin, end):
            c = blocks[blocks[i].progressed].first_dependent
            while c:
                changed |= examine(state, conditions[c - 1].owner, now)
                c = conditions[c - 1].next_dependent
        begin, n_new = end, 0
    n.n_progressed = n.n_new_jobs = 0
    for i in range(n.n_touched):
        k = arrays[i].listed
        arrays[k].was_listed = 0
        t = arrays[k].first_task
        while t and arrays[k].active < arrays[k].limit:
            b, is_first = t - 1, t == arrays[k].first_task
            t = blocks[b].next_task
            if blocks[b].is_ready:
                blocks[b].is_ready = 0
                arrays[k].active += 1
                enter(state, blocks[b].attempt - 1, now)
                changed = True
            if is_first and not blocks[b].is_open:
                arrays[k].first_task = t  # later searches begin at the next task
    n.n_touched = 0
    return changed
