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
from rebat.kernels.jit import inlined, loop
from rebat.sim.columns import (
    ACTIVE,
    ARRAY,
    ATTEMPT,
    CONDITION,
    DEPENDENCY,
    DEPENDENT,
    ENTERED,
    FIRST_TASK,
    IS_OPEN,
    IS_READY,
    LIMIT,
    LISTED,
    N_ARRAY_COLUMNS,
    N_BLOCK_COLUMNS,
    N_BLOCKED,
    N_CONDITIONS,
    N_DEPENDENTS,
    N_ENTERED,
    N_NEW_JOBS,
    N_PROGRESSED,
    N_TASKS,
    N_TOUCHED,
    NEW_JOB,
    NOT_OK,
    NUMBER,
    OK,
    PROGRESS,
    PROGRESSED,
    QUEUED,
    ROUND,
    STAMP,
    STARTED,
    WAS_LISTED,
    WHY_NEVER,
    Links,
    no_links,
)
from rebat.sim.waits import reject

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
    codes = jobs.extra_codes[order].tolist()
    places = {jobs.ids[row]: j for j, row in enumerate(order.tolist())}
    kinds, n = [*KINDS], len(codes)
    blocks = np.zeros((n, N_BLOCK_COLUMNS), dtype=np.int64)
    conditions: list[tuple[int, int]] = []
    names: dict[str, int] = {}
    for j, code in enumerate(codes):
        blocks[j, CONDITION] = len(conditions)
        for kind, name in conditions_of(dependencies[code]):
            if name not in places:
                raise InputError(f"job {name} is not in the workload")
            conditions.append((kinds.index(kind), places[name]))
        blocks[j, N_CONDITIONS] = len(conditions) - blocks[j, CONDITION]
        if arrays[code]:
            blocks[j, ARRAY] = 1 + names.setdefault(arrays[code], len(names))
    table = np.array(conditions, dtype=np.int64).reshape(-1, 2)
    owners = np.repeat(np.arange(n), blocks[:, N_CONDITIONS])
    by_job = np.argsort(table[:, 1], kind="stable")
    blocks[:, N_DEPENDENTS] = np.bincount(table[:, 1], minlength=n)
    blocks[:, DEPENDENT] = np.cumsum(blocks[:, N_DEPENDENTS]) - blocks[:, N_DEPENDENTS]
    tasks = np.flatnonzero(blocks[:, ARRAY])
    tasks = tasks[np.argsort(blocks[tasks, ARRAY], kind="stable")]
    of_arrays = np.zeros((len(names), N_ARRAY_COLUMNS), dtype=np.int64)
    of_arrays[:, LIMIT] = [array_limit(name) for name in names]
    of_arrays[:, N_TASKS] = np.bincount(blocks[tasks, ARRAY] - 1, minlength=len(names))
    of_arrays[:, FIRST_TASK] = np.cumsum(of_arrays[:, N_TASKS]) - of_arrays[:, N_TASKS]
    return Links(blocks, table, owners[by_job], of_arrays, tasks)


@inlined
def is_blocked(state: Any, j: int, a: int) -> bool:
    """Return whether a submitted job has conditions or an array. If so, note its attempt."""
    n, blocks = state.n, state.blocks
    if blocks.shape[0] == 0 or not (blocks[j, N_CONDITIONS] or blocks[j, ARRAY]):
        return False
    blocks[j, ATTEMPT], blocks[j, IS_OPEN] = a + 1, 1
    blocks[n[N_NEW_JOBS], NEW_JOB] = j
    n[N_NEW_JOBS] += 1
    n[N_BLOCKED] += 1
    return True


@inlined
def touch(state: Any, k: int) -> None:
    """Note that a place in an array may be free, or that a task is ready."""
    if not state.arrays[k, WAS_LISTED]:
        state.arrays[k, WAS_LISTED] = 1
        state.arrays[state.n[N_TOUCHED], LISTED] = k
        state.n[N_TOUCHED] += 1


@loop
def holds(kind: int, progress: int) -> bool:
    """Return whether a condition on a job with this progress holds."""
    if progress < NOT_OK:
        return kind == AFTER and progress == STARTED
    if kind in (AFTER_OK, AFTER_NOT_OK):
        return (progress == OK) == (kind == AFTER_OK)
    return True


@loop
def examine(state: Any, j: int, now: int) -> bool:
    """Update a blocked job. Return whether it is rejected, or enters the queue."""
    n, blocks = state.n, state.blocks
    if not blocks[j, IS_OPEN] or blocks[j, STAMP] == n[ROUND]:
        return False
    blocks[j, STAMP] = n[ROUND]
    first, n_left = blocks[j, CONDITION], 0
    for c in range(first, first + blocks[j, N_CONDITIONS]):
        progress = blocks[state.conditions[c, 1], PROGRESS]
        if holds(state.conditions[c, 0], progress):
            continue
        n_left += 1
        if progress >= NOT_OK:
            blocks[j, IS_OPEN], blocks[j, WHY_NEVER], blocks[j, ARRAY] = 0, c, 0
            n[N_BLOCKED] -= 1
            reject(state, blocks[j, ATTEMPT] - 1, DEPENDENCY)
            return True
    if n_left:
        return False
    blocks[j, IS_OPEN] = 0
    if blocks[j, ARRAY]:
        blocks[j, IS_READY] = 1
        touch(state, blocks[j, ARRAY] - 1)
        return False
    enter(state, blocks[j, ATTEMPT] - 1, now)
    return True


@loop
def enter(state: Any, a: int, now: int) -> None:
    """Queue a released job. Arrivals are in the order of their submission, before resubmissions."""
    n, entered, attempts = state.n, state.lists[ENTERED], state.attempts
    at = n[N_ENTERED]
    while at > 0 and (attempts[entered[at - 1], NUMBER] > 0 or entered[at - 1] > a):
        entered[at] = entered[at - 1]
        at -= 1
    entered[at], attempts[a, QUEUED] = a, now
    n[N_ENTERED] += 1
    n[N_BLOCKED] -= 1


@loop
def release(state: Any, now: int) -> bool:
    """Queue the jobs whose conditions hold, and reject those whose conditions can never hold.

    Return whether there are any.
    """
    n, blocks, arrays = state.n, state.blocks, state.arrays
    changed, begin, n_new = False, 0, n[N_NEW_JOBS]
    while n_new or begin < n[N_PROGRESSED]:
        end = n[N_PROGRESSED]
        n[ROUND] += 1
        for i in range(begin, end):
            j = blocks[i, PROGRESSED]
            if blocks[j, PROGRESS] >= NOT_OK and blocks[j, ARRAY]:
                arrays[blocks[j, ARRAY] - 1, ACTIVE] -= 1
                touch(state, blocks[j, ARRAY] - 1)
                blocks[j, ARRAY] = 0
        for i in range(n_new):
            changed |= examine(state, blocks[i, NEW_JOB], now)
        for i in range(begin, end):
            j = blocks[i, PROGRESSED]
            first = blocks[j, DEPENDENT]
            for d in range(first, first + blocks[j, N_DEPENDENTS]):
                changed |= examine(state, state.dependents[d], now)
        begin, n_new = end, 0
    n[N_PROGRESSED] = n[N_NEW_JOBS] = 0
    for i in range(n[N_TOUCHED]):
        k = arrays[i, LISTED]
        arrays[k, WAS_LISTED] = 0
        t, last = arrays[k, FIRST_TASK], arrays[k, FIRST_TASK] + arrays[k, N_TASKS]
        while arrays[k, ACTIVE] < arrays[k, LIMIT] and t < last:
            j = state.tasks[t]
            if not blocks[j, ATTEMPT]:
                break  # neither this task nor those after it are submitted
            if blocks[j, IS_READY]:
                blocks[j, IS_READY] = 0
                arrays[k, ACTIVE] += 1
                enter(state, blocks[j, ATTEMPT] - 1, now)
                changed = True
            t += 1
            if t == arrays[k, FIRST_TASK] + 1 and not blocks[j, IS_OPEN]:
                arrays[k, FIRST_TASK] += 1  # later searches begin at the next task
                arrays[k, N_TASKS] -= 1
    n[N_TOUCHED] = 0
    return changed
