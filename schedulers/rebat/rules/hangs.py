# SPDX-License-Identifier: Apache-2.0
"""Rules: attempts that hang after a failure, until the failure is detected (`core.options`).

    ========  ===========  ==================================================
    attempt   becomes      by
    ========  ===========  ==================================================
    running   hangs        settle: begin_hangs (a row of ``stops``)
    hangs     hit          settle: begin_hangs, at the end of the hang
    hangs     waits        end_hang, because the simulator completed it; then
                           settle: begin_hung_waits
    hangs     ended        end_hang, because it reached its walltime
    ========  ===========  ==================================================

While an attempt hangs, it keeps its nodes, and other failures of them have no effect. All scheduled
stops are hangs. The argument ``hangs`` is a `rebat.state.tables.Hangs`, or None without stages of
recovery.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.stops import remaining
from rebat.rules.waits import begin_wait, call_at, leave, remove_row, stop_of
from rebat.state import codes
from rebat.state.tables import CAUSE, DUE, ENDED, INIT, SINCE


@inlined_rule
def has_failed(hangs: Any, a: int) -> bool:
    """Return whether an attempt has hung, or hangs."""
    if hangs is not None:
        return bool(hangs.attempts[a, SINCE] > 0)
    return False


@inlined_rule
def begin_hangs(hangs: Any, state: Any, n_hit: int, now: int) -> int:
    """Let the attempts that failures hit hang. The hit attempts are then those whose hangs end.

    Return their number.
    """
    if hangs is not None:
        n, stops = state.n, state.stops
        for i in range(n_hit):
            begin_hang(hangs, state, state.hits[i].attempt, now)
        n_hit, s = 0, 0
        while s < n.n_stops:
            if stops[s].at <= now:
                state.hits[n_hit].attempt = stops[s].victim
                n_hit += 1
                n.n_stops = remove_row(stops, n.n_stops, s)
            else:
                s += 1
    return n_hit


@rule
def begin_hang(hangs: Any, state: Any, a: int, now: int) -> None:
    """Let an attempt hang for as long as the cause of its failure determines."""
    stages, cause, k = hangs.stages, state.attempts[a].failure, 0
    for i in range(1, len(stages)):
        if stages[i].cause == cause:
            k = i
    due = now + stages[k].hung
    hangs.attempts[a, SINCE], hangs.attempts[a, DUE] = now + 1, due
    hangs.attempts[a, INIT], hangs.attempts[a, CAUSE] = stages[k].init, cause
    stop = state.stops[state.n.n_stops]
    stop.victim, stop.decided, stop.due, stop.at = a, now, due, due
    stop.timing, stop.then, stop.cause = codes.NOW, codes.FAILED, codes.NODE_FAILURE
    state.n.n_stops += 1
    if due > now:
        call_at(state, due)


@inlined_rule
def work_of(hangs: Any, state: Any, a: int, at: int) -> int:
    """Return the progress of an attempt that ends. Work after a failure does not count."""
    if hangs is not None and stop_of(state, a) >= 0:
        return int(remaining(state, a, at, codes.NOW)[0])
    return max(0, at - state.attempts[a].start - state.attempts[a].recovery)


@inlined_rule
def end_hang(hangs: Any, state: Any, a: int, at: int, cause: int, useful: int) -> bool:
    """End the hang of an attempt that ended in the simulator.

    Return whether the attempt failed, so that its job runs again. Then its nodes are held until the
    end of the hang (`begin_hung_waits`).
    """
    if hangs is not None:
        n, s = state.n, stop_of(state, a)
        if s < 0:
            return False
        n.n_stops = remove_row(state.stops, n.n_stops, s)
        if cause == codes.WALLTIME:
            return False
        hangs.attempts[a, ENDED] = cause + 1
        leave(state, a, at, codes.NODE_FAILURE, useful)
        state.jobs[state.attempts[a].job].interruptions += 1
        k = n.n_completed
        while k > 0 and state.lists[k - 1].completed > a:  # events have no fixed order
            state.lists[k].completed = state.lists[k - 1].completed
            k -= 1
        state.lists[k].completed = a
        n.n_completed += 1
        return True
    return False


@inlined_rule
def begin_hung_waits(hangs: Any, state: Any, now: int) -> None:
    """Hold the nodes of attempts that completed while they hung. These nodes are up now."""
    if hangs is not None:
        for i in range(state.n.n_completed):
            a = state.lists[i].completed
            due = int(hangs.attempts[a, DUE])
            begin_wait(state, a, -1, due, due, codes.FAILED, now, now)
        state.n.n_completed = 0
