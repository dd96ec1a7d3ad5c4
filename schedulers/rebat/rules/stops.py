# SPDX-License-Identifier: Apache-2.0
"""Rules: what remains after a stop, and the victims of steals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rebat.core.units import FOREVER_US
from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.models.interruptions import interrupted, with_losses, written
from rebat.models.remaining import RJMS_DELAY_S
from rebat.rules.images import imaged, restart_of, without_checkpoints
from rebat.rules.queue import text_first
from rebat.rules.steals import Candidate, Steal, is_accepted, tie_key, victim_key
from rebat.rules.tiers import at_risk_of, continued, tier_of
from rebat.state import codes
from rebat.state.tables import INIT, SINCE

MOMENT_US, MOMENT_S = 100_000, 0.1
"""Time after which the authors' program stops a victim that still recovers (timing T2)."""


@inlined_rule
def pattern(state: Any, a: int) -> Any:
    """Return the period, the cost and the recovery of an attempt's checkpoints."""
    if state.n.six_digits:
        return (
            state.attempts[a].own_period,
            state.attempts[a].own_cost,
            state.attempts[a].own_restart,
        )
    profiles, p = state.profiles, state.jobs[state.attempts[a].job].profile
    return profiles[p].period, profiles[p].cost, profiles[p].restart


@inlined_rule
def failed_at(hangs: Any, a: int, now: int) -> int:
    """Return the time of an attempt's failure. Work after it does not count. Default: now."""
    if hangs is not None and hangs.attempts[a, SINCE] > 0:
        return int(hangs.attempts[a, SINCE]) - 1
    return now


@inlined_rule
def with_init(hangs: Any, state: Any, a: int, recovery: int) -> int:
    """Return a recovery plus the time to initialise the next attempt of a failed job."""
    if hangs is not None and hangs.attempts[a, INIT] > 0:
        profile = state.profiles[state.jobs[state.attempts[a].job].profile]
        is_written = profile.checkpoints == codes.WRITTEN
        load = 0 if is_written and profile.period + profile.cost <= 1 else recovery
        return int(hangs.attempts[a, INIT]) + load
    return recovery


@rule
def remaining(state: Any, a: int, now: int, timing: int) -> Any:
    """Return what remains of an attempt after a stop (`rebat.models.checkpoint`).

    The values are those of `interrupted`. The progress is negative if work of earlier attempts is
    lost.
    """
    parameters, attempts, p = state.n, state.attempts, state.jobs[state.attempts[a].job].profile
    at, first, recovery = failed_at(state.hangs, a, now), attempts[a].first, attempts[a].recovery
    ran, tier = at - attempts[a].start, tier_of(state.tiers, a)
    writes, profile = state.profiles[p].checkpoints == codes.WRITTEN, state.profiles[p]
    if timing == codes.IMAGE:
        return imaged(
            state.operations, attempts[a].job, writes, profile.period, profile.cost, first,
            recovery, ran,
        )  # fmt: skip
    if not writes:
        first, recovery = without_checkpoints(state.operations, a, first)
        return 0, first, recovery, 0
    period, cost, load = pattern(state, a)
    if tier > 0:
        useful, first, recovery = continued(
            state.tiers, p, a, period, cost, load, first, recovery, ran
        )
        return useful, first, recovery, 0
    if period + cost <= 1:  # perfect checkpoints
        paid = min(ran, recovery)
        return ran - paid, first, recovery - paid, 0
    useful, first, recovery, wait = interrupted(
        period, cost, load, restart_of(state.operations, a, load), first, recovery, ran, timing,
        parameters.authors != 0, MOMENT_US,
    )  # fmt: skip
    useful, first = with_losses(at_risk_of(state.tiers, a), useful, first)
    return useful, first, recovery, wait


@inlined_rule
def less_by(attempts: Any, a: int, useful: int, recovery: int) -> Any:
    """Return by how much a length or walltime is shorter in the next attempt (eq. 4)."""
    return attempts[a].recovery + useful - recovery


# ---- six digits


@rule
def to_us(seconds: float) -> int:
    """Convert seconds to the nearest microsecond."""
    return int(np.rint(seconds * 1_000_000))


@inlined_rule
def written_us(us: int, parameters: Any) -> int:
    """Return a duration with the number of digits of the dialect."""
    return to_us(written(us / 1_000_000)) if parameters.six_digits else us


@rule
def write_resubmission(state: Any, a: int, b: int, ran: Any, timing: int) -> None:
    """Write the numbers of resubmission ``b`` of attempt ``a`` as in `rebat.models.remaining`.

    ``ran`` is the time for which the attempt ran, in seconds.
    """
    parameters, profiles = state.n, state.profiles
    attempts, p = state.attempts, state.jobs[state.attempts[a].job].profile
    period_us, cost_us, restart_us = pattern(state, a)
    period, cost, restart = period_us / 1_000_000, cost_us / 1_000_000, restart_us / 1_000_000
    if attempts[a].number == 0 and profiles[p].fraction > 0:
        period = math.ldexp(profiles[p].fraction / 2**53, int(profiles[p].exponent))
    first, before = attempts[a].first / 1_000_000, attempts[a].recovery / 1_000_000
    if attempts[a].first == period_us:
        first = period
    useful, next_first, recovery, _ = interrupted(
        period, cost, restart, restart, first, before, ran, timing, parameters.authors != 0,
        MOMENT_S,
    )  # fmt: skip
    delay, wall = attempts[a].delay / 1_000_000, attempts[a].wall / 1_000_000
    bare = (wall + RJMS_DELAY_S - before) - RJMS_DELAY_S
    attempts[b].delay = max(1, to_us(written(recovery + (delay - before) - useful)))
    attempts[b].wall = FOREVER_US
    if attempts[a].wall < FOREVER_US:
        attempts[b].wall = max(1, to_us(written(recovery + bare - useful)))
    state.attempts[b].own_period, state.attempts[b].own_cost = (
        to_us(written(period)),
        to_us(written(cost)),
    )
    state.attempts[b].own_restart = to_us(written(restart))
    attempts[b].first, attempts[b].recovery = to_us(written(next_first)), to_us(written(recovery))


# ---- victims


@inlined_rule
def planned_end(attempts: Any, a: int) -> Any:
    """Return the latest possible end of a running attempt or of held nodes."""
    return min(attempts[a].start + attempts[a].wall, FOREVER_US)


@inlined_rule
def release_of(state: Any, a: int) -> Any:
    """Return the release time of an attempt."""
    parameters, jobs = state.n, state.jobs
    attempts = state.attempts
    if parameters.release == codes.OF_JOB:
        return jobs[attempts[a].job].submit
    return attempts[a].queued


@rule
def lost_nodes(state: Any, a: int) -> Any:
    """Return how many nodes of an attempt are down."""
    first, k = state.attempts[a].nodes_at, state.attempts[a].n_nodes_at
    return pool.n_down(state.down, state.down_in, state.nodes[first : first + k])


@inlined_rule
def n_given(operations: Any, state: Any, a: int) -> Any:
    """Return how many nodes a victim gives. Its nodes are up, but operations can drain them."""
    size = state.jobs[state.attempts[a].job].size
    if operations is not None:
        size -= lost_nodes(state, a)
    return size


@inlined_rule
def candidate_of(state: Any, now: int, a: int) -> Any:
    """Return what victim rules read of a running attempt."""
    attempts, lost = state.attempts, 0
    if state.n.counts_lost:
        saved = attempts[a].recovery + remaining(state, a, now, codes.NOW)[0]
        lost = max(0, now - attempts[a].start - saved)
    size, left = state.jobs[attempts[a].job].size, planned_end(attempts, a) - now
    return Candidate(size, attempts[a].start, release_of(state, a), lost, left)


@rule
def goes_first(state: Any, now: int, a: int, b: int) -> Any:
    """Return whether the victim rule prefers attempt ``a`` to attempt ``b``."""
    parameters, jobs, attempts = state.n, state.jobs, state.attempts
    candidate, other = candidate_of(state, now, a), candidate_of(state, now, b)
    key, other_key = victim_key(parameters.victim, candidate), victim_key(parameters.victim, other)
    if key != other_key:
        return key < other_key
    if candidate.n_nodes != other.n_nodes:
        return candidate.n_nodes < other.n_nodes
    key, other_key = tie_key(parameters.tie, candidate), tie_key(parameters.tie, other)
    if key != other_key:
        return key < other_key
    if candidate.release_us != other.release_us:
        return candidate.release_us > other.release_us
    if parameters.tie_by_text:
        return text_first(attempts, jobs, a, b)
    i, j = attempts[a].job, attempts[b].job
    return i > j if parameters.release == codes.OF_JOB else a > b


@rule
def victim_of(state: Any, n_spared: int, now: int, n_more: int, q: int) -> Any:
    """Return the attempt that gives a node to a failed attempt, or -1 if there is none.

    ``n_more`` is the number of nodes that the failed attempt lacks, and ``q`` is its partition.
    """
    parameters, jobs = state.n, state.jobs
    best, attempts = -1, state.attempts
    for k in range(state.n.n_running):
        a = state.lists[k].running
        if jobs[attempts[a].job].partition != q:
            continue
        if parameters.fitting and n_given(state.operations, state, a) < n_more:
            continue
        spared = parameters.chosen_once and attempts[a].thief > 0
        for i in range(n_spared):
            spared |= state.lists[i].spared == a
        if spared:
            continue
        if best < 0 or goes_first(state, now, a, best):
            best = a
    return -1 if best < 0 or n_given(state.operations, state, best) < n_more else best


@rule
def accepts(state: Any, now: int, failed: int, victim: int, timing: int) -> Any:
    """Return whether the criterion accepts a steal."""
    waits = state.waits
    parameters, jobs = state.n, state.jobs
    attempts = state.attempts
    i, j = attempts[victim].job, attempts[failed].job
    next_end = next_end_besides = FOREVER_US
    wait = victim_end = failed_left = victim_left = 0
    if parameters.judges_flows:
        for k in range(state.n.n_running):
            a = state.lists[k].running
            if a != failed and jobs[attempts[a].job].partition == jobs[j].partition:
                end = planned_end(attempts, a)
                next_end = min(next_end, end)
                if a != victim:
                    next_end_besides = min(next_end_besides, end)
        victim_end = planned_end(attempts, victim)
        if parameters.program_k3:
            for k in range(state.n.n_waits):
                h = waits[k].hold
                if h >= 0 and jobs[attempts[h].job].partition == jobs[j].partition:
                    end = planned_end(attempts, h)
                    next_end, next_end_besides = min(next_end, end), min(next_end_besides, end)
            victim_end -= attempts[victim].recovery
        useful, _, recovery, _ = remaining(state, failed, now, codes.NOW)
        failed_left = attempts[failed].wall - less_by(attempts, failed, useful, recovery)
        useful, _, recovery, wait = remaining(state, victim, now, timing)
        victim_left = attempts[victim].wall - less_by(attempts, victim, useful, recovery)
    steal = Steal(
        jobs[j].size, jobs[i].size, release_of(state, failed), release_of(state, victim),
        now + wait, failed_left, victim_left, victim_end, next_end, next_end_besides,
    )  # fmt: skip
    return is_accepted(parameters.criterion, steal)
