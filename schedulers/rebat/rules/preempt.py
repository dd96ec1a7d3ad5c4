# SPDX-License-Identifier: Apache-2.0
"""Rules: preemption in rounds (`rebat.policies.reactions.preemption` and `periodic`).

The argument ``rounds`` is a `rebat.state.tables.Rounds`, or None if jobs are not preempted.
"""

from __future__ import annotations

from typing import Any

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.by_value import precedes, precedes_alike, set_values
from rebat.rules.queue import is_before, is_before_alike, key_of
from rebat.rules.waits import call_at, emit, kill
from rebat.state import codes
from rebat.state.tables import CHANGED, LAST, N_STOPPED, N_WAKES, NEXT, WOKEN

# ---- wakes


@inlined_rule
def is_round(rounds: Any, now: int) -> bool:
    """Return whether a wake is due."""
    if rounds is not None:
        for i in range(rounds.own[N_WAKES]):
            if rounds.wakes[i, 0] <= now:
                return True
    return False


@inlined_rule
def take_due_rounds(rounds: Any, state: Any, now: int) -> None:
    """Count the wakes that are due, and remove them."""
    if rounds is not None:
        own, wakes, k = rounds.own, rounds.wakes, 0
        own[WOKEN] = 0
        for i in range(own[N_WAKES]):
            if wakes[i, 0] <= now:
                own[WOKEN] += wakes[i, 1]
            else:
                wakes[k, 0], wakes[k, 1] = wakes[i, 0], wakes[i, 1]
                k += 1
        own[N_WAKES] = k
        state.n.n_woken += own[WOKEN]


@rule
def request_round(rounds: Any, state: Any, at: int, now: int) -> None:
    """Request a wake at a time, unless it is 0."""
    if rounds is not None:
        n, own, wakes = state.n, rounds.own, rounds.wakes
        if at == 0:
            return
        own[NEXT] = at
        for i in range(own[N_WAKES]):
            if wakes[i, 0] == at:
                wakes[i, 1] += 1
                return
        wakes[own[N_WAKES], 0], wakes[own[N_WAKES], 1] = at, 1
        own[N_WAKES] += 1
        # if kills are pending, the call is requested when they are acknowledged
        lag = 0 if n.answered or n.n_kills else codes.UNKNOWN_LAG_US
        call_at(state, max(at, now + lag))


# ---- rounds


@inlined_rule
def has_queue(state: Any) -> bool:
    """Return whether any attempt is queued."""
    return bool(state.parts[0].n_queued or state.n.n_entered)


@rule
def ripe_at(rounds: Any, state: Any, now: int) -> int:
    """Return when the next job has run for the grace time, or now if there is other news."""
    n, own, at = state.n, rounds.own, FOREVER_US
    if own[WOKEN] != 1 or n.n_woken != 1:
        return now
    for i in range(n.n_running if has_queue(state) else 0):
        end = state.attempts[state.lists[i].running].start + n.grace
        if own[LAST] < end < at:
            at = end
    return at


@rule
def preempt(rounds: Any, state: Any, room: Any, n_hit: int, now: int) -> int:
    """Preempt jobs if a round is due. Return when the next wake is to be requested, or 0."""
    if rounds is not None:
        n, own, changed, ripe = state.n, rounds.own, state.n.news, ripe_at(rounds, state, now)
        n.news = 0
        lively = changed != 0 or ripe <= now
        if lively:
            own[CHANGED] = 1
        is_due = now % n.period == 0 or own[WOKEN] > 0
        if is_due and now > own[LAST] and own[CHANGED]:
            own[LAST], own[CHANGED] = now, lively
            if stop_for_head(rounds, state, room, n_hit, now):
                own[CHANGED] = changed = 1
        own[WOKEN] = n.n_woken = 0
        alive = n.n_running > 0 or n.n_waits > 0 or (changed != 0 and has_queue(state))
        since = now if own[CHANGED] else ripe
        if (alive or (ripe <= now and not n.all_submitted)) and since < FOREVER_US:
            at = max(now // n.period + 1, -(-since // n.period)) * n.period
            if not now < own[NEXT] <= at:
                return int(at)
    return 0


# ---- victims


@rule
def value_of(state: Any, room: Any, a: int, now: int) -> float:
    """Return the value of an attempt, if the queue order is a formula."""
    if state.n.order != codes.BY_VALUE:
        return 0.0
    room.positions[0] = a
    set_values(state, room, room.positions, 1, now, room.value_by_one)
    return float(room.value_by_one[0])


@rule
def head_of(state: Any, room: Any, now: int) -> int:
    """Return the first queued attempt."""
    n, head = state.n, -1
    if state.parts[0].n_queued:
        head = int(room.queue[0, 0])
    for i in range(n.n_entered):
        a = int(state.lists[i].entered)
        if head < 0:
            head = a
        elif n.order == codes.BY_VALUE:
            value, other = value_of(state, room, a, now), value_of(state, room, head, now)
            if precedes(state, a, value, head, other):
                head = a
        elif is_before(state, a, head, key_of(state, head, n.order), n.order):
            head = a
    return head


@rule
def is_earlier(state: Any, room: Any, a: int, b: int, now: int) -> bool:
    """Return whether attempt ``a`` would be before ``b`` in the queue with equal priorities."""
    if state.n.order == codes.BY_VALUE:
        value, other = value_of(state, room, a, now), value_of(state, room, b, now)
        return bool(precedes_alike(state, a, value, b, other))
    return bool(is_before_alike(state, a, b, key_of(state, b, state.n.order), state.n.order))


@rule
def n_usable(state: Any, a: int) -> int:
    """Return the number of usable nodes of an attempt."""
    first, nodes, scratch = state.attempts[a].nodes_at, state.nodes, state.n.n_nodes_used
    own = nodes[first : first + state.attempts[a].n_nodes_at]
    _, count = pool.usable_of(state.owner, state.down, own, False, nodes[scratch:])
    return int(count)


@rule
def may_stop(rounds: Any, state: Any, a: int, head: int, n_hit: int, now: int) -> bool:
    """Return whether a running attempt may be stopped for the first queued one."""
    if now - state.attempts[a].start < state.n.grace:
        return False
    for i in range(n_hit):
        if state.hits[i].attempt == a:
            return False
    for i in range(rounds.own[N_STOPPED]):
        if rounds.stopped[i, 0] == state.attempts[a].job and rounds.stopped[i, 1] == head:
            return False
    return True


@rule
def forget_started(rounds: Any, state: Any) -> None:
    """Forget the jobs that were stopped for attempts that have left the queue."""
    stopped, k = rounds.stopped, 0
    for i in range(rounds.own[N_STOPPED]):
        row = state.attempts[stopped[i, 1]]
        if row.start < 0 and row.cause == 0:
            stopped[k, 0], stopped[k, 1] = stopped[i, 0], stopped[i, 1]
            k += 1
    rounds.own[N_STOPPED] = k


@rule
def stop_for_head(rounds: Any, state: Any, room: Any, n_hit: int, now: int) -> bool:
    """Stop the last jobs in queue order, if the first queued attempt then fits.

    Return whether any is to be stopped.
    """
    n, jobs, attempts, victims = state.n, state.jobs, state.attempts, state.lists
    if not has_queue(state) or n.n_kills or n.n_stops or n.n_waits:
        return False
    forget_started(rounds, state)
    head = head_of(state, room, now)
    short, n_later, most = jobs[attempts[head].job].size - n.n_free, 0, 0
    for i in range(n.n_running if short > 0 else 0):
        a = state.lists[i].running
        if may_stop(rounds, state, a, head, n_hit, now) and is_earlier(state, room, head, a, now):
            victims[n_later].spared = a
            n_later += 1
            most += jobs[attempts[a].job].size
    if short <= 0 or most < short:
        return False
    n_victims = 0
    while n_victims < n_later and short > 0:
        last = n_victims
        for i in range(last + 1, n_later):
            if is_earlier(state, room, victims[last].spared, victims[i].spared, now):
                last = i
        a = victims[last].spared
        victims[last].spared, victims[n_victims].spared = victims[n_victims].spared, a
        n_victims += 1
        short -= n_usable(state, a)
    for i in range(n_victims if short <= 0 else 0):
        a, k = victims[i].spared, rounds.own[N_STOPPED]
        rounds.stopped[k, 0], rounds.stopped[k, 1] = attempts[a].job, head
        rounds.own[N_STOPPED] += 1
        if jobs[attempts[a].job].once:
            emit(state, codes.REFUSE, a, 0)
            n.n_refused += 1
            n.news = 1
            continue
        attempts[a].thief = head + 1
        kill(state, a, now, codes.NOW, codes.REGULAR, codes.PREEMPTED, -1)
    return short <= 0
