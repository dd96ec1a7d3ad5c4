# SPDX-License-Identifier: Apache-2.0
"""Rules: decisions, ends of attempts, resubmissions, held nodes, and waits for victims."""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.images import note_image
from rebat.rules.queue import push
from rebat.rules.stops import (
    less_by,
    pattern,
    planned_end,
    remaining,
    with_init,
    write_resubmission,
    written_us,
)
from rebat.rules.tiers import at_risk_now, pass_on
from rebat.state import codes

# ---- decisions


@inlined_rule
def emit(state: Any, kind: int, subject: int, up_to: int) -> None:
    """Add a decision to those of the instant. A driver carries them out."""
    i = state.n.n_out
    state.out[i].kind, state.out[i].subject, state.out[i].up_to = kind, subject, up_to
    state.n.n_out += 1


# ---- attempts


@inlined_rule
def note_progress(state: Any, j: int, progress: int) -> None:
    """Note the first start or the end of a job for the jobs that depend on it."""
    state.jobs[j].progress = progress
    if state.jobs[j].block:
        state.blocks[state.n.n_progressed].progressed = state.jobs[j].block - 1
        state.n.n_progressed += 1


@inlined_rule
def release_nodes(state: Any, a: int) -> None:
    """Release the nodes of an attempt, or held nodes."""
    first, k = state.attempts[a].nodes_at, state.attempts[a].n_nodes_at
    nodes = state.nodes[first : first + k]
    freed = pool.release(state.owner, state.down, state.down_in, state.free, nodes)
    state.n.n_free += freed
    state.parts[state.jobs[state.attempts[a].job].part].n_free += freed


@inlined_rule
def leave(state: Any, a: int, now: int, cause: int, useful: int) -> None:
    """Record the end of a running attempt, and release its nodes."""
    n, attempts = state.n, state.attempts
    attempts[a].end, attempts[a].cause, attempts[a].useful = now, cause, useful
    release_nodes(state, a)
    n.n_running -= 1
    last = state.lists[n.n_running].running
    state.lists[attempts[a].place].running = last
    attempts[last].place = attempts[a].place
    state.lists[n.n_records].record = a
    n.n_records += 1
    note_left(state, a)


@rule
def note_left(state: Any, a: int) -> None:
    """Note that an attempt or a hold released its nodes. If the plan does not know it, it never
    will.
    """
    n, in_plan = state.n, True
    for i in range(n.n_new_holds):
        if in_plan and state.lists[i].new_hold == a:
            in_plan = False
            n.n_new_holds -= 1
        if not in_plan and i < n.n_new_holds:
            state.lists[i].new_hold = state.lists[i + 1].new_hold
    if in_plan:
        state.lists[n.n_left].left = a
        n.n_left += 1


@inlined_rule
def reject(state: Any, a: int, cause: int) -> None:
    """Record that a queued or blocked attempt never runs."""
    state.attempts[a].cause = cause
    state.lists[state.n.n_records].record = a
    state.lists[state.n.n_records].n_before = state.n.n_kills  # the simulator kills these first
    state.n.n_records += 1
    state.n.unfinished -= 1
    state.n.n_hit_waiting -= state.attempts[a].priority >= codes.FAILED
    emit(state, codes.REJECT, a, cause)
    note_progress(state, state.attempts[a].job, codes.NOT_OK)


@rule
def next_attempt(state: Any, a: int, priority: int, now: int) -> int:
    """Add a row of the next attempt of a job, and return it."""
    n, attempts, b = state.n, state.attempts, state.n.n_attempts
    n.n_attempts += 1
    attempts[b].job, attempts[b].number = attempts[a].job, attempts[a].number + 1
    attempts[b].priority, attempts[b].queued = priority, now
    attempts[b].start = attempts[b].end = attempts[b].held_until = -1
    n.n_hit_waiting += priority >= codes.FAILED
    return int(b)


@rule
def again(state: Any, a: int, priority: int, now: int) -> int:
    """Queue the next attempt of a stopped one. If its job is given up, return -1."""
    n, j = state.n, state.attempts[a].job
    if state.jobs[j].interruptions >= n.max_attempts:
        state.lists[n.n_given_up].given_up = j
        n.n_given_up += 1
        n.unfinished -= 1
        note_progress(state, j, codes.NOT_OK)
        return -1
    b = next_attempt(state, a, priority, now)
    emit(state, codes.REGISTER, b, a)
    state.lists[n.n_entered].entered = b
    n.n_entered += 1
    return b


@rule
def requeue(
    state: Any, extended: Any, a: int, decided: int, timing: int, priority: int,
    now: int,
) -> None:  # fmt: skip
    """Queue the remaining work of a stopped attempt, or give up its job.

    ``decided`` is the time at which the stop was decided.
    """
    b = again(state, a, priority, now)
    if b >= 0:
        resume(state, extended, a, b, decided, timing)


@rule
def resume(state: Any, extended: Any, a: int, b: int, decided: int, timing: int) -> None:
    """Give the remaining work of a stopped attempt to the next attempt ``b`` of its job."""
    parameters, attempts, j = state.n, state.attempts, state.attempts[a].job
    rounded = False
    if extended is not None and parameters.six_digits:
        attempts[b].own_period, attempts[b].own_cost = attempts[a].own_period, attempts[a].own_cost
        attempts[b].own_restart = attempts[a].own_restart
        period, cost, _ = pattern(state, a)
        kind = state.profiles[state.jobs[j].profile].checkpoints
        rounded = kind != 0 and period + cost > 1
    if not rounded:
        useful, first, recovery, _ = remaining(state, a, decided, timing)
        if attempts[a].cause != codes.MOVED:
            recovery = with_init(state.hangs, state, a, recovery)
        less, wall = less_by(attempts, a, useful, recovery), attempts[a].wall
        attempts[b].wall = wall if wall >= FOREVER_US else max(1, wall - less)
        attempts[b].delay = max(1, attempts[a].delay - less)
        attempts[b].first, attempts[b].recovery = first, recovery
        saved = useful - at_risk_now(state.tiers)
        is_imaged = note_image(state.operations, a, b, timing, saved, recovery)
        if not (is_imaged or state.profiles[state.jobs[j].profile].checkpoints):
            # not a delay: Batsim runs the same profile again, without the initialisation
            attempts[b].delay, attempts[b].recovery = max(1, attempts[a].delay), 0
        pass_on(state.tiers, b)
    elif extended is not None:
        ran = decided / 1_000_000 - attempts[a].start / 1_000_000
        write_resubmission(state, a, b, ran, timing)


# ---- held nodes


@rule
def begin_record(state: Any, h: int, now: int) -> None:
    """Begin a record of those of the held nodes that have not failed."""
    records = state.hold_records
    n, attempts = state.n, state.attempts
    r, at = n.n_holds, n.n_nodes_used
    first, k = attempts[h].nodes_at, attempts[h].n_nodes_at
    k, size = pool.usable_of(
        state.owner, state.failed, state.nodes[first : first + k], False, state.nodes[at:]
    )
    attempts[h].record = -1
    if size == 0:
        return
    n.n_nodes_used += k
    records[r].job, records[r].since = attempts[h].job, now
    records[r].until = -1
    records[r].nodes_at, records[r].n_nodes_at = at, k
    attempts[h].record = r
    n.n_holds += 1


@inlined_rule
def end_record(state: Any, h: int, now: int) -> None:
    """End the record of held nodes."""
    records = state.hold_records
    if state.attempts[h].record >= 0:
        records[state.attempts[h].record].until = now
        state.attempts[h].record = -1


@rule
def take_nodes(state: Any, h: int, at: int, k: int, size: int, now: int) -> None:
    """Hold nodes that are up and free. Their ``k`` intervals begin at ``at``."""
    n, attempts = state.n, state.attempts
    attempts[h].nodes_at, attempts[h].n_nodes_at, attempts[h].size_of_hold = at, k, size
    attempts[h].lives += 1
    pool.take(state.owner, state.down, state.free, state.nodes[at : at + k], h + 1)
    n.n_free -= size
    state.parts[state.jobs[attempts[h].job].part].n_free -= size
    state.lists[n.n_new_holds].new_hold = h
    n.n_new_holds += 1
    begin_record(state, h, now)


@rule
def hold(state: Any, j: int, at: int, k: int, size: int, span: int, now: int) -> int:
    """Hold nodes for a job for an expected duration. Return the row."""
    n, attempts, h = state.n, state.attempts, state.n.n_attempts
    n.n_attempts += 1
    attempts[h].job, attempts[h].number, attempts[h].wall = j, codes.HOLD, span
    attempts[h].start, attempts[h].end, attempts[h].held_until = now, -1, -1
    attempts[h].predicted = span
    take_nodes(state, h, at, k, size, now)
    return h


@rule
def let_go(state: Any, h: int, now: int) -> None:
    """Release held nodes."""
    release_nodes(state, h)
    state.attempts[h].end = now
    end_record(state, h, now)
    note_left(state, h)


@rule
def note_held_nodes(state: Any, n_held: int, now: int) -> None:
    """Begin a new record of each of the held sets whose nodes failed or came up."""
    for i in range(n_held):
        end_record(state, state.lists[i].spared, now)
        begin_record(state, state.lists[i].spared, now)


@rule
def lose_held_nodes(state: Any, n_held: int, now: int) -> None:
    """Update the waits for which the held sets lost nodes."""
    waits = state.waits
    parameters = state.n
    n, attempts = state.n, state.attempts
    for i in range(n.n_waits):
        h, hit = waits[i].hold, False
        for k in range(n_held):
            hit |= state.lists[k].spared == h
        if h < 0 or not hit:
            continue
        at = n.n_nodes_used
        first, k = attempts[h].nodes_at, attempts[h].n_nodes_at
        k, size = pool.usable_of(
            state.owner, state.down, state.nodes[first : first + k], False, state.nodes[at:]
        )
        waits[i].n_held = size
        if parameters.lowest_held and size:
            waits[i].shrinks = 1
        else:
            n.n_nodes_used += k
            let_go(state, h, now)
            waits[i].hold = -1
            if size:
                attempts[h].end = -1
                take_nodes(state, h, at, k, size, now)
                waits[i].hold = h
        state.lists[n.n_held_hit].held_hit = attempts[h].job
        n.n_held_hit += 1


# ---- waits and scheduled stops


@rule
def remove_row(rows: Any, n: int, i: int) -> int:
    """Remove a row from a table of ``n`` rows, and return the new number of rows."""
    removed = rows[i]
    for k in range(i, n - 1):
        rows[k] = rows[k + 1]
    rows[n - 1] = removed  # an object must not be two rows
    return n - 1


@rule
def stop_of(state: Any, victim: int) -> int:
    """Return the row of the scheduled stop of an attempt, or -1 if there is none."""
    stops = state.stops
    for s in range(state.n.n_stops):
        if stops[s].victim == victim:
            return s
    return -1


@inlined_rule
def call_at(state: Any, at: int) -> None:
    """Note that the simulator sends a message at this time."""
    n = state.n
    n.n_calls = push(state.calls, n.n_calls, at, 0, 0)
    n.last_call = max(n.last_call, at)


@rule
def schedule(state: Any, victim: int, wait: int, now: int) -> None:
    """Schedule the stop of a victim for the end of its checkpoint."""
    stops = state.stops
    parameters = state.n
    s = state.n.n_stops
    stops[s].victim, stops[s].decided, stops[s].due = victim, now, now + wait
    stops[s].at = now + written_us(wait, parameters)
    stops[s].timing, stops[s].then = parameters.timing, codes.VICTIM_FIRST
    stops[s].cause = codes.STOLEN
    state.n.n_stops += 1


@inlined_rule
def kill(state: Any, a: int, decided: int, timing: int, then: int, cause: int, victim: int) -> None:
    """Add a kill to those of the next message."""
    kills = state.kills
    i = state.n.n_kills
    kills[i].attempt, kills[i].decided, kills[i].timing = a, decided, timing
    kills[i].then, kills[i].cause, kills[i].victim = then, cause, victim
    state.n.n_kills += 1


@rule
def begin_wait(
    state: Any, a: int, victim: int, until: int, due: int, priority: int, decided: int, now: int,
) -> None:  # fmt: skip
    """Hold the usable nodes of a stopped job until a time, or until the stop of the victim.

    ``due`` is the expected end of the wait.
    """
    waits, parameters = state.waits, state.n
    n, attempts, i = state.n, state.attempts, state.n.n_waits
    at = state.n.n_nodes_used
    if until <= now:
        requeue(state, True, a, decided, codes.NOW, priority, now)
        return
    first, k = attempts[a].nodes_at, attempts[a].n_nodes_at
    k, size = pool.usable_of(
        state.owner, state.down, state.nodes[first : first + k], True, state.nodes[at:]
    )
    if parameters.lowest_held and size:
        k = pool.lowest_free(state.owner, state.down, state.free, size, state.nodes[at:])
    n.n_nodes_used += k
    h, span = -1, FOREVER_US
    if due < FOREVER_US:
        span = written_us(due - now + parameters.hold_margin, parameters)
    if size:
        h = hold(state, attempts[a].job, at, k, size, span, now)
    waits[i].attempt, waits[i].hold, waits[i].n_held = a, h, size
    waits[i].victim, waits[i].until = victim, until
    waits[i].over = waits[i].shrinks = 0
    waits[i].decided, waits[i].priority = decided, priority
    n.n_waits += 1
    if until < FOREVER_US:
        emit(state, codes.CALL, until, 0)
        call_at(state, until)


@rule
def end_wait(state: Any, i: int, later: bool, now: int) -> int:
    """End a wait now or in the second pass. Return the number of the next wait."""
    waits = state.waits
    if later:
        waits[i].over = 1
        return i + 1
    a, h, decided, priority = (
        waits[i].attempt, waits[i].hold, waits[i].decided, waits[i].priority,
    )  # fmt: skip
    state.n.n_waits = remove_row(waits, state.n.n_waits, i)
    if h >= 0:
        let_go(state, h, now)
    requeue(state, True, a, decided, codes.NOW, priority, now)
    return i


@rule
def end_waits_for(state: Any, victim: int, later: bool, now: int) -> None:
    """End all waits for the stop of a victim."""
    waits = state.waits
    i = 0
    while i < state.n.n_waits:
        if waits[i].victim == victim:
            i = end_wait(state, i, later, now)
        else:
            i += 1


@rule
def call_off(state: Any, s: int, why: int, later: bool, now: int) -> None:
    """Cancel a scheduled stop, and end the waits for it."""
    stops = state.stops
    n, victim = state.n, stops[s].victim
    n.n_stops = remove_row(stops, n.n_stops, s)
    state.lists[n.n_steals_off].off_at, state.lists[n.n_steals_off].off_why = now, why
    n.n_steals_off += 1
    end_waits_for(state, victim, later, now)


@rule
def call_off_hit(state: Any, n_hit: int, now: int) -> int:
    """Cancel the scheduled stops of attempts that failures hit, and return their number."""
    hit, stops, parameters, n_cancelled = state.hits, state.stops, state.n, 0
    for i in range(n_hit):
        hit[i].cancelled = -1
    s = 0
    while s < state.n.n_stops:
        which = -1
        for i in range(n_hit):
            if hit[i].attempt == stops[s].victim:
                which = i
        if which < 0:
            s += 1
            continue
        hit[which].cancelled = stops[s].decided
        n_cancelled += 1
        later = parameters.two_passes != 0
        call_off(state, s, codes.VICTIM_HIT, later, now)
    return n_cancelled


@rule
def give_up_steals(state: Any, now: int) -> None:
    """Cancel the steals that no longer help, because held nodes of the waiting job failed."""
    waits = state.waits
    parameters, jobs = state.n, state.jobs
    n, attempts, later = state.n, state.attempts, parameters.two_passes != 0
    for k in range(n.n_held_hit):
        for i in range(n.n_waits):
            a, victim = waits[i].attempt, waits[i].victim
            if attempts[a].job != state.lists[k].held_hit:
                continue
            if victim < 0 or attempts[victim].end >= 0:
                continue
            n_held = waits[i].n_held
            n_lost = jobs[attempts[a].job].size - n_held
            if n_held > 0 and jobs[attempts[victim].job].size >= n_lost:
                continue
            s = stop_of(state, victim)
            if s >= 0:
                call_off(state, s, codes.GIVEN_UP, later, now)
            else:
                end_wait(state, i, later, now)
            break
    n.n_held_hit = 0


@rule
def carry_out_due(state: Any, now: int) -> None:
    """Kill the victims whose stops are due, and end the waits for them."""
    stops = state.stops
    parameters = state.n
    s, attempts = 0, state.attempts
    while s < state.n.n_stops:
        victim, decided = stops[s].victim, stops[s].decided
        if attempts[victim].end >= 0:
            later = parameters.others_first != 0
            call_off(state, s, codes.VICTIM_ENDED, later, now)
        elif stops[s].at <= now:
            stop = stops[s]
            kill(state, victim, decided, stop.timing, stop.then, stop.cause, -1)
            state.n.n_stops = remove_row(stops, state.n.n_stops, s)
            end_waits_for(state, victim, False, now)
        else:
            s += 1


@rule
def end_due_waits(state: Any, now: int) -> None:
    """End the waits that are due."""
    i = 0
    while i < state.n.n_waits:
        if state.waits[i].until <= now and not state.waits[i].over:
            i = end_wait(state, i, False, now)
        else:
            i += 1


@rule
def second_pass(state: Any, now: int) -> bool:
    """End the waits that are over, and choose held nodes again. Return whether there were any."""
    waits = state.waits
    i, changed = 0, False
    while i < state.n.n_waits:
        if waits[i].over:
            changed = True
            i = end_wait(state, i, False, now)
            continue
        if waits[i].shrinks:
            changed = True
            shrink(state, i, now)
        i += 1
    return changed


@rule
def shrink(state: Any, i: int, now: int) -> None:
    """Replace the held nodes of a wait by equally many of the lowest free nodes."""
    stops = state.stops
    waits = state.waits
    parameters = state.n
    n, h, s = state.n, waits[i].hold, stop_of(state, waits[i].victim)
    waits[i].shrinks = 0
    if h < 0 or s < 0:
        return
    at, size = n.n_nodes_used, waits[i].n_held
    let_go(state, h, now)
    span = written_us(planned_end(state.attempts, h) - now, parameters)
    k = pool.lowest_free(state.owner, state.down, state.free, size, state.nodes[at:])
    until = now + written_us(stops[s].due - now, parameters)
    n.n_nodes_used += k
    waits[i].hold = hold(state, state.attempts[h].job, at, k, size, span, now)
    stops[s].at = waits[i].until = until
    call_at(state, until)
