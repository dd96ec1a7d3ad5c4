# SPDX-License-Identifier: Apache-2.0
"""The rules of an instant. Every driver calls these functions, and nothing else changes the state.

A driver knows what happens and when. It calls

1. `end`, `submit` and `change_nodes` for everything that happens, in its order;
2. `decide`: the reaction, and the plans that are possible. The decisions are rows of ``state.out``;
3. `acknowledged` when kills are carried out, then `decide` again.

The embedded driver takes 1 from a heap and carries out kills at once. The driver for Batsim takes 1
and 3 from messages. An instant may have any number of messages. So the state between two calls is
complete: what happened since the last plan (the lists ``entered``, ``left`` and ``new_hold``, the
flags of the partitions, the number of refused steals), and which kills are not acknowledged
(``kills``).

    ========  =============  ==========================================
    attempt   becomes        by
    ========  =============  ==========================================
    -         queued         submit, release (dependencies), requeue
    queued    running        plan
    queued    rejected       plan, release
    running   ended          end
    running   being stopped  end_reaction (a row of ``kills``)
    stopped   ended          end (it was faster than its kill)
    stopped   queued again   end_killed, then acknowledged: requeue
    stopped   waits          end_killed, then acknowledged: begin_wait
    stopped   moves          end_killed, then acknowledged: note_acknowledged
    moves     running        complete_moves (or queued again)
    running   queued again   end, then settle: retry (after an error)
    running   hangs          settle (`rebat.rules.hangs`)
    waits     queued again   end_wait
    ========  =============  ==========================================
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.exclude import exclude, note_failed, return_lemons, returns
from rebat.rules.hangs import begin_hangs, begin_hung_waits, end_hang, has_failed, work_of
from rebat.rules.links import is_blocked, release
from rebat.rules.moves import complete_moves, note_acknowledged
from rebat.rules.nodes import change_use
from rebat.rules.operations import are_due, empties, is_killed, operate
from rebat.rules.plan import has_news, is_allowed, plan
from rebat.rules.predict import note_run
from rebat.rules.preempt import is_round, preempt, request_round, take_due_rounds
from rebat.rules.replacement import keep_spares, reject_large, replace
from rebat.rules.room import plan_fits
from rebat.rules.stops import accepts, lost_nodes, remaining, victim_of
from rebat.rules.tiers import note_failure, note_tier
from rebat.rules.usage import account
from rebat.rules.waits import (
    begin_wait,
    call_off_hit,
    carry_out_due,
    emit,
    end_due_waits,
    give_up_steals,
    kill,
    leave,
    lose_held_nodes,
    next_attempt,
    note_held_nodes,
    note_progress,
    reject,
    requeue,
    schedule,
    second_pass,
    stop_of,
)
from rebat.rules.windows import (
    is_woken,
    next_wake,
    note_entered,
    request_wake,
    take_due_wakes,
)
from rebat.state import codes


@inlined_rule
def insert_ascending(lists: Any, n: int, h: int) -> int:
    """Insert a row into the ascending list of held sets that are hit, and return its length."""
    at = n
    while at > 0 and lists[at - 1].spared > h:
        at -= 1
    if at > 0 and lists[at - 1].spared == h:
        return n
    for k in range(n, at, -1):
        lists[k].spared = lists[k - 1].spared
    lists[at].spared = h
    return n + 1


@rule
def steal(state: Any, extended: Any, n_hit: int, now: int) -> None:
    """Choose victims for the attempts that failures hit (`rebat.policies.reactions.stealing`)."""
    hit, kills = state.hits, state.kills
    stops = state.stops
    parameters, jobs = state.n, state.jobs
    n, attempts, timing = state.n, state.attempts, parameters.timing
    n_spared, last = 0, -1
    for i in range(n_hit):
        state.lists[n_spared].spared = hit[i].attempt
        n_spared += 1
    for s in range(n.n_stops):
        state.lists[n_spared].spared = stops[s].victim
        n_spared += 1
    for i in range(n.n_kills):  # kills that are not acknowledged
        state.lists[n_spared].spared = kills[i].attempt
        n_spared += 1
    n_free = n.n_free
    for k in range(n_hit * len(state.partitions)):
        q, i = k // n_hit, k % n_hit
        a = hit[i].attempt
        if jobs[attempts[a].job].partition != q:
            continue
        if parameters.parted and q != last:
            n_free = free_in(state, q)
        last = q
        wanted = jobs[attempts[a].job].size
        survivors = wanted - lost_nodes(state, a)
        if n_free + survivors >= wanted:
            n_free += survivors - wanted
            continue
        if hit[i].cancelled >= 0 or (timing != codes.NOW and survivors == 0):
            continue
        n_more = wanted - survivors
        if parameters.fitting and timing == codes.NOW:
            n_more -= n_free
        b = victim_of(state, n_spared, now, n_more, q)
        if b < 0 or not accepts(state, now, a, b, timing):
            continue
        state.lists[n_spared].spared = b
        n_spared += 1
        attempts[b].thief = attempts[a].job + 1
        wait = 0
        if extended is not None:
            wait = remaining(state, b, now, timing)[3]
        if jobs[attempts[b].job].once:
            emit(state, codes.REFUSE, b, a + 1 if wait > 0 else 0)
            n.n_refused += 1
            continue
        state.lists[n.n_steals].steal_at = now
        n.n_steals += 1
        if extended is not None and wait > 0:
            schedule(state, b, wait, now)
            kill(state, a, now, codes.NOW, codes.WAITS, codes.NODE_FAILURE, b)
            hit[i].is_killed = 1
        if wait == 0:
            kill(state, b, now, timing, codes.VICTIM_FIRST, codes.STOLEN, -1)


@rule
def free_in(state: Any, q: int) -> int:
    """Return the number of free nodes of a partition."""
    return int(pool.n_free_of(state.owner, state.down, state.members[q]))


@rule
def begin_reaction(state: Any, extended: Any, n_hit: int, now: int) -> None:
    """Cancel the scheduled stops of the attempts that failures hit."""
    n, hit, n_cancelled = state.n, state.hits, 0
    for i in range(n_hit):
        hit[i].cancelled, hit[i].is_killed = -1, 0
    if extended is not None and n_hit and n.n_stops:
        n_cancelled = call_off_hit(state, n_hit, now)
    if n_hit and (n_cancelled < n_hit or not n.hit_as_victim):
        state.lists[n.n_hits].hit_at, state.lists[n.n_hits].free_at_hit = now, n.n_free
        n.n_hits += 1


@rule
def end_reaction(state: Any, extended: Any, n_hit: int, n_before: int, now: int) -> None:
    """Kill the other attempts that failures hit, then the victims whose stops are due."""
    n, hit = state.n, state.hits
    for i in range(n_hit):
        a, decided = hit[i].attempt, hit[i].cancelled
        if hit[i].is_killed:
            continue
        if decided >= 0 and n.hit_as_victim:
            kill(state, a, decided, codes.NOW, codes.VICTIM_FIRST, codes.NODE_FAILURE, -1)
        else:
            kill(state, a, now, codes.NOW, codes.FAILED, codes.NODE_FAILURE, -1)
    n_first = n.n_first_kills = n.n_kills
    if n_first > n_before:
        emit(state, codes.KILLS, n_before, n_first)
    if extended is not None and n.n_stops:
        carry_out_due(state, now)
    if extended is not None and n.staged:
        end_due_waits(state, now)
    if n.n_kills > n_first:
        # No plan until the victims are stopped: other jobs would start on their nodes.
        n.may_plan = 0
        emit(state, codes.KILLS, n_first, n.n_kills)


@rule
def has_all_work(state: Any, a: int) -> None:
    """Give all work of its job to an attempt."""
    attempts, job = state.attempts, state.jobs[state.attempts[a].job]
    profile = state.profiles[job.profile]
    attempts[a].wall, attempts[a].delay = job.wall, profile.delay
    attempts[a].first, attempts[a].recovery = profile.first_period, profile.first_recovery
    if state.n.six_digits:
        attempts[a].own_period, attempts[a].own_cost = profile.period, profile.cost
        attempts[a].own_restart = profile.restart


@rule
def retry(state: Any, a: int, now: int) -> None:
    """Queue all work of a job again after an error that was detected at its end.

    The time of the error is unknown, so no checkpoint is valid (section 3.3 of RR-9296).
    """
    n, b = state.n, next_attempt(state, a, codes.REGULAR, now)
    has_all_work(state, b)
    emit(state, codes.REGISTER, b, a)
    state.lists[n.n_entered].entered = b
    n.n_entered += 1


@rule
def submit(state: Any, j: int, at: int) -> int:
    """Add the first attempt of a job. Return its row."""
    n, attempts, a = state.n, state.attempts, state.n.n_attempts
    n.n_attempts += 1
    attempts[a].job, attempts[a].priority, attempts[a].queued = j, codes.REGULAR, at
    attempts[a].start = attempts[a].end = attempts[a].held_until = -1
    has_all_work(state, a)
    if not is_blocked(state, j, a):
        state.lists[n.n_entered].entered = a
        n.n_entered += 1
        n.news = 1
    return int(a)


@inlined_rule
def end(state: Any, a: int, at: int, cause: int) -> None:
    """End a running attempt that was not killed, and its job if an error is not retried."""
    n, attempts = state.n, state.attempts
    useful = work_of(state.hangs, state, a, at)
    if end_hang(state.hangs, state, a, at, cause, useful):
        return
    n.news = 1
    if cause == codes.JOB_FAILED and n.retries:
        leave(state, a, at, codes.SILENT_ERROR, 0)
        job = state.jobs[attempts[a].job]
        job.errors = max(0, job.errors - 1)
        k = n.n_retried
        while k > 0 and state.lists[k - 1].retried > a:  # events have no fixed order
            state.lists[k].retried = state.lists[k - 1].retried
            k -= 1
        state.lists[k].retried = a
        n.n_retried += 1
        return
    leave(state, a, at, cause, max(0, useful))
    state.n.unfinished -= 1
    if state.n.predict == codes.OF_RECENT:
        note_run(state, a, at)
    note_progress(state, attempts[a].job, codes.OK if cause == codes.COMPLETED else codes.NOT_OK)


@rule
def end_killed(state: Any, i: int, at: int) -> None:
    """End the attempt of a row of kills. Its job waits for the acknowledgement."""
    row = state.kills[i]
    useful = remaining(state, row.attempt, row.decided, row.timing)[0]
    leave(state, row.attempt, at, row.cause, useful)
    if row.cause == codes.NODE_FAILURE:
        state.jobs[state.attempts[row.attempt].job].interruptions += 1


@rule
def acknowledged(state: Any, extended: Any, i: int, now: int) -> None:
    """Queue the remaining work of a killed attempt, begin its wait, or let it move."""
    row = state.kills[i]
    state.n.answered = 1
    if row.then > 0:
        requeue(state, extended, row.attempt, row.decided, row.timing, row.then, now)
    elif extended is not None and row.then == codes.MOVES:
        note_acknowledged(state, row.attempt)
    elif extended is not None:
        s, until, due = stop_of(state, row.victim), 0, 0
        if s >= 0:
            until, due = state.stops[s].at, state.stops[s].due
        begin_wait(state, row.attempt, row.victim, until, due, codes.FAILED, row.decided, now)


@rule
def change_nodes(
    state: Any, room: Any, extended: Any, changed: Any, up: bool, cause: int, now: int,
) -> int:  # fmt: skip
    """Let nodes (ascending) fail or come up. Note the attempts that failures hit."""
    n, attempts, owner = state.n, state.attempts, state.owner
    hit, n_held, first_hit = state.hits, 0, n.n_hit
    n.news = 1
    for i in range(len(changed)):
        node = changed[i]
        if state.failed[node] != up:
            return codes.IMPOSSIBLE
        state.failed[node] = not up
        if up:
            state.up_since[node] = now
        else:
            state.failed_at[node] = now
        n.n_down += -1 if up else 1
        change_use(state, room, node, up)
        if owner[node] == codes.FREE:
            continue
        a, listed = owner[node] - 1, up
        if attempts[a].number == codes.HOLD:
            n_held = insert_ascending(state.lists, n_held, a)
            continue
        for k in range(n.n_hit):
            listed |= hit[k].attempt == a
        if listed:
            continue
        k = n.n_hit
        while k > first_hit and hit[k - 1].attempt > a:  # ascending within an event
            hit[k].attempt = hit[k - 1].attempt
            k -= 1
        hit[k].attempt, attempts[a].failure = a, cause
        n.n_hit += 1
    if not up:
        n.n_failed_now = 1
        note_failed(state.lemons, changed)
        note_failure(state.tiers, state, changed, first_hit, cause)
    if extended is not None and n_held:
        note_held_nodes(state, n_held, now)
        if not up:
            lose_held_nodes(state, n_held, now)
    return codes.DONE


@rule
def is_due(state: Any, now: int) -> bool:
    """Return whether a scheduled stop, the end of a wait, or another wake is due."""
    if is_woken(state, now) or is_round(state.rounds, now) or returns(state.lemons, now):
        return True
    for s in range(state.n.n_stops):
        if state.stops[s].at <= now:
            return True
    for i in range(state.n.n_waits):
        if state.waits[i].until <= now and not state.waits[i].over:
            return True
    return False


@rule
def is_changed(state: Any) -> bool:
    """Return whether anything that a plan depends on has changed since the last plan."""
    n = state.n
    if n.n_entered or n.n_left or n.n_new_holds or n.n_refused or n.woken:
        return True
    for p in range(len(state.parts)):
        if state.parts[p].failures or state.parts[p].repairs:
            return True
    return False


@inlined_rule
def hears_all(state: Any) -> bool:
    """Return whether a reaction may have work to do after any message."""
    return bool(state.n.hears_all or empties(state.operations))


@inlined_rule
def settle(state: Any, extended: Any, now: int) -> int:
    """Complete what happened. Return the number of attempts hit, or -1 if nothing is to decide."""
    n, attempts, hit, n_hit = state.n, state.attempts, state.hits, 0
    for i in range(n.n_retried):
        retry(state, state.lists[i].retried, now)
    n.n_retried = 0
    begin_hung_waits(state.hangs, state, now)
    if extended is not None and n.n_moves and n.n_kills == 0:
        complete_moves(state, now)
    release(state, now)
    take_due_wakes(state, now)
    n.n_woken = returns(state.lemons, now)
    take_due_rounds(state.rounds, state, now)
    if n.n_woken:
        n.woken = 1
    for i in range(n.n_hit):
        a = hit[i].attempt
        if attempts[a].end < 0 and not (is_killed(state, a) or has_failed(state.hangs, a)):
            hit[n_hit].attempt = a
            note_tier(state.tiers, a, hit[i].tier)
            n_hit += 1
    n.n_hit, n_hit = 0, begin_hangs(state.hangs, state, n_hit, now)
    has_news, n.has_news = n.has_news and hears_all(state), 0
    has_news = has_news or are_due(state.operations)
    if not (n_hit or is_changed(state) or n.n_failed_now or has_news or is_due(state, now)):
        return -1
    if n.n_kills == 0:
        n.may_plan = n.two_passes
    n.n_first_kills = 0
    return n_hit


@rule
def decide(
    state: Any, room: Any, table: Any, cells: Any, extended: Any, recorder: Any, now: int
) -> int:
    """React and plan, until nothing is left to decide or kills must be acknowledged first.

    ``recorder`` is a `rebat.drive.plans.RuleRecorder`, or None in machine code and if no record of
    the plans is needed.

    A driver that asks Python policies calls the same steps, with a question instead of `steal` or
    of `plan_all`.
    """
    if react(state, room, extended, now):
        return go_on(state, room, table, cells, extended, recorder, now)
    return codes.DONE


@inlined_rule
def react(state: Any, room: Any, extended: Any, now: int) -> bool:
    """React to what happened. Return whether anything is to decide."""
    n, n_hit = state.n, settle(state, extended, now)
    if n_hit < 0:
        return False
    n_before, failures = n.n_kills, n.n_failed_now != 0
    n.n_failed_now = 0
    if n_hit or n.n_stops or n.n_waits:
        begin_reaction(state, extended, n_hit, now)
    if extended is not None and n.n_spares:  # after the free nodes at the failure were recorded
        keep_spares(state, room, now)
        reject_large(state)
    refused = n.n_refused
    n_hit = operate(state.operations, state, room, n_hit, now)
    refused = n.n_refused - refused
    return_lemons(state.lemons, state, room, now)
    exclude(state.lemons, state, room, now)
    wake_at = preempt(state.rounds, state, room, n_hit, now)
    if refused:  # news for the next reaction
        n.news = 1
    if n_hit or n.n_stops or n.n_waits or n.n_kills > n_before:
        if extended is not None and n.replacing:
            replace(state, room, n_hit, now)
        if extended is not None and failures:
            if n.stealing:
                give_up_steals(state, now)
            n.n_held_hit = 0  # only steals need to know which waiting jobs lost held nodes
        if n_hit and n.stealing:
            steal(state, extended, n_hit, now)
        end_reaction(state, extended, n_hit, n_before, now)
    request_round(state.rounds, state, wake_at, now)
    return True


@rule
def react_again(state: Any, room: Any, now: int) -> None:
    """React after a plan released jobs: empty nodes, and preempt jobs if a round is due."""
    n, n_before = state.n, state.n.n_kills
    operate(state.operations, state, room, 0, now)
    wake_at = preempt(state.rounds, state, room, 0, now)
    if n.n_kills > n_before:
        n.n_first_kills = n.n_kills
        emit(state, codes.KILLS, n_before, n.n_kills)
    request_round(state.rounds, state, wake_at, now)


@inlined_rule
def go_on(
    state: Any, room: Any, table: Any, cells: Any, extended: Any, recorder: Any, now: int
) -> int:
    """Plan until nothing is left to decide. LARGER_ROOM: call it again with larger arrays."""
    n = state.n
    while True:
        release(state, now)  # a wait that ended can give up its job, on which others depend
        if is_changed(state) and (n.n_kills == 0 or n.may_plan):
            if not plan_fits(state, room, table, 0):
                return codes.LARGER_ROOM
            outcome = plan_all(state, room, table, cells, recorder, now)
            if outcome != codes.DONE:
                return outcome
        if n.n_kills == 0 and extended is not None and n.n_waits and second_pass(state, now):
            continue
        if release(state, now):
            if extended is not None and n.n_spares:
                keep_spares(state, room, now)
                reject_large(state)
            react_again(state, room, now)
            continue
        return codes.DONE


@inlined_rule
def plan_all(state: Any, room: Any, table: Any, cells: Any, recorder: Any, now: int) -> int:
    """Plan in every group in which something has changed, and again if limits cut it short."""
    n, n_parts = state.n, len(state.parts)
    n.is_exceeded = 1
    if cells is not None:
        note_entered(state, cells)
        request_wake(state, next_wake(state, room, cells, now))
    if recorder is not None:
        n.now = now
        recorder.begin(state, room)
    while n.is_exceeded:
        n.is_exceeded = 0
        if n.accounted:
            account(state, room, now)
        for i in range(n.n_entered if n.parted else 0):
            a = state.lists[i].entered
            is_new = state.attempts[a].number == 0 and state.attempts[a].cause == 0
            if is_new and not is_allowed(state, a):
                reject(state, a, codes.REJECTED)
        nodes_changed = False
        for p in range(n_parts):
            if n.parted and not has_news(state, p):
                continue
            failures, repairs = state.parts[p].failures != 0, state.parts[p].repairs != 0
            named = table if recorder is None else recorder.table_of(p, table)
            places = None if recorder is None else recorder.places_of(p)
            outcome = plan(state, room, named, cells, places, p, failures, repairs, recorder, now)
            if outcome != codes.DONE:
                return outcome
            if recorder is not None:
                recorder.note(room, p)
            nodes_changed |= failures or repairs
            state.parts[p].failures = state.parts[p].repairs = 0
        if nodes_changed:
            for i in range(n.n_changed):
                node = room.changed[i]
                room.marked[node], room.reported[node] = False, state.down[node]
            n.n_changed = 0
        n.n_entered = n.n_left = n.n_new_holds = n.n_refused = n.woken = 0
    if recorder is not None:
        recorder.end(room, now)
    return codes.DONE
