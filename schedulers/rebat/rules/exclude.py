# SPDX-License-Identifier: Apache-2.0
"""Rules: lemon nodes, which are drained for a time (`rebat.policies.reactions.exclusion`).

A lemon node is a node whose failures have hit jobs several times. The argument ``lemons`` is a
`rebat.state.tables.Lemons`, or None if nodes are not excluded.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import pool
from rebat.kernels.jit import inlined_rule, rule
from rebat.rules.nodes import change_drains
from rebat.rules.waits import call_at
from rebat.state import codes
from rebat.state.tables import N_EXCLUDED, N_FAILED, RETURNS


@inlined_rule
def note_failed(lemons: Any, changed: Any) -> None:
    """Note that nodes failed."""
    if lemons is not None:
        for i in range(len(changed)):
            node = changed[i]
            if not lemons.is_listed[node]:
                lemons.is_listed[node] = True
                lemons.failed[lemons.own[N_FAILED]] = node
                lemons.own[N_FAILED] += 1


@inlined_rule
def returns(lemons: Any, now: int) -> bool:
    """Return whether the exclusion of a node is over."""
    if lemons is not None:
        return bool(0 < lemons.own[RETURNS] <= now)
    return False


@rule
def return_lemons(lemons: Any, state: Any, room: Any, now: int) -> None:
    """Return the nodes to service whose exclusion is over."""
    if lemons is not None:
        own, until, at, k = lemons.own, lemons.until, state.n.n_nodes_used, 0
        if not 0 < own[RETURNS] <= now:
            return
        own[RETURNS] = 0
        for node in range(len(until)):
            if 0 < until[node] <= now:
                until[node] = 0
                own[N_EXCLUDED] -= 1
                k = pool.extend(state.nodes[at:], k, node, node)
            elif until[node] and (own[RETURNS] == 0 or until[node] < own[RETURNS]):
                own[RETURNS] = until[node]
        state.n.n_nodes_used += k
        change_drains(state, room, at, k, True, codes.FOR_LEMON, now)


@inlined_rule
def return_all(lemons: Any, state: Any, room: Any) -> None:
    """Return all nodes to service, after the last job, when their exclusions are over."""
    if lemons is not None:
        while lemons.own[RETURNS]:
            return_lemons(lemons, state, room, lemons.own[RETURNS])


@rule
def is_lemon(lemons: Any, state: Any, node: int, now: int) -> bool:
    """Count a failure that hit a job. Return whether there were enough of them."""
    n, times, k = state.n, lemons.times[node], 0
    for i in range(lemons.n_times[node]):
        if times[i] >= now - n.within:
            times[k] = times[i]
            k += 1
    if k == n.hits:  # earlier failures no longer matter
        for i in range(1, k):
            times[i - 1] = times[i]
        k -= 1
    times[k] = now
    lemons.n_times[node] = k + 1
    return bool(k + 1 >= n.hits)


@inlined_rule
def exclude(lemons: Any, state: Any, room: Any, now: int) -> None:
    """Exclude the nodes whose failures have hit jobs too often."""
    if lemons is not None:
        n, own, at, k = state.n, lemons.own, state.n.n_nodes_used, 0
        n_left = n.most_excluded - own[N_EXCLUDED]
        for i in range(own[N_FAILED]):
            node = lemons.failed[i]
            lemons.is_listed[node] = False
            if state.owner[node] == codes.FREE or lemons.until[node]:
                continue
            if is_lemon(lemons, state, node, now) and n_left > 0:
                n_left -= 1
                lemons.n_times[node], lemons.until[node] = 0, now + n.excluded_for
                k = pool.insert(state.nodes[at:], k, node)
        own[N_FAILED] = 0
        if k:
            n.n_nodes_used += k
            own[N_EXCLUDED] += change_drains(state, room, at, k, False, codes.FOR_LEMON, now)
            if own[RETURNS] == 0:  # otherwise, an earlier one returns first
                own[RETURNS] = now + n.excluded_for
            call_at(state, now + n.excluded_for)
