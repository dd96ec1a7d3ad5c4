# SPDX-License-Identifier: Apache-2.0
"""A simulation in one compiled function: engine, session, list scheduling or fifo, node stealing.

The function has the semantics of `rebat.engine.Engine`, `rebat.session.Session` and the policies,
for the runs that `rebat.sim.eligible` describes. An *instant* consists of these steps:

1. All ends, submissions and node events of the time, in the order in which the engine's heap would
   yield them. Each entry of that heap has a sequence number, and so have the entries here.
2. The reaction: the attempts hit by failures, in the order of the events, their victims, and the
   scheduled stops that are due. This determines the kills.
3. Unless kills are pending: the update of the plan (rebuild, compress, append, or backfill to a
   depth), and the starts that are due, in queue order. The authors' program also plans while kills
   are pending, and again if this ends a wait.
4. If kills are pending: the next message of the instant acknowledges them. Then step 3 follows.

Times are in microseconds. An attempt is a row of a table, and its number is its serial minus 1.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import blocks, counts, deep, named, named_lists, pool, slices
from rebat.kernels.jit import inlined, loop
from rebat.sim.columns import (
    ALL,
    APPEND,
    AT,
    CALL_TABLE,
    CANCELLED,
    COMPLETED,
    COMPRESS,
    COST,
    DELAY,
    DEPTH,
    DONE,
    DRAWN,
    END,
    ENTERED,
    FAILED,
    FAILURE,
    FIFO,
    FIRST,
    FIRST_ONLY,
    FIRST_PERIOD,
    FIRST_RECOVERY,
    FITS,
    FREE,
    HELD_KEY,
    HELD_SIZE,
    HELD_UNTIL,
    HIT,
    HIT_AS_VICTIM,
    HIT_TABLE,
    HITS_AT,
    HITS_FREE,
    HOLD,
    JOB,
    JOB_DELAY,
    JOB_FAILED,
    JOB_WALL,
    KILLED,
    LARGER_ROOM,
    LAST_CALL,
    LEFT,
    MARGIN,
    MORE_EVENTS,
    MORE_ROOM,
    N_ATTEMPTS,
    N_CALLS,
    N_DOWN,
    N_ENTERED,
    N_FREE,
    N_HITS,
    N_KILLS,
    N_LEFT,
    N_LINES,
    N_NEW_HOLDS,
    N_NODES,
    N_NODES_AT,
    N_NODES_USED,
    N_PLANNED_AT,
    N_RAISED,
    N_RUNNING,
    N_STEALS,
    N_STOPS,
    N_WAITS,
    NAMED,
    NEW_HOLDS,
    NO_WALLTIME,
    NODE_FAILURE,
    NODES_AT,
    NOW,
    NUMBER,
    ON_ARRIVAL,
    ON_END,
    ON_FAILURE,
    ON_PRIORITY,
    ON_REPAIR,
    OWN_COST,
    OWN_PERIOD,
    OWN_RESTART,
    PERIOD,
    PLANNED_AT,
    PRIORITY,
    PROFILE,
    QUEUED,
    REBUILD,
    RECOVERY,
    REFERENCE,
    REGULAR,
    REJECTED,
    RESTART,
    RET,
    SIX_DIGITS,
    SIZE,
    SIZE_OF_HOLD,
    SPARED,
    START,
    STEALING,
    STEALS_AT,
    STOLEN,
    STOP,
    STOP_TABLE,
    SUBMIT,
    THIEF,
    TIMED,
    TIMING,
    TO_THE_LAST_EVENT,
    TOO_SMALL,
    TWO_PASSES,
    UNCLEAR,
    UNFINISHED,
    VICTIM,
    VICTIM_FIRST,
    WAITS,
    WALL,
    WALLTIME,
)
from rebat.sim.queue import place_in_queue, planned, pop, push
from rebat.sim.stops import accepts, lost_nodes, remaining, victim_of
from rebat.sim.waits import (
    acknowledge,
    call_off_hit,
    carry_out_due,
    give_up_steals,
    kill,
    leave,
    lose_held_nodes,
    note_held_nodes,
    reject,
    schedule,
    second_pass,
)


@inlined
def copy_profile(t: Any, f: Any, n: int, to_t: Any, to_f: Any) -> None:
    """Copy a profile."""
    for i in range(n):
        to_t[i] = t[i]
        to_f[i] = f[i]


@inlined
def insert_ascending(rows: Any, n: int, row: int) -> int:
    """Insert a number into an ascending list without duplicates, and return the new length."""
    at = n
    while at > 0 and rows[at - 1] > row:
        at -= 1
    if at > 0 and rows[at - 1] == row:
        return n
    for k in range(n, at, -1):
        rows[k] = rows[k - 1]
    rows[at] = row
    return n + 1


@loop
def sort_nodes(nodes: Any, n: int) -> None:
    """Sort node numbers, which are nearly sorted."""
    for i in range(1, n):
        node, k = nodes[i], i
        while k > 0 and nodes[k - 1] > node:
            nodes[k] = nodes[k - 1]
            k -= 1
        nodes[k] = node


@inlined
def is_held(attempts: Any, a: int, key: int) -> bool:
    """Return whether an entry of the heap of planned ends is still valid."""
    return attempts[a, HELD_UNTIL] >= 0 and attempts[a, HELD_KEY] == key


@inlined
def nodes_in_plan(attempts: Any, a: int) -> Any:
    """Return where the nodes that the plan knows begin, and the number of their intervals."""
    if attempts[a, NUMBER] == HOLD:
        return attempts[a, PLANNED_AT], attempts[a, N_PLANNED_AT]
    return attempts[a, NODES_AT], attempts[a, N_NODES_AT]


@loop
def is_new_hold(state: Any, h: int) -> bool:
    """Return whether a row represents nodes that no plan knew to be held before."""
    is_new = False
    for i in range(state.n[N_NEW_HOLDS]):
        is_new |= state.lists[NEW_HOLDS, i] == h
    return is_new


@inlined
def first_that_fit(size: Any, n_queue: int, n_free: int, out: Any) -> int:
    """Write the positions of the first attempts of the queue that fit, and count them."""
    n_due = 0
    while n_due < n_queue and size[n_due] <= n_free:
        out[n_due] = n_due
        n_free -= size[n_due]
        n_due += 1
    return n_due


@loop
def is_full(table: Any, n_queue: int, n_intervals: int, n_nodes: int) -> bool:
    """Return whether a table has too little space for reservations and the use of intervals."""
    n_slices, n_blocks = table.n[blocks.SLICES], table.n[blocks.BLOCKS]
    return (
        n_slices + 2 * n_queue + 4 > table.t.shape[0]
        or min(n_blocks + n_queue + 2 * n_intervals, n_nodes) > table.first.shape[0] - 1
        or max(n_queue, table.n[blocks.RESERVED]) > table.start.shape[0]
    )


@loop
def steal(state: Any, extended: Any, ends: Any, n_ends: int, n_hit: int, now: int) -> None:
    """Choose victims for the attempts that failures hit (`rebat.policies.reactions.stealing`)."""
    hit = state.tables[HIT_TABLE]
    stops = state.tables[STOP_TABLE]
    parameters, jobs = state.n, state.jobs
    n, attempts, timing = state.n, state.attempts, parameters[TIMING]
    n_spared, n_free = 0, n[N_FREE]
    for i in range(n_hit):
        state.lists[SPARED, n_spared] = hit[i, HIT]
        n_spared += 1
    for s in range(n[N_STOPS]):
        state.lists[SPARED, n_spared] = stops[s, STOP]
        n_spared += 1
    for i in range(n_hit):
        a = hit[i, HIT]
        wanted = jobs[attempts[a, JOB], SIZE]
        survivors = wanted - lost_nodes(state, a)
        if n_free + survivors >= wanted:
            n_free += survivors - wanted
            continue
        if hit[i, CANCELLED] >= 0 or (timing != NOW and survivors == 0):
            continue
        n_more = wanted - survivors
        if parameters[VICTIM] == FITS and timing == NOW:
            n_more -= n_free
        b = victim_of(state, ends, n_ends, n_spared, now, n_more)
        if b < 0 or not accepts(state, ends, n_ends, now, a, b, timing):
            continue
        state.lists[SPARED, n_spared] = b
        n_spared += 1
        attempts[b, THIEF] = attempts[a, JOB] + 1
        state.lists[STEALS_AT, n[N_STEALS]] = now
        n[N_STEALS] += 1
        wait = 0
        if extended is not None:
            wait = remaining(state, b, now, timing)[3]
            if wait > 0:
                schedule(state, b, wait, now)
                kill(state, a, now, NOW, WAITS, NODE_FAILURE, b)
                hit[i, KILLED] = 1
        if wait == 0:
            kill(state, b, now, timing, VICTIM_FIRST, STOLEN, -1)


@loop
def react(
    state: Any, extended: Any, ends: Any, n_ends: int, n_hit: int, failures: bool,
    now: int,
) -> int:  # fmt: skip
    """Decide on the attempts that failures hit, and on stops that are due.

    Return the number of kills that are not of due stops.
    """
    hit = state.tables[HIT_TABLE]
    parameters = state.n
    n, attempts, n_cancelled, caused = state.n, state.attempts, 0, False
    for i in range(n_hit):
        hit[i, CANCELLED], hit[i, KILLED] = -1, 0
        caused |= attempts[hit[i, HIT], FAILURE] > 0
    if extended is not None and n_hit and n[N_STOPS]:
        n_cancelled = call_off_hit(state, n_hit, caused, now)
    if n_hit and (n_cancelled < n_hit or not parameters[HIT_AS_VICTIM]):
        state.lists[HITS_AT, n[N_HITS]], state.lists[HITS_FREE, n[N_HITS]] = now, n[N_FREE]
        n[N_HITS] += 1
    if failures and parameters[STEALING]:
        if extended is not None:
            give_up_steals(state, now)
        if n_hit:
            steal(state, extended, ends, n_ends, n_hit, now)
    for i in range(n_hit):
        a, decided = hit[i, HIT], hit[i, CANCELLED]
        if hit[i, KILLED]:
            continue
        if decided >= 0 and parameters[HIT_AS_VICTIM]:
            kill(state, a, decided, NOW, VICTIM_FIRST, NODE_FAILURE, -1)
        else:
            kill(state, a, now, NOW, FAILED, NODE_FAILURE, -1)
    n_first = n[N_KILLS]
    if extended is not None and n[N_STOPS]:
        carry_out_due(state, now)
    return n_first


@loop
def run(  # noqa: PLR0911, PLR0912, PLR0915 (one loop)
    line_at: Any,
    line_up: Any,
    line_cause: Any,
    line_first: Any,
    line_nodes: Any,
    room: Any,
    table: Any,
    extended: Any,
) -> Any:
    """Simulate all jobs, and return the outcome (see `rebat.sim.columns`).

    Parameters
    ----------
    line_at, line_up, line_cause : int64 arrays, shape (m,)
        Time of each node event in ascending order, whether its nodes come up, and the number of its
        cause (0: unknown).
    line_first : int64 array, shape (m + 1,)
        The nodes of event i are ``line_nodes[line_first[i]:line_first[i + 1]]``, ascending.
    room : Room
        New arrays, see `room_for`, or those of a run that needed more events or larger arrays and
        goes on. The results are in them.
    table : BlockTable or None
        The plan of named nodes, or None if nodes are only counted.
    extended : True or None
        None if no stop waits for a checkpoint and no number is rounded. The rules for these cases,
        and those for named nodes, are only compiled if they are needed.
    """
    state, ends = room.state, room.ends
    n, parameters, jobs, attempts = state.n, state.n, state.jobs, state.attempts
    profiles = state.profiles
    nodes, owner, down, free = state.nodes, state.owner, state.down, state.free
    n_jobs, n_lines, n_nodes = jobs.shape[0], line_at.shape[0], parameters[N_NODES]
    depth, margin = parameters[DEPTH], parameters[MARGIN]
    fifo = parameters[FIFO] != 0
    entered, left, new_holds = state.lists[ENTERED], state.lists[LEFT], state.lists[NEW_HOLDS]
    hit, stops, calls = (
        state.tables[HIT_TABLE], state.tables[STOP_TABLE], state.tables[CALL_TABLE],
    )  # fmt: skip
    holds, overdue = room.holds, room.overdue
    size, duration, start = room.size, room.duration, room.start
    base_t, base_f, plan_t, plan_f = room.base_t, room.base_f, room.plan_t, room.plan_f
    scratch = room.scratch
    saved = room.saved
    n_changed, n_ends, n_queue, n_holds = saved[0], saved[1], saved[2], saved[3]
    n_overdue, next_job, next_line, opened = saved[4], saved[5], saved[6], saved[7]
    base_n, plan_n, planned_at, key = saved[8], saved[9], saved[10], saved[11]
    job_sequence, line_sequence, sequence = saved[12], saved[13], saved[14]
    while n[UNFINISHED] > 0:
        # ---- the next time
        now = FOREVER_US
        if n_ends:
            now = ends[0, 0]
        if next_job < n_jobs:
            now = min(now, jobs[next_job, SUBMIT])
        stuck = now == FOREVER_US and n[N_DOWN] == 0
        if n[N_CALLS]:
            now = min(now, calls[0, 0])
        if next_line < n_lines:
            now = min(now, line_at[next_line])
        missing = next_line == n_lines and parameters[DRAWN] and not stuck
        if not missing and (now == FOREVER_US or (stuck and parameters[DRAWN])):
            return REFERENCE
        arriving = 0
        while next_job + arriving < n_jobs and jobs[next_job + arriving, SUBMIT] == now:
            arriving += 1
        full = (
            n[N_ATTEMPTS] + arriving > attempts.shape[0]
            or n_holds + 2 * n[N_RUNNING] + 4 * n[N_WAITS] + 8 > holds.shape[0]
            or max(base_n, plan_n) + 4 * (n[N_RUNNING] + n[N_WAITS] + n_queue + arriving) + 64
            > base_t.shape[0]
            or n[N_NODES_USED] + n_nodes + n_queue + arriving + n[N_RUNNING] > nodes.shape[0]
        )
        if missing or full:
            saved[0], saved[1], saved[2], saved[3] = n_changed, n_ends, n_queue, n_holds
            saved[4], saved[5], saved[6], saved[7] = n_overdue, next_job, next_line, opened
            saved[8], saved[9], saved[10], saved[11] = base_n, plan_n, planned_at, key
            saved[12], saved[13], saved[14] = job_sequence, line_sequence, sequence
            return MORE_EVENTS if missing else LARGER_ROOM
        # ---- everything that happens at this time
        n_hit = 0
        failures = repairs = False
        while n[N_CALLS] and calls[0, 0] == now:
            n[N_CALLS] = pop(calls, n[N_CALLS])
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
                cause = COMPLETED
                if now >= attempts[a, START] + attempts[a, WALL]:
                    cause = WALLTIME
                elif profiles[jobs[attempts[a, JOB], PROFILE], RET]:
                    cause = JOB_FAILED
                leave(
                    state, a, now, cause, max(0, now - attempts[a, START] - attempts[a, RECOVERY])
                )
                n[UNFINISHED] -= 1
            elif which == 1:
                while next_job < n_jobs and jobs[next_job, SUBMIT] == now:
                    a, j, p = n[N_ATTEMPTS], next_job, jobs[next_job, PROFILE]
                    n[N_ATTEMPTS] += 1
                    next_job += 1
                    attempts[a, JOB], attempts[a, PRIORITY], attempts[a, QUEUED] = j, REGULAR, now
                    attempts[a, WALL], attempts[a, DELAY] = (
                        jobs[j, JOB_WALL],
                        profiles[p, JOB_DELAY],
                    )
                    attempts[a, FIRST] = profiles[p, FIRST_PERIOD]
                    attempts[a, RECOVERY] = profiles[p, FIRST_RECOVERY]
                    attempts[a, START] = attempts[a, END] = attempts[a, HELD_UNTIL] = -1
                    if parameters[SIX_DIGITS]:
                        attempts[a, OWN_PERIOD] = profiles[p, PERIOD]
                        attempts[a, OWN_COST] = profiles[p, COST]
                        attempts[a, OWN_RESTART] = profiles[p, RESTART]
                    entered[n[N_ENTERED]] = a
                    n[N_ENTERED] += 1
                sequence += 1
                job_sequence = sequence
            else:
                while next_line < n_lines and line_at[next_line] == now:
                    begin, end = line_first[next_line], line_first[next_line + 1]
                    up, n_held, first_hit = line_up[next_line] != 0, 0, n_hit
                    for i in range(begin, end):
                        node = line_nodes[i]
                        if down[node] != up:
                            return REFERENCE
                        if not room.marked[node]:
                            room.marked[node] = True
                            room.changed[n_changed] = node
                            n_changed += 1
                        down[node] = not up
                        n[N_DOWN] += -1 if up else 1
                        if owner[node] == FREE:
                            n[N_FREE] += 1 if up else -1
                            free[node // pool.BLOCK] += 1 if up else -1
                            continue
                        a, listed = owner[node] - 1, up
                        if attempts[a, NUMBER] == HOLD:
                            n_held = insert_ascending(state.lists[SPARED], n_held, a)
                            continue
                        for k in range(n_hit):
                            listed |= hit[k, HIT] == a
                        if listed:
                            continue
                        k = n_hit
                        if 2 * n_hit + n[N_STOPS] + 2 > hit.shape[0]:
                            return MORE_ROOM
                        while k > first_hit and hit[k - 1, HIT] > a:  # ascending within an event
                            hit[k, HIT] = hit[k - 1, HIT]
                            k -= 1
                        hit[k, HIT], attempts[a, FAILURE] = a, line_cause[next_line]
                        n_hit += 1
                    if up:
                        repairs = True
                    else:
                        failures = True
                    if extended is not None and n_held:
                        note_held_nodes(state, state.lists[SPARED], n_held, now)
                        if not up:
                            lose_held_nodes(state, state.lists[SPARED], n_held, now)
                    next_line += 1
                sequence += 1
                line_sequence = sequence
        # ---- the reaction
        n_running_hit = 0
        for i in range(n_hit):
            if attempts[hit[i, HIT], END] < 0:
                hit[n_running_hit, HIT] = hit[i, HIT]
                n_running_hit += 1
        n_hit = n_running_hit
        is_due = False
        for s in range(n[N_STOPS]):
            is_due |= stops[s, AT] <= now
        if not (n[N_ENTERED] or n[N_LEFT] or n[N_NEW_HOLDS] or failures or repairs or is_due):
            continue
        n_first_kills = 0
        if n_hit or n[N_STOPS] or n[N_WAITS]:
            n_first_kills = react(state, extended, ends, n_ends, n_hit, failures, now)
        may_plan = parameters[TWO_PASSES] != 0 and n[N_KILLS] == n_first_kills
        while True:
            if n[TOO_SMALL]:
                return MORE_ROOM
            if n[UNCLEAR]:
                return REFERENCE
            changed = n[N_ENTERED] or n[N_LEFT] or n[N_NEW_HOLDS] or failures or repairs
            if changed and (not n[N_KILLS] or may_plan):
                upkeep = APPEND
                # ---- the plan: ends, held nodes, failures and repairs
                if not fifo:
                    if table is not None:
                        named.drop_begun(table, planned_at)
                        if now > planned_at:
                            slices.forget(table, now)
                    planned_at = now
                    while n_holds and holds[0, 0] <= now:
                        if n_overdue == overdue.shape[0]:
                            return MORE_ROOM
                        overdue[n_overdue, 0], overdue[n_overdue, 1] = holds[0, 2], holds[0, 1]
                        if is_held(attempts, holds[0, 2], holds[0, 1]):
                            n_overdue += 1
                        n_holds = pop(holds, n_holds)
                    for i in range(n[N_LEFT]):
                        a = left[i]
                        held, attempts[a, HELD_UNTIL] = attempts[a, HELD_UNTIL], -1
                        if table is not None:
                            first, k = nodes_in_plan(attempts, a)
                            if is_full(table, 0, k, n_nodes):
                                return MORE_ROOM
                            slices.give_nodes(table, nodes[first : first + k], now, held)
                        else:
                            until, nodes_back = max(held, now), attempts[a, HELD_SIZE]
                            base_n = counts.change(base_t, base_f, base_n, now, until, nodes_back)
                            plan_n = counts.change(plan_t, plan_f, plan_n, now, until, nodes_back)
                        opened = max(opened, held)
                        upkeep = parameters[ON_END]
                    for i in range(n[N_NEW_HOLDS]):
                        a = new_holds[i]
                        until = attempts[a, START] + planned(attempts[a, WALL], margin)
                        first, k = attempts[a, NODES_AT], attempts[a, N_NODES_AT]
                        attempts[a, PLANNED_AT], attempts[a, N_PLANNED_AT] = first, k
                        attempts[a, HELD_SIZE] = attempts[a, SIZE_OF_HOLD]
                        if table is not None:
                            named.clear(table)
                            if is_full(table, 0, k, n_nodes):
                                return MORE_ROOM
                            slices.take_nodes(table, nodes[first : first + k], now, until)
                        else:
                            nodes_held = attempts[a, HELD_SIZE]
                            base_n = counts.change(base_t, base_f, base_n, now, until, -nodes_held)
                        key += 1
                        attempts[a, HELD_UNTIL], attempts[a, HELD_KEY] = until, key
                        n_holds = push(holds, n_holds, until, key, a)
                        upkeep = max(upkeep, parameters[ON_PRIORITY])
                    if failures:
                        if table is not None:
                            named.clear(table)
                            sort_nodes(room.changed, n_changed)
                        first = n[N_NODES_USED]
                        if first + n_nodes // 2 + 1 > nodes.shape[0]:
                            return MORE_ROOM
                        lost = k = 0
                        for i in range(n_changed):
                            node = room.changed[i]
                            if not down[node] or room.reported[node]:
                                continue
                            room.reported[node] = True
                            lost += 1
                            if table is not None:
                                k = pool.extend(nodes[first:], k, node, node)
                            elif owner[node] != FREE:
                                a = owner[node] - 1
                                if attempts[a, HELD_UNTIL] < 0:
                                    return REFERENCE
                                attempts[a, HELD_SIZE] -= 1
                                until = attempts[a, HELD_UNTIL]
                                base_n = counts.change(base_t, base_f, base_n, now, until, 1)
                                plan_n = counts.change(plan_t, plan_f, plan_n, now, until, 1)
                        if table is not None:
                            if is_full(table, 0, k, n_nodes):
                                return MORE_ROOM
                            slices.fail(table, nodes[first : first + k])
                        else:
                            base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, -lost)
                            plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, -lost)
                        upkeep = max(upkeep, parameters[ON_FAILURE])
                    if repairs:
                        if table is not None:
                            sort_nodes(room.changed, n_changed)
                        first = n[N_NODES_USED]
                        if first + n_nodes // 2 + 1 > nodes.shape[0]:
                            return MORE_ROOM
                        gained = k = 0
                        for i in range(n_changed):
                            node = room.changed[i]
                            if down[node] or not room.reported[node]:
                                continue
                            room.reported[node] = False
                            gained += 1
                            if owner[node] != FREE and not is_new_hold(state, owner[node] - 1):
                                return REFERENCE
                            if table is not None:
                                k = pool.extend(nodes[first:], k, node, node)
                        if table is not None:
                            if is_full(table, 0, k, n_nodes):
                                return MORE_ROOM
                            slices.repair(table, nodes[first : first + k])
                            for i in range(n[N_NEW_HOLDS]):
                                a = new_holds[i]
                                first, k = nodes_in_plan(attempts, a)
                                if is_full(table, 0, k, n_nodes):
                                    return MORE_ROOM
                                until = attempts[a, HELD_UNTIL]
                                slices.take_nodes(table, nodes[first : first + k], now, until)
                        else:
                            base_n = counts.change(base_t, base_f, base_n, now, FOREVER_US, gained)
                            plan_n = counts.change(plan_t, plan_f, plan_n, now, FOREVER_US, gained)
                        opened = FOREVER_US
                        upkeep = max(upkeep, parameters[ON_REPAIR])
                    if n[N_RAISED]:
                        upkeep = max(upkeep, parameters[ON_PRIORITY])
                if failures or repairs:
                    for i in range(n_changed):
                        room.marked[room.changed[i]] = False
                    n_changed = 0
                # ---- the queue
                before = n_queue
                if parameters[TIMED]:
                    for i in range(n[N_ENTERED]):
                        a = entered[i]
                        if attempts[a, WALL] >= FOREVER_US:
                            reject(state, a, NO_WALLTIME)
                for i in range(n[N_ENTERED]):
                    a = entered[i]
                    if parameters[TIMED] and attempts[a, WALL] >= FOREVER_US:
                        continue
                    if jobs[attempts[a, JOB], SIZE] > n_nodes:
                        reject(state, a, REJECTED)
                        continue
                    at = place_in_queue(attempts, jobs, room.queue, n_queue, a, parameters)
                    for k in range(n_queue, at, -1):
                        size[k], duration[k] = size[k - 1], duration[k - 1]
                        start[k], room.queue[k] = start[k - 1], room.queue[k - 1]
                    size[at], room.queue[at] = jobs[attempts[a, JOB], SIZE], a
                    duration[at], start[at] = planned(attempts[a, WALL], margin), counts.NEVER
                    n_queue += 1
                    upkeep = max(upkeep, parameters[ON_ARRIVAL] if at == n_queue - 1 else REBUILD)
                # ---- the plan: reservations
                if not fifo and (depth == ALL or n_queue or parameters[NAMED]):
                    if table is not None and depth == ALL and upkeep == REBUILD:
                        named.clear(table)
                    # attempts that did not end in time
                    n_late = 0
                    for i in range(n_overdue):
                        if is_held(attempts, overdue[i, 0], overdue[i, 1]):
                            overdue[n_late, 0] = overdue[i, 0]
                            n_late += 1
                    n_overdue = 0
                    late = now + (1 if n_late else 0)
                    if table is not None and counts.any_before(
                        table.start, table.n[blocks.RESERVED], late
                    ):
                        named.clear(table)
                    for i in range(n_late):
                        a = overdue[i, 0]
                        if table is not None:
                            first, k = nodes_in_plan(attempts, a)
                            if is_full(table, 0, k, n_nodes):
                                return MORE_ROOM
                            slices.take_nodes(table, nodes[first : first + k], now, now + 1)
                        else:
                            nodes_held = attempts[a, HELD_SIZE]
                            base_n = counts.change(
                                base_t, base_f, base_n, now, now + 1, -nodes_held
                            )
                        key += 1
                        attempts[a, HELD_UNTIL], attempts[a, HELD_KEY] = now + 1, key
                        n_holds = push(holds, n_holds, now + 1, key, a)
                if fifo:
                    pass
                elif table is not None:
                    if is_full(table, n_queue, 0, n_nodes):
                        return MORE_ROOM
                    if depth != ALL:
                        named_lists.backfill(
                            table, size, duration, n_queue, depth, parameters[FIRST_ONLY] != 0
                        )
                    else:
                        if upkeep == COMPRESS:
                            opened = named_lists.compress(table, size, duration, opened)
                            named_lists.place(table, size, duration, before)
                            if is_full(table, n_queue, 0, n_nodes):
                                return MORE_ROOM
                        named_lists.place(table, size, duration, n_queue)
                        if upkeep == REBUILD:
                            opened = now
                    for i in range(table.n[blocks.RESERVED]):
                        start[i] = table.start[i]
                elif depth == ALL or n_queue:
                    base_n = counts.forget(base_t, base_f, base_n, now)
                    if depth == ALL and upkeep != REBUILD:
                        plan_n = counts.forget(plan_t, plan_f, plan_n, now)
                        if counts.any_before(start, before, late):
                            copy_profile(base_t, base_f, base_n, plan_t, plan_f)
                            plan_n = deep.reserve(
                                plan_t,
                                plan_f,
                                base_n,
                                size,
                                duration,
                                start,
                                0,
                                before,
                                scratch,
                                deep.DEEP,
                            )
                        elif n_late:
                            for i in range(n_late):
                                nodes_held = attempts[overdue[i, 0], HELD_SIZE]
                                plan_n = counts.change(
                                    plan_t, plan_f, plan_n, now, now + 1, -nodes_held
                                )
                        if upkeep == COMPRESS:
                            plan_n, opened = deep.renew(
                                plan_t, plan_f, plan_n, size, duration, start, before, opened,
                                scratch, deep.DEEP,
                            )  # fmt: skip
                        if before < n_queue or upkeep == APPEND:
                            plan_n = deep.reserve(
                                plan_t, plan_f, plan_n, size, duration, start, before, n_queue,
                                scratch, deep.DEEP,
                            )  # fmt: skip
                    else:
                        copy_profile(base_t, base_f, base_n, plan_t, plan_f)
                        if depth == ALL:
                            plan_n = deep.reserve(
                                plan_t,
                                plan_f,
                                base_n,
                                size,
                                duration,
                                start,
                                0,
                                n_queue,
                                scratch,
                                deep.DEEP,
                            )
                            opened = now
                        else:
                            plan_n = counts.backfill(
                                plan_t, plan_f, base_n, size, duration, start, n_queue, depth,
                                parameters[FIRST_ONLY] != 0,
                            )  # fmt: skip
                # ---- starts
                n_due = 0
                if fifo:
                    n_due = first_that_fit(size, n_queue, n[N_FREE], room.positions)
                elif n_queue:
                    n_due = counts.due(start, n_queue, now, room.positions)
                for i in range(n_due):
                    at, first = room.positions[i], n[N_NODES_USED]
                    a, n_wanted = room.queue[at], size[at]
                    if first + n_nodes // 2 + 1 > nodes.shape[0]:
                        return MORE_ROOM
                    k = -1
                    if table is not None and not fifo:
                        k = blocks.nodes_of(table, table.held[at], nodes[first:])
                    elif n_wanted <= n[N_FREE]:
                        k = pool.lowest_free(owner, down, free, n_wanted, nodes[first:])
                    if k < 0:
                        return REFERENCE
                    chosen = nodes[first : first + k]
                    if table is not None and pool.first_obstacle(owner, down, free, chosen) >= 0:
                        return REFERENCE
                    pool.assign(owner, free, chosen, a + 1)
                    n[N_FREE] -= n_wanted
                    attempts[a, NODES_AT], attempts[a, N_NODES_AT] = first, k
                    attempts[a, START] = now
                    n[N_NODES_USED] += k
                    n[N_RUNNING] += 1
                    sequence += 1
                    length = min(attempts[a, DELAY], attempts[a, WALL])
                    n_ends = push(ends, n_ends, now + length, sequence, a)
                    if fifo:
                        continue
                    key += 1
                    until = now + duration[at]
                    attempts[a, HELD_UNTIL], attempts[a, HELD_SIZE] = until, n_wanted
                    attempts[a, HELD_KEY] = key
                    n_holds = push(holds, n_holds, until, key, a)
                    if table is None:
                        base_n = counts.change(base_t, base_f, base_n, now, until, -n_wanted)
                if n_due:
                    counts.take_out(
                        size, duration, start, room.queue, n_queue, room.positions, n_due
                    )
                    n_queue -= n_due
                failures = repairs = False
                n[N_ENTERED] = n[N_LEFT] = n[N_NEW_HOLDS] = n[N_RAISED] = 0
            if not n[N_KILLS]:
                if extended is not None and n[N_WAITS] and second_pass(state, now):
                    continue  # another plan
                break
            # ---- the next message: the kills
            acknowledge(state, extended, 0, n_first_kills, now)
            acknowledge(state, extended, n_first_kills, n[N_KILLS], now)
            n[N_KILLS] = 0
            if extended is not None and n[N_WAITS]:
                second_pass(state, now)
    # ---- node events until the end of the simulation
    until = FOREVER_US if parameters[TO_THE_LAST_EVENT] else n[LAST_CALL] if n[N_CALLS] else -1
    while next_line < n_lines and line_at[next_line] <= until:
        for i in range(line_first[next_line], line_first[next_line + 1]):
            node, up = line_nodes[i], line_up[next_line] != 0
            if down[node] != up:
                return REFERENCE
            down[node] = not up
        next_line += 1
    if until >= 0 and next_line == n_lines and parameters[DRAWN]:
        saved[6] = next_line
        return MORE_EVENTS
    n[N_LINES] = next_line
    return DONE
