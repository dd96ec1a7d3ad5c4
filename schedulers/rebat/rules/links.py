# SPDX-License-Identifier: Apache-2.0
"""Dependencies between jobs and limits of arrays in the compiled loop: columns and rules.

The rules are those of `rebat.session.dependencies`, in the same order.
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
from rebat.state.rows import zeros
from rebat.state.tables import Block, JobArray, Links, no_links

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
    conditions: list[tuple[int, int]] = []
    names: dict[str, int] = {}
    for j, code in enumerate(kinds_of_jobs):
        blocks["condition"][j] = first = len(conditions)
        for kind, name in conditions_of(dependencies[code]):
            if name not in places:
                raise InputError(f"job {name} is not in the workload")
            conditions.append((kinds.index(kind), places[name]))
        blocks["n_conditions"][j] = len(conditions) - first
        if arrays[code]:
            blocks["array"][j] = 1 + names.setdefault(arrays[code], len(names))
    table = np.array(conditions, dtype=np.int64).reshape(-1, 2)
    owners = np.repeat(np.arange(n), blocks["n_conditions"])
    by_job = np.argsort(table[:, 1], kind="stable")
    blocks["n_dependents"] = np.bincount(table[:, 1], minlength=n)
    blocks["dependent"] = np.cumsum(blocks["n_dependents"]) - blocks["n_dependents"]
    tasks = np.flatnonzero(blocks["array"])
    tasks = tasks[np.argsort(blocks["array"][tasks], kind="stable")]
    of_arrays = zeros(JobArray, len(names))
    of_arrays["limit"] = [array_limit(name) for name in names]
    of_arrays["n_tasks"] = np.bincount(blocks["array"][tasks] - 1, minlength=len(names))
    of_arrays["first_task"] = np.cumsum(of_arrays["n_tasks"]) - of_arrays["n_tasks"]
    return Links(blocks, table, owners[by_job], of_arrays, tasks)


@inlined_rule
def is_blocked(state: Any, j: int, a: int) -> bool:
    """Return whether a submitted job has conditions or an array. If so, note its attempt."""
    n, blocks = state.n, state.blocks
    if len(blocks) == 0 or not (blocks[j].n_conditions or blocks[j].array):
        return False
    blocks[j].attempt, blocks[j].is_open = a + 1, 1
    blocks[n.n_new_jobs].new_job = j
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
def holds(kind: int, progress: int) -> bool:
    """Return whether a condition on a job with this progress holds."""
    if progress < codes.NOT_OK:
        return kind == AFTER and progress == codes.STARTED
    if kind in (AFTER_OK, AFTER_NOT_OK):
        return (progress == codes.OK) == (kind == AFTER_OK)
    return True


@rule
def examine(state: Any, j: int, now: int) -> bool:
    """Update a blocked job. Return whether it is rejected, or enters the queue."""
    n, blocks = state.n, state.blocks
    if not blocks[j].is_open or blocks[j].stamp == n.round:
        return False
    blocks[j].stamp = n.round
    first, n_left = blocks[j].condition, 0
    for c in range(first, first + blocks[j].n_conditions):
        progress = blocks[state.conditions[c, 1]].progress
        if holds(state.conditions[c, 0], progress):
            continue
        n_left += 1
        if progress >= codes.NOT_OK:
            blocks[j].is_open, blocks[j].why_never, blocks[j].array = 0, c, 0
            n.n_blocked -= 1
            reject(state, blocks[j].attempt - 1, codes.DEPENDENCY)
            return True
    if n_left:
        return False
    blocks[j].is_open = 0
    if blocks[j].array:
        blocks[j].is_ready = 1
        touch(state, blocks[j].array - 1)
        return False
    enter(state, blocks[j].attempt - 1, now)
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


@rule
def release(state: Any, now: int) -> bool:
    """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

    Return whether there are any.
    """
    n, blocks, arrays = state.n, state.blocks, state.arrays
    changed, begin, n_new = False, 0, n.n_new_jobs
    while n_new or begin < n.n_progressed:
        end = n.n_progressed
        n.round += 1
        for i in range(begin, end):
            j = blocks[i].progressed
            if blocks[j].progress >= codes.NOT_OK and blocks[j].array:
                arrays[blocks[j].array - 1].active -= 1
                touch(state, blocks[j].array - 1)
                blocks[j].array = 0
        for i in range(n_new):
            changed |= examine(state, blocks[i].new_job, now)
        for i in range(begin, end):
            j = blocks[i].progressed
            first = blocks[j].dependent
            for d in range(first, first + blocks[j].n_dependents):
                changed |= examine(state, state.dependents[d], now)
        begin, n_new = end, 0
    n.n_progressed = n.n_new_jobs = 0
    for i in range(n.n_touched):
        k = arrays[i].listed
        arrays[k].was_listed = 0
        t, last = arrays[k].first_task, arrays[k].first_task + arrays[k].n_tasks
        while arrays[k].active < arrays[k].limit and t < last:
            j = state.tasks[t]
            if not blocks[j].attempt:
                break  # neither this task nor those after it are submitted
            if blocks[j].is_ready:
                blocks[j].is_ready = 0
                arrays[k].active += 1
                enter(state, blocks[j].attempt - 1, now)
                changed = True
            t += 1
            if t == arrays[k].first_task + 1 and not blocks[j].is_open:
                arrays[k].first_task += 1  # later searches begin at the next task
                arrays[k].n_tasks -= 1
    n.n_touched = 0
    return changed
