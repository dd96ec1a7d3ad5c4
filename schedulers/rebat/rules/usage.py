# SPDX-License-Identifier: Apache-2.0
"""What users, accounts and queues use: numbers of running jobs and nodes, and decayed node time.

An attempt is charged when it starts, held nodes when a plan sees them. They are discharged at the
next plan after their end. Limits (`rebat.rules.limits`) count jobs and nodes. Queue orders by
usage and fair share (`rebat.kernels.fair_share`) add up node time.
"""

from __future__ import annotations

from typing import Any

from rebat.kernels import fair_share
from rebat.kernels.jit import rule
from rebat.models.formula import COLUMNS
from rebat.rules.limits import apply_limits, count, exceeds

USAGE, FAIRSHARE = map([*COLUMNS].index, ("usage", "fairshare"))


@rule
def use(state: Any, a: int, n_jobs: int, n_nodes: int, at: int) -> None:
    """Add jobs and nodes to what the owners of an attempt use from a time on."""
    if state.n.limited:
        count(state, a, n_jobs, n_nodes)
    if state.n.uses_usage:
        fair_share.hold(state.tree, state.jobs[state.attempts[a].job].share, n_nodes, at)


@rule
def charge(state: Any, a: int, n_nodes: int, at: int) -> None:
    """Count an attempt that starts, or held nodes."""
    discharge(state, a, at)
    state.attempts[a].charged = n_nodes
    use(state, a, 1, n_nodes, at)


@rule
def discharge(state: Any, a: int, now: int) -> None:
    """Count an attempt that was charged no longer."""
    if state.attempts[a].charged:
        use(state, a, -1, -state.attempts[a].charged, now)
        state.attempts[a].charged = 0


@rule
def account(state: Any, room: Any, now: int) -> None:
    """Count what happened since the last plan, and apply the limits."""
    n, lists, attempts = state.n, state.lists, state.attempts
    for i in range(n.n_left):
        discharge(state, lists[i].left, now)
    for i in range(n.n_new_holds):  # a held set can be in both lists
        h = lists[i].new_hold
        charge(state, h, attempts[h].size_of_hold, attempts[h].start)
    for i in range(n.n_entered if n.uses_usage else 0):  # before any factor is computed
        fair_share.enlist(state.tree, state.jobs[attempts[lists[i].entered].job].share)
    if n.limited:
        apply_limits(state, room)


@rule
def charge_due(
    state: Any, recorder: Any, p: int, queue: Any, visible: Any, positions: Any, n_due: int,
    now: int,
) -> int:  # fmt: skip
    """Charge the first of the due attempts that may start, and return their number.

    If limits do not allow all of them, another plan follows: now, or after a wake if the limits
    are functions in a file.
    """
    n = state.n
    for i in range(n_due):
        a = queue[visible[3, positions[i]] if n.limited else positions[i]]
        if n.is_exceeded or exceeds(state, recorder, a):
            n.is_exceeded, state.parts[p].withdrawn = n.limited, 1
            return i
        charge_start(state, recorder, a, state.jobs[state.attempts[a].job].size, now)
    return n_due


@rule
def charge_start(state: Any, recorder: Any, a: int, n_nodes: int, now: int) -> None:
    """Count an attempt that this plan starts."""
    if recorder is not None:
        recorder.starts(state, a)
    charge(state, a, n_nodes, now)


@rule
def set_usage(state: Any, table: Any, queue: Any, n: int, now: int) -> None:
    """Write the columns usage and fairshare of the first ``n`` attempts of a list."""
    tree = state.tree
    for at in range(n):
        row = state.jobs[state.attempts[queue[at]].job].share
        table[at, USAGE] = fair_share.usage_at(tree, row, now) / 1_000_000
    if state.n.uses_shares and n > 0:
        fair_share.refresh(tree, now)
        for at in range(n):
            row = state.jobs[state.attempts[queue[at]].job].share
            table[at, FAIRSHARE] = tree.rows[row].factor
