# SPDX-License-Identifier: Apache-2.0
"""A simulation in one compiled function: counted nodes, rigid jobs, list scheduling, requeue.

The function has the semantics of `rebat.engine.Engine`, `rebat.session.Session` and
`ListScheduling` with placement ``any``, for the runs that `rebat.sim.eligible` describes. An
*instant* consists of these steps:

1. All ends, submissions and node events of the time, in the order in which the engine's heap would
   yield them. Each entry of that heap has a sequence number, and so have the entries here.
2. The attempts hit by failures, in the order of the events: kill, record, requeue.
3. The update of the plan: rebuild, compress, append, or backfill to a depth.
4. The starts that are due, in queue order, on the lowest free nodes.

Times are in microseconds. An attempt is a row of a table, and its number is its serial minus 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rebat.core.units import FOREVER_US
from rebat.kernels import counts, pool
from rebat.kernels.jit import inlined, loop

# Columns of the table of attempts.
JOB, NUMBER, PRIORITY, QUEUED, WALL, DELAY, FIRST, RECOVERY, START, END, CAUSE, USEFUL = range(12)
NODES_AT, N_NODES_AT, HELD_UNTIL, THIEF = range(12, 16)
N_COLUMNS = 16

# Columns of the table of jobs.
SUBMIT, SIZE, JOB_WALL, JOB_DELAY, RET, CHECKPOINTS, PERIOD, COST, RESTART, FIRST_PERIOD = range(10)
FIRST_RECOVERY, CLASS = 10, 11
N_JOB_COLUMNS = 12

# Parameters.
DEPTH, FIRST_ONLY, MARGIN, ORDER, ON_ARRIVAL, ON_PRIORITY, ON_END, ON_FAILURE, ON_REPAIR = range(9)
MAX_ATTEMPTS, N_NODES, DRAWN, STEALING, VICTIM, CRITERION, RELEASE, TIE = range(9, 17)
N_PARAMETERS = 17

FCFS, SHORTEST, LARGEST, SMALLEST, BY_CLASS = range(5)
"""Queue orders."""

FEWEST_NODES, LATEST_RELEASE, LEAST_LOST_WORK, FITS = range(4)
"""Victim rules."""

FEWER_NODES, LATER_RELEASE, SMALLER_FLOW = range(3)
"""Criteria of steals."""

OF_JOB, OF_ATTEMPT = range(2)
"""Releases: that of the job, or that of the attempt."""

BY_RELEASE, BY_START = range(2)
"""Ties between victims."""

COMPLETED, JOB_FAILED, WALLTIME, NODE_FAILURE, REJECTED, STOLEN = range(6)
"""Causes of the end of an attempt."""

DONE, MORE_EVENTS, MORE_ROOM, REFERENCE = range(4)
"""Outcomes: complete; more node events or larger arrays are needed; the reference must simulate."""

ALL = -1
APPEND, COMPRESS, REBUILD = 1, 2, 3
REGULAR, VICTIM_FIRST, FAILED = 1, 2, 3
LONGEST_US = 2**60
FREE = pool.FREE


@inlined
def planned(wall: int, margin: int) -> int:
    """Return the planned duration of an attempt."""
    return max(1, min(wall + margin, LONGEST_US))


@inlined
def key_of(attempts: Any, jobs: Any, a: int, order: int) -> Any:
    """Return the part of the sort key between the priority and the serial."""
    if order == SHORTEST:
        return attempts[a, WALL]
    if order == LARGEST:
        return -jobs[attempts[a, JOB], SIZE]
    if order == SMALLEST:
        return jobs[attempts[a, JOB], SIZE]
    if order == BY_CLASS:
        return -jobs[attempts[a, JOB], CLASS]
    return 0


@loop
def remaining(attempts: Any, jobs: Any, a: int, now: int) -> Any:
    """Return what remains of an attempt after a stop (`rebat.models.remaining`).

    The values are the progress that is kept, the first period and the first recovery.
    """
    j, ran = attempts[a, JOB], now - attempts[a, START]
    period, recovery = attempts[a, FIRST], attempts[a, RECOVERY]
    if not jobs[j, CHECKPOINTS]:
        return 0, period, recovery
    cost = jobs[j, COST]
    cycle, first_end = jobs[j, PERIOD] + cost, recovery + period + cost
    if cycle <= 1:  # perfect checkpoints
        paid = min(ran, recovery)
        return ran - paid, period, recovery - paid
    if ran <= first_end:
        return 0, period, jobs[j, RESTART]
    return period + cost + (ran - first_end) // cycle * cycle, jobs[j, PERIOD], jobs[j, RESTART]


@inlined
def less_by(attempts: Any, a: int, useful: int, recovery: int) -> Any:
    """Return by how much a length or walltime is shorter in the next attempt (eq. 4)."""
    return attempts[a, RECOVERY] + useful - recovery


@inlined
def planned_end(attempts: Any, a: int) -> Any:
    """Return the latest possible end of a running attempt."""
    return min(attempts[a, START] + attempts[a, WALL], FOREVER_US)


@loop
def lost_nodes(nodes: Any, attempts: Any, a: int, down: Any) -> Any:
    """Return how many nodes of an attempt are down."""
    first, lost = attempts[a, NODES_AT], 0
    for k in range(first, first + attempts[a, N_NODES_AT]):
        lost += pool.n_set(down, nodes[k, 0], nodes[k, 1] + 1)
    return lost


@loop
def goes_first(attempts: Any, jobs: Any, now: int, a: int, b: int, parameters: Any) -> Any:
    """Return whether the victim rule prefers attempt ``a`` to attempt ``b``."""
    rule, by_job = parameters[VICTIM], parameters[RELEASE] == OF_JOB
    i, j = attempts[a, JOB], attempts[b, JOB]
    release = jobs[i, SUBMIT] if by_job else attempts[a, QUEUED]
    other_release = jobs[j, SUBMIT] if by_job else attempts[b, QUEUED]
    if rule == LATEST_RELEASE and release != other_release:
        return release > other_release
    if rule == LEAST_LOST_WORK:
        ran, other_ran = now - attempts[a, START], now - attempts[b, START]
        saved = attempts[a, RECOVERY] + remaining(attempts, jobs, a, now)[0]
        other_saved = attempts[b, RECOVERY] + remaining(attempts, jobs, b, now)[0]
        lost = max(0, ran - saved) * jobs[i, SIZE]
        other_lost = max(0, other_ran - other_saved) * jobs[j, SIZE]
        if lost != other_lost:
            return lost < other_lost
    if jobs[i, SIZE] != jobs[j, SIZE]:
        return jobs[i, SIZE] < jobs[j, SIZE]
    if parameters[TIE] == BY_START and attempts[a, START] != attempts[b, START]:
        return attempts[a, START] > attempts[b, START]
    if release != other_release:
        return release > other_release
    return i > j if by_job else a > b


@loop
def victim_of(
    attempts: Any, jobs: Any, ends: Any, n_ends: int, spared: Any, n_spared: int, now: int,
    failed: int, n_more: int, parameters: Any,
) -> Any:  # fmt: skip
    """Return the attempt that gives a node to a failed attempt, or -1 if there is none.

    ``n_more`` is the number of nodes that the failed attempt lacks.
    """
    best = -1
    for k in range(n_ends):
        a = ends[k, 2]
        if attempts[a, END] >= 0:
            continue
        if parameters[VICTIM] == FITS and jobs[attempts[a, JOB], SIZE] < n_more:
            continue
        listed = False
        for i in range(n_spared):
            listed |= spared[i] == a
        if listed:
            continue
        if best < 0 or goes_first(attempts, jobs, now, a, best, parameters):
            best = a
    if best < 0 or jobs[attempts[best, JOB], SIZE] < n_more:
        return -1
    i, j = attempts[best, JOB], attempts[failed, JOB]
    by_job = parameters[RELEASE] == OF_JOB
    release = jobs[i, SUBMIT] if by_job else attempts[best, QUEUED]
    failed_release = jobs[j, SUBMIT] if by_job else attempts[failed, QUEUED]
    if parameters[CRITERION] == FEWER_NODES:
        return best if jobs[i, SIZE] < jobs[j, SIZE] else -1
    if parameters[CRITERION] == LATER_RELEASE:
        return best if release > failed_release else -1
    next_end = next_end_besides = FOREVER_US
    for k in range(n_ends):
        a = ends[k, 2]
        if attempts[a, END] < 0 and a != failed:
            end = planned_end(attempts, a)
            next_end = min(next_end, end)
            if a != best:
                next_end_besides = min(next_end_besides, end)
    useful, _, recovery = remaining(attempts, jobs, failed, now)
    failed_left = attempts[failed, WALL] - less_by(attempts, failed, useful, recovery)
    useful, _, recovery = remaining(attempts, jobs, best, now)
    victim_left = attempts[best, WALL] - less_by(attempts, best, useful, recovery)
    failed_end, stolen_end = next_end + failed_left, now + failed_left
    victim_end = min(next_end_besides, stolen_end) + victim_left
    with_steal = max(stolen_end - failed_release, victim_end - release)
    without = max(failed_end - failed_release, planned_end(attempts, best) - release)
    return best if with_steal < without else -1


@loop
def place_in_queue(attempts: Any, jobs: Any, queue: Any, n: int, a: int, order: int) -> int:
    """Return the position of an attempt in the queue."""
    priority, key = attempts[a, PRIORITY], key_of(attempts, jobs, a, order)
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        b = queue[middle]
        other = attempts[b, PRIORITY]
        if other != priority:
            before = other > priority
        else:
            other_key = key_of(attempts, jobs, b, order)
            before = other_key < key or (other_key == key and b < a)
        if before:
            low = middle + 1
        else:
            high = middle
    return low


@loop
def push(heap: Any, n: int, at: int, second: int, a: int) -> int:
    """Add an entry (time, second key, attempt) to a heap, and return the new number of entries."""
    i = n
    while i > 0:
        above = (i - 1) // 2
        if heap[above, 0] < at or (heap[above, 0] == at and heap[above, 1] < second):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[above, 0], heap[above, 1], heap[above, 2]
        i = above
    heap[i, 0], heap[i, 1], heap[i, 2] = at, second, a
    return n + 1


@loop
def pop(heap: Any, n: int) -> int:
    """Remove the first entry of a heap, and return the new number of entries."""
    n -= 1
    at, second, a = heap[n, 0], heap[n, 1], heap[n, 2]
    i = 0
    while True:
        below = 2 * i + 1
        if below >= n:
            break
        right = below + 1
        if right < n and (
            heap[right, 0] < heap[below, 0]
            or (heap[right, 0] == heap[below, 0] and heap[right, 1] < heap[below, 1])
        ):
            below = right
        if heap[below, 0] > at or (heap[below, 0] == at and heap[below, 1] > second):
            break
        heap[i, 0], heap[i, 1], heap[i, 2] = heap[below, 0], heap[below, 1], heap[below, 2]
        i = below
    heap[i, 0], heap[i, 1], heap[i, 2] = at, second, a
    return n


@inlined
def copy_profile(t: Any, f: Any, n: int, to_t: Any, to_f: Any) -> None:
    """Copy a profile."""
    for i in range(n):
        to_t[i] = t[i]
        to_f[i] = f[i]


class Room(NamedTuple):
    """The arrays of a simulation. If one of them is too small, the simulation runs again.

    Attributes
    ----------
    attempts : int64 array, shape (k, N_COLUMNS)
    records : int64 array, shape (k,)
        The attempts in the order in which they ended.
    nodes : int64 array, shape (l, 2)
        Intervals of the nodes of attempts, from ``NODES_AT`` on.
    hits : int64 array, shape (k, 2)
        Times at which failures hit attempts, and the number of free nodes then.
    given_up, interrupted : int64 arrays, shape (n,)
        Jobs that ended after too many interruptions; number of interruptions of each job.
    owner, down, reported, marked, changed, free : arrays
        State of the nodes: the tag of the holder, whether the node is down, whether the plan knows
        that it is down, whether it is in ``changed``, and the free nodes of each block.
    ends, holds : int64 arrays, shape (k, 3)
        Heaps of ends and of planned ends.
    size, duration, start, queue, positions : int64 arrays, shape (k,)
        The queue.
    base_t, base_f, plan_t, plan_f : int64 arrays, shape (m,)
        Profiles of free nodes: without and with reservations.
    overdue, entered, left, hit, spared : int64 arrays, shape (k,)
    """

    attempts: Any
    records: Any
    nodes: Any
    hits: Any
    given_up: Any
    interrupted: Any
    owner: Any
    down: Any
    reported: Any
    marked: Any
    changed: Any
    free: Any
    ends: Any
    holds: Any
    size: Any
    duration: Any
    start: Any
    queue: Any
    positions: Any
    base_t: Any
    base_f: Any
    plan_t: Any
    plan_f: Any
    overdue: Any
    entered: Any
    left: Any
    hit: Any
    spared: Any


def room_for(n_jobs: int, n_nodes: int, factor: int) -> Room:
    """Return arrays for a number of jobs. ``factor`` doubles each time that they were too small."""
    k, m = n_jobs + 256 * factor + n_jobs * (factor - 1), 4096 * factor

    def ints(*shape: int) -> Any:
        return np.zeros(shape, dtype=np.int64)

    def flags() -> Any:
        return np.zeros(n_nodes, dtype=np.bool_)

    free = np.bincount(np.arange(n_nodes) // pool.BLOCK).astype(np.int64)
    return Room(
        ints(k, N_COLUMNS), ints(k), ints(2 * k + n_nodes, 2), ints(k, 2), ints(n_jobs),
        ints(n_jobs), np.full(n_nodes, FREE, dtype=np.int32), flags(), flags(), flags(),
        ints(n_nodes), free, ints(k, 3), ints(2 * k, 3), ints(k), ints(k), ints(k), ints(k),
        ints(k), ints(m), ints(m), ints(m), ints(m), ints(k), ints(k), ints(k), ints(k), ints(k),
    )  # fmt: skip


@loop
def run(  # noqa: PLR0912, PLR0915 (one loop)
    jobs: Any,
    line_at: Any,
    line_up: Any,
    line_first: Any,
    line_nodes: Any,
    parameters: Any,
    room: Any,
    counted: Any,
) -> Any:
    """Simulate all jobs, and return the outcome: DONE, MORE_EVENTS, MORE_ROOM or REFERENCE.

    Parameters
    ----------
    jobs : int64 array, shape (n, N_JOB_COLUMNS)
        Jobs in the order of their submission.
    line_at, line_up : int64 arrays, shape (m,)
        Time of each node event in ascending order, and whether its nodes come up.
    line_first : int64 array, shape (m + 1,)
        The nodes of event i are ``line_nodes[line_first[i]:line_first[i + 1]]``, ascending.
    parameters : int64 array, shape (N_PARAMETERS,)
    room : Room
        New arrays, see `room_for`. The results are in them.
    counted : int64 array, shape (5,)
        Receives the numbers of attempts, records, hits, given-up jobs and node events.
    """
    n_jobs, n_lines, n_nodes = jobs.shape[0], line_at.shape[0], parameters[N_NODES]
    depth, margin, order = parameters[DEPTH], parameters[MARGIN], parameters[ORDER]
    (
        attempts, records, nodes, hits, given_up, interrupted, owner, down, reported, marked,
        changed, free, ends, holds, size, duration, start, queue, positions, base_t, base_f,
        plan_t, plan_f, overdue, entered, left, hit, spared,
    ) = room  # fmt: skip
    n_attempts = n_records = n_nodes_used = n_hits = n_given_up = n_changed = n_ends = 0
    n_queue = n_holds = n_overdue = n_running = next_job = next_line = opened = 0
    n_free, n_down, unfinished, base_n, plan_n = n_nodes, 0, n_jobs, 1, 1
    base_f[0] = n_nodes
    plan_f[0] = n_nodes
    job_sequence, line_sequence, sequence = 1, 2, 2
    outcome = DONE
    while unfinished > 0:
        # ---- the next time
        now = FOREVER_US
        if n_ends:
            now = ends[0, 0]
        if next_job < n_jobs:
            now = min(now, jobs[next_job, SUBMIT])
        stuck = now == FOREVER_US and n_down == 0
        if next_line < n_lines:
            now = min(now, line_at[next_line])
        elif parameters[DRAWN] and not stuck:
            outcome = MORE_EVENTS
            break
        if now == FOREVER_US or (stuck and parameters[DRAWN]):
            outcome = REFERENCE
            break
        arriving = 0
        while next_job + arriving < n_jobs and jobs[next_job + arriving, SUBMIT] == now:
            arriving += 1
        if (
            n_attempts + arriving + n_running > attempts.shape[0]
            or n_holds + n_running + 8 > holds.shape[0]
            or max(base_n, plan_n) + 4 * (n_running + n_queue + arriving) + 64 > base_t.shape[0]
        ):
            outcome = MORE_ROOM
            break
        # ---- everything that happens at this time
        n_entered = n_left = n_hit = 0
        failures = repairs = raised = False
        while True:
            which, best = -1, FOREVER_US
            if n_ends and ends[0, 0] == now:
                which, best = 0, ends[0, 1]
            if next_job < n_jobs and jobs[next_job, SUBMIT] == now and job_sequence < best:
                which, best = 1, job_sequence
            if next_line < n_lines and line_at[next_line] == now and line_sequence < best:
                which = 2
            if which < 0:
                break
            if which == 0:
                a = ends[0, 2]
                n_ends = pop(ends, n_ends)
                if attempts[a, END] >= 0:
                    continue  # it was killed
                j = attempts[a, JOB]
                attempts[a, END] = now
                if now >= attempts[a, START] + attempts[a, WALL]:
                    attempts[a, CAUSE] = WALLTIME
                elif jobs[j, RET]:
                    attempts[a, CAUSE] = JOB_FAILED
                else:
                    attempts[a, CAUSE] = COMPLETED
                attempts[a, USEFUL] = max(0, now - attempts[a, START] - attempts[a, RECOVERY])
                first, k = attempts[a, NODES_AT], attempts[a, N_NODES_AT]
                n_free += pool.release(owner, down, free, nodes[first : first + k], n_down > 0)
                n_running -= 1
                unfinished -= 1
                records[n_records] = a
                n_records += 1
                left[n_left] = a
                n_left += 1
            elif which == 1:
                while next_job < n_jobs and jobs[next_job, SUBMIT] == now:
                    a, j = n_attempts, next_job
                    n_attempts += 1
                    next_job += 1
                    attempts[a, JOB], attempts[a, PRIORITY], attempts[a, QUEUED] = j, REGULAR, now
                    attempts[a, WALL], attempts[a, DELAY] = jobs[j, JOB_WALL], jobs[j, JOB_DELAY]
                    attempts[a, FIRST] = jobs[j, FIRST_PERIOD]
                    attempts[a, RECOVERY] = jobs[j, FIRST_RECOVERY]
                    attempts[a, START] = attempts[a, END] = attempts[a, HELD_UNTIL] = -1
                    entered[n_entered] = a
                    n_entered += 1
                sequence += 1
                job_sequence = sequence
            else:
                while next_line < n_lines and line_at[next_line] == now:
                    begin, end = line_first[next_line], line_first[next_line + 1]
                    first_hit = n_hit
                    for i in range(begin, end):
                        node = line_nodes[i]
                        if down[node] != (line_up[next_line] != 0):
                            return REFERENCE
                        if not marked[node]:
                            marked[node] = True
                            changed[n_changed] = node
                            n_changed += 1
                        if line_up[next_line]:
                            down[node] = False
                            n_down -= 1
                            if owner[node] == FREE:
                                n_free += 1
                                free[node // pool.BLOCK] += 1
                            repairs = True
                            continue
                        down[node] = True
                        n_down += 1
                        failures = True
                        if owner[node] == FREE:
                            n_free -= 1
                            free[node // pool.BLOCK] -= 1
                            continue
                        a, listed = owner[node] - 1, False
                        for k in range(n_hit):
                            listed |= hit[k] == a
                        if listed:
                            continue
                        k = n_hit
                        while k > first_hit and hit[k - 1] > a:  # ascending within an event
                            hit[k] = hit[k - 1]
                            k -= 1
                        hit[k] = a
                        n_hit += 1
                    next_line += 1
                sequence += 1
                line_sequence = sequence
        # ---- kills
        n_running_hit = 0
        for i in range(n_hit):
            if attempts[hit[i], END] < 0:
                hit[n_running_hit] = hit[i]
                n_running_hit += 1
        n_hit = n_kills = n_running_hit
        if n_hit:
            hits[n_hits, 0], hits[n_hits, 1] = now, n_free
            n_hits += 1
        n_victims = 0
        if parameters[STEALING] and n_hit:
            # the victims are the first of ``spared`` after the hit attempts
            for i in range(n_hit):
                spared[i] = hit[i]
            n_left_free = n_free
            for i in range(n_hit):
                a = hit[i]
                wanted = jobs[attempts[a, JOB], SIZE]
                survivors = wanted - lost_nodes(nodes, attempts, a, down)
                if n_left_free + survivors >= wanted:
                    n_left_free += survivors - wanted
                    continue
                n_more = wanted - survivors
                if parameters[VICTIM] == FITS:
                    n_more -= n_left_free
                b = victim_of(
                    attempts, jobs, ends, n_ends, spared, n_hit + n_victims, now, a, n_more,
                    parameters,
                )  # fmt: skip
                if b >= 0:
                    spared[n_hit + n_victims] = b
                    attempts[b, THIEF] = attempts[a, JOB]
                    n_victims += 1
            n_kills += n_victims
        for i in range(n_kills):  # victims first
            stolen = i < n_victims
            a = spared[n_hit + i] if stolen else hit[i - n_victims]
            j = attempts[a, JOB]
            useful, period, recovery = remaining(attempts, jobs, a, now)
            attempts[a, END], attempts[a, USEFUL] = now, useful
            attempts[a, CAUSE] = STOLEN if stolen else NODE_FAILURE
            first, k = attempts[a, NODES_AT], attempts[a, N_NODES_AT]
            n_free += pool.release(owner, down, free, nodes[first : first + k], n_down > 0)
            n_running -= 1
            unfinished -= 1
            records[n_records] = a
            n_records += 1
            left[n_left] = a
            n_left += 1
            if not stolen:
                interrupted[j] += 1
            if interrupted[j] >= parameters[MAX_ATTEMPTS]:
                given_up[n_given_up] = j
                n_given_up += 1
                continue
            b = n_attempts
            n_attempts += 1
            less = less_by(attempts, a, useful, recovery)
            attempts[b, JOB], attempts[b, NUMBER] = j, attempts[a, NUMBER] + 1
            attempts[b, PRIORITY] = VICTIM_FIRST if stolen else FAILED
            attempts[b, QUEUED] = now
            wall = attempts[a, WALL]
            attempts[b, WALL] = wall if wall >= FOREVER_US else max(1, wall - less)
            attempts[b, DELAY] = max(1, attempts[a, DELAY] - less)
            attempts[b, FIRST], attempts[b, RECOVERY] = period, recovery
            attempts[b, START] = attempts[b, END] = attempts[b, HELD_UNTIL] = -1
            unfinished += 1
            raised = True
            entered[n_entered] = b
            n_entered += 1
        if not (n_entered or n_left or failures or repairs):
            continue
        # ---- the plan: ends, failures and repairs
        while n_holds and holds[0, 0] <= now:
            at, a = holds[0, 0], holds[0, 2]
            n_holds = pop(holds, n_holds)
            if attempts[a, HELD_UNTIL] == at:
                overdue[n_overdue] = a
                n_overdue += 1
        upkeep = APPEND
        for i in range(n_left):
            a = left[i]
            held, attempts[a, HELD_UNTIL] = attempts[a, HELD_UNTIL], -1
            until, nodes_back = max(held, now), jobs[attempts[a, JOB], SIZE]
            base_n = counts.change(base_t, base_f, base_n, now, until, nodes_back)
            plan_n = counts.change(plan_t, plan_f, plan_n, now, until, nodes_back)
            opened = max(opened, held)
            upkeep = parameters[ON_END]
        if failures or repairs:
            lost = gained = 0
            for i in range(n_changed):
                node = changed[i]
                marked[node] = False
                if down[node] != reported[node]:
                    reported[node] = down[node]
                    if down[node]:
                        lost += 1
                    else:
                        gained += 1
            n_changed = 0
            if failures:
                base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, -lost)
                plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, -lost)
                upkeep = max(upkeep, parameters[ON_FAILURE])
            if repairs:
                base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, gained)
                plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, gained)
                opened = FOREVER_US
                upkeep = max(upkeep, parameters[ON_REPAIR])
        if raised:
            upkeep = max(upkeep, parameters[ON_PRIORITY])
        # ---- the queue
        before = n_queue
        for i in range(n_entered):
            a = entered[i]
            if jobs[attempts[a, JOB], SIZE] > n_nodes:
                attempts[a, CAUSE] = REJECTED
                records[n_records] = a
                n_records += 1
                unfinished -= 1
                continue
            at = place_in_queue(attempts, jobs, queue, n_queue, a, order)
            for k in range(n_queue, at, -1):
                size[k], duration[k] = size[k - 1], duration[k - 1]
                start[k], queue[k] = start[k - 1], queue[k - 1]
            size[at], queue[at] = jobs[attempts[a, JOB], SIZE], a
            duration[at], start[at] = planned(attempts[a, WALL], margin), counts.NEVER
            n_queue += 1
            upkeep = max(upkeep, parameters[ON_ARRIVAL] if at == n_queue - 1 else REBUILD)
        # ---- the plan: reservations
        if depth == ALL or n_queue:
            # attempts that did not end in time
            n_late = 0
            for i in range(n_overdue):
                a = overdue[i]
                if attempts[a, HELD_UNTIL] >= 0:
                    attempts[a, HELD_UNTIL] = now + 1
                    nodes_held = jobs[attempts[a, JOB], SIZE]
                    base_n = counts.change(base_t, base_f, base_n, now, now + 1, -nodes_held)
                    n_holds = push(holds, n_holds, now + 1, a, a)
                    overdue[n_late] = a
                    n_late += 1
            n_overdue = 0
            base_n = counts.forget(base_t, base_f, base_n, now)
            if depth == ALL and upkeep != REBUILD:
                plan_n = counts.forget(plan_t, plan_f, plan_n, now)
                if counts.any_before(start, before, now + (1 if n_late else 0)):
                    copy_profile(base_t, base_f, base_n, plan_t, plan_f)
                    plan_n = counts.place(plan_t, plan_f, base_n, size, duration, start, 0, before)
                elif n_late:
                    for i in range(n_late):
                        nodes_held = jobs[attempts[overdue[i], JOB], SIZE]
                        plan_n = counts.change(plan_t, plan_f, plan_n, now, now + 1, -nodes_held)
                if upkeep == COMPRESS:
                    plan_n, opened = counts.compress(
                        plan_t, plan_f, plan_n, size, duration, start, before, opened
                    )
                if before < n_queue or upkeep == APPEND:
                    plan_n = counts.place(
                        plan_t, plan_f, plan_n, size, duration, start, before, n_queue
                    )
            else:
                copy_profile(base_t, base_f, base_n, plan_t, plan_f)
                if depth == ALL:
                    plan_n = counts.place(plan_t, plan_f, base_n, size, duration, start, 0, n_queue)
                    opened = now
                else:
                    plan_n = counts.backfill(
                        plan_t, plan_f, base_n, size, duration, start, n_queue, depth,
                        parameters[FIRST_ONLY] != 0,
                    )  # fmt: skip
        # ---- starts
        n_due = counts.due(start, n_queue, now, positions) if n_queue else 0
        for i in range(n_due):
            a = queue[positions[i]]
            n_wanted = size[positions[i]]
            if n_nodes_used + n_nodes // 2 + 1 > nodes.shape[0]:
                return MORE_ROOM
            k = -1
            if n_wanted <= n_free:
                k = pool.lowest_free(owner, down, free, n_wanted, nodes[n_nodes_used:])
            if k < 0:
                return REFERENCE
            pool.take(owner, down, free, nodes[n_nodes_used : n_nodes_used + k], a + 1)
            n_free -= n_wanted
            attempts[a, NODES_AT], attempts[a, N_NODES_AT], attempts[a, START] = (
                n_nodes_used,
                k,
                now,
            )
            n_nodes_used += k
            n_running += 1
            sequence += 1
            length = min(attempts[a, DELAY], attempts[a, WALL])
            n_ends = push(ends, n_ends, now + length, sequence, a)
            until = now + duration[positions[i]]
            attempts[a, HELD_UNTIL] = until
            n_holds = push(holds, n_holds, until, a, a)
            base_n = counts.change(base_t, base_f, base_n, now, until, -n_wanted)
        if n_due:
            counts.take_out(size, duration, start, queue, n_queue, positions, n_due)
            n_queue -= n_due
    counted[0], counted[1], counted[2] = n_attempts, n_records, n_hits
    counted[3], counted[4] = n_given_up, next_line
    return outcome
