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
    COMPLETED,
    DONE,
    ENTERED,
    FAILED,
    FITS,
    FREE,
    HITS_AT,
    HITS_FREE,
    HOLD,
    JOB_FAILED,
    LARGER_ROOM,
    MORE_EVENTS,
    MORE_ROOM,
    NODE_FAILURE,
    NOT_OK,
    NOW,
    OF_RECENT,
    OK,
    REFERENCE,
    REGULAR,
    REJECTED,
    SPARED,
    STEALS_AT,
    STOLEN,
    VICTIM_FIRST,
    WAITS,
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
    hit = state.hits
    stops = state.stops
    parameters, jobs = state.n, state.jobs
    n, attempts, timing = state.n, state.attempts, parameters.timing
    n_spared = 0
    for i in range(n_hit):
        state.lists[SPARED, n_spared] = hit[i].attempt
        n_spared += 1
    for s in range(n.n_stops):
        state.lists[SPARED, n_spared] = stops[s].victim
        n_spared += 1
    n_free = state.parts[0].n_free
    for k in range(n_hit * len(state.parts)):
        p, i = k // n_hit, k % n_hit
        a = hit[i].attempt
        if i == 0:
            n_free = state.parts[p].n_free
        if jobs[attempts[a].job].part != p:
            continue
        wanted = jobs[attempts[a].job].size
        survivors = wanted - lost_nodes(state, a)
        if n_free + survivors >= wanted:
            n_free += survivors - wanted
            continue
        if hit[i].cancelled >= 0 or (timing != NOW and survivors == 0):
            continue
        n_more = wanted - survivors
        if parameters.victim == FITS and timing == NOW:
            n_more -= n_free
        b = victim_of(state, ends, n_ends, n_spared, now, n_more, p)
        if b < 0 or not accepts(state, ends, n_ends, now, a, b, timing):
            continue
        state.lists[SPARED, n_spared] = b
        n_spared += 1
        attempts[b].thief = attempts[a].job + 1
        state.lists[STEALS_AT, n.n_steals] = now
        n.n_steals += 1
        wait = 0
        if extended is not None:
            wait = remaining(state, b, now, timing)[3]
            if wait > 0:
                schedule(state, b, wait, now)
                kill(state, a, now, NOW, WAITS, NODE_FAILURE, b)
                hit[i].is_killed = 1
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
    hit = state.hits
    parameters = state.n
    n, attempts, n_cancelled, caused = state.n, state.attempts, 0, False
    for i in range(n_hit):
        hit[i].cancelled, hit[i].is_killed = -1, 0
        caused |= attempts[hit[i].attempt].failure > 0
    if extended is not None and n_hit and n.n_stops:
        n_cancelled = call_off_hit(state, n_hit, caused, now)
    if n_hit and (n_cancelled < n_hit or not parameters.hit_as_victim):
        state.lists[HITS_AT, n.n_hits], state.lists[HITS_FREE, n.n_hits] = now, n.n_free
        n.n_hits += 1
    if failures and parameters.stealing:
        if extended is not None:
            give_up_steals(state, now)
        if n_hit:
            steal(state, extended, ends, n_ends, n_hit, now)
    for i in range(n_hit):
        a, decided = hit[i].attempt, hit[i].cancelled
        if hit[i].is_killed:
            continue
        if decided >= 0 and parameters.hit_as_victim:
            kill(state, a, decided, NOW, VICTIM_FIRST, NODE_FAILURE, -1)
        else:
            kill(state, a, now, NOW, FAILED, NODE_FAILURE, -1)
    n_first = n.n_kills
    if extended is not None and n.n_stops:
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
    n_jobs, n_lines, n_nodes = len(jobs), len(line_at), parameters.n_nodes
    n_parts, entered = len(state.parts), state.lists[ENTERED]
    hit, stops, calls = (
        state.hits, state.stops, state.calls,
    )  # fmt: skip
    saved = room.saved
    next_job, next_line = saved[0], saved[1]
    job_sequence, line_sequence = saved[2], saved[3]
    while n.unfinished > 0:
        # ---- the next time
        now = FOREVER_US
        if n.n_ends:
            now = ends[0].at
        if next_job < n_jobs:
            now = min(now, jobs[next_job].submit)
        stuck = now == FOREVER_US and n.n_down == 0
        if n.n_calls:
            now = min(now, calls[0].at)
        if next_line < n_lines:
            now = min(now, line_at[next_line])
        missing = next_line == n_lines and parameters.drawn and not stuck
        if not missing and (now == FOREVER_US or (stuck and parameters.drawn)):
            return REFERENCE
        arriving = 0
        while next_job + arriving < n_jobs and jobs[next_job + arriving].submit == now:
            arriving += 1
        full, n_queued = n.n_attempts + arriving > len(attempts), 0
        n_new = arriving + n.n_blocked
        for p in range(n_parts):
            part, n_more = state.parts[p], n.n_running + n.n_waits
            n_queued += part.n_queued
            full |= part.n_planned_ends + 2 * n_more + 2 * n.n_waits + 8 > len(room.holds[0])
            full |= (
                max(part.base_n, part.plan_n) + 4 * (n_more + part.n_queued + n_new) + 64
                > room.base_t.shape[1]
            )
        full |= n.n_nodes_used + n_nodes + n_queued + n_new + n.n_running > nodes.shape[0]
        if missing or full:
            saved[0], saved[1] = next_job, next_line
            saved[2], saved[3] = job_sequence, line_sequence
            return MORE_EVENTS if missing else LARGER_ROOM
        # ---- everything that happens at this time
        n_hit = 0
        failures = repairs = False
        while n.n_calls and calls[0].at == now:
            n.n_calls = pop(calls, n.n_calls)
        while True:
            which, best = -1, FOREVER_US
            if n.n_ends and ends[0].at == now:
                which, best = 0, ends[0].key
            if next_job < n_jobs and jobs[next_job].submit == now and job_sequence < best:
                which, best = 1, job_sequence
            if next_line < n_lines and line_at[next_line] == now and line_sequence < best:
                which = 2
            if which < 0:
                break
            if which == 0:
                a = ends[0].attempt
                n.n_ends = pop(ends, n.n_ends)
                if attempts[a].end >= 0:
                    continue  # it was killed
                cause = COMPLETED
                if now >= attempts[a].start + attempts[a].wall:
                    cause = WALLTIME
                elif profiles[jobs[attempts[a].job].profile].ret:
                    cause = JOB_FAILED
                leave(
                    state, a, now, cause, max(0, now - attempts[a].start - attempts[a].recovery)
                )
                n.unfinished -= 1
                if parameters.predict == OF_RECENT:
                    note_run(state, a, now)
                note_progress(state, attempts[a].job, OK if cause == COMPLETED else NOT_OK)
            elif which == 1:
                while next_job < n_jobs and jobs[next_job].submit == now:
                    a, j, p = n.n_attempts, next_job, jobs[next_job].profile
                    n.n_attempts += 1
                    next_job += 1
                    attempts[a].job, attempts[a].priority, attempts[a].queued = j, REGULAR, now
                    attempts[a].wall, attempts[a].delay = (
                        jobs[j].wall,
                        profiles[p].delay,
                    )
                    attempts[a].first = profiles[p].first_period
                    attempts[a].recovery = profiles[p].first_recovery
                    attempts[a].start = attempts[a].end = attempts[a].held_until = -1
                    if parameters.six_digits:
                        attempts[a].own_period = profiles[p].period
                        attempts[a].own_cost = profiles[p].cost
                        attempts[a].own_restart = profiles[p].restart
                    if not is_blocked(state, j, a):
                        entered[n.n_entered] = a
                        n.n_entered += 1
                n.sequence += 1
                job_sequence = n.sequence
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
                            room.changed[n.n_changed] = node
                            n.n_changed += 1
                        down[node] = not up
                        p = state.home[node // pool.BLOCK]
                        if up:
                            state.parts[p].repairs = 1
                        else:
                            state.parts[p].failures = 1
                        n.n_down += -1 if up else 1
                        if owner[node] == FREE:
                            n.n_free += 1 if up else -1
                            state.parts[p].n_free += 1 if up else -1
                            free[node // pool.BLOCK] += 1 if up else -1
                            continue
                        a, listed = owner[node] - 1, up
                        if attempts[a].number == HOLD:
                            n_held = insert_ascending(state.lists[SPARED], n_held, a)
                            continue
                        for k in range(n_hit):
                            listed |= hit[k].attempt == a
                        if listed:
                            continue
                        k = n_hit
                        if 2 * n_hit + n.n_stops + 2 > len(hit):
                            return MORE_ROOM
                        while k > first_hit and hit[k - 1].attempt > a:  # ascending within an event
                            hit[k].attempt = hit[k - 1].attempt
                            k -= 1
                        hit[k].attempt, attempts[a].failure = a, line_cause[next_line]
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
                n.sequence += 1
                line_sequence = n.sequence
        release(state, now)
        # ---- the reaction
        n_running_hit = 0
        for i in range(n_hit):
            if attempts[hit[i].attempt].end < 0:
                hit[n_running_hit].attempt = hit[i].attempt
                n_running_hit += 1
        n_hit = n_running_hit
        is_due = False
        for s in range(n.n_stops):
            is_due |= stops[s].at <= now
        if not (n.n_entered or n.n_left or n.n_new_holds or failures or repairs or is_due):
            continue
        n_first_kills = 0
        if n_hit or n.n_stops or n.n_waits:
            n_first_kills = react(state, extended, ends, n.n_ends, n_hit, failures, now)
        may_plan = parameters.two_passes != 0 and n.n_kills == n_first_kills
        while True:
            if n.too_small:
                return MORE_ROOM
            if n.unclear:
                return REFERENCE
            changed = n.n_entered or n.n_left or n.n_new_holds or failures or repairs
            if changed and (not n.n_kills or may_plan):
                for i in range(n.n_entered if parameters.parted else 0):
                    if attempts[entered[i]].number == 0 and not is_allowed(state, entered[i]):
                        reject(state, entered[i], REJECTED)
                for p in range(n_parts):
                    if n_parts > 1 and not has_news(state, p):
                        continue
                    outcome = plan(
                        state, room, table, p, state.parts[p].failures != 0,
                        state.parts[p].repairs != 0, now,
                    )  # fmt: skip
                    if outcome != DONE:
                        return outcome
                    state.parts[p].failures = state.parts[p].repairs = 0
                if failures or repairs:
                    for i in range(n.n_changed):
                        room.marked[room.changed[i]] = False
                    n.n_changed = 0
                failures = repairs = False
                n.n_entered = n.n_left = n.n_new_holds = 0
            if not n.n_kills:
                if extended is not None and n.n_waits and second_pass(state, now):
                    continue  # another plan
                if release(state, now):
                    continue
                break
            if release(state, now):
                continue
            # ---- the next message: the kills
            acknowledge(state, extended, 0, n_first_kills, now)
            acknowledge(state, extended, n_first_kills, n.n_kills, now)
            n.n_kills = 0
            if extended is not None and n.n_waits:
                second_pass(state, now)
            release(state, now)
    # ---- node events until the end of the simulation
    until = FOREVER_US if parameters.to_the_last_event else n.last_call if n.n_calls else -1
    while next_line < n_lines and line_at[next_line] <= until:
        for i in range(line_first[next_line], line_first[next_line + 1]):
            node, up = line_nodes[i], line_up[next_line] != 0
            if down[node] != up:
                return REFERENCE
            down[node] = not up
        next_line += 1
    if until >= 0 and next_line == n_lines and parameters.drawn:
        saved[1] = next_line
        return MORE_EVENTS
    n.n_lines = next_line
    return DONE
