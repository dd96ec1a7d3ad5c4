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

After step 1, after each plan and after each acknowledgement, jobs whose dependencies hold enter the
queue (`rebat.sim.links`). Then step 3 follows again.

Times are in microseconds. An attempt is a row of a table, and its number is its serial minus 1.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined, loop
from rebat.sim.columns import (
    AT,
    BASE_N,
    CALL_TABLE,
    CANCELLED,
    COMPLETED,
    COST,
    DELAY,
    DONE,
    DRAWN,
    END,
    ENTERED,
    FAILED,
    FAILURE,
    FAILURES,
    FIRST,
    FIRST_PERIOD,
    FIRST_RECOVERY,
    FITS,
    FREE,
    FREE_NOW,
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
    MORE_EVENTS,
    MORE_ROOM,
    N_ATTEMPTS,
    N_BLOCKED,
    N_CALLS,
    N_CHANGED,
    N_DOWN,
    N_ENDS,
    N_ENTERED,
    N_FREE,
    N_HITS,
    N_KILLS,
    N_LEFT,
    N_LINES,
    N_NEW_HOLDS,
    N_NODES,
    N_NODES_USED,
    N_PLANNED_ENDS,
    N_QUEUED,
    N_RUNNING,
    N_STEALS,
    N_STOPS,
    N_WAITS,
    NODE_FAILURE,
    NOT_OK,
    NOW,
    NUMBER,
    OF_RECENT,
    OK,
    OWN_COST,
    OWN_PERIOD,
    OWN_RESTART,
    PART,
    PARTED,
    PERIOD,
    PLAN_N,
    PREDICT,
    PRIORITY,
    PROFILE,
    QUEUED,
    RECOVERY,
    REFERENCE,
    REGULAR,
    REJECTED,
    REPAIRS,
    RESTART,
    RET,
    SEQUENCE,
    SIX_DIGITS,
    SIZE,
    SPARED,
    START,
    STEALING,
    STEALS_AT,
    STOLEN,
    STOP,
    STOP_TABLE,
    SUBMIT,
    THIEF,
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
from rebat.sim.links import is_blocked, release
from rebat.sim.plan import has_news, is_allowed, plan
from rebat.sim.predict import note_run
from rebat.sim.queue import pop
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
    note_progress,
    reject,
    schedule,
    second_pass,
)


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
def steal(state: Any, extended: Any, ends: Any, n_ends: int, n_hit: int, now: int) -> None:
    """Choose victims for the attempts that failures hit (`rebat.policies.reactions.stealing`)."""
    hit = state.tables[HIT_TABLE]
    stops = state.tables[STOP_TABLE]
    parameters, jobs = state.n, state.jobs
    n, attempts, timing = state.n, state.attempts, parameters[TIMING]
    n_spared = 0
    for i in range(n_hit):
        state.lists[SPARED, n_spared] = hit[i, HIT]
        n_spared += 1
    for s in range(n[N_STOPS]):
        state.lists[SPARED, n_spared] = stops[s, STOP]
        n_spared += 1
    n_free = state.parts[0, FREE_NOW]
    for k in range(n_hit * state.parts.shape[0]):
        p, i = k // n_hit, k % n_hit
        a = hit[i, HIT]
        if i == 0:
            n_free = state.parts[p, FREE_NOW]
        if jobs[attempts[a, JOB], PART] != p:
            continue
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
        b = victim_of(state, ends, n_ends, n_spared, now, n_more, p)
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
    n_parts, entered = state.parts.shape[0], state.lists[ENTERED]
    hit, stops, calls = (
        state.tables[HIT_TABLE], state.tables[STOP_TABLE], state.tables[CALL_TABLE],
    )  # fmt: skip
    saved = room.saved
    next_job, next_line = saved[0], saved[1]
    job_sequence, line_sequence = saved[2], saved[3]
    while n[UNFINISHED] > 0:
        # ---- the next time
        now = FOREVER_US
        if n[N_ENDS]:
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
        full, n_queued = n[N_ATTEMPTS] + arriving > attempts.shape[0], 0
        n_new = arriving + n[N_BLOCKED]
        for p in range(n_parts):
            part, n_more = state.parts[p], n[N_RUNNING] + n[N_WAITS]
            n_queued += part[N_QUEUED]
            full |= part[N_PLANNED_ENDS] + 2 * n_more + 2 * n[N_WAITS] + 8 > room.holds.shape[1]
            full |= (
                max(part[BASE_N], part[PLAN_N]) + 4 * (n_more + part[N_QUEUED] + n_new) + 64
                > room.base_t.shape[1]
            )
        full |= n[N_NODES_USED] + n_nodes + n_queued + n_new + n[N_RUNNING] > nodes.shape[0]
        if missing or full:
            saved[0], saved[1] = next_job, next_line
            saved[2], saved[3] = job_sequence, line_sequence
            return MORE_EVENTS if missing else LARGER_ROOM
        # ---- everything that happens at this time
        n_hit = 0
        failures = repairs = False
        while n[N_CALLS] and calls[0, 0] == now:
            n[N_CALLS] = pop(calls, n[N_CALLS])
        while True:
            which, best = -1, FOREVER_US
            if n[N_ENDS] and ends[0, 0] == now:
                which, best = 0, ends[0, 1]
            if next_job < n_jobs and jobs[next_job, SUBMIT] == now and job_sequence < best:
                which, best = 1, job_sequence
            if next_line < n_lines and line_at[next_line] == now and line_sequence < best:
                which = 2
            if which < 0:
                break
            if which == 0:
                a = ends[0, 2]
                n[N_ENDS] = pop(ends, n[N_ENDS])
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
                if parameters[PREDICT] == OF_RECENT:
                    note_run(state, a, now)
                note_progress(state, attempts[a, JOB], OK if cause == COMPLETED else NOT_OK)
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
                    if not is_blocked(state, j, a):
                        entered[n[N_ENTERED]] = a
                        n[N_ENTERED] += 1
                n[SEQUENCE] += 1
                job_sequence = n[SEQUENCE]
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
                            room.changed[n[N_CHANGED]] = node
                            n[N_CHANGED] += 1
                        down[node] = not up
                        p = state.home[node // pool.BLOCK]
                        state.parts[p, REPAIRS if up else FAILURES] = 1
                        n[N_DOWN] += -1 if up else 1
                        if owner[node] == FREE:
                            n[N_FREE] += 1 if up else -1
                            state.parts[p, FREE_NOW] += 1 if up else -1
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
                n[SEQUENCE] += 1
                line_sequence = n[SEQUENCE]
        release(state, now)
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
            n_first_kills = react(state, extended, ends, n[N_ENDS], n_hit, failures, now)
        may_plan = parameters[TWO_PASSES] != 0 and n[N_KILLS] == n_first_kills
        while True:
            if n[TOO_SMALL]:
                return MORE_ROOM
            if n[UNCLEAR]:
                return REFERENCE
            changed = n[N_ENTERED] or n[N_LEFT] or n[N_NEW_HOLDS] or failures or repairs
            if changed and (not n[N_KILLS] or may_plan):
                for i in range(n[N_ENTERED] if parameters[PARTED] else 0):
                    if attempts[entered[i], NUMBER] == 0 and not is_allowed(state, entered[i]):
                        reject(state, entered[i], REJECTED)
                for p in range(n_parts):
                    if n_parts > 1 and not has_news(state, p):
                        continue
                    outcome = plan(
                        state, room, table, p, state.parts[p, FAILURES] != 0,
                        state.parts[p, REPAIRS] != 0, now,
                    )  # fmt: skip
                    if outcome != DONE:
                        return outcome
                    state.parts[p, FAILURES] = state.parts[p, REPAIRS] = 0
                if failures or repairs:
                    for i in range(n[N_CHANGED]):
                        room.marked[room.changed[i]] = False
                    n[N_CHANGED] = 0
                failures = repairs = False
                n[N_ENTERED] = n[N_LEFT] = n[N_NEW_HOLDS] = 0
            if not n[N_KILLS]:
                if extended is not None and n[N_WAITS] and second_pass(state, now):
                    continue  # another plan
                if release(state, now):
                    continue
                break
            if release(state, now):
                continue
            # ---- the next message: the kills
            acknowledge(state, extended, 0, n_first_kills, now)
            acknowledge(state, extended, n_first_kills, n[N_KILLS], now)
            n[N_KILLS] = 0
            if extended is not None and n[N_WAITS]:
                second_pass(state, now)
            release(state, now)
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
        saved[1] = next_line
        return MORE_EVENTS
    n[N_LINES] = next_line
    return DONE
