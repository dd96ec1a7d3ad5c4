# SPDX-License-Identifier: Apache-2.0
"""Rules of the compiled loop: ends of attempts, resubmissions, held nodes, and waits for victims.

They reproduce `rebat.session.transactions`. A rule that needs more room sets the counter TOO_SMALL.
One that meets a case that only the reference decides sets UNCLEAR.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined, loop
from rebat.sim.columns import (
    AT,
    CALL_TABLE,
    CANCELLED,
    CAUSE,
    CAUSE_OF,
    CHECKPOINTS,
    DECIDED,
    DELAY,
    DUE,
    END,
    ENTERED,
    FAILED,
    FIRST,
    FREE_NOW,
    GIVEN_UP,
    GIVEN_UP_JOBS,
    HELD_HIT,
    HELD_UNTIL,
    HIT,
    HIT_TABLE,
    HOLD,
    HOLD_AT,
    HOLD_JOB,
    HOLD_MARGIN,
    HOLD_TABLE,
    INTERRUPTIONS,
    JOB,
    KILL,
    KILL_TABLE,
    LAST_CALL,
    LEFT,
    LOWEST_HELD,
    MAX_ATTEMPTS,
    N_ATTEMPTS,
    N_CALLS,
    N_DOWN,
    N_ENTERED,
    N_FREE,
    N_GIVEN_UP,
    N_HELD,
    N_HELD_HIT,
    N_HOLD_AT,
    N_HOLDS,
    N_KILLS,
    N_LEFT,
    N_NEW_HOLDS,
    N_NODES_AT,
    N_NODES_USED,
    N_PROGRESSED,
    N_RECORDS,
    N_RUNNING,
    N_STEALS_OFF,
    N_STOPS,
    N_WAITS,
    NEW_HOLDS,
    NODES_AT,
    NOT_OK,
    NOW,
    NUMBER,
    OFF_AT,
    OFF_WHY,
    OTHERS_FIRST,
    OVER,
    OWN_PERIOD,
    OWN_RESTART,
    PART,
    PREDICTED,
    PRIORITY,
    PROFILE,
    PROGRESS,
    PROGRESSED,
    QUEUED,
    RECORD,
    RECORDS,
    RECOVERY,
    SHRINKS,
    SINCE,
    SIX_DIGITS,
    SIZE,
    SIZE_OF_HOLD,
    START,
    STOLEN,
    STOP,
    STOP_DECIDED,
    STOP_TABLE,
    THEN,
    TIMING,
    TIMING_OF,
    TOO_SMALL,
    TWO_PASSES,
    UNCLEAR,
    UNFINISHED,
    UNTIL,
    USEFUL,
    VICTIM_ENDED,
    VICTIM_FIRST,
    VICTIM_HIT,
    VICTIM_OF,
    WAIT,
    WAIT_HOLD,
    WAIT_TABLE,
    WAIT_UNTIL,
    WAIT_VICTIM,
    WALL,
)
from rebat.sim.queue import push
from rebat.sim.stops import (
    less_by,
    pattern,
    planned_end,
    remaining,
    write_resubmission,
    written_us,
)

# ---- attempts


@inlined
def note_progress(state: Any, j: int, progress: int) -> None:
    """Note the first start or the end of a job for the jobs that depend on it."""
    if state.blocks.shape[0]:
        state.blocks[j, PROGRESS] = progress
        state.blocks[state.n[N_PROGRESSED], PROGRESSED] = j
        state.n[N_PROGRESSED] += 1


@inlined
def release_nodes(state: Any, a: int) -> None:
    """Release the nodes of an attempt, or held nodes."""
    first, k = state.attempts[a, NODES_AT], state.attempts[a, N_NODES_AT]
    freed = pool.release(
        state.owner, state.down, state.free, state.nodes[first : first + k], state.n[N_DOWN] > 0
    )
    state.n[N_FREE] += freed
    state.parts[state.jobs[state.attempts[a, JOB], PART], FREE_NOW] += freed


@inlined
def leave(state: Any, a: int, now: int, cause: int, useful: int) -> None:
    """Record the end of a running attempt, and release its nodes."""
    n, attempts = state.n, state.attempts
    attempts[a, END], attempts[a, CAUSE], attempts[a, USEFUL] = now, cause, useful
    release_nodes(state, a)
    n[N_RUNNING] -= 1
    state.lists[RECORDS, n[N_RECORDS]] = a
    n[N_RECORDS] += 1
    state.lists[LEFT, n[N_LEFT]] = a
    n[N_LEFT] += 1


@inlined
def reject(state: Any, a: int, cause: int) -> None:
    """Record that a queued or blocked attempt never runs.

    If kills are pending, the simulator's order of ended jobs is not that of the records.
    """
    if state.n[N_KILLS]:
        state.n[UNCLEAR] = 1
    state.attempts[a, CAUSE] = cause
    state.lists[RECORDS, state.n[N_RECORDS]] = a
    state.n[N_RECORDS] += 1
    state.n[UNFINISHED] -= 1
    note_progress(state, state.attempts[a, JOB], NOT_OK)


@loop
def requeue(
    state: Any, extended: Any, a: int, decided: int, timing: int, priority: int,
    now: int,
) -> None:  # fmt: skip
    """Queue the remaining work of a stopped attempt, or give up its job.

    ``decided`` is the time at which the stop was decided.
    """
    n, parameters = state.n, state.n
    attempts, j = state.attempts, state.attempts[a, JOB]
    if state.lists[INTERRUPTIONS, j] >= parameters[MAX_ATTEMPTS]:
        state.lists[GIVEN_UP_JOBS, n[N_GIVEN_UP]] = j
        n[N_GIVEN_UP] += 1
        n[UNFINISHED] -= 1
        note_progress(state, j, NOT_OK)
        return
    b = n[N_ATTEMPTS]
    if b == attempts.shape[0]:
        n[TOO_SMALL] = 1
        return
    n[N_ATTEMPTS] += 1
    attempts[b, JOB], attempts[b, NUMBER] = j, attempts[a, NUMBER] + 1
    attempts[b, PRIORITY], attempts[b, QUEUED] = priority, now
    attempts[b, START] = attempts[b, END] = attempts[b, HELD_UNTIL] = -1
    rounded = False
    if extended is not None and parameters[SIX_DIGITS]:
        for k in range(OWN_PERIOD, OWN_RESTART + 1):
            attempts[b, k] = attempts[a, k]
        period, cost, _ = pattern(state, a)
        kind = state.profiles[state.jobs[j, PROFILE], CHECKPOINTS]
        rounded = kind != 0 and period + cost > 1
    if not rounded:
        useful, first, recovery, _ = remaining(state, a, decided, timing)
        less, wall = less_by(attempts, a, useful, recovery), attempts[a, WALL]
        attempts[b, WALL] = wall if wall >= FOREVER_US else max(1, wall - less)
        attempts[b, DELAY] = max(1, attempts[a, DELAY] - less)
        attempts[b, FIRST], attempts[b, RECOVERY] = first, recovery
    elif extended is not None:
        ran = decided / 1_000_000 - attempts[a, START] / 1_000_000
        write_resubmission(state, a, b, ran, timing)
    state.lists[ENTERED, n[N_ENTERED]] = b
    n[N_ENTERED] += 1


# ---- held nodes


@loop
def begin_record(state: Any, h: int, now: int) -> None:
    """Begin a record of those of the held nodes that are up."""
    records = state.tables[HOLD_TABLE]
    n, attempts = state.n, state.attempts
    r, at = n[N_HOLDS], n[N_NODES_USED]
    if at + state.owner.shape[0] // 2 + 1 > state.nodes.shape[0] or r == state.tables.shape[1]:
        n[TOO_SMALL] = 1
        return
    first, k = attempts[h, NODES_AT], attempts[h, N_NODES_AT]
    k, size = pool.usable_of(
        state.owner, state.down, state.nodes[first : first + k], False, state.nodes[at:]
    )
    attempts[h, RECORD] = -1
    if size == 0:
        return
    n[N_NODES_USED] += k
    records[r, HOLD_JOB], records[r, SINCE] = attempts[h, JOB], now
    records[r, UNTIL] = -1
    records[r, HOLD_AT], records[r, N_HOLD_AT] = at, k
    attempts[h, RECORD] = r
    n[N_HOLDS] += 1


@inlined
def end_record(state: Any, h: int, now: int) -> None:
    """End the record of held nodes."""
    records = state.tables[HOLD_TABLE]
    if state.attempts[h, RECORD] >= 0:
        records[state.attempts[h, RECORD], UNTIL] = now
        state.attempts[h, RECORD] = -1


@loop
def take_nodes(state: Any, h: int, at: int, k: int, size: int, now: int) -> None:
    """Hold nodes that are up and free. Their ``k`` intervals begin at ``at``."""
    n, attempts = state.n, state.attempts
    attempts[h, NODES_AT], attempts[h, N_NODES_AT], attempts[h, SIZE_OF_HOLD] = at, k, size
    pool.take(state.owner, state.down, state.free, state.nodes[at : at + k], h + 1)
    n[N_FREE] -= size
    state.parts[state.jobs[attempts[h, JOB], PART], FREE_NOW] -= size
    state.lists[NEW_HOLDS, n[N_NEW_HOLDS]] = h
    n[N_NEW_HOLDS] += 1
    begin_record(state, h, now)


@loop
def hold(state: Any, j: int, at: int, k: int, size: int, span: int, now: int) -> int:
    """Hold nodes for a job for an expected duration. Return the row, or -1 if there is no room."""
    n, attempts, h = state.n, state.attempts, state.n[N_ATTEMPTS]
    if h == attempts.shape[0]:
        n[TOO_SMALL] = 1
        return -1
    n[N_ATTEMPTS] += 1
    attempts[h, JOB], attempts[h, NUMBER], attempts[h, WALL] = j, HOLD, span
    attempts[h, START], attempts[h, END], attempts[h, HELD_UNTIL] = now, -1, -1
    attempts[h, PREDICTED] = span
    take_nodes(state, h, at, k, size, now)
    return h


@loop
def let_go(state: Any, h: int, now: int) -> None:
    """Release held nodes. If the plan does not know them, it never will."""
    n, in_plan = state.n, True
    release_nodes(state, h)
    state.attempts[h, END] = now
    end_record(state, h, now)
    for i in range(n[N_NEW_HOLDS]):
        if in_plan and state.lists[NEW_HOLDS, i] == h:
            in_plan = False
            n[N_NEW_HOLDS] -= 1
        if not in_plan and i < n[N_NEW_HOLDS]:
            state.lists[NEW_HOLDS, i] = state.lists[NEW_HOLDS, i + 1]
    if in_plan:
        state.lists[LEFT, n[N_LEFT]] = h
        n[N_LEFT] += 1


@loop
def note_held_nodes(state: Any, held: Any, n_held: int, now: int) -> None:
    """Begin a new record of each of these held sets, because nodes of them failed or came up."""
    for i in range(n_held):
        end_record(state, held[i], now)
        begin_record(state, held[i], now)


@loop
def lose_held_nodes(state: Any, held: Any, n_held: int, now: int) -> None:
    """Update the waits for which these held sets lost nodes."""
    waits = state.tables[WAIT_TABLE]
    parameters = state.n
    n, attempts = state.n, state.attempts
    for i in range(n[N_WAITS]):
        h, hit = waits[i, WAIT_HOLD], False
        for k in range(n_held):
            hit |= held[k] == h
        if h < 0 or not hit:
            continue
        at = n[N_NODES_USED]
        if (
            at + state.owner.shape[0] // 2 + 1 > state.nodes.shape[0]
            or n[N_HELD_HIT] == state.lists.shape[1]
        ):
            n[TOO_SMALL] = 1
            return
        first, k = attempts[h, NODES_AT], attempts[h, N_NODES_AT]
        k, size = pool.usable_of(
            state.owner, state.down, state.nodes[first : first + k], False, state.nodes[at:]
        )
        waits[i, N_HELD] = size
        if parameters[LOWEST_HELD] and size:
            waits[i, SHRINKS] = 1
        else:
            n[N_NODES_USED] += k
            let_go(state, h, now)
            waits[i, WAIT_HOLD] = -1
            if size:
                attempts[h, END] = -1
                take_nodes(state, h, at, k, size, now)
                waits[i, WAIT_HOLD] = h
        state.lists[HELD_HIT, n[N_HELD_HIT]] = attempts[h, JOB]
        n[N_HELD_HIT] += 1


# ---- waits and scheduled stops


@loop
def remove_row(rows: Any, n: int, i: int) -> int:
    """Remove a row from a table of ``n`` rows, and return the new number of rows."""
    for k in range(i, n - 1):
        for column in range(rows.shape[1]):
            rows[k, column] = rows[k + 1, column]
    return n - 1


@loop
def stop_of(state: Any, victim: int) -> int:
    """Return the row of the scheduled stop of an attempt, or -1 if there is none."""
    stops = state.tables[STOP_TABLE]
    for s in range(state.n[N_STOPS]):
        if stops[s, STOP] == victim:
            return s
    return -1


@inlined
def call_at(state: Any, at: int) -> None:
    """Note that the simulator sends a message at this time."""
    n = state.n
    if n[N_CALLS] == state.tables.shape[1]:
        n[TOO_SMALL] = 1
        return
    n[N_CALLS] = push(state.tables[CALL_TABLE], n[N_CALLS], at, 0, 0)
    n[LAST_CALL] = max(n[LAST_CALL], at)


@loop
def schedule(state: Any, victim: int, wait: int, now: int) -> None:
    """Schedule the stop of a victim for the end of its checkpoint."""
    stops = state.tables[STOP_TABLE]
    parameters = state.n
    s = state.n[N_STOPS]
    if s == state.tables.shape[1]:
        state.n[TOO_SMALL] = 1
        return
    stops[s, STOP], stops[s, STOP_DECIDED], stops[s, DUE] = victim, now, now + wait
    stops[s, AT] = now + written_us(wait, parameters)
    state.n[N_STOPS] += 1


@inlined
def kill(state: Any, a: int, decided: int, timing: int, then: int, cause: int, victim: int) -> None:
    """Add a kill to those of the next message."""
    kills = state.tables[KILL_TABLE]
    i = state.n[N_KILLS]
    kills[i, KILL], kills[i, DECIDED], kills[i, TIMING_OF] = a, decided, timing
    kills[i, THEN], kills[i, CAUSE_OF], kills[i, VICTIM_OF] = then, cause, victim
    state.n[N_KILLS] += 1


@loop
def begin_wait(state: Any, a: int, victim: int, now: int) -> None:
    """Hold the usable nodes of a stopped job until the stop of the victim."""
    stops = state.tables[STOP_TABLE]
    waits = state.tables[WAIT_TABLE]
    parameters = state.n
    n, attempts, i = state.n, state.attempts, state.n[N_WAITS]
    s, at = stop_of(state, victim), state.n[N_NODES_USED]
    if at + state.owner.shape[0] // 2 + 1 > state.nodes.shape[0] or i == state.tables.shape[1]:
        n[TOO_SMALL] = 1
        return
    if s < 0 or stops[s, AT] <= now:
        n[UNCLEAR] = 1
        return
    first, k = attempts[a, NODES_AT], attempts[a, N_NODES_AT]
    k, size = pool.usable_of(
        state.owner, state.down, state.nodes[first : first + k], True, state.nodes[at:]
    )
    if parameters[LOWEST_HELD] and size:
        k = pool.lowest_free(state.owner, state.down, state.free, size, state.nodes[at:])
    n[N_NODES_USED] += k
    h, span = -1, written_us(stops[s, DUE] - now + parameters[HOLD_MARGIN], parameters)
    if size:
        h = hold(state, attempts[a, JOB], at, k, size, span, now)
    waits[i, WAIT], waits[i, WAIT_HOLD], waits[i, N_HELD] = a, h, size
    waits[i, WAIT_VICTIM], waits[i, WAIT_UNTIL] = victim, stops[s, AT]
    waits[i, OVER] = waits[i, SHRINKS] = 0
    n[N_WAITS] += 1
    call_at(state, stops[s, AT])


@loop
def end_wait(state: Any, i: int, later: bool, now: int) -> int:
    """End a wait now or in the second pass. Return the number of the next wait."""
    waits = state.tables[WAIT_TABLE]
    if later:
        waits[i, OVER] = 1
        return i + 1
    a, h = waits[i, WAIT], waits[i, WAIT_HOLD]
    state.n[N_WAITS] = remove_row(waits, state.n[N_WAITS], i)
    if h >= 0:
        let_go(state, h, now)
    requeue(state, True, a, state.attempts[a, END], NOW, FAILED, now)
    return i


@loop
def end_waits_for(state: Any, victim: int, later: bool, now: int) -> None:
    """End all waits for the stop of a victim."""
    waits = state.tables[WAIT_TABLE]
    i = 0
    while i < state.n[N_WAITS]:
        if waits[i, WAIT_VICTIM] == victim:
            i = end_wait(state, i, later, now)
        else:
            i += 1


@loop
def call_off(state: Any, s: int, why: int, later: bool, now: int) -> None:
    """Cancel a scheduled stop, and end the waits for it."""
    stops = state.tables[STOP_TABLE]
    n, victim = state.n, stops[s, STOP]
    n[N_STOPS] = remove_row(stops, n[N_STOPS], s)
    state.lists[OFF_AT, n[N_STEALS_OFF]], state.lists[OFF_WHY, n[N_STEALS_OFF]] = now, why
    n[N_STEALS_OFF] += 1
    end_waits_for(state, victim, later, now)


@loop
def call_off_hit(state: Any, n_hit: int, caused: bool, now: int) -> int:
    """Cancel the scheduled stops of attempts that failures hit, and return their number.

    If the cause of a failure is known, stops are cancelled in the order of the failures, and no
    wait is left for the second pass.
    """
    hit = state.tables[HIT_TABLE]
    stops = state.tables[STOP_TABLE]
    parameters = state.n
    n_cancelled = 0
    for i in range(n_hit):
        hit[i, CANCELLED] = -1
    for i in range(n_hit if caused else 0):
        s = stop_of(state, hit[i, HIT])
        if s >= 0:
            hit[i, CANCELLED] = stops[s, STOP_DECIDED]
            n_cancelled += 1
            call_off(state, s, VICTIM_HIT, False, now)
    s = 0
    while s < state.n[N_STOPS]:
        which = -1
        for i in range(n_hit):
            if hit[i, HIT] == stops[s, STOP]:
                which = i
        if which < 0:
            s += 1
            continue
        hit[which, CANCELLED] = stops[s, STOP_DECIDED]
        n_cancelled += 1
        later = parameters[TWO_PASSES] != 0
        call_off(state, s, VICTIM_HIT, later, now)
    return n_cancelled


@loop
def give_up_steals(state: Any, now: int) -> None:
    """Cancel the steals that no longer help, because held nodes of the waiting job failed."""
    waits = state.tables[WAIT_TABLE]
    parameters, jobs = state.n, state.jobs
    n, attempts, later = state.n, state.attempts, parameters[TWO_PASSES] != 0
    for k in range(n[N_HELD_HIT]):
        for i in range(n[N_WAITS]):
            a, victim = waits[i, WAIT], waits[i, WAIT_VICTIM]
            if attempts[a, JOB] != state.lists[HELD_HIT, k] or attempts[victim, END] >= 0:
                continue
            n_held = waits[i, N_HELD]
            n_lost = jobs[attempts[a, JOB], SIZE] - n_held
            if n_held > 0 and jobs[attempts[victim, JOB], SIZE] >= n_lost:
                continue
            s = stop_of(state, victim)
            if s >= 0:
                call_off(state, s, GIVEN_UP, later, now)
            else:
                end_wait(state, i, later, now)
            break
    n[N_HELD_HIT] = 0


@loop
def carry_out_due(state: Any, now: int) -> None:
    """Kill the victims whose stops are due, and end the waits for them."""
    stops = state.tables[STOP_TABLE]
    parameters = state.n
    s, attempts = 0, state.attempts
    while s < state.n[N_STOPS]:
        victim, decided = stops[s, STOP], stops[s, STOP_DECIDED]
        if attempts[victim, END] >= 0:
            later = parameters[OTHERS_FIRST] != 0
            call_off(state, s, VICTIM_ENDED, later, now)
        elif stops[s, AT] <= now:
            state.n[N_STOPS] = remove_row(stops, state.n[N_STOPS], s)
            kill(state, victim, decided, parameters[TIMING], VICTIM_FIRST, STOLEN, -1)
            end_waits_for(state, victim, False, now)
        else:
            s += 1


@loop
def second_pass(state: Any, now: int) -> bool:
    """End the waits that are over, and choose held nodes again. Return whether there were any."""
    waits = state.tables[WAIT_TABLE]
    i, changed = 0, False
    while i < state.n[N_WAITS]:
        if waits[i, OVER]:
            changed = True
            i = end_wait(state, i, False, now)
            continue
        if waits[i, SHRINKS]:
            changed = True
            shrink(state, i, now)
        i += 1
    return changed


@loop
def shrink(state: Any, i: int, now: int) -> None:
    """Replace the held nodes of a wait by equally many of the lowest free nodes."""
    stops = state.tables[STOP_TABLE]
    waits = state.tables[WAIT_TABLE]
    parameters = state.n
    n, h, s = state.n, waits[i, WAIT_HOLD], stop_of(state, waits[i, WAIT_VICTIM])
    waits[i, SHRINKS] = 0
    if h < 0 or s < 0:
        return
    at, size = n[N_NODES_USED], waits[i, N_HELD]
    if at + state.owner.shape[0] // 2 + 1 > state.nodes.shape[0]:
        n[TOO_SMALL] = 1
        return
    let_go(state, h, now)
    span = written_us(planned_end(state.attempts, h) - now, parameters)
    k = pool.lowest_free(state.owner, state.down, state.free, size, state.nodes[at:])
    until = now + written_us(stops[s, DUE] - now, parameters)
    if k < 0 or span <= 0 or until <= now:
        n[UNCLEAR] = 1
        return
    n[N_NODES_USED] += k
    waits[i, WAIT_HOLD] = hold(state, state.attempts[h, JOB], at, k, size, span, now)
    stops[s, AT] = waits[i, WAIT_UNTIL] = until
    call_at(state, until)


@loop
def acknowledge(state: Any, extended: Any, first: int, last: int, now: int) -> None:
    """End the attempts of these kills. Then queue their remaining work, or begin their waits."""
    kills = state.tables[KILL_TABLE]
    for i in range(first, last):
        a, cause = kills[i, KILL], kills[i, CAUSE_OF]
        useful = remaining(state, a, kills[i, DECIDED], kills[i, TIMING_OF])[0]
        leave(state, a, now, cause, max(0, useful))
        if cause != STOLEN:
            state.lists[INTERRUPTIONS, state.attempts[a, JOB]] += 1
    for i in range(first, last):
        a, then = kills[i, KILL], kills[i, THEN]
        if then:
            requeue(
                state, extended, a, kills[i, DECIDED], kills[i, TIMING_OF], then, now,
            )  # fmt: skip
        elif extended is not None:
            begin_wait(state, a, kills[i, VICTIM_OF], now)
